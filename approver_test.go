// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"testing"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// answering returns an approver that gives one answer.
func answering(a approval.Answer) approval.Approver {
	return approval.Fixed(approval.Decision{Answer: a, Message: "not today"})
}

// TestApprover: a command that leaves the sandbox runs only when an approver approves,
// with Run and with Start.
func TestApprover(t *testing.T) {
	for _, test := range []struct {
		name     string
		approver approval.Approver
		cmd      Cmd
		asked    int
		want     error
		mode     sandbox.Mode
	}{
		{"inside the sandbox there is no question", answering(approval.Denied), Cmd{}, 0, nil, sandbox.Managed},
		{"no approver", nil, Cmd{Unsandboxed: true}, 0, ErrRefused, 0},
		{"refused", answering(approval.Denied), Cmd{Unsandboxed: true}, 1, ErrRefused, 0},
		{"approved", answering(approval.Approved), Cmd{Unsandboxed: true}, 1, nil, sandbox.Full},
	} {
		for _, session := range []bool{false, true} {
			name := test.name + ", run"
			if session {
				name = test.name + ", start"
			}
			t.Run(name, func(t *testing.T) {
				var modes []sandbox.Mode
				r, _ := fakeRunner(nil, func(spec *executor.Spec, p *fakeProcess) { modes = append(modes, spec.Policy.Mode()) })
				defer r.Close()
				asked := 0
				if test.approver != nil {
					r.Approver = approval.Func(func(ctx context.Context, q *approval.Request) (approval.Decision, error) {
						asked++
						if len(q.Args) != 1 || q.Dir != "/w" || q.Reason == "" || q.Justification != "because" {
							t.Errorf("the question is %+v", q)
						}
						return test.approver.Approve(ctx, q)
					})
				}
				c := test.cmd
				c.Args, c.Dir, c.Justification = []string{"x"}, "/w", "because"
				var err error
				if session {
					var s *Session
					if s, err = r.Start(t.Context(), &c); err == nil {
						_, err = s.Wait(t.Context())
					}
				} else {
					_, err = r.Run(t.Context(), &c)
				}
				if !errors.Is(err, test.want) || test.want != nil && !errors.Is(err, ErrRefused) || asked != test.asked {
					t.Errorf("%v after %d questions, want %v after %d", err, asked, test.want, test.asked)
				}
				if test.want == nil && (len(modes) != 1 || modes[0] != test.mode) || test.want != nil && len(modes) > 0 {
					t.Errorf("ran with %v", modes)
				}
			})
		}
	}
	t.Run("the end of the context ends the question", func(t *testing.T) {
		r, _ := fakeRunner(nil, nil)
		defer r.Close()
		ctx, cancel := context.WithCancel(t.Context())
		r.Approver = approval.Func(func(ctx context.Context, _ *approval.Request) (approval.Decision, error) {
			cancel()
			<-ctx.Done()
			return approval.Decision{}, ctx.Err()
		})
		if _, err := r.Run(ctx, &Cmd{Args: []string{"x"}, Dir: "/w", Unsandboxed: true}); !errors.Is(err, context.Canceled) || errors.Is(err, ErrRefused) {
			t.Errorf("%v", err)
		}
	})
}

// TestNilCmd: a nil command is an error.
func TestNilCmd(t *testing.T) {
	var r Runner
	defer r.Close()
	var bad *CmdError
	if _, err := r.Run(t.Context(), nil); !errors.As(err, &bad) {
		t.Errorf("Run: %v", err)
	}
	if _, err := r.Start(t.Context(), nil); !errors.As(err, &bad) {
		t.Errorf("Start: %v", err)
	}
}
