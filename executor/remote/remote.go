// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/caller"
	"github.com/sallyport-dev/sallyport/internal/execclient"
	"github.com/sallyport-dev/sallyport/internal/jsonrpc"
	osprocess "github.com/sallyport-dev/sallyport/internal/process"
	"github.com/sallyport-dev/sallyport/internal/state"
	"github.com/sallyport-dev/sallyport/internal/wire"
)

// Options say which exec-server an Executor uses.
type Options struct {
	URL   string      // ws://HOST:PORT, wss://HOST:PORT or unix:///PATH
	Token string      `json:"-"` // sent as a bearer token; empty for none
	TLS   *tls.Config // for wss; nil means the roots of the system
	// Dial connects in place of URL, Token and TLS, as to a server in this process. It is called
	// again after a cut. Nil means the URL.
	Dial func(context.Context) (jsonrpc.Stream, error)
	// Environment names the machine in questions and approvals. Empty means the URL.
	Environment string
	// Resume is how long a session without a connection is tried to be resumed. Zero means one
	// minute, negative not at all.
	Resume time.Duration
}

// secret stands for a token that is set.
const secret = "(secret)"

// Format prints the Options for every verb without the token, as logs should have them.
func (o Options) Format(f fmt.State, verb rune) {
	type plain Options // without this method
	if p := plain(o); p.Token != "" {
		p.Token = secret
		o = Options(p)
	}
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, verb), plain(o))
}

// LogValue is the Options for slog, without the token.
func (o Options) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf("%+v", o)) }

// closeTime is how long Close waits for the ends of processes beyond their grace.
const closeTime = 10 * time.Second

// An Executor runs commands at an exec-server. It is made by New. All commands share a connection:
// where one is not read for long, after 8 MiB of its output the others wait as well.
type Executor struct {
	opts   *Options        // by a pointer: what prints an Executor does not print the token
	life   context.Context // ends with Close
	end    context.CancelFunc
	dial   chan struct{} // holds a value while a connection is made
	logs   state.Logs
	follow sync.WaitGroup // goroutines that follow a client

	mu        sync.Mutex
	closed    bool
	client    *execclient.Client // nil before the first use
	processes map[string]*process
	starting  sync.WaitGroup // added to under mu while not closed
}

// New returns an Executor, which connects when it is needed first. The caller must call Close.
func New(opts Options) *Executor {
	opts.Environment = cmp.Or(opts.Environment, opts.URL, "exec-server")
	e := &Executor{opts: &opts, dial: make(chan struct{}, 1), processes: make(map[string]*process)}
	e.life, e.end = context.WithCancel(context.Background())
	return e
}

// connect returns the client, which it makes first, and again after a session was lost.
func (e *Executor) connect(ctx context.Context) (*execclient.Client, error) {
	if err := caller.Check(ctx); err != nil {
		return nil, err
	}
	select {
	case e.dial <- struct{}{}:
		defer func() { <-e.dial }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	e.mu.Lock()
	client, closed := e.client, e.closed
	e.mu.Unlock()
	switch {
	case closed:
		return nil, ErrClosed
	case client != nil && client.Err() == nil:
		return client, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.life, func() { cancel(ErrClosed) })()
	target := execclient.Target{URL: e.opts.URL, Token: e.opts.Token, TLS: e.opts.TLS, Dial: e.opts.Dial}
	client, err := execclient.Dial(ctx, target, execclient.Options{
		Name: "sallyport", Extensions: true, Resume: e.opts.Resume, OnNotify: e.notify, OnRequest: e.decide, OnBinary: e.output, OnResume: e.resumed,
	})
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	if closed = e.closed; !closed {
		e.client = client
		e.follow.Go(func() { e.watch(client) })
	}
	e.mu.Unlock()
	if closed {
		return nil, errors.Join(ErrClosed, client.Close())
	}
	return client, nil
}

// watch gives up the processes of a client whose session is lost.
func (e *Executor) watch(client *execclient.Client) {
	<-client.Done()
	for _, p := range e.list() {
		if p.client == client {
			p.abandon(client.Err())
		}
	}
}

// list returns the processes.
func (e *Executor) list() []*process {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]*process, 0, len(e.processes))
	for _, p := range e.processes {
		list = append(list, p)
	}
	return list
}

// find returns a process; nil when there is none.
func (e *Executor) find(id string) *process {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.processes[id]
}

func (e *Executor) forget(p *process) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.processes, p.id)
}

// notify is [execclient.Options.OnNotify]. What it does not know it ignores.
func (e *Executor) notify(method string, params json.RawMessage) {
	if method == wire.MethodPolicyDecision {
		e.told(params)
		return
	}
	var n struct {
		wire.Output
		ExitCode int
		Signal   string
	}
	if json.Unmarshal(params, &n) != nil {
		return
	}
	p := e.find(n.ProcessID)
	if p == nil || n.Seq == 0 {
		return
	}
	switch method {
	case wire.MethodOutput:
		p.take(n.Seq, outputEvent(n.Chunk))
	case wire.MethodExited:
		p.take(n.Seq, event{kind: kindExit, code: n.ExitCode, signal: osprocess.SignalNumber(n.Signal)})
	case wire.MethodClosed:
		p.take(n.Seq, event{kind: kindClosed})
	}
}

// output is [execclient.Options.OnBinary]. What it does not know it ignores: an event that is
// missing then is read.
func (e *Executor) output(message []byte) {
	o, err := wire.DecodeFrame(message)
	if err != nil {
		return
	}
	if p := e.find(o.ProcessID); p != nil {
		p.take(o.Seq, outputEvent(o.Chunk))
	}
}

// resumed is [execclient.Options.OnResume].
func (e *Executor) resumed() {
	for _, p := range e.list() {
		p.resumed()
	}
}

