// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sallyport-dev/sallyport/approval"
)

// TestAnswer: questions of a server are asked, and everything else denies.
func TestAnswer(t *testing.T) {
	question := &approval.Request{ID: "q", Kind: approval.KindCommand, Args: []string{"rm", "x"},
		Available: []approval.Answer{approval.Approved, approval.Denied}}
	text, err := json.Marshal(map[string]any{"runId": "1", "request": question})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, method string
		params       string
		answer       approval.Approver
		want         string
		code         int64
	}{
		{"approved", MethodApprove, string(text), approval.Fixed(approval.Decision{Answer: approval.Approved}), "approved", 0},
		{"denied", MethodApprove, string(text), approval.Fixed(approval.Decision{Answer: approval.Denied}), "denied", 0},
		{"not offered", MethodApprove, string(text), approval.Fixed(approval.Decision{Answer: approval.ApprovedForSession}), "denied", 0},
		{"no terminal", MethodApprove, string(text), approval.Chain(), "none", 0},
		{"another method", "run/other", string(text), approval.Fixed(approval.Decision{Answer: approval.Approved}), "", CodeNoMethod},
		{"no question", MethodApprove, `{"request":[]}`, approval.Fixed(approval.Decision{Answer: approval.Approved}), "", CodeInvalidParams},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := AnswerApproval(test.answer)(t.Context(), test.method, json.RawMessage(test.params))
			var refused *Error
			errors.As(err, &refused)
			d, _ := got.(RunApproval)
			if d.Decision != test.want || test.code != 0 && (refused == nil || refused.Code != test.code) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// A parted is a client of a server that has a result in parts of 3 bytes; an older one has it whole.
type parted struct {
	text string
	old  bool
	hole bool // a part is empty
}

func (p parted) Call(context.Context, string, any, any) error { return errors.ErrUnsupported }
func (p parted) Close() error                                 { return nil }

func (p parted) Repeat(_ context.Context, _ string, params, result any) error {
	text, _ := json.Marshal(params)
	var asked RunResultOf
	if err := json.Unmarshal(text, &asked); err != nil {
		return err
	}
	answer := map[string]any{"result": json.RawMessage(p.text)}
	if !p.old && asked.From != nil {
		rest := p.text[*asked.From:]
		part := rest[:min(3, len(rest))]
		if p.hole {
			part = ""
		}
		answer = map[string]any{"part": []byte(part), "complete": !p.hole && len(part) == len(rest)}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, result)
}

// TestRunResult: a result comes whole, in parts, and from servers that know none.
func TestRunResult(t *testing.T) {
	const text = `{"exit_code":3}`
	for _, old := range []bool{false, true} {
		for _, output := range []bool{false, true} {
			got, err := FetchRunResult(t.Context(), parted{text: text, old: old}, "1", output)
			if string(got) != text || err != nil {
				t.Errorf("old %v, output %v: %s, %v", old, output, got, err)
			}
		}
	}
	if got, err := FetchRunResult(t.Context(), parted{text: text, hole: true}, "1", true); err == nil {
		t.Errorf("%s", got)
	}
}

// TestWithdrawn: the context of a request that the server withdraws ends, and that of no other.
func TestWithdrawn(t *testing.T) {
	ended := make(chan string, 3)
	opts := ClientOptions{Approvals: true, OnRequest: func(ctx context.Context, _ string,
		params json.RawMessage) (any, error) {
		<-ctx.Done()
		ended <- string(params)
		return nil, ctx.Err()
	}}
	play(t, opts, func(t *testing.T, c *Client, _ *server) {
		if got := <-ended; got != "2" {
			t.Errorf("the context of request %s has ended", got)
		}
		synctest.Wait()
		select {
		case got := <-ended:
			t.Errorf("that of %s too", got)
		default:
		}
	}, func(s *side) {
		s.greet()
		for i := range 3 {
			_ = s.Write(fmt.Appendf(nil, `{"id":%d,"method":"run/approve","params":%[1]d}`, i+1))
		}
		for _, id := range []string{`"2"`, "9", "[]", "2"} {
			_ = s.Write([]byte(`{"method":"request/cancel","params":{"id":` + id + `}}`))
		}
		s.rest()
	})
}

// TestStartAgain: a start whose answer was lost is asked for again as the same one, unless it is of use
// to its connection only, or its context has ended.
func TestStartAgain(t *testing.T) {
	why := errors.New("no more time")
	for _, test := range []struct {
		name      string
		transient bool
		end       error // of the context, before the cut
		want      string
	}{
		{"lost", false, nil, "7"},
		{"lost, transient", true, nil, ""},
		{"given up", false, why, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var first RunStart
			play(t, ClientOptions{Extensions: true}, func(t *testing.T, c *Client, _ *server) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if test.end != nil {
					go func() { synctest.Wait(); cancel(test.end) }()
				}
				p := &RunStart{Args: []string{"true"}, Transient: test.transient}
				id, _, err := StartRun(ctx, c, p)
				var transport *TransportError
				if id != test.want || test.want == "" && (!errors.As(err, &transport) || !transport.Sent) ||
					test.want != "" && err != nil {
					t.Errorf("%q, %v", id, err)
				}
				if p.StartID != "" {
					t.Error("the parameters are changed")
				}
				_ = c.Call(t.Context(), "last", nil, nil)
			}, func(s *side) {
				s.greet()
				m := s.take(startRun)
				if test.end != nil {
					s.take(MethodCancel)
				}
				if err := json.Unmarshal(m.Params, &first); err != nil ||
					(first.StartID == "") != test.transient {
					s.t.Errorf("%s", m.Params)
				}
			}, func(s *side) {
				s.greet()
				if test.want != "" {
					m := s.take(startRun)
					var again RunStart
					if err := json.Unmarshal(m.Params, &again); err != nil || again.StartID != first.StartID {
						s.t.Errorf("%s", m.Params)
					}
					s.answer(m, RunStartResult{RunID: test.want, Started: true})
				}
				s.answer(s.take("last"), struct{}{})
				s.rest()
			})
		})
	}
}

