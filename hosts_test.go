// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// wants returns a request for a host, by CONNECT.
func wants(t testing.TB, authority string) network.Request {
	t.Helper()
	host, port, err := network.ParseAuthority(authority, 443)
	if err != nil {
		t.Fatal(err)
	}
	return network.Request{Protocol: network.HTTPSConnect, Host: host, Port: port}
}

// hostRunner returns a Runner with a managed network that asks, whose commands want hosts: their words.
// What they got is noted by their first word.
type hostRunner struct {
	*Runner
	events collector
	asked  atomic.Int32

	mu  sync.Mutex
	got map[string][]network.Decision
}

func newHostRunner(t *testing.T, a approval.Approver) *hostRunner {
	t.Helper()
	h := &hostRunner{got: map[string][]network.Decision{}}
	h.Runner, _ = fakeRunner(&h.events, func(spec *executor.Spec, p *e2e.FakeProcess) {
		for _, host := range spec.Args[1:] {
			d := spec.Network.Policy().Decide(wants(t, host))
			if d.Ruling == network.Ask {
				d = spec.AskHost(t.Context(), wants(t, host))
			}
			if spec.OnRecord != nil {
				spec.OnRecord(network.Record{Host: host, Decision: d.Ruling, Reason: d.Reason})
			}
			h.mu.Lock()
			h.got[spec.Args[0]] = append(h.got[spec.Args[0]], d)
			h.mu.Unlock()
			if d.Ruling != network.Allow {
				p.Exit.Code = 1
			}
		}
		select {
		case <-p.Stopped:
			p.Exit.Stopped = true
		default:
		}
	})
	h.Policy = sandbox.ReadOnly().WithNetwork(sandbox.NetworkProxy)
	p, err := network.New(network.Config{Mode: network.Full, Ask: true})
	if err != nil {
		t.Fatal(err)
	}
	h.Network = p
	if a != nil {
		h.Approver = approval.Func(func(ctx context.Context, q *approval.Request) (approval.Decision, error) {
			h.asked.Add(1)
			return a.Approve(ctx, q)
		})
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// run runs a command that wants hosts, and returns what it got, in their order: the words of rulings.
func (h *hostRunner) run(t *testing.T, words ...string) (string, *Result, error) {
	t.Helper()
	res, err := h.Run(t.Context(), &Cmd{Args: words, Dir: "/w"})
	var got []string
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range h.got[words[0]] {
		got = append(got, d.Ruling.String())
	}
	return strings.Join(got, " "), res, err
}

// TestHostAnswers is about what an answer opens, for this command and for the next one of the Runner.
func TestHostAnswers(t *testing.T) {
	for _, c := range []struct {
		name        string
		answer      approval.Answer
		deny        bool
		first, next string
		asked       int
		closed      string // what a host on another port gets, by the command after that
	}{
		{"D7 once", approval.Approved, false, "allow", "allow", 2, "allow"},
		{"D7 for the session", approval.ApprovedForSession, false, "allow", "allow", 1, "allow"},
		{"remembered, on every port", approval.ApprovedHost, false, "allow", "allow", 1, "allow"},
		{"denied", approval.Denied, false, "deny", "deny", 2, "deny"},
		{"B10 remembered as denied, on every port", approval.ApprovedHost, true, "deny", "deny", 1, "deny"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHostRunner(t, approval.Func(func(_ context.Context,
				q *approval.Request) (approval.Decision, error) {
				d := approval.Decision{Answer: c.answer, Deny: c.deny}
				if c.answer == approval.ApprovedHost {
					d.Host = q.Offers[0].Host
				}
				return d, nil
			}))
			var lines []string
			h.Remember = func(prefix []string, line string) error {
				lines = append(lines, line)
				if prefix != nil {
					t.Errorf("prefix %q", prefix)
				}
				return nil
			}
			if got, _, err := h.run(t, "a", "h.example", "h.example"); err != nil ||
				got != c.first+" "+c.first {
				t.Errorf("first %s, %v", got, err)
			}
			if n := h.asked.Load(); n != 1 {
				t.Errorf("%d questions by one command about one host", n)
			}
			if got, _, err := h.run(t, "b", "h.example"); err != nil || got != c.next ||
				int(h.asked.Load()) != c.asked {
				t.Errorf("next %s, %v, after %d questions", got, err, h.asked.Load())
			}
			before := h.asked.Load()
			got, _, _ := h.run(t, "c", "h.example:8443")
			if asks := h.asked.Load() > before; got != c.closed ||
				asks != (c.answer != approval.ApprovedHost) {
				t.Errorf("another port: %s, asked %v (D2)", got, asks)
			}
			want := []string(nil)
			switch {
			case c.deny:
				want = []string{`network_rule(host="h.example", protocol="https", decision="deny", justification="Deny https access to h.example")`}
			case c.answer == approval.ApprovedHost:
				want = []string{`network_rule(host="h.example", protocol="https", decision="allow", justification="Allow https access to h.example")`}
			}
			if !slices.Equal(lines, want) {
				t.Errorf("remembered %q", lines)
			}
		})
	}
}

// TestHostQuestion: what a question shows, what is told of it, and that the result has it.
func TestHostQuestion(t *testing.T) {
	var shown *approval.Request
	h := newHostRunner(t, approval.Func(func(_ context.Context,
		q *approval.Request) (approval.Decision, error) {
		shown = q
		return approval.Decision{Answer: approval.Denied}, nil
	}))
	_, res, err := h.run(t, "npm", "registry.example:443", "registry.example:443")
	if err != nil {
		t.Fatal(err)
	}
	if shown.Kind != approval.KindNetwork ||
		!slices.Equal(shown.Args, []string{"npm", "registry.example:443", "registry.example:443"}) ||
		!slices.Equal(shown.Requires, []string{"host:registry.example:443"}) ||
		!strings.Contains(shown.Reason, "registry.example:443") || shown.Runs != 0 ||
		len(shown.Offers) != 0 {
		t.Errorf("%+v", shown)
	}
	if len(res.Approvals) != 1 || res.Approvals[0].ID != shown.ID ||
		res.Approvals[0].Decision != approval.Denied || len(res.Attempts) != 1 {
		t.Errorf("%+v, %d attempts", res.Approvals, len(res.Attempts))
	}
	var kinds []string
	for _, e := range h.events.events {
		kinds = append(kinds, e.Body.Kind())
	}
	if !slices.Contains(kinds, "approval_requested") ||
		slices.Index(kinds, "approval_decided") > slices.Index(kinds, "exited") {
		t.Errorf("%v", kinds)
	}
}

// TestHostUnasked: who is not asked, denies (closed by default).
func TestHostUnasked(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*hostRunner)
		asked  int32
	}{
		{"D8 the policy never", func(h *hostRunner) { h.Approval = approval.Never }, 0},
		{"no approver", func(h *hostRunner) { h.Approver = nil }, 0},
		{"a ceiling", func(h *hostRunner) {
			h.Permits = func(required []string) error { return fmt.Errorf("%s is above the ceiling", required) }
		}, 0},
		{"an approver that passes", func(h *hostRunner) {
			h.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
				h.asked.Add(1)
				return approval.Decision{Answer: approval.Approved}, approval.ErrPass
			})
		}, 2},
		{"an answer that was not offered", func(h *hostRunner) {
			h.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
				h.asked.Add(1)
				return approval.Decision{Answer: approval.ApprovedHost, Host: "h.example"}, nil
			})
		}, 1},
		{"a policy that does not ask", func(h *hostRunner) {
			h.Network, _ = network.New(network.Config{Mode: network.Full})
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHostRunner(t, answering(approval.Approved))
			c.change(h)
			if got, _, err := h.run(t, "a", "h.example", "h.example"); err != nil || got != "deny deny" ||
				h.asked.Load() != c.asked {
				t.Errorf("%s, %v, %d questions", got, err, h.asked.Load())
			}
		})
	}
}

