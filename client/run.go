// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/strict"
)

// A Run is a command that runs at a server, or has run there. The server knows the last 64 of a user
// that have ended, for an hour.
type Run struct {
	client *Client
	id     string
}

// ID returns the number of the run, in decimal. It is unique for the user at the server.
func (r *Run) ID() string { return r.id }

const (
	// readBytes is the most that one request for output returns, and readWait how long the server waits
	// for some before it answers.
	readBytes = uint64(1 << 20)
	readWait  = 10 * time.Minute
	// writeBytes is the most of one request with input.
	writeBytes = 1 << 20
)

// Deltas returns the output of the run from an offset on, as it comes, up to its end or to the end of ctx,
// which is an error, as [sallyport.Session.Deltas] does.
func (r *Run) Deltas(ctx context.Context, from uint64) iter.Seq2[sallyport.Delta, error] {
	return func(yield func(sallyport.Delta, error) bool) {
		most := readBytes
		for at := from; ; {
			var page wire.RunReadResult
			p := wire.RunRead{RunID: r.id, After: at, MaxBytes: &most, WaitMs: millis(readWait)}
			if err := r.client.repeat(ctx, "run/read", &p, &page); err != nil {
				yield(sallyport.Delta{Offset: at}, err)
				return
			}
			for _, c := range page.Chunks {
				d := sallyport.Delta{Offset: c.Offset, Missing: c.Missing, Joined: c.Joined, Data: c.Chunk}
				if c.Stream == executor.Stderr.String() {
					d.Stream = executor.Stderr
				}
				if !yield(d, nil) {
					return
				}
			}
			if page.Complete {
				return
			}
			at = max(at, page.Next)
		}
	}
}

// Write writes to the input of the command. Each byte arrives once, also where the connection is cut. A
// command that does not read is io.ErrShortWrite, after some of p.
func (r *Run) Write(ctx context.Context, p []byte) (n int, err error) {
	for n < len(p) {
		part := p[n:min(n+writeBytes, len(p))]
		err := r.client.repeat(ctx, "run/write", &wire.RunWrite{RunID: r.id, Chunk: part,
			WriteID: rand.Text()}, nil)
		if taken, full := takenBy(err); full {
			return n + taken, io.ErrShortWrite
		}
		if err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// CloseInput ends the input, after what was written.
func (r *Run) CloseInput(ctx context.Context) error {
	return r.client.repeat(ctx, "run/closeStdin", r.params(), nil)
}

// Await waits as [sallyport.Session.Await] does. The Reply has no Output and no Notices: Deltas shows the
// output. Its Result, if there is one, has what one message carries; Wait returns all of it.
func (r *Run) Await(ctx context.Context, u sallyport.Until) (*sallyport.Reply, error) {
	p := &wire.RunWait{RunID: r.id, RunConditions: wire.RunConditions{
		Exit: true, Input: u.Input, Port: u.Port, FirstOutput: u.FirstOutput, Bytes: u.Bytes, Raw: u.Raw,
		After: u.From, QuietMs: millis(u.Quiet),
	}}
	if u.Match != nil {
		p.Match = u.Match.String()
	}
	if u.For == 0 {
		u.For = sallyport.DefaultYield
	}
	if u.For > 0 {
		most := millis(u.For)
		p.TimeoutMs = &most
	}
	var got struct {
		wire.RunWaitResult
		Input  *executor.InputWait `json:"input"`
		Result json.RawMessage     `json:"result"`
	}
	if err := r.client.repeat(ctx, "run/wait", p, &got); err != nil {
		return nil, err
	}
	reply := &sallyport.Reply{
		Reason: sallyport.Reason(got.Reason), Offset: got.Next, Next: got.After, Input: got.Input,
		Port:    got.Port,
		Elapsed: time.Duration(got.ElapsedMs) * time.Millisecond,
	}
	if len(got.Result) == 0 {
		return reply, nil
	}
	var err error
	reply.Result, err = result(got.Result)
	return reply, err
}

// millis returns a time in milliseconds, rounded up.
func millis(d time.Duration) uint64 {
	return uint64(max(0, (d + time.Millisecond - 1).Milliseconds()))
}

// Wait waits for the end of the run and returns its Result, with its output.
func (r *Run) Wait(ctx context.Context) (*sallyport.Result, error) {
	if _, err := r.Await(ctx, sallyport.Until{ExitOnly: true, For: -1}); err != nil {
		return nil, err
	}
	text, err := wire.FetchRunResult(ctx, r.client.client, r.id, true)
	if err != nil {
		return nil, explain(err)
	}
	return result(text)
}

// result decodes a Result.
func result(text json.RawMessage) (*sallyport.Result, error) {
	res := new(sallyport.Result)
	if err := json.Unmarshal(text, res); err != nil {
		return nil, fmt.Errorf("the server sent a result that cannot be read: %w", err)
	}
	return res, nil
}

// Screen returns what the terminal of the run shows.
func (r *Run) Screen(ctx context.Context) (s sallyport.Screen, err error) {
	var got wire.RunScreen
	if err := r.client.repeat(ctx, "run/screen", r.params(), &got); err != nil {
		return s, err
	}
	return sallyport.Screen{
		Lines: got.Lines, Cols: got.Cols, Rows: got.Rows, Col: got.Col, Row: got.Row, Hidden: got.Hidden,
		Title:     got.Title,
		Alternate: got.Alternate, Modes: got.Modes,
	}, nil
}

// Resize changes the size of the terminal. After the end of the run it has no effect.
func (r *Run) Resize(ctx context.Context, size executor.Size) error {
	return r.client.repeat(ctx, "run/resize",
		&wire.RunResize{RunID: r.id, RunSize: wire.RunSize{Cols: size.Cols, Rows: size.Rows}}, nil)
}

// Signal sends a signal, by its number on this system, to the process group. After the end of the run it
// has no effect.
func (r *Run) Signal(ctx context.Context, sig int) error {
	name := process.SignalName(sig)
	if name == "" {
		return &Error{Reason: string(runs.Invalid), Message: fmt.Sprintf("there is no signal %d", sig)}
	}
	return explain(r.client.client.Call(ctx, "run/signal", &wire.RunSignal{RunID: r.id, Signal: name}, nil))
}

// Terminate ends the run as [sallyport.Session.Terminate] does, waits for its end, and reports whether it
// was alive.
func (r *Run) Terminate(ctx context.Context) (bool, error) {
	var got wire.TerminateResult
	err := r.client.repeat(ctx, "run/terminate", r.params(), &got)
	return got.Running, err
}

// Remove terminates the run, if it is alive, and has the server forget it.
func (r *Run) Remove(ctx context.Context) error {
	if err := strict.CheckContext(ctx); err != nil {
		return err
	}
	return explain(wire.RemoveRun(ctx, r.client.client, r.id))
}

func (r *Run) params() *wire.RunParams { return &wire.RunParams{RunID: r.id} }
