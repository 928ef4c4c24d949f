// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/linux/rlimit"
)

// Defaults returns the resource limits of every command: no core dumps, which would end
// up in the workspace or with the host's crash handler, and the limit on open files
// that this program was started with, which Go raises for itself. A core limit of 1
// also disables handlers; 0 does not (core(5)).
func Defaults() []plan.Limit {
	out := []plan.Limit{lowered(plan.Limit{Resource: unix.RLIMIT_CORE, Soft: 1, Hard: 1})}
	if soft, hard, ok := rlimit.FilesAtStart(); ok {
		out = append(out, lowered(plan.Limit{Resource: unix.RLIMIT_NOFILE, Soft: soft, Hard: hard}))
	}
	return out
}

// lowered returns l with both limits at most the present hard limit, which an ordinary
// user cannot raise.
func lowered(l plan.Limit) plan.Limit {
	var now unix.Rlimit
	if unix.Getrlimit(l.Resource, &now) == nil {
		l.Hard = min(l.Hard, now.Max)
		l.Soft = min(l.Soft, l.Hard)
	}
	return l
}