// TestHostGranular: only never turns questions about hosts off (row D8).
func TestHostGranular(t *testing.T) {
	h := newHostRunner(t, answering(approval.Approved))
	h.Approval = approval.Granular{}.Policy()
	if got, _, err := h.run(t, "a", "h.example"); err != nil || got != "allow" {
		t.Errorf("%s, %v", got, err)
	}
}

// TestHostStops: an abort ends the command, and any refusal does where the Runner says so. The
// output of the command is kept (rows B11, D6, D10 to D14).
func TestHostStops(t *testing.T) {
	for _, c := range []struct {
		name    string
		answer  approval.Decision
		refused bool // StopOnRefusedHost
		stops   string
	}{
		{"B11 abort", approval.Decision{Answer: approval.Abort}, false, "rejected by user"},
		{"denied", approval.Decision{Answer: approval.Denied}, false, ""},
		{"D10 denied, and that stops", approval.Decision{Answer: approval.Denied}, true, "rejected by user"},
		{"D12 with a message", approval.Decision{Answer: approval.Denied, Message: "not that host"}, true, "not that host"},
		{"D13 with a long message", approval.Decision{Answer: approval.Denied, Message: strings.Repeat("x", 40_000)}, true, "tokens truncated"},
		{"D6 approved", approval.Decision{Answer: approval.Approved}, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHostRunner(t, approval.Fixed(c.answer))
			h.StopOnRefusedHost = c.refused
			_, res, err := h.run(t, "a", "h.example", "h.example:8443")
			if c.stops == "" {
				if err != nil || res.End != EndExited {
					t.Errorf("%v, %v", res.End, err)
				}
				return
			}
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.stops) ||
				!strings.Contains(err.Error(), "h.example:443") {
				t.Errorf("%v", err)
			}
			if len(err.Error()) > 4_000 { // 1 000 tokens
				t.Errorf("%d bytes", len(err.Error()))
			}
			if res == nil || res.End != EndRefused || len(res.Attempts) != 1 {
				t.Errorf("%+v", res)
			}
		})
	}
}

