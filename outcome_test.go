// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
)

// TestResultOf holds the rows A1 to A4: one form for all that can come of a run.
func TestResultOf(t *testing.T) {
	ok := &Result{End: EndExited, Output: outputFrom("ok", nil, 2, 0)}
	late := &Result{End: EndTimedOut, TimedOut: true, ExitCode: ExitTimedOut, Output: outputFrom("timed out payload", nil, 17, 0)}
	rule := Rule{File: "/r", Line: 1, Column: 1, Decision: event.DecisionPrompt}
	answers := []event.ApprovalDecided{{ID: "1", Decision: approval.Denied}}
	for _, test := range []struct {
		name string
		res  *Result
		err  error
		is   *Result // the Result that is borrowed; nil for one that is made
		code int
		end  End
		text string
	}{
		{"A1 it ran", ok, nil, ok, 0, EndExited, "ok"},
		{"it ran, and its end is not known", ok, errors.New("lost"), ok, 0, EndExited, "ok"},
		{"A2 a time-out", nil, fmt.Errorf("tool: %w", late.Err()), late, 124, EndTimedOut, "timed out payload"},
		{"an exit code", nil, &ExitError{Result: ok}, ok, 0, EndExited, "ok"},
		{"A3 an error of a function", nil, errors.New("boom"), nil, -1, EndFailed, "boom"},
		{"A4 a missing variable", nil, &VariableError{Name: "FOO", By: "reviewer.api_key_env"}, nil, -1, EndFailed, "Missing environment variable: `FOO`, named by reviewer.api_key_env; set it"},
		{"forbidden", nil, &RuleError{rule, ErrForbidden}, nil, -1, EndForbidden, "sallyport: forbidden (rule /r:1:1)"},
		{"refused", nil, &ApprovalError{answers, &RuleError{rule, ErrRefused}}, nil, -1, EndRefused, "sallyport: refused (rule /r:1:1)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := ResultOf(test.res, test.err)
			if test.is != nil && r != test.is || r.ExitCode != test.code || r.End != test.end || r.Output.String() != test.text {
				t.Errorf("%+v, output %q", r, r.Output)
			}
			if test.is != nil {
				return
			}
			if len(r.Stdout.Bytes()) > 0 || r.Stderr.String() != test.text || r.Duration != 0 || r.Error != test.text {
				t.Errorf("%+v", r)
			}
			if (r.Rule != nil) != (test.end != EndFailed) || (len(r.Approvals) > 0) != (test.end == EndRefused) {
				t.Errorf("rule %+v, approvals %+v", r.Rule, r.Approvals)
			}
		})
	}
	if ResultOf(nil, nil) != nil {
		t.Error("a result of nothing")
	}
}
