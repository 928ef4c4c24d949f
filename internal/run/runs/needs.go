// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

var validName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,63}$`)
})

// CheckName returns what is wrong with the name of a sandbox.
func CheckName(name string) error {
	if !validName().MatchString(name) {
		const fix = "use 1 to 64 letters, digits, dots, hyphens and underscores, and no dot at the beginning"
		return refuse(Invalid, "invalid name %s; %s", text.Word(name), fix)
	}
	return nil
}

// A RefusedError reports that a run cannot join a named sandbox.
type RefusedError struct{ Name, Why, Fix string }

// Error returns one sentence with the reason and the fix.
func (e *RefusedError) Error() string {
	return text.Line("cannot join the sandbox " + text.Word(e.Name) + ": " + e.Why + "; " + e.Fix)
}

// needs are what a run asks of a named sandbox.
type needs struct {
	workspace string         // without links
	policy    sandbox.Policy // bound, with what the run asks to be approved
	openings  []string       // what it opens beside the policy, each as on the command line
	stage     *executor.Staging
}

// needs returns what a run asks of the sandbox with a name.
func (t *Table) needs(ctx context.Context, name string, p *Prepared) (*needs, error) {
	cmd, policy := p.Cmd, p.Runner.Policy.With(p.Cmd.AskFor...)
	if policy.Network() == sandbox.NetworkProxy {
		return nil, &sandbox.UnsupportedError{
			Need: "a managed network in a named sandbox", Have: "this version has none",
			Hint: "use --net none or --net host",
		}
	}
	if policy.Mode() != sandbox.Managed {
		const fix = "use another -s, such as workspace-write"
		return nil, &RefusedError{Name: name, Why: "this run builds no sandbox", Fix: fix}
	}
	dir := cmd.Dir
	if real, err := filepath.EvalSymlinks(dir); err == nil { // else the start says what is wrong
		dir = real
	}
	places, err := executor.PlacesIn(ctx, &t.exec, cmd.Stage, dir, cmd.EnvPolicy.Base, cmd.Tmp)
	if err != nil {
		return nil, err
	}
	n := &needs{workspace: places.Dir, policy: policy.Bind(places), stage: cmd.Stage}
	for _, name := range cmd.Allow {
		n.openings = append(n.openings, "--allow "+name)
	}
	for _, p := range cmd.Publish {
		n.openings = append(n.openings, fmt.Sprintf("--publish %d", p.Port))
	}
	if cmd.Tmp != "" && cmd.Tmp != "private" {
		n.openings = append(n.openings, "--tmp "+cmd.Tmp)
	}
	if !cmd.ProtectHardLinks {
		n.openings = append(n.openings, "no --protect-hard-links")
	}
	return n, nil
}

// refused returns why a run with some needs may not join the sandbox that one with others has opened, as a
// *RefusedError; nil if it may.
func refused(name string, own, asks *needs) error {
	no := func(why, fix string) error { return &RefusedError{Name: name, Why: why, Fix: fix} }
	has, wants := own.policy.Network(), asks.policy.Network()
	const leave = "leave that out, or use another name"
	switch {
	case asks.workspace != own.workspace:
		why := "its workspace is " + text.Word(own.workspace) + ", and that of this run is " +
			text.Word(asks.workspace)
		return no(why, "use another name")
	case wants != has:
		why := fmt.Sprintf("its network is %s, and that of this run is %s", has, wants)
		return no(why, fmt.Sprintf("use --net %s, or another name", has))
	}
	switch {
	case asks.stage == nil: // it gets that of the sandbox
	case own.stage == nil:
		return no("this run has --stage"+missing, leave)
	case asks.stage.Name != "" && asks.stage.Name != own.stage.Name:
		return no("it has another stage than this run",
			"leave the name of the stage out, or use another name")
	}
	for _, o := range asks.openings {
		if !slices.Contains(own.openings, o) {
			return no("this run has "+text.Line(o)+missing, leave)
		}
	}
	if !own.policy.Covers(asks.policy) {
		return no(wider(own.policy, asks.policy), leave)
	}
	return nil
}

// missing is said of what the run that has opened a sandbox lacks.
const missing = ", which the run that started the sandbox did not have"

// wider names something that the policy q allows and p does not.
func wider(p, q sandbox.Policy) string {
	for _, n := range q.Named() {
		if !slices.Contains(p.Named(), n) {
			return "this run has --grant " + text.Line(n) + missing
		}
	}
	for _, e := range slices.Concat(q.Entries(), p.Entries()) {
		if at, ok := e.Place.Absolute(); ok && q.LevelAt(at) > p.LevelAt(at) {
			return fmt.Sprintf("this run may %s %s, and the run that started the sandbox may not",
				q.LevelAt(at), text.Word(at))
		}
	}
	return "this run denies less than the run that started the sandbox"
}
