// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/run/tty"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A report prints how one run went, in the form that its flags ask for.
type report struct {
	env    *Env
	o      *args.Options
	words  []string
	given  []string          // flags and words, without --approved at the begin
	lines  *lineWriter       // with --jsonl
	config *config.Effective // nil before it is known
	audit  *args.Audit       // nil before a run
	// policy is what the program may touch; the zero one before it is known.
	policy sandbox.Policy

	dir  string   // of the project
	kept []string // hosts that a person wants open in it from now on; written by its questions, one by one

	announce func(question string) // called before its line is printed
	// unless prints unless a question is open, and reports whether it did. It is set before the run.
	unless  func(print func()) bool
	console *tty.Console // nil without one

	mu      sync.Mutex
	run     string      // the run's ID from its events; empty before the first one
	lineEnd string      // of lines that are printed while the program runs
	offline *time.Timer // calls sayOffline; nil without a denial of the network

	told  bool        // that a port listens
	ports *time.Timer // says so; nil before

	sayOffline func()    // prints that the network is off
	said       chan bool // holds whether it has
}

// attach connects the streams of cmd and the events of runner. Without --json
// and --jsonl the program gets our own streams as they are, and nothing of its
// output passes through this process.
func (r *report) attach(runner *sallyport.Runner, cmd *sallyport.Cmd, cancel context.CancelCauseFunc) {
	switch {
	case r.o.JSONL:
		r.lines = &lineWriter{pipe: make(chan os.Signal, 1), cancel: cancel, ended: make(chan struct{}),
			out: r.env.Stdout}
		signal.Notify(r.lines.pipe, syscall.SIGPIPE)
		runner.Events = event.SinkFunc(func(e event.Event) {
			r.mu.Lock()
			r.run = e.Run
			r.mu.Unlock()
			if asked, ok := e.Body.(event.ApprovalRequested); ok {
				r.announce(asked.Request.ID) // who reads the line can answer
			}
			line, err := encode(e)
			if r.lines.put(line, err) {
				if out, ok := e.Body.(event.Output); ok {
					r.lines.passed.Add(int64(len(out.Data)))
				}
			}
			if _, ok := e.Body.(event.Ended); ok {
				close(r.lines.ended)
			}
		})
		runner.WaitForEvents = !r.o.JSONLDrop
	case !r.o.JSON:
		cmd.Stdout, cmd.Stderr = r.env.Stdout, r.env.Stderr
		if !r.o.Quiet {
			cmd.OnDenied = r.denied
			cmd.OnListen = r.listening
		}
	}
}

// note prints a message on standard error, except with --quiet.
func (r *report) note(lines ...string) {
	if !r.o.Quiet {
		r.env.say(lines...)
	}
}

// warn prints before a run what is likely a mistake. With --json and --jsonl it
// is in the object.
func (r *report) warn(policy sandbox.Policy, dir string) {
	if r.o.Captures() || r.o.Quiet {
		return
	}
	for _, n := range r.config.Notes {
		r.note("warning: " + n)
	}
	home, _ := os.UserHomeDir() // empty when it is not known
	for _, w := range policy.Bind(sandbox.Places{Dir: dir}).Warnings(home, hostfacts.RealPath) {
		r.note("warning: " + w)
	}
}

// id returns the ID of a run that has no result.
func (r *report) id() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.run == "" {
		r.run = fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())
	}
	return r.run
}

// failed reports a run that did not begin.
func (r *report) failed(err error) error { return r.done(nil, err, r.result(nil, err)) }

// result returns the result of a run as it is printed. Either of res and err may be nil,
// and both may be set when the end of a program is not known.
func (r *report) result(res *sallyport.Result, err error) *sallyport.Result {
	if res != nil {
		printed := *res
		printed.Warnings = slices.Concat(r.config.Notes, res.Warnings)
		if err != nil {
			printed.ExitCode, printed.Error = explain.Classify(err).Code, explain.OneLine(err)
		}
		return &printed
	}
	args := r.words
	if r.o.HasScript {
		args = nil // the shell was not chosen yet
	}
	e := explain.Classify(err)
	made := sallyport.ResultOf(nil, err)
	return &sallyport.Result{
		Args: args, Dir: r.env.Dir, ExitCode: e.Code, End: e.End, Error: e.String(), Rule: made.Rule,
		Approvals: made.Approvals,
		Sandbox:   r.o.Unbuilt(),
	}
}

// An unrecorded says why a run is not in the audit log; failed, that it failed by that.
type unrecorded struct {
	failed bool
	err    error
}

// record begins to write a run down, beside what else is done at its end.
func (r *report) record(res *sallyport.Result, start time.Time) <-chan unrecorded {
	entry := explain.Record{Start: start, Flags: r.o.Shape, Result: *res}
	if entry.Args == nil && r.o.HasScript {
		entry.Args = []string{"-c", r.o.Cmd.Script} // no shell was chosen for it
	}
	done := make(chan unrecorded, 1)
	go func() {
		failed, err := r.audit.Record(entry)
		done <- unrecorded{failed, errors.Join(err, r.audit.Close())}
	}()
	return done
}

// done reports a run, printed in the form of flags, and returns its exit code.
func (r *report) done(res *sallyport.Result, err error, printed *sallyport.Result) error {
	if err != nil && !r.lines.stopped(err) { // else it is said below
		r.note(explain.Classify(err).String())
	}
	if res != nil {
		r.notes(res, printed.ExitCode)
	}
	if r.o.Captures() {
		if err := r.object(printed); err != nil {
			if r.o.Quiet {
				return explain.ExitCode(explain.Classify(err).Code)
			}
			return err
		}
	}
	return r.exit(res, err, printed.ExitCode)
}

