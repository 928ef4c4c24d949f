// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"context"
	"fmt"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/cgroup"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
)

// cgroups makes a group with all limits that can be had, and removes it. Limits for
// which there is no group are held by something else, which it names: nothing
// is refused for that.
func (d *doctor) cgroups(context.Context) (string, error) {
	tree := d.host.groups.find()
	l := cgroup.Limits{Memory: executor.LeastMemory, CPUs: 1, PIDs: reapers}
	if tree.By(cgroup.Memory) == "" {
		l.Memory = 0
	}
	if tree.By(cgroup.CPU) == "" {
		l.CPUs = 0
	}
	if tree.By(cgroup.PIDs) == "" {
		l.PIDs = 0
	}
	held := limitsHere(tree)
	const mend = "start it as root, or in a group of its own (systemd-run --user --scope -p Delegate=yes)"
	if l == (cgroup.Limits{}) {
		return "", &lackError{"no group can be made: " + tree.Why() + "; limits: " + held, mend}
	}
	g, err := tree.New(l)
	if err != nil {
		return "", &lackError{err.Error(), mend}
	}
	g.Remove()
	return fmt.Sprintf("made in %s; limits: %s", strings.Join(tree.Where(), ", "), held), nil
}

// limitsHere says what holds each limit at the native level.
func limitsHere(tree *cgroup.Tree) string {
	by := func(c cgroup.Controller, otherwise string) string {
		if k := tree.By(c); k != "" {
			return string(k)
		}
		return otherwise
	}
	pids := executor.ByRlimit
	if hostfacts.SystemRoot() {
		pids = executor.ByWatch
	}
	return strings.Join([]string{
		executor.LimitMemory + " by " + by(cgroup.Memory, executor.ByWatch),
		executor.LimitCPUs + " by " + by(cgroup.CPU, executor.ByAffinity),
		executor.LimitPIDs + " by " + by(cgroup.PIDs, pids),
		executor.LimitDisk + " by " + executor.ByWatch,
		executor.LimitOutput + " by " + executor.ByWatch,
	}, ", ")
}
