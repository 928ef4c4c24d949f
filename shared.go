// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// SandboxOptions say what a shared sandbox is. The zero SandboxOptions are for commands that all have
// the network of the Runner's policy.
type SandboxOptions struct {
	// Apart has a command that cannot run in the sandbox, because it has another network or is
	// approved to run outside, run in a sandbox of its own, and all commands where this machine
	// has no shared sandboxes. Sandbox.Apart of the Result says why. False has them fail with an
	// *executor.ApartError, and Open with [ErrNoSandbox]. A command with a Cmd.Stage never runs apart: the
	// zero Staging is one stage for all commands in the sandbox.
	Apart bool
	// SharePIDs puts all commands into one process namespace, for agents that use ps and kill. Then all must
	// have the same policy: see executor.SharedSpec. False gives each command its own.
	SharePIDs bool
	// Resources limits what all commands use together, beside the limits of each: see
	// executor.SharedSpec. The zero value limits nothing.
	Resources executor.Resources
	// Idle closes the sandbox when no command has run in it for that long; 0 means never.
	Idle time.Duration
}

// A Sandbox is a shared sandbox: its commands have one network with its loopback interface, one /tmp and
// /dev/shm, and the same System V IPC objects. A server that a session runs is reached by the
// next command. Each command still has its own policy for files, process ids, system calls and limits, and
// a process that its command leaves behind is ended with it. Its methods may be called from
// several goroutines at once. Close it when it is no longer needed; Runner.Close does as well.
type Sandbox struct {
	runner *Runner
	shared executor.Shared // nil: this machine has none
	apart  error           // why; nil where it has
	opts   SandboxOptions

	mu     sync.Mutex
	closed bool
	uses   int
	idle   *time.Timer // runs while there are no uses; nil without Idle

	closing  sync.Once
	closeErr error
}

// Open makes a shared sandbox with the network of the Runner's policy. The end of ctx cancels the call
// and has no effect later. Open returns [ErrNoSandbox] where there are none, and where Executor is no
// [executor.Opener].
func (r *Runner) Open(ctx context.Context, o SandboxOptions) (*Sandbox, error) {
	ctx, leave, err := r.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	s := &Sandbox{runner: r, opts: o}
	s.shared, err = r.open(ctx, &o)
	var none *sandbox.UnsupportedError
	if errors.As(err, &none) && o.Apart {
		s.apart, err = none, nil
	}
	if err != nil {
		return nil, noSandbox(err)
	}
	r.mu.Lock()
	if r.sandboxes == nil {
		r.sandboxes = make(map[*Sandbox]struct{})
	}
	r.sandboxes[s] = struct{}{}
	r.mu.Unlock()
	if o.Idle > 0 {
		s.mu.Lock() // it may expire at once
		s.idle = time.AfterFunc(o.Idle, s.expire)
		s.mu.Unlock()
	}
	return s, nil
}

// open opens a shared sandbox of the executor.
func (r *Runner) open(ctx context.Context, o *SandboxOptions) (executor.Shared, error) {
	opener, ok := r.executor().(executor.Opener)
	if !ok {
		return nil, &sandbox.UnsupportedError{Need: "a shared sandbox", Have: "this executor has none",
			Hint: "run each command in a sandbox of its own"}
	}
	return opener.Open(ctx, &executor.SharedSpec{Policy: r.setting().policy, Network: r.live,
		SharePIDs: o.SharePIDs, Resources: o.Resources})
}

// Run runs a command in the sandbox, as [Runner.Run] does. The error is executor.ErrSharedEnded when the
// sandbox has ended.
func (s *Sandbox) Run(ctx context.Context, c *Cmd) (*Result, error) { return s.runner.run(ctx, c, s) }

// Start starts a session in the sandbox, as [Runner.Start] does.
func (s *Sandbox) Start(ctx context.Context, c *Cmd) (*Session, error) {
	return s.runner.start(ctx, c, s)
}

// Processes lists what runs in the sandbox, in the order of process ids; nil where there are no shared
// sandboxes.
func (s *Sandbox) Processes() []executor.SharedProcess {
	if s.shared == nil {
		return nil
	}
	return s.shared.Processes()
}

// Usage returns what the commands that have ended have used together, as far as it is known.
func (s *Sandbox) Usage() executor.Usage {
	if s.shared == nil {
		return executor.Usage{}
	}
	return s.shared.Usage()
}

// Done is closed when the sandbox has ended: it was closed, or the process that holds it was killed, and
// everything in it with that. It is nil where there are no shared sandboxes.
func (s *Sandbox) Done() <-chan struct{} {
	if s.shared == nil {
		return nil
	}
	return s.shared.Done()
}

// Close ends everything in the sandbox, as a canceled run ends, waits for it, and removes its /tmp. It may
// be called more than once; every call waits.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	s.closed = true
	if s.idle != nil {
		s.idle.Stop()
	}
	s.mu.Unlock()
	s.closing.Do(func() {
		if s.shared != nil {
			s.closeErr = s.shared.Close()
		}
		s.runner.mu.Lock()
		delete(s.runner.sandboxes, s)
		s.runner.mu.Unlock()
	})
	if s.closeErr != nil {
		return fmt.Errorf("sallyport: %w", s.closeErr)
	}
	return nil
}

// expire closes a sandbox in which nothing has run for long enough.
func (s *Sandbox) expire() {
	s.mu.Lock()
	unused := s.uses == 0 && !s.closed
	if unused {
		s.closed = true // no command begins any more
	}
	s.mu.Unlock()
	if unused {
		_ = s.Close() // the next start removes what could not be removed
	}
}

// enter counts a command, until leave. The nil Sandbox counts nothing.
func (s *Sandbox) enter() (leave func(), err error) {
	if s == nil {
		return func() {}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, executor.ErrSharedEnded
	}
	if s.uses++; s.idle != nil {
		s.idle.Stop()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.uses--; s.uses == 0 && s.idle != nil && !s.closed {
			s.idle.Reset(s.opts.Idle)
		}
	}, nil
}

// launch starts a process of the run, in its shared sandbox if it has one.
func (x *execution) launch(ctx context.Context, spec *executor.Spec) (executor.Process, error) {
	if x.patch != nil {
		by, ok := executor.As[performer](x.runner.executor())
		if !ok {
			return nil, errors.ErrUnsupported // patching has looked
		}
		return by.Perform(spec, x.patch.apply)
	}
	s := x.sandbox
	x.apart = ""
	if s == nil || spec.Policy.Mode() != sandbox.Managed && s.opts.Apart { // there is no sandbox to share
		return x.runner.executor().Start(ctx, spec)
	}
	switch {
	case s.shared == nil && spec.Stage != nil: // which all of its commands have
		return nil, s.apart
	case s.shared == nil:
		x.apart = s.apart.Error()
		return x.runner.executor().Start(ctx, spec)
	}
	p, err := s.shared.Start(ctx, spec)
	var apart *executor.ApartError
	if errors.As(err, &apart) && s.opts.Apart && spec.Stage == nil {
		x.apart = apart.Why
		return x.runner.executor().Start(ctx, spec)
	}
	return p, err
}
