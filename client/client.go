// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/strict"
)

// Options say how a Client behaves. Only Server is needed.
type Options struct {
	// Server says which exec-server; its Environment is not used.
	Server remote.Options
	// Approver answers the questions of the server about commands of the Client, several at once. Nil
	// means that the Client answers none.
	Approver approval.Approver
	// Events gets the events of the commands of the Client, one at a time and in order; while it blocks,
	// the Client gets no answers. Those of the time of a cut are missing. Nil asks for none.
	Events event.Sink
}

// A Client is a connection with an exec-server. It is made by [Dial]. A connection that is cut is made
// again, as long as Options.Server says; runs go on meanwhile. Its methods, and those of its Runs, may be
// called from several goroutines at once. Their errors are *[Error] where the server refuses, and otherwise
// those of the connection and of the end of ctx.
type Client struct {
	opts   Options
	client *wire.Client
}

// Dial connects to a server. It blocks until that is done, ctx ends, or ten seconds have passed. The end
// of ctx later has no effect. The caller must call Close. A server that has no judged runs is an
// *[Error] that is [errors.ErrUnsupported].
func Dial(ctx context.Context, opts Options) (*Client, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return nil, err
	}
	s, c := opts.Server, &Client{opts: opts}
	own := wire.ClientOptions{Name: "sallyport", Extensions: true, Resume: s.Resume,
		Approvals: opts.Approver != nil}
	if own.Approvals {
		own.OnRequest = wire.AnswerApproval(opts.Approver)
	}
	if opts.Events != nil {
		own.OnNotify = c.notify
	}
	client, err := wire.Connect(ctx, wire.ClientTarget{URL: s.URL, Token: s.Token, TLS: s.TLS,
		Dial: wire.ClientLines(s.Dial)}, own)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the exec-server: %w", err)
	}
	if e := client.Server().Environment; e == nil || !e.Capabilities.Runs {
		_ = client.Close() // the error says more
		return nil, errNoRuns
	}
	c.client = client
	return c, nil
}

// Close ends the connection. Runs that were started by [Client.Start] go on.
func (c *Client) Close() error { return c.client.Close() }

// notify passes events on.
func (c *Client) notify(method string, params json.RawMessage) {
	var n struct{ Event event.Event }
	if method == wire.MethodRunEvent && json.Unmarshal(params, &n) == nil {
		c.opts.Events.Emit(n.Event)
	}
}

// A Cmd is a command for a server. Only Args is needed.
type Cmd struct {
	// Flags are those of "sallyport run" before the command, such as "--read-only" and "--stage", without
	// those about this machine, which the server refuses.
	Flags []string
	Args  []string // the program and its arguments
	Dir   string   // absolute; empty means the directory of the server, unless a flag names one
	Env   []string // "NAME=value"; nil means the environment of the server
	// Sandbox is the name of a sandbox of the server that the command joins, and that is made for the
	// first one; empty means one of its own.
	Sandbox string
	// TTY has the command run on a terminal of that size; nil means none.
	TTY       *executor.Size
	Screen    bool // [Run.Screen] shows the terminal; it needs TTY
	OpenStdin bool // [Run.Write] takes input; without it, and without TTY, the input is empty
	// Trace is that of [sallyport.Cmd].
	Trace event.TraceContext
}