// TestHostOnceIsOneCommands: two commands wait for one question. Approved once, it counts for the
// command that the question showed; the other one is asked about itself (rows D1, D4, P3).
func TestHostOnceIsOneCommands(t *testing.T) {
	both := make(chan struct{})
	var seen []string
	var mu sync.Mutex
	var once sync.Once
	h := newHostRunner(t, approval.Func(func(ctx context.Context,
		q *approval.Request) (approval.Decision, error) {
		mu.Lock()
		seen = append(seen, q.Args[0])
		mu.Unlock()
		select {
		case <-both:
		case <-ctx.Done():
		}
		return approval.Decision{Answer: approval.Approved}, nil
	}))
	var requested atomic.Int32
	sink := h.Events
	h.Events = event.SinkFunc(func(e event.Event) {
		if _, ok := e.Body.(event.ApprovalRequested); ok && requested.Add(1) == 2 {
			once.Do(func() { close(both) }) // both wait, for one question or for two
		}
		sink.Emit(e)
	})
	var running sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		running.Go(func() {
			if _, err := h.Run(t.Context(), &Cmd{Args: []string{name, "h.example"}, Dir: "/w"}); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	slices.Sort(seen)
	if !slices.Equal(seen, []string{"a", "b"}) {
		t.Errorf("asked for %v", seen)
	}
	for _, name := range []string{"a", "b"} {
		if d := h.got[name]; len(d) != 1 || d[0].Ruling != network.Allow {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// TestHostReviewed: in strict review the reviewer is asked about hosts, each time anew.
func TestHostReviewed(t *testing.T) {
	h := newHostRunner(t, nil)
	var kinds []approval.Kind
	h.Reviewer = approval.Func(func(_ context.Context, q *approval.Request) (approval.Decision, error) {
		kinds = append(kinds, q.Kind)
		answer := approval.Approved
		if q.Kind == approval.KindNetwork {
			answer = approval.Denied
		}
		return approval.Decision{Answer: answer}, nil
	})
	got, _, err := h.run(t, "a", "h.example")
	if err != nil || got != "deny" || !slices.Equal(kinds,
		[]approval.Kind{approval.KindCommand, approval.KindNetwork}) {
		t.Errorf("%s, %v, %v", got, err, kinds)
	}
}

// TestHostRecords: what the proxy did is an event of the run, where somebody hears of it.
func TestHostRecords(t *testing.T) {
	h := newHostRunner(t, answering(approval.Denied))
	_, _, _ = h.run(t, "a", "h.example")
	h.Close()
	found := 0
	for _, e := range h.events.events {
		if b, ok := e.Body.(event.Network); ok && e.Run != "" && e.Attempt == 1 && b.Host == "h.example" &&
			b.Decision == network.Deny {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%d events: %+v", found, h.events.events)
	}
	if x := (&execution{runner: new(Runner)}); x.recorder() != nil {
		t.Error("recorded for nobody")
	}
}

// TestHostRevoke: an answer for the session is listed and can be taken back.
func TestHostRevoke(t *testing.T) {
	h := newHostRunner(t, answering(approval.ApprovedForSession))
	_, _, _ = h.run(t, "a", "h.example")
	list := h.Approvals()
	if len(list) != 1 || list[0].Request.Kind != approval.KindNetwork {
		t.Fatalf("%+v", list)
	}
	if err := h.RevokeApproval(list[0].Request.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, _ = h.run(t, "b", "h.example"); h.asked.Load() != 2 {
		t.Errorf("%d questions", h.asked.Load())
	}
}

// TestHostOwner: of two commands that run at once, the one whose host is refused ends, and no other
// (rows D9 and D11: each has a way of its own to the network, so none is guessed).
func TestHostOwner(t *testing.T) {
	h := newHostRunner(t, approval.Func(func(_ context.Context,
		q *approval.Request) (approval.Decision, error) {
		if q.Args[0] == "a" {
			return approval.Decision{Answer: approval.Denied}, nil
		}
		return approval.Decision{Answer: approval.Approved}, nil
	}))
	h.StopOnRefusedHost = true
	var running sync.WaitGroup
	for name, want := range map[string]error{"a": ErrRefused, "b": nil} {
		running.Go(func() {
			_, err := h.Run(t.Context(), &Cmd{Args: []string{name, name + ".example"}, Dir: "/w"})
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		})
	}
	running.Wait()
}

// TestHostSessions: what is approved for the session counts for commands of that Runner alone (row D3
// in our form: nothing copies it), and in its environment.
func TestHostSessions(t *testing.T) {
	first := newHostRunner(t, answering(approval.ApprovedForSession))
	_, _, _ = first.run(t, "a", "h.example")
	part := newHostRunner(t, answering(approval.Denied))
	part.Parent = first.Runner
	if got, _, _ := part.run(t, "a", "h.example"); got != "deny" || part.asked.Load() != 1 {
		t.Errorf("a part of it: %s after %d questions", got, part.asked.Load())
	}
}

// TestHostTimeLimit: the time limit of a command stands still while it is asked about a host.
func TestHostTimeLimit(t *testing.T) {
	const limit = 200 * time.Millisecond
	h := newHostRunner(t, approval.Func(func(ctx context.Context,
		_ *approval.Request) (approval.Decision, error) {
		select {
		case <-time.After(2 * limit):
		case <-ctx.Done():
		}
		return approval.Decision{Answer: approval.Approved}, nil
	}))
	res, err := h.Run(t.Context(), &Cmd{Args: []string{"a", "h.example"}, Dir: "/w", Timeout: limit})
	if err != nil || res.End != EndExited {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestLeavingNetwork: what is said about hosts stays for a command that leaves the sandbox, or the
// question names that it ends; a rule, which asks nothing, ends nothing.
func TestLeavingNetwork(t *testing.T) {
	allow := []network.Entry{{Pattern: "a.example.com"}}
	deny := append(slices.Clone(allow), network.Entry{Pattern: "b.example.com", Deny: true})
	const leads = `prefix_rule(["x"], sandbox = "outside")`
	both := []string{approval.Outside, approval.Network}
	for _, test := range []struct {
		name  string
		net   sandbox.Network
		hosts *network.Config
		rules string
		escalate,
		review bool
		asked []string
		mode  sandbox.Mode
	}{
		{"off", sandbox.NetworkNone, nil, "", true, false, []string{approval.Outside}, sandbox.Full},
		{"off, by a rule", sandbox.NetworkNone, nil, leads, false, false, nil, sandbox.Full},
		{"listed", sandbox.NetworkProxy, &network.Config{Mode: network.Full, Entries: allow}, "", true, false, both, sandbox.Full},
		{"listed, by a rule", sandbox.NetworkProxy, &network.Config{Mode: network.Full, Entries: allow}, leads, false, false, nil, sandbox.Managed},
		{"listed, by a rule that is reviewed", sandbox.NetworkProxy, &network.Config{Mode: network.Full, Entries: allow}, leads, false, true, []string{}, sandbox.Managed},
		{"limited", sandbox.NetworkProxy, &network.Config{Mode: network.Limited, Entries: allow}, "", true, false, both, sandbox.Full},
		{"limited, by a rule", sandbox.NetworkProxy, &network.Config{Mode: network.Limited, Entries: allow}, leads, false, false, nil, sandbox.Managed},
		{"denied", sandbox.NetworkProxy, &network.Config{Mode: network.Full, Entries: deny}, "", true, false, nil, sandbox.Managed},
		{"denied, by a rule", sandbox.NetworkProxy, &network.Config{Mode: network.Full, Entries: deny}, leads, false, false, nil, sandbox.Managed},
		{"denied, and off", sandbox.NetworkNone, &network.Config{Mode: network.Full, Entries: deny}, "", true, false, nil, sandbox.Managed},
		{"denied, and off, by a rule", sandbox.NetworkNone, &network.Config{Mode: network.Full, Entries: deny}, leads, false, false, nil, sandbox.Managed},
	} {
		t.Run(test.name, func(t *testing.T) {
			var ran sandbox.Policy
			var asked []string
			r, _ := fakeRunner(nil, func(spec *executor.Spec,
				_ *e2e.FakeProcess) {
				ran = spec.Policy
			})
			defer r.Close()
			r.Policy = sandbox.WorkspaceWrite().WithNetwork(test.net)
			r.Rules = rules.Load(rules.Host{}, rules.Source{Name: "/r", Text: []byte(test.rules)})
			if test.hosts != nil {
				p, err := network.New(*test.hosts)
				if err != nil {
					t.Fatal(err)
				}
				r.Network = p
			}
			r.Approver = approval.Func(func(_ context.Context,
				q *approval.Request) (approval.Decision, error) {
				asked = append([]string{}, q.Requires...)
				return approval.Decision{Answer: approval.Approved}, nil
			})
			if test.review {
				r.Reviewer = r.Approver
			}
			if _, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w",
				Unsandboxed: test.escalate}); err != nil {
				t.Fatal(err)
			}
			kept := ran.Mode() == sandbox.Full || ran.Network() == test.net
			if ran.Mode() != test.mode || !kept || !slices.Equal(asked, test.asked) ||
				(asked == nil) != (test.asked == nil) {
				t.Errorf("asked %q, ran under %v; want %q", asked, ran, test.asked)
			}
		})
	}
}

// TestHostDeniedMeanwhile: a host that is denied while the question is open, or after leaving was
// approved for the session, keeps the command in the sandbox.
func TestHostDeniedMeanwhile(t *testing.T) {
	hosts, err := network.New(network.Config{Mode: network.Full})
	if err != nil {
		t.Fatal(err)
	}
	var ran []sandbox.Mode
	r, _ := fakeRunner(nil, func(spec *executor.Spec, _ *e2e.FakeProcess) {
		ran = append(ran,
			spec.Policy.Mode())
	})
	defer r.Close()
	r.Policy, r.Network = sandbox.WorkspaceWrite(), hosts
	denied := false
	r.Approver = approval.Func(func(_ context.Context, q *approval.Request) (approval.Decision, error) {
		if denied {
			if err := r.live.Update(func(p *network.Policy) (*network.Policy, error) {
				return p.With(network.Entry{Pattern: "b.example.com", Deny: true})
			}); err != nil {
				return approval.Decision{}, err
			}
		}
		return approval.Decision{Answer: approval.ApprovedForSession}, nil
	})
	c := &Cmd{Args: []string{"x"}, Dir: "/w", Unsandboxed: true}
	if _, err := r.Run(t.Context(), c); err != nil || !slices.Equal(ran, []sandbox.Mode{sandbox.Full}) {
		t.Fatalf("%v, %v", ran, err)
	}
	denied = true
	other := &Cmd{Args: []string{"y"}, Dir: "/w", Unsandboxed: true}
	if _, err := r.Run(t.Context(), other); !errors.Is(err, ErrForbidden) || len(ran) != 1 {
		t.Errorf("a host was denied while the question was open: %v, %v", ran, err)
	}
	if _, err := r.Run(t.Context(), c); err != nil ||
		!slices.Equal(ran, []sandbox.Mode{sandbox.Full, sandbox.Managed}) {
		t.Errorf("a host was denied after the session's approval: %v, %v", ran, err)
	}
}

// TestPolicyVersion: every decision names the policies by which it was made (row P5): another policy
// has another version, the same one the same.
func TestPolicyVersion(t *testing.T) {
	version := func(change func(*Runner)) string {
		h := newHostRunner(t, answering(approval.Approved))
		change(h.Runner)
		_, _, _ = h.run(t, "a", "h.example")
		var all []string
		for _, e := range h.events.events {
			switch b := e.Body.(type) {
			case event.Judged:
				all = append(all, b.PolicyVersion)
			case event.ApprovalDecided:
				all = append(all, b.PolicyVersion)
				if b.Source != approval.FromUser || b.ID == "" {
					t.Errorf("%+v", b)
				}
			}
		}
		if len(all) != 2 || all[0] != all[1] || len(all[0]) != 12 {
			t.Fatalf("%q", all)
		}
		return all[0]
	}
	base := version(func(*Runner) {})
	if again := version(func(*Runner) {}); again != base {
		t.Errorf("%s and %s for one policy", base, again)
	}
	for name, change := range map[string]func(*Runner){
		"an entry":            func(r *Runner) { r.Policy = r.Policy.With(sandbox.Grant{Path: "/srv", Level: sandbox.LevelWrite}) },
		"the approval policy": func(r *Runner) { r.Approval = approval.Granular{Rules: true}.Policy() },
	} {
		if other := version(change); other == base {
			t.Errorf("%s makes no difference", name)
		}
	}
}
