// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/run/questions"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/rules"
)

// request returns one for a host, by CONNECT.
func request(t testing.TB, authority string) network.Request {
	t.Helper()
	host, port, err := network.ParseAuthority(authority, 443)
	if err != nil {
		t.Fatal(err)
	}
	return network.Request{Protocol: network.HTTPSConnect, Host: host, Port: port}
}

// A hostQuestions that notes what it asks; answers come from a channel.
type scripted struct {
	HostQuestions
	asked   atomic.Int32
	answers chan approval.Decision
}

func newScripted() *scripted {
	s := &scripted{answers: make(chan approval.Decision)}
	s.Questions = &questions.Command{Limit: new(questions.Limit)}
	s.Ask = func(ctx context.Context, _ network.Request) (approval.Decision, error) {
		s.asked.Add(1)
		select {
		case d := <-s.answers:
			return d, nil
		case <-ctx.Done():
			return approval.Decision{}, ctx.Err()
		}
	}
	return s
}

// TestOneQuestion: a hundred connections to one new host are one question, whichever protocol they
// come by; other ports are others.
func TestOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		defer s.Questions.Close()
		var allowed atomic.Int32
		var waiting sync.WaitGroup
		for i := range 100 {
			waiting.Go(func() {
				r := request(t, "new.example:443")
				r.Protocol = []network.Protocol{network.HTTP, network.HTTPSConnect, network.SOCKS5TCP,
					network.TransparentTCP}[i%4]
				if d := s.Decide(t.Context(), r); d.Ruling == network.Allow && d.Source == network.Decider {
					allowed.Add(1)
				}
			})
		}
		synctest.Wait()
		if n := s.asked.Load(); n != 1 {
			t.Errorf("%d questions", n)
		}
		s.answers <- approval.Decision{Answer: approval.Approved}
		waiting.Wait()
		if allowed.Load() != 100 {
			t.Errorf("%d allowed", allowed.Load())
		}
		if d := s.Decide(t.Context(), request(t, "new.example:443")); d.Ruling != network.Allow ||
			s.asked.Load() != 1 {
			t.Errorf("later: %+v after %d questions", d, s.asked.Load())
		}
		go func() { s.answers <- approval.Decision{Answer: approval.Denied} }()
		if d := s.Decide(t.Context(), request(t, "new.example:8443")); d.Ruling != network.Deny ||
			s.asked.Load() != 2 {
			t.Errorf("another port: %+v after %d questions", d, s.asked.Load())
		}
		udp := request(t, "new.example:443")
		udp.Protocol = network.SOCKS5UDP
		go func() { s.answers <- approval.Decision{Answer: approval.Denied} }()
		if d := s.Decide(t.Context(), udp); d.Ruling != network.Deny || s.asked.Load() != 3 {
			t.Errorf("datagrams: %+v after %d questions", d, s.asked.Load())
		}
	})
}

// TestAnswers: what each answer means for the connection that waits, and for the next one.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer approval.Decision
		err    error
		ruling network.Ruling
		reason network.Reason
		again  bool // the next request asks anew
	}{
		{"once", approval.Decision{Answer: approval.Approved}, nil, network.Allow, network.Allowed, false},
		{"for the session", approval.Decision{Answer: approval.ApprovedForSession}, nil, network.Allow, network.Allowed, false},
		{"remembered", approval.Decision{Answer: approval.ApprovedHost, Host: "h.example"}, nil, network.Allow, network.Allowed, false},
		{"remembered as denied", approval.Decision{Answer: approval.ApprovedHost, Host: "h.example", Deny: true}, nil, network.Deny, network.NotAllowed, false},
		{"denied", approval.Decision{}, nil, network.Deny, network.NotAllowed, false},
		{"abort", approval.Decision{Answer: approval.Abort}, nil, network.Deny, network.NotAllowed, false},
		{"no answer in the time of an approver", approval.Decision{Answer: approval.TimedOut}, nil, network.Deny, network.ApprovalTimeout, true},
		{"an error with an approval", approval.Decision{Answer: approval.Approved}, errors.New("broken"), network.Deny, network.NotAllowed, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := 0
			var told []approval.Answer
			d := HostQuestions{
				Questions: &questions.Command{Limit: new(questions.Limit)}, Ask: func(context.Context,
					network.Request) (approval.Decision, error) {
					asked++
					return c.answer, c.err
				},
				Answered: func(_ network.Request, d approval.Decision) { told = append(told, d.Answer) },
			}
			defer d.Questions.Close()
			got := d.Decide(t.Context(), request(t, "h.example"))
			if got.Ruling != c.ruling || got.Reason != c.reason || got.Source != network.Decider {
				t.Errorf("%+v", got)
			}
			if (c.err == nil) != (len(told) == 1) {
				t.Errorf("told %v", told)
			}
			d.Decide(t.Context(), request(t, "h.example"))
			if (asked == 2) != c.again {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

// TestNoAnswer: after two minutes a question is withdrawn, and the next request asks anew.
func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		defer s.Questions.Close()
		start := time.Now()
		d := s.Decide(t.Context(), request(t, "slow.example"))
		if d.Ruling != network.Deny || d.Reason != network.ApprovalTimeout ||
			time.Since(start) != answerTime {
			t.Errorf("%+v after %v", d, time.Since(start))
		}
		go func() { s.answers <- approval.Decision{Answer: approval.Approved} }()
		if d := s.Decide(t.Context(), request(t, "slow.example")); d.Ruling != network.Allow {
			t.Errorf("asked anew: %+v", d)
		}
	})
}