// params returns the parameters of run/start.
func (c *Client) params(cmd *Cmd) (*wire.RunStart, error) {
	if cmd == nil || len(cmd.Args) == 0 {
		return nil, &sallyport.CmdError{Field: "Args", Reason: "there is no program; name one"}
	}
	p := &wire.RunStart{
		Args: slices.Concat(cmd.Flags, []string{"--"}, cmd.Args), Dir: cmd.Dir,
		OpenStdin: cmd.OpenStdin, Screen: cmd.Screen, Events: c.opts.Events != nil,
		Trace: wire.Trace(cmd.Trace.Valid()),
	}
	if cmd.Sandbox != "" {
		p.Sandbox = &wire.RunSandbox{Name: cmd.Sandbox}
	}
	if cmd.TTY != nil {
		size := cmd.TTY.OrUsual()
		p.TTY = &wire.RunSize{Cols: size.Cols, Rows: size.Rows}
	}
	if cmd.Env == nil {
		return p, nil
	}
	p.Env = make(map[string]string, len(cmd.Env))
	for _, e := range cmd.Env {
		name, value, ok := strings.Cut(e, "=")
		if !ok || name == "" {
			return nil, &sallyport.CmdError{Field: "Env", Reason: fmt.Sprintf("%q is no NAME=value", e)}
		}
		p.Env[name] = value
	}
	return p, nil
}

// Start starts a command. It blocks until the command runs, which may take as long as an approval does;
// the end of ctx before that prevents the start. A command that does not run is a *[NotRunError]. After an
// error of the connection it may run: List shows it.
func (c *Client) Start(ctx context.Context, cmd *Cmd) (*Run, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return nil, err
	}
	p, err := c.params(cmd)
	if err != nil {
		return nil, err
	}
	id, text, err := wire.StartRun(ctx, c.client, p)
	if err != nil {
		return nil, explain(err)
	}
	if id != "" {
		return &Run{client: c, id: id}, nil
	}
	res, err := result(text)
	if err != nil {
		return nil, err
	}
	return nil, &NotRunError{Result: res}
}

// Run runs a command to its end, which the end of ctx brings about, and returns its Result. A command that
// does not run is a *[NotRunError], beside its Result.
func (c *Client) Run(ctx context.Context, cmd *Cmd) (*sallyport.Result, error) {
	r, err := c.Start(ctx, cmd)
	var refused *NotRunError
	switch {
	case errors.As(err, &refused):
		return refused.Result, err
	case err != nil:
		return nil, err
	}
	life := context.WithoutCancel(ctx)
	defer context.AfterFunc(ctx, func() { _, _ = r.Terminate(life) })() // Wait tells the end
	res, err := r.Wait(life)
	if err != nil {
		return nil, err
	}
	return res, r.Remove(life)
}

// Attach returns a run of the server, which may have been started by another Client of the same user.
// Whether there is one with the ID shows when it is used.
func (c *Client) Attach(id string) *Run { return &Run{client: c, id: id} }

// An Info is what a list shows of a run.
type Info struct {
	ID       string
	Args     []string
	Dir      string
	TTY      bool
	Started  time.Time
	LastUsed time.Time // when it was last written to or waited for
	Starting bool      // it is judged, or waits for an approval
	Running  bool
	// ExitCode, Signal and End are those of its Result; -1, 0 and empty before the end.
	ExitCode, Signal int
	End              sallyport.End
}

// List returns the runs that the server knows of this user: those that run, and the last that have
// ended.
func (c *Client) List(ctx context.Context) ([]Info, error) {
	var list wire.RunList
	if err := c.repeat(ctx, "run/list", struct{}{}, &list); err != nil {
		return nil, err
	}
	out := make([]Info, len(list.Runs))
	for i, l := range list.Runs {
		out[i] = Info{
			ID: l.RunID, Args: l.Argv, Dir: l.CWD, TTY: l.TTY, Started: time.UnixMilli(l.Started),
			LastUsed: time.UnixMilli(l.LastUsed),
			Starting: l.Starting, Running: l.Running, ExitCode: -1, Signal: l.Signal,
		}
		if l.ExitCode != nil && l.End != nil {
			out[i].ExitCode, out[i].End = *l.ExitCode, sallyport.End(*l.End)
		}
	}
	return out, nil
}

// repeat makes a request that may be made again after a cut.
func (c *Client) repeat(ctx context.Context, method string, params, result any) error {
	if err := strict.CheckContext(ctx); err != nil {
		return err
	}
	return explain(c.client.Repeat(ctx, method, params, result))
}
