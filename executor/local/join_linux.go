// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux"
	"github.com/sallyport-dev/sallyport/internal/sockets"
)

// SharedParts is what a process of the same user needs to start commands in a shared sandbox.
type SharedParts = linux.SharedParts

// Parts returns those of a shared sandbox that an Executor has opened, whose files stay that one's; false
// for another one.
func Parts(s executor.Shared) (SharedParts, bool) {
	own, ok := s.(*shared)
	if !ok {
		return SharedParts{}, false
	}
	return own.in.Parts(), true
}

// A Joined is an Executor whose commands start in a shared sandbox that another process of this user
// has opened. Close it in place of the Executor.
type Joined struct {
	*Executor
	in *shared
}

// Join returns an Executor for a sandbox of which it gets the parts. It owns their files.
func Join(parts SharedParts) *Joined {
	e := new(Executor)
	return &Joined{e, e.share(e.host.Join(parts))}
}

// Start implements [executor.Executor].
func (j *Joined) Start(ctx context.Context, spec *executor.Spec) (executor.Process, error) {
	return j.in.Start(ctx, spec)
}

// UseSockets has the commands of several processes know each other's unix sockets. It is called before the
// first one starts.
func (j *Joined) UseSockets(by sockets.Claims) { j.in.in.UseSockets(by) }

// Done is closed when the sandbox has ended.
func (j *Joined) Done() <-chan struct{} { return j.in.Done() }

var _ executor.Executor = (*Joined)(nil)
