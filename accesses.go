// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/command/judge"
	"github.com/sallyport-dev/sallyport/internal/run/accesses"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// accessesOf has the sandbox of an attempt ask about what it denies, if the Cmd wants that. Where a second
// attempt with more may not be asked about, nothing is: the policy never, a rule that confines the command.
func (x *execution) accessesOf(a *attempt) {
	if !x.cmd.AskWrites || a.spec.Policy.Mode() != sandbox.Managed || x.retry == judge.RetryNone ||
		x.confined != "" {
		return
	}
	a.accesses = &accesses.Questions{
		Questions: &a.questions, Time: x.runner.AnswerTime, Staged: a.spec.Stage != nil,
		Put: func(ctx context.Context, fill func(*approval.Request)) (approval.Decision, error) {
			return x.askWaiting(ctx, approval.KindAccess, fill)
		},
		Bars:       func(required []string) bool { return x.runner.bars(required...) },
		Word:       x.deniedRun(a).Asks,
		Remembered: x.runner.memory.List,
		Opened: func(g event.Granted, required string) {
			x.runner.opens([]string{required})
			x.emit(g)
		},
	}
	a.spec.AskAccess = a.accesses.Decide
}
