// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package confine

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// check refuses what no system can start.
func check(r *executor.Spec) error {
	if len(r.Args) == 0 {
		return errors.New("command args are empty")
	}
	for _, s := range slices.Concat(r.Args, r.Env, []string{r.Dir, r.Arg0}) {
		if strings.IndexByte(s, 0) >= 0 {
			return fmt.Errorf("%q contains a NUL byte, which no argument, variable or path can hold", s)
		}
	}
	if st, err := os.Stat(r.Dir); err != nil {
		return &executor.DirError{Dir: r.Dir, Err: err}
	} else if !st.IsDir() {
		return &executor.DirError{Dir: r.Dir, Err: executor.ErrNotDir}
	}
	if r.TTY != nil {
		return &sandbox.UnsupportedError{
			Need: "a terminal for the command", Have: "terminals are built for Linux only",
			Hint: "run it without one, or on Linux",
		}
	}
	return unlimited(r)
}

// unlimited refuses limits on this system, where nothing is built that holds them
// over a whole tree.
func unlimited(r *executor.Spec) error {
	for _, l := range []struct {
		name string
		set  bool
	}{
		{executor.LimitMemory, r.Resources.Memory > 0}, {executor.LimitCPUs, r.Resources.CPUs > 0},
		{executor.LimitPIDs, r.Resources.PIDs > 0}, {executor.LimitDisk, r.Resources.Disk > 0},
	} {
		if l.set {
			return &sandbox.UnsupportedError{
				Need: "the limit " + l.name, Have: "limits of a tree of processes are built for Linux only",
				Hint: "leave it out, or run on Linux",
			}
		}
	}
	return nil
}

// request is what a plan needs to know whatever the policy.
func request(r *executor.Spec) (*plan.Request, error) {
	program, err := find(r)
	if err != nil {
		return nil, err
	}
	pr := &plan.Request{
		Mode: r.Policy.Mode(), Network: r.Policy.Network(), Allow: r.Allow,
		Program: program, Argv: slices.Clone(r.Args), Env: r.Env, Dir: r.Dir,
	}
	if r.Arg0 != "" {
		pr.Argv[0] = r.Arg0
	}
	return pr, nil
}
