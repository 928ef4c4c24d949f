// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	osprocess "github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/strict"
)

// Options say which exec-server an Executor uses.
type Options struct {
	URL   string      // ws://HOST:PORT, wss://HOST:PORT or unix:///PATH
	Token string      `json:"-"` // sent as a bearer token; empty for none
	TLS   *tls.Config // for wss; nil means the roots of the system
	// Dial connects in place of URL, Token and TLS, such as to a server of package execserver in this
	// process. The connection carries one message a line, as the standard input and output of
	// "sallyport exec-server --listen stdio" do, and is closed by the Executor; its Close must end a Read
	// and a Write that wait. Dial is called again after a cut, also from other goroutines, and must
	// return when the context ends. Nil means the URL.
	Dial func(context.Context) (io.ReadWriteCloser, error)
	// Environment names the machine in questions and approvals. Empty means the URL.
	Environment string
	// Resume is how long a session without a connection is tried to be resumed. Zero means one
	// minute, negative not at all.
	Resume time.Duration
}

// secret stands for a token that is set.
const secret = "(secret)"

// Format prints the Options without the token, as logs should have them, for other verbs than v as for
// v: those print what a pointer leads to, such as private keys in TLS.
func (o Options) Format(f fmt.State, _ rune) {
	type plain Options // without this method
	if p := plain(o); p.Token != "" {
		p.Token = secret
		o = Options(p)
	}
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, 'v'), plain(o))
}

// LogValue is the Options for slog, without the token.
func (o Options) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf("%+v", o)) }

// closeTime is how long Close waits for the ends of processes beyond their grace.
const closeTime = 10 * time.Second

// An Executor runs commands at an exec-server. It is made by New. All commands share a connection:
// where one is not read for long, after 8 MiB of its output the others wait as well.
type Executor struct {
	// without a token: what prints an Executor prints what is in it
	opts   Options
	stream func(context.Context) (wire.Stream, error) // connects, and has the token
	life   context.Context                            // ends with Close
	end    context.CancelFunc
	dial   chan struct{} // holds a value while a connection is made
	logs   dirs.Logs
	follow sync.WaitGroup // goroutines that follow a client
	ends   sync.WaitGroup // goroutines that end processes which have no owner; added to while starting

	mu        sync.Mutex
	closed    bool
	client    *wire.Client // nil before the first use
	processes map[string]*process
	starting  sync.WaitGroup // added to under mu while not closed
}

// New returns an Executor, which connects when it is needed first. The caller must call Close.
func New(opts Options) *Executor {
	opts.Environment = cmp.Or(opts.Environment, opts.URL, "exec-server")
	stream := wire.ClientLines(opts.Dial)
	if stream == nil {
		url, token, config := opts.URL, opts.Token, opts.TLS
		stream = func(ctx context.Context) (wire.Stream, error) { return wire.Dial(ctx, url, token, config) }
	}
	opts.Token, opts.TLS = "", nil
	e := &Executor{opts: opts, stream: stream, dial: make(chan struct{}, 1),
		processes: make(map[string]*process)}
	e.life, e.end = context.WithCancel(context.Background())
	return e
}

// connect returns the client, which it makes first, and again after a session was lost.
func (e *Executor) connect(ctx context.Context) (*wire.Client, error) {
	if err := strict.CheckContext(ctx); err != nil {
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
	target := wire.ClientTarget{Dial: e.stream}
	client, err := wire.Connect(ctx, target, wire.ClientOptions{
		Name: "sallyport", Extensions: true, Resume: e.opts.Resume, OnNotify: e.notify, OnRequest: e.decide,
		OnBinary: e.output, OnResume: e.resumed,
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
func (e *Executor) watch(client *wire.Client) {
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
		Lost     bool
		Outcome  json.RawMessage
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
		p.take(n.Seq, exitEvent(n.ExitCode, n.Signal, n.Lost))
	case wire.MethodClosed:
		p.told(n.Outcome)
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
// ClassUnsupported that wraps a *sandbox.UnsupportedError. OnStop is not called, OnDenied at the end but for
// hosts, and OnRecord without the ends of connections: the server does not tell.
//
// A start whose answer is lost is asked about until it is known whether the process runs. Where that
// cannot be known, the error is [executor.ErrEndUnknown] and an *Error of ClassTransport, and what may
// run is ended as soon as the server can be told. The process is never started twice.
func (e *Executor) Start(ctx context.Context, spec *executor.Spec) (executor.Process, error) {
	if err := strict.CheckContext(ctx); err != nil {
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
	spec, calls := osprocess.Guard(spec)
	p := e.newProcess(client, spec)
	p.guarded = calls
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
	e.ends.Wait() // it needs the client
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
