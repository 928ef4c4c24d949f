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
	"github.com/sallyport-dev/sallyport/internal/limits"
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
	return limits.Refuse(r.Resources)
}

// request is what a plan needs to know whatever the policy.
func request(r *executor.Spec) (*plan.Request, error) {
	program, err := find(r)
	if err != nil {
		return nil, err
	}
	return &plan.Request{Spec: r, Program: program, Env: r.Env}, nil
}
