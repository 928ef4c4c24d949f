// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"path/filepath"
	"slices"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/reach"
)

// reach knows what commands can change, with the policy of this one as it is now and with what
// others of this Runner were given.
func (x *execution) reach() *reach.Reach {
	r := x.runner
	r.mu.Lock()
	more := slices.Concat(r.Writable, r.opened)
	r.mu.Unlock()
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
