// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/process"
)

// Perform does, in the place of a process, what this process does itself, such as applying a patch that was
// judged. An executor without this method performs nothing.
func (e *Executor) Perform(spec *executor.Spec, do executor.Task) (executor.Process, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, ErrClosed
	}
	return process.Perform(spec, executor.Sandbox{Level: "none", Mechanism: []string{"sallyport"}}, do), nil
}
