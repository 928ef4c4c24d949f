// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"errors"
	"time"

	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Opener is an [Executor] that has shared sandboxes.
type Opener interface {
	// Open opens one. It returns a *sandbox.UnsupportedError where this machine has none. The end
	// of ctx cancels the call and has no effect later.
	Open(ctx context.Context, spec *SharedSpec) (Shared, error)
}

// SharedSpec describes a shared sandbox.
type SharedSpec struct {
	// Policy says which network the sandbox has: its mode and the hosts that are granted. The rest
	// has no effect: each process has its own.
	Policy sandbox.Policy
	// Network is as in [Spec].
	Network *network.Live
	// SharePIDs puts all processes into one process namespace, where they see and signal each other's.
	// Then all must have the same policy; one with another policy is an *ApartError. What a process leaves
	// behind is found by a subreaper, and a process that kills one ends the sandbox.
	SharePIDs bool
	// Resources limits what all processes use together, beside the limits of each. All but CPUs are
	// watched: processes can exceed a limit for a moment, and all of them are killed then, with
	// [Exit.Limit]. Disk is about the /tmp of the sandbox. Output has no effect.
	Resources Resources
}

// Shared is a shared sandbox. Processes in it have one network with its loopback interface, one /tmp,
// one /dev/shm, and the same IPC objects and host name. Files, mounts, process ids and system calls are
// those of each process. Its methods may be called concurrently.
type Shared interface {
	// Start is as [Executor.Start]. It returns an *ApartError for a process that has another network,
	// or none that is confined, and ErrSharedEnded when the sandbox has ended.
	Start(ctx context.Context, spec *Spec) (Process, error)
	// Processes lists what runs in the sandbox, in the order of their ids.
	Processes() []SharedProcess
	// Usage returns what the processes that have ended have used together, as far as it is known.
	Usage() Usage
	// Done is closed when the sandbox has ended: it was closed, or the process that holds it was
	// killed, and everything in it with that.
	Done() <-chan struct{}
	// Close stops every process as [Process.Stop] does, waits for them, and frees what the
	// sandbox holds. It may be called more than once; every call waits.
	Close() error
}

// SharedProcess is one process in a shared sandbox.
type SharedProcess struct {
	PID     int       `json:"pid"`    // as the executor's machine sees it
	Parent  int       `json:"parent"` // likewise; that of the command is not in the list
	Run     string    `json:"run"`    // Spec.Run of the command that it belongs to
	Name    string    `json:"name"`
	Command string    `json:"command,omitempty"` // as in [Survivor]
	Started time.Time `json:"started"`           // when the command was started
}

// ErrSharedEnded is returned for a process that cannot start because the shared sandbox has ended, and
// is the cause in [Exit.Broken] of one that was killed with it.
var ErrSharedEnded = errors.New("the shared sandbox has ended; open another one")

// ApartError reports a process that cannot run in a shared sandbox.
type ApartError struct{ Why string }

// Error returns one sentence with the reason and the fix.
func (e *ApartError) Error() string {
	return text.Line("the command cannot start in this shared sandbox: " + e.Why +
		"; run it on its own, or open a sandbox with its network")
}
