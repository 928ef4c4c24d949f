// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/stages"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

const (
	// sureTime is how long after the first request a second one cannot start a second process: a server
	// knows the ID of a process that has ended for 80 seconds.
	sureTime = time.Minute
	// maxAsks is how often a server is asked that says neither that the process runs nor that it does
	// not. The pause before the next time is minAsk first, and doubled each time.
	maxAsks = 10
	minAsk  = 10 * time.Millisecond
)

// errLate ends a start that would be sent when it could be a second one.
var errLate = errors.New("too much time has passed to send the start again")

// spawnError is the error for a start that did not reach the server; the cause of ctx when that is
// why.
func spawnError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &Error{Class: ClassSpawn, Err: err}
}

// newProcess returns a process that has not started.
func (e *Executor) newProcess(client *wire.Client, spec *executor.Spec) *process {
	p := &process{
		executor: e, client: client, id: newID(), events: newSorter(), ended: make(chan struct{}),
		done: make(chan struct{}),
		spec: executor.Spec{
			TTY: spec.TTY, PipeStdin: spec.PipeStdin, OnOutput: spec.OnOutput, OnExit: spec.OnExit,
			AwaitStreams: spec.AwaitStreams, Grace: spec.Grace, OnDenied: spec.OnDenied,
		},
		exit: executor.Exit{Code: -1}, hosts: newHosts(spec),
	}
	p.changed.L = &p.mu
	if env := client.Server().Environment; env != nil {
		p.can = env.Capabilities
	}
	p.life, p.quit = context.WithCancel(context.Background())
	return p
}

// start starts the process at the server. After an error of ClassTransport it may run there, and is
// being ended; after others it does not run.
func (p *process) start(ctx context.Context, start *wire.Start, spec *executor.Spec) error {
	p.out = &retained{Log: p.executor.logs.New(spec.Retain)}
	p.out.Allow(spec.Resources.Output)
	p.executor.mu.Lock()
	p.executor.processes[p.id] = p // its events come after the answer at the earliest
	p.executor.mu.Unlock()
	result, err := p.spawn(ctx, start, spec)
	if err == nil {
		var enough bool
		if p.sandbox, enough = sandboxOf(result.SandboxType, spec.Policy); !enough ||
			p.sandbox.Level != "seatbelt" && spec.Level == "seatbelt" {
			err = refused(fmt.Errorf("sandbox policy %s is not supported by this executor: the exec-server answers with the sandbox %q",
				spec.Policy.Name(), result.SandboxType), "a sandbox")
			p.disown()
		}
		if result.Sandbox != nil {
			p.sandbox = *result.Sandbox
		}
	}
	if err != nil {
		p.quit()
		p.executor.forget(p)
		p.abandon(err) // the reader does not wait for it
		_ = p.out.Close()
		return err
	}
	if p.spec.TTY != nil && !p.can.ProcessTTYSize && p.spec.TTY.OrUsual() != new(executor.Size).OrUsual() {
		if err := p.Resize(*p.spec.TTY); err != nil {
			p.sandbox.Warnings = append(p.sandbox.Warnings,
				"the terminal has 80 columns and 24 rows: "+err.Error())
		}
	}
	p.mu.Lock()
	p.running = true
	p.fill() // a connection may have been cut meanwhile
	p.mu.Unlock()
	go p.deliver()
	return nil
}

// spawn requests the start, and asks about it until it is known whether the process runs. It returns
// an error of ClassTransport, and has the process ended, where that cannot be known.
func (p *process) spawn(ctx context.Context, start *wire.Start,
	spec *executor.Spec) (*wire.StartResult, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	begin, sent := time.Now(), false
	for n, pause := 1, minAsk; ; n++ {
		result, limited, cancel := new(wire.StartResult), ctx, func() {}
		if sent {
			limited, cancel = context.WithDeadlineCause(ctx, begin.Add(sureTime), errLate)
		}
		err := p.client.Call(limited, "process/start", start, result)
		cancel()
		var lost *wire.TransportError
		errors.As(err, &lost) // it may wrap an answer, which is none to the start
		switch {
		case err == nil:
			return result, nil
		case lost != nil && lost.Sent:
			sent = true
			n--
			continue // after a cut; the server says whether there is such a process
		case errors.Is(err, errLate):
			result, err = p.found(ctx, start)
			n = maxAsks
		case !sent && (lost != nil || errors.Is(err, wire.ErrCallTooLong)):
			return nil, spawnError(ctx, err)
		case lost == nil && refuses(err, "already exists"):
			result, err = p.found(ctx, start)
		case lost == nil && stages.ErrorOf(err) != nil:
			return nil, stages.ErrorOf(err)
		case lost == nil && errors.As(err, new(*wire.Error)):
			return nil, startError(spec, err)
		default:
			return nil, p.unknown(err)
		}
		switch {
		case err == nil:
			return result, nil
		case !errors.Is(err, errUnmade) || n >= maxAsks:
			return nil, p.unknown(err)
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, p.unknown(err)
		}
		sent, pause = true, 2*pause
	}
}

// found returns what is known of a process that the server has, for which the answer to its start was
// lost. The error is errUnmade while it is being started, or when that was given up.
func (p *process) found(ctx context.Context, start *wire.Start) (*wire.StartResult, error) {
	page, err := p.look(ctx)
	switch {
	case refuses(err, "unknown process id"), refuses(err, "is starting"):
		return nil, errUnmade
	case err != nil:
		return nil, err
	case start.Sandbox == nil:
		return &wire.StartResult{ProcessID: p.id, SandboxType: "none"}, nil
	case page.SandboxType == "":
		return nil, errSandbox
	}
	return &wire.StartResult{ProcessID: p.id, SandboxType: page.SandboxType}, nil
}

// look reads the state of the process, without output.
func (p *process) look(ctx context.Context) (page wire.ReadResult, err error) {
	err = p.client.Repeat(ctx, "process/read", wire.Read{ProcessID: p.id, AfterSeq: math.MaxInt64}, &page)
	return page, err
}

// unknown returns the error for a process of which it is not known whether it runs, and ends it.
func (p *process) unknown(err error) error {
	p.disown()
	return &Error{Class: ClassTransport, Err: fmt.Errorf("%w: %w", errNoAnswer, err)}
}

// refuses reports whether an error is the answer that a request is refused, with these words.
func refuses(err error, words string) bool {
	var answer *wire.Error
	return errors.As(err, &answer) && answer.Code == wire.CodeInvalidRequest &&
		strings.Contains(answer.Message, words)
}

// sleep waits, and returns the cause of ctx when that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// disown ends a process that may run without an owner, also when there is no connection now: as
// long as the session lives, but for closeTime after the beginning of Close. It does not wait.
func (p *process) disown() {
	p.executor.ends.Go(func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		defer context.AfterFunc(p.executor.life, func() {
			if sleep(ctx, closeTime) == nil {
				cancel()
			}
		})()
		for n, pause := 1, minAsk; n <= maxAsks; n, pause = n+1, 2*pause {
			if p.client.Repeat(ctx, "process/terminate", wire.Terminate{ProcessID: p.id}, nil) != nil {
				return // without an answer there is no more to do
			}
			if _, err := p.look(ctx); !refuses(err, "is starting") || sleep(ctx, pause) != nil {
				return
			}
		}
	})
}

// newID returns a process ID that no other process has.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return "sallyport-" + hex.EncodeToString(b[:])
}
