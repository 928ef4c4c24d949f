// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"time"

	"github.com/sallyport-dev/sallyport/executor"
)

// Now is what a command that runs does at this moment. The zero value says that nothing is known.
type Now struct {
	CPU    *time.Duration      // what its process tree has used so far; nil where it is not known
	Memory *int64              // bytes that its processes have now, as their limit counts them; nil likewise
	Input  *executor.InputWait // what it waits for; nil for none, or where it is not known
}

// NowOf asks a process, which tells it if it has a method Now.
func NowOf(p executor.Process) Now {
	if own, ok := p.(interface{ Now() Now }); ok {
		return own.Now()
	}
	return Now{}
}