// exit returns the end of this invocation: as that of the program, also where a signal ended it.
func (r *report) exit(res *sallyport.Result, err error, code int) error {
	interrupted, signal := new(sallyport.InterruptedError), 0
	switch {
	case errors.As(err, &interrupted):
		signal = interrupted.Signal
	case res != nil && res.End == sallyport.EndSignaled && code == 128+res.Signal:
		signal = res.Signal
	}
	if signal == 0 {
		return explain.ExitCode(code)
	}
	if r.console != nil {
		r.console.Interrupt(syscall.Signal(signal))
	}
	return explain.SignalExit(signal)
}

// shellSays reports whether the shell in front of this process says which signal ended it.
func (r *report) shellSays() bool { return r.env.Last && tty.Is(r.env.Stderr) && tty.UnderShell() }

// object prints the result as the last or only line of standard output.
func (r *report) object(res *sallyport.Result) error {
	if r.lines == nil {
		return r.env.printJSON(res)
	}
	line, err := encode(res)
	done := make(chan error, 1)
	go func() {
		if r.id() != "" {
			<-r.lines.ended // where the reader is slow, events are on their way that come first
		}
		r.lines.put(line, err)
		done <- r.lines.close()
	}()
	// A reader that takes nothing, or little for long, keeps no one waiting.
	const patience, longest = 3 * time.Second, 10 // times that
	for taken, n := r.lines.taken.Load(), 1; ; n++ {
		select {
		case err := <-done:
			return err
		case <-time.After(patience):
		}
		if now := r.lines.taken.Load(); now > taken && n < longest {
			taken = now
			continue
		}
		all := res.Stdout.Total + res.Stderr.Total
		r.note(fmt.Sprintf("the reader of standard output does not read: %d of %d bytes of output, and the result, were not written", int64(all)-r.lines.passed.Load(), all))
		return nil
	}
}

// notes prints what people would not see otherwise.
func (r *report) notes(res *sallyport.Result, code int) {
	if r.o.Verbose {
		r.note(append([]string{"launch script:"},
			strings.Split(strings.TrimRight(res.Sandbox.Script, "\n"), "\n")...)...)
		for _, w := range res.Sandbox.Weaker {
			r.note("weaker: " + w)
		}
		r.note("run " + res.Run)
		for _, line := range explain.Said(explain.Withheld(res.Withheld), explain.Limits(res.Limits),
			explain.Ownership(res.OwnershipIgnored), explain.Usage(res.Usage)) {
			r.note(line)
		}
	}
	if r.o.Captures() {
		return // all of the rest is in the object
	}
	home, _ := os.UserHomeDir() // empty when it is not known
	for _, err := range []error{res.StdinErr, res.StdoutErr, res.StderrErr} {
		// With 0 it is why we fail, and was printed; who ends with its reader says nothing of it.
		broken := res.Signal == int(syscall.SIGPIPE) && errors.Is(err, syscall.EPIPE)
		if err != nil && res.ExitCode != explain.CodeOK && !broken {
			r.note(explain.OneLine(err))
		}
	}
	said := r.saidOffline(code != explain.CodeOK)
	r.mu.Lock()
	if r.ports != nil {
		r.ports.Stop()
	}
	r.mu.Unlock()
	lines := explain.Needs(res, home)
	if code != explain.CodeOK {
		lines = explain.Shortlist(r.causes(res, home, said), lines)
	}
	for _, line := range explain.Said(append(lines, explain.Staged(res.Stage, r.elsewhere()))...) {
		r.note(line)
	}
}

// elsewhere says where the stage of the run is, if it is not on this machine.
func (r *report) elsewhere() string {
	if r.o.Server.URL == "" {
		return ""
	}
	return " on that server"
}

// A lineWriter prints lines of JSON as they come. When the reader has gone, or
// the output cannot be written, it ends the run.
type lineWriter struct {
	pipe   chan os.Signal // while it receives SIGPIPE, a lost reader is an error and no signal
	cancel context.CancelCauseFunc
	passed atomic.Int64  // bytes of output that were written
	taken  atomic.Int64  // bytes of lines that were written
	ended  chan struct{} // closed behind the last event of a run

	mu  sync.Mutex
	out *os.File
	err error
}

// put writes a line; after the first error it does nothing. It reports whether it did.
func (w *lineWriter) put(line []byte, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return false
	}
	const piece = 16 << 10 // a slow reader shows progress
	for err == nil && len(line) > 0 {
		var n int
		n, err = w.out.Write(line[:min(len(line), piece)])
		line = line[n:]
		w.taken.Add(int64(n))
	}
	if err != nil {
		w.err = explain.CannotWrite(err)
		w.cancel(w.err)
	}
	return err == nil
}

// stopped reports whether err, of a run, is that its lines cannot be written. Nil has no lines.
func (w *lineWriter) stopped(err error) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err != nil && errors.Is(err, w.err)
}

// close returns the first error of all.
func (w *lineWriter) close() error {
	signal.Stop(w.pipe)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// encode returns v as one line of JSON, with the letters of HTML as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	err := encodeTo(&b, v)
	return b.Bytes(), err
}

// encodeTo writes that line with one call of Write.
func encodeTo(w io.Writer, v any) error {
	if r, ok := v.(*sallyport.Result); ok { // the encoder would copy the output of a program twice more
		return r.WriteJSON(w)
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