// Start implements [executor.Executor]. A Spec that the wire cannot say is an *Error of
// ClassUnsupported that wraps a *sandbox.UnsupportedError. OnStop is not called, OnDenied and OnRecord
// for hosts only, without the ends of connections, and there is no Script: the server does not tell.
func (e *Executor) Start(ctx context.Context, spec *executor.Spec) (executor.Process, error) {
	if err := caller.Check(ctx); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := check(spec); err != nil {
		return nil, err
	}
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, ErrClosed
	}
	e.starting.Add(1)
	e.mu.Unlock()
	defer e.starting.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.life, func() { cancel(ErrClosed) })()
	client, err := e.connect(ctx)
	if err != nil {
		return nil, spawnError(ctx, err)
	}
	p := e.newProcess(client, spec)
	start, err := request(spec, p.id, p.can)
	if err != nil {
		return nil, err
	}
	if spec.Ready != nil {
		select {
		case <-spec.Ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if err := p.start(ctx, start, spec); err != nil {
		return nil, err
	}
	return p, nil
}

// spawnError is the error for a start that did not reach the server; the cause of ctx when that is
// why.
func spawnError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &Error{Class: ClassSpawn, Err: err}
}

// newProcess returns a process that has not started.
func (e *Executor) newProcess(client *execclient.Client, spec *executor.Spec) *process {
	p := &process{
		executor: e, client: client, id: newID(), events: newSorter(), ended: make(chan struct{}), done: make(chan struct{}),
		spec: executor.Spec{
			TTY: spec.TTY, PipeStdin: spec.PipeStdin, OnOutput: spec.OnOutput, OnExit: spec.OnExit,
			AwaitStreams: spec.AwaitStreams, Grace: spec.Grace,
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

// start starts the process at the server. An error means that it does not run there.
func (p *process) start(ctx context.Context, start *wire.Start, spec *executor.Spec) error {
	p.out = &retained{Log: p.executor.logs.New(spec.Retain)}
	p.out.Allow(spec.Resources.Output)
	p.executor.mu.Lock()
	p.executor.processes[p.id] = p // its events come after the answer at the earliest
	p.executor.mu.Unlock()
	result, err := p.spawn(ctx, start, spec)
	if err == nil {
		var enough bool
		if p.sandbox, enough = sandboxOf(result.SandboxType, spec.Policy); !enough {
			err = refused(fmt.Errorf("sandbox policy %s is not supported by this executor: the exec-server answers with the sandbox %q",
				spec.Policy.Name(), result.SandboxType), "a sandbox")
			p.kill()
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
			p.sandbox.Warnings = append(p.sandbox.Warnings, "the terminal has 80 columns and 24 rows: "+err.Error())
		}
	}
	p.mu.Lock()
	p.running = true
	p.fill() // a connection may have been cut meanwhile
	p.mu.Unlock()
	go p.deliver()
	return nil
}

// spawn requests the start. After a cut it is sent again: the ID tells whether it was performed.
func (p *process) spawn(ctx context.Context, start *wire.Start, spec *executor.Spec) (*wire.StartResult, error) {
	const most = 10 // requests, of a server that never performs one
	for n := 1; ; n++ {
		result := new(wire.StartResult)
		err := p.client.Repeat(ctx, "process/start", start, result)
		switch {
		case err == nil:
			return result, nil
		case refuses(err, "already exists"):
			// The answer to the first request was lost. What it said of the sandbox is not known.
			if err = p.client.Repeat(ctx, "process/read", wire.Read{ProcessID: p.id}, nil); err == nil && start.Sandbox == nil {
				return &wire.StartResult{ProcessID: p.id, SandboxType: "none"}, nil
			}
			if n < most && refuses(err, "unknown process id") {
				continue // servers do not go on with a start that waits when its connection ends
			}
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			err = fmt.Errorf("the connection ended while the process started: %w", err)
		case errors.As(err, new(*jsonrpc.Error)):
			return nil, startError(spec, err)
		}
		p.kill()
		return nil, spawnError(ctx, err)
	}
}

// refuses reports whether an error is the answer that a request is refused, with these words.
func refuses(err error, words string) bool {
	var answer *jsonrpc.Error
	return errors.As(err, &answer) && answer.Code == jsonrpc.CodeInvalidRequest && strings.Contains(answer.Message, words)
}

// kill ends a process that may run although it was not started as asked.
func (p *process) kill() {
	p.executor.follow.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		_ = p.client.Repeat(ctx, "process/terminate", wire.Terminate{ProcessID: p.id}, nil) // without an answer there is no more to do
	})
}

// newID returns a process ID that no other process has.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return "sallyport-" + hex.EncodeToString(b[:])
}

// Close cancels every start, stops every process, waits for their ends, and leaves the server. A
// process whose end the server does not tell in time is given up: its Wait returns an error. It may
// be called more than once; every call waits.
func (e *Executor) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.end()
	e.starting.Wait()
	most := time.Duration(0)
	left := e.list()
	for _, p := range left {
		p.Stop()
		most = max(most, p.spec.Grace, defaultGrace)
	}
	late := time.AfterFunc(most+closeTime, func() {
		for _, p := range left {
			p.abandon(ErrClosed)
		}
	})
	defer late.Stop()
	for _, p := range left {
		<-p.done
		p.work.Wait()
	}
	e.mu.Lock()
	client := e.client
	e.mu.Unlock()
	var err error
	if client != nil {
		err = client.Close()
	}
	e.follow.Wait()
	if err := errors.Join(err, e.logs.Close()); err != nil {
		return fmt.Errorf("cannot close the executor: %w", err)
	}
	return nil
}

var (
	_ executor.Executor = (*Executor)(nil)
)
