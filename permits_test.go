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

// TestPermits: what no approval may open is not asked for, neither by the caller, nor after a
// denial; and no rule opens it.
func TestPermits(t *testing.T) {
	errCeiling := errors.New("more than the ceiling")
	for _, test := range []struct {
		name  string
		cmd   Cmd
		not   string // what is not permitted; empty for nothing
		err   error
		asked int
		mode  sandbox.Mode
	}{
		{"the caller leaves", Cmd{Args: []string{"x"}, Unsandboxed: true}, approval.Outside, errCeiling, 0, 0},
		{"the caller leaves, permitted", Cmd{Args: []string{"x"}, Unsandboxed: true}, "", nil, 1, sandbox.Full},
		{"the caller asks for more", Cmd{Args: []string{"x"}, AskFor: []sandbox.Grant{{Path: "/srv", Level: sandbox.LevelWrite}}}, "write:/srv", errCeiling, 0, 0},
		{"a rule leaves", Cmd{Args: []string{"npm"}}, approval.Outside, nil, 0, sandbox.Managed},
		{"a rule leaves, permitted", Cmd{Args: []string{"npm"}}, "", nil, 0, sandbox.Full},
		{"a rule prompts, and something else is not permitted", Cmd{Args: []string{"git", "push"}}, approval.Outside, nil, 1, sandbox.Managed},
		{"a rule forbids", Cmd{Args: []string{"rm"}, Unsandboxed: true}, approval.Outside, ErrForbidden, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var mode sandbox.Mode
			r, _ := fakeRunner(nil, func(spec *executor.Spec, _ *fakeProcess) { mode = spec.Policy.Mode() })
			defer r.Close()
			asked := 0
			r.Rules, r.Policy = ruleSet(t, runRules), sandbox.WorkspaceWrite()
			r.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
				asked++
				return approval.Decision{Answer: approval.Approved}, nil
			})
			r.Permits = func(required []string) error {
				for _, word := range required {
					if word == test.not {
						return errCeiling
					}
				}
				return nil
			}
			c := test.cmd
			c.Dir = "/w"
			_, err := r.Run(t.Context(), &c)
			if !errors.Is(err, test.err) || asked != test.asked || mode != test.mode {
				t.Errorf("%v, asked %d times, %v; want %v, %d, %v", err, asked, mode, test.err, test.asked, test.mode)
			}
			if test.err != nil && !errors.Is(err, ErrForbidden) {
				t.Errorf("%v is not forbidden", err)
			}
		})
	}
	runs := 0
	r, _ := fakeRunner(nil, deniedOnce(&runs, sandbox.Notified))
	defer r.Close()
	r.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
		t.Error("it is asked about")
		return approval.Decision{Answer: approval.Approved}, nil
	})
	r.Permits = func([]string) error { return errCeiling }
	if res, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w"}); err != nil || runs != 1 || res.ExitCode != 1 {
		t.Errorf("%+v, %v, %d runs", res, err, runs)
	}
}
