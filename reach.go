// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/reach"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// reach knows what commands can change, with the policy of this one as it is now and with what
// others of this Runner were given.
func (x *execution) reach() *reach.Reach {
	r := x.runner
	r.mu.Lock()
	more := slices.Concat(r.Writable, r.opened)
	r.mu.Unlock()
	more = append(more, x.others.Writes()...)
	if filepath.IsAbs(x.cmd.Tmp) {
		more = append(more, x.cmd.Tmp)
	}
	return reach.New(reach.Area{Policy: x.policy, Workspace: x.dir, HostTmp: x.cmd.Tmp == "host", Writable: more})
}

// opens notes what commands of the Runner may write to from now on.
func (r *Runner) opens(required []string) {
	_, grants := approval.Opened(required)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range grants {
		if filepath.IsAbs(g.Path) && !slices.Contains(r.opened, g.Path) {
			r.opened = append(r.opened, g.Path)
		}
	}
}

// leave gives the command what a rule that leads outside does. What it finds by its environment there must be
// out of reach, as it itself is. Where nothing confines commands, everything is as it was.
func (x *execution) leave() error {
	confined, in := x.host.Local && x.policy.Mode() == sandbox.Managed, x.reach()
	if err := x.open([]string{approval.Outside}); err != nil || !confined {
		return err
	}
	var dropped []string
	if x.env, dropped = in.Environ(x.dir, x.env); len(dropped) > 0 {
		x.note("it runs without variables that lead to what commands can change: " + strings.Join(dropped, ", "))
	}
	return nil
}
