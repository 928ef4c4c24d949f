// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/approval/program"
	"github.com/sallyport-dev/sallyport/approval/terminal"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/local"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/guardian"
	"github.com/sallyport-dev/sallyport/sandbox"
	"github.com/sallyport-dev/sallyport/unified"
)

// TestNoContextElsewhere is TestNoContext for what is used with a Runner, or in its place: a nil context
// is an error, and leaves nothing behind for which a Close would wait.
func TestNoContextElsewhere(t *testing.T) {
	var none context.Context
	yes := approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
		t.Error("the approver was asked")
		return approval.Decision{}, nil
	})
	tools := &unified.Tools{Runner: &sallyport.Runner{Policy: sandbox.FullAccess()}}
	here, away := new(local.Executor), remote.New(remote.Options{URL: "unix:///nowhere"})
	spec := &executor.Spec{Args: []string{"/bin/true"}, Dir: "/", Policy: sandbox.FullAccess()}
	p, err := here.Start(t.Context(), &executor.Spec{Args: []string{"/bin/cat"}, Dir: "/",
		Policy: sandbox.FullAccess(), PipeStdin: true})
	if err != nil {
		t.Fatal(err)
	}
	q := new(approval.Request)
	for name, f := range map[string]func() error{
		"unified.ExecCommand": func() error { _, err := tools.ExecCommand(none, unified.Request{Command: "true"}); return err },
		"unified.WriteStdin":  func() error { _, err := tools.WriteStdin(none, unified.WriteRequest{SessionID: 1}); return err },
		"unified.Terminate":   func() error { _, err := tools.Terminate(none, 1); return err },
		"approval.Ask":        func() error { _, err := approval.Ask(none, yes, q); return err },
		"approval.Memory":     func() error { _, _, err := new(approval.Memory).Ask(none, yes, q); return err },
		"approval.Board":      func() error { _, err := new(approval.OpenQuestions).Approve(none, q); return err },
		"approval.First":      func() error { _, err := approval.First(yes, yes).Approve(none, q); return err },
		"terminal":            func() error { _, err := new(terminal.Approver).Approve(none, q); return err },
		"program":             func() error { _, err := new(program.Approver).Approve(none, q); return err },
		"guardian":            func() error { _, err := new(guardian.Guardian).Approve(none, q); return err },
		"local.Start":         func() error { _, err := here.Start(none, spec); return err },
		"local.Open":          func() error { _, err := here.Open(none, new(executor.SharedSpec)); return err },
		"local.Sharing":       func() error { _, err := (&local.Sharing{Executor: here}).Start(none, spec); return err },
		"local, input":        func() error { _, err := p.AwaitInput(none); return err },
		"local, port":         func() error { _, err := p.AwaitPort(none, nil); return err },
		"local, output":       func() error { _, err := p.Output().Read(none, 0); return err },
		"local, search":       func() error { _, err := p.Output().Search(none, nil, 0); return err },
		"remote.Start":        func() error { _, err := away.Start(none, spec); return err },
		"remote.Host":         func() error { _, err := away.Host(none); return err },
		"remote.Places":       func() error { _, err := away.Places(none, "/", nil, ""); return err },
		"remote.Shell":        func() error { _, err := away.Shell(none, "", "true", false); return err },
	} {
		t.Run(name, func(t *testing.T) {
			if err := f(); !errors.Is(err, sallyport.ErrNoContext) {
				t.Errorf("%v", err)
			}
		})
	}
	if err := errors.Join(p.CloseInput(), tools.Runner.Close(), here.Close(), away.Close()); err != nil {
		t.Error(err)
	}
}