// TestGone: a client that goes away ends its own wait, and not that of others.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		defer s.Questions.Close()
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan network.Decision, 2)
		go func() { results <- s.Decide(ctx, request(t, "h.example")) }()
		synctest.Wait()
		go func() { results <- s.Decide(t.Context(), request(t, "h.example")) }()
		synctest.Wait()
		cancel()
		if d := <-results; d.Ruling != network.Deny {
			t.Errorf("the one that went away: %+v", d)
		}
		s.answers <- approval.Decision{Answer: approval.Approved}
		if d := <-results; d.Ruling != network.Allow || s.asked.Load() != 1 {
			t.Errorf("the other one: %+v after %d questions", d, s.asked.Load())
		}
	})
}

// TestNoQuestions: without HostQuestions every host is denied.
func TestNoQuestions(t *testing.T) {
	var none *HostQuestions
	if d := none.Decide(t.Context(), request(t, "h.example")); d.Ruling != network.Deny ||
		d.Source != network.BaselinePolicy {
		t.Errorf("%+v", d)
	}
}

// TestTooMany: what is above the bound of open questions is denied at once.
func TestTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		const bound = 8
		done := make(chan network.Decision, bound+1)
		for i := range bound + 1 {
			go func() { done <- s.Decide(t.Context(), request(t, fmt.Sprintf("h%d.example", i))) }()
		}
		synctest.Wait()
		if d := <-done; d.Reason != network.TooManyPending || d.Ruling != network.Deny || len(done) != 0 {
			t.Errorf("%+v, and %d more", d, len(done))
		}
		s.Questions.Close()
	})
}

// TestQuestion: what a question shows, and what its answers remember.
func TestQuestion(t *testing.T) {
	for _, c := range []struct {
		name      string
		authority string
		protocol  network.Protocol
		requires  string
		word      string
		pattern   string
		opens     []network.Protocol
	}{
		{"CONNECT", "h.example:8443", network.HTTPSConnect, "host:h.example:8443", "https", "h.example", []network.Protocol{network.HTTPSConnect, network.TransparentTCP}},
		{"HTTP", "h.example:80", network.HTTP, "host:h.example:80", "http", "h.example", []network.Protocol{network.HTTP}},
		{"SOCKS5", "h.example:22", network.SOCKS5TCP, "host:h.example:22", "socks5_tcp", "h.example", []network.Protocol{network.SOCKS5TCP, network.TransparentTCP}},
		{"a redirected connection for https", "h.example:443", network.TransparentTCP, "host:h.example:443", "https", "h.example", []network.Protocol{network.HTTPSConnect, network.TransparentTCP}},
		{"another one", "h.example:22", network.TransparentTCP, "host:h.example:22", "socks5_tcp", "h.example", []network.Protocol{network.SOCKS5TCP, network.TransparentTCP}},
		{"datagrams", "h.example:53", network.SOCKS5UDP, "host:h.example:53", "socks5_udp", "h.example", []network.Protocol{network.SOCKS5UDP}},
		{"IPv6", "[2001:4860::1]:443", network.HTTPSConnect, "host:[2001:4860::1]:443", "https", "[2001:4860::1]", []network.Protocol{network.HTTPSConnect, network.TransparentTCP}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := request(t, c.authority)
			r.Protocol = c.protocol
			q := approval.Request{Key: "command", Environment: "e", Runs: 1}
			FillHostQuestion(&q, r, true)
			if len(q.Requires) != 1 || q.Requires[0] != c.requires || q.Runs != 0 || q.Key == "command" ||
				len(q.Offers) != 2 {
				t.Errorf("%+v", q)
			}
			if o := q.Offers[0]; o.Deny || o.Host != r.Host.String() || o.Protocol != c.word ||
				!q.Offers[1].Deny {
				t.Errorf("offers %+v", q.Offers)
			}
			rule, entry := HostAmendment(r, false)
			if rule.Protocol != c.word || rule.Decision != rules.Allow || entry.Pattern != c.pattern ||
				entry.Deny || !slices.Equal(entry.Protocols, c.opens) {
				t.Errorf("%+v %+v", rule, entry)
			}
			if _, _, err := new(rules.Set).AmendNetwork(rule); err != nil {
				t.Error(err)
			}
			rule, entry = HostAmendment(r, true)
			if rule.Decision != rules.Forbid || !entry.Deny || entry.Protocols != nil {
				t.Errorf("denied: %+v %+v", rule, entry)
			}
		})
	}
	t.Run("strict review remembers nothing", func(t *testing.T) {
		var q approval.Request
		if FillHostQuestion(&q, request(t, "h.example"), true); q.Key != "" || len(q.Offers) != 0 {
			t.Errorf("%+v", q)
		}
	})
}