// TestRemoveAgain: a removal whose answer was lost is asked for again; that the run is unknown then is
// no error.
func TestRemoveAgain(t *testing.T) {
	unknown := func(s *side, m *Message, reason string) {
		text, _ := json.Marshal(map[string]any{"id": m.ID,
			"error": map[string]any{"code": -32600, "message": "no",
				"data": map[string]any{"reason": reason}}})
		_ = s.Write(text)
	}
	for _, test := range []struct {
		name  string
		lost  bool
		again string // the reason of the last answer; empty for success
		fails bool
	}{
		{"removed", false, "", false},
		{"unknown", false, "unknownRun", true},
		{"lost, removed again", true, "", false},
		{"lost, removed before", true, "unknownRun", false},
		{"lost, refused", true, "closed", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			last := func(s *side) {
				if m := s.take("run/remove"); test.again != "" {
					unknown(s, m, test.again)
				} else {
					s.answer(m, struct{}{})
				}
				s.rest()
			}
			plays := []func(*side){func(s *side) { s.greet(); last(s) }}
			if test.lost {
				plays = []func(*side){func(s *side) { s.greet(); s.take("run/remove") }, plays[0]}
			}
			play(t, ClientOptions{Extensions: true}, func(t *testing.T, c *Client, _ *server) {
				if err := RemoveRun(t.Context(), c, "7"); (err != nil) != test.fails {
					t.Errorf("%v", err)
				}
			}, plays...)
		})
	}
}

// TestGivenUp: a server of runs is told of a request whose context has ended. A start is answered still;
// where it came too late, the run is removed, and where there is no answer, that is said.
func TestGivenUp(t *testing.T) {
	why := errors.New("no more time")
	for _, test := range []struct {
		name, method string
		answer       func(s *side, m *Message)
		told, sent   bool // the server; the error is that it may have been performed
	}{
		{"a wait", "run/wait", nil, true, false},
		{"of a process", "process/read", nil, false, false},
		{"a start that is canceled", startRun, func(s *side, m *Message) { s.fail(m, CodeCanceled, "canceled") }, true, false},
		{"a start that came too late", startRun, func(s *side, m *Message) {
			s.answer(m, RunStartResult{RunID: "7", Started: true})
			gone := s.take("run/remove")
			if !strings.Contains(string(gone.Params), `"7"`) {
				s.t.Errorf("%s is removed", gone.Params)
			}
			s.answer(gone, struct{}{})
		}, true, false},
		{"a start without an answer", startRun, nil, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked := make(chan struct{})
			play(t, ClientOptions{Extensions: true}, func(t *testing.T, c *Client, _ *server) {
				ctx, cancel := context.WithCancelCause(t.Context())
				go func() { <-asked; cancel(why) }()
				var err error
				if test.method == startRun {
					_, _, err = StartRun(ctx, c, new(RunStart))
				} else {
					err = c.Repeat(ctx, test.method, struct{}{}, nil)
				}
				var transport *TransportError
				if !errors.Is(err, why) || test.sent != (errors.As(err, &transport) && transport.Sent) {
					t.Errorf("%v", err)
				}
				if !test.sent {
					_ = c.Call(t.Context(), "last", nil, nil)
				}
			}, func(s *side) {
				s.greet()
				m := s.take(test.method)
				close(asked)
				if test.told {
					id, _ := m.ID.Int()
					if told := s.take(MethodCancel); told == nil ||
						string(told.Params) != fmt.Sprintf(`{"id":%d}`, id) {
						s.t.Errorf("told %+v", told)
					}
				}
				if test.answer != nil {
					test.answer(s, m)
				}
				if !test.sent {
					s.answer(s.take("last"), struct{}{})
				}
				s.rest()
			})
		})
	}
}
