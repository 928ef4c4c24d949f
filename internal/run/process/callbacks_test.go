// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestGuard: each function of a Spec that does not return is named once, and what called it goes on.
func TestGuard(t *testing.T) {
	for how, fail := range map[string]func(){" panicked": func() { panic("no") },
		" did not return": runtime.Goexit} {
		for name, call := range map[string]func(*executor.Spec){
			"OnOutput": func(s *executor.Spec) { s.OnOutput(executor.Stdout, []byte("x")) },
			"OnDenied": func(s *executor.Spec) { s.OnDenied(sandbox.Denial{}) },
			"OnRecord": func(s *executor.Spec) { s.OnRecord(network.Record{}) },
			"OnStop":   func(s *executor.Spec) { s.OnStop() },
			"OnExit":   func(s *executor.Spec) { s.OnExit(0, 0) },
			"AskHost": func(s *executor.Spec) {
				if d := s.AskHost(t.Context(), network.Request{}); d.Ruling != network.Deny ||
					d.Reason != network.NotAllowed {
					t.Errorf("an answer that did not come is %+v", d)
				}
			},
		} {
			own, calls := Guard(&executor.Spec{
				OnOutput: func(executor.Stream, []byte) { fail() },
				OnDenied: func(sandbox.Denial) { fail() },
				OnRecord: func(network.Record) { fail() },
				OnStop:   fail,
				OnExit:   func(int, int) { fail() },
				AskHost: func(context.Context, network.Request) network.Decision {
					fail()
					return network.Decision{Ruling: network.Allow}
				},
			})
			call(own)
			call(own)
			var exit executor.Exit
			err := calls.Tell(&exit, nil)
			if got := strings.Join(exit.Sandbox.Warnings, "\n"); !strings.HasPrefix(got, name+how) ||
				strings.Count(got, "\n") != 0 {
				t.Errorf("%s: warnings %q", name+how, got)
			}
			if errors.As(err, new(*strict.PanicError)) != (name == "OnOutput") {
				t.Errorf("%s: %v", name+how, err)
			}
		}
	}
	own, calls := Guard(new(executor.Spec))
	var exit executor.Exit
	if err := calls.Tell(&exit, nil); err != nil || exit.Sandbox.Warnings != nil || own.OnOutput != nil ||
		own.OnDenied != nil || own.OnRecord != nil || own.OnStop != nil || own.OnExit != nil ||
		own.AskHost != nil {
		t.Errorf("without functions: %v, %+v", err, exit)
	}
}
