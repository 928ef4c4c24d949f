// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A report tells how one run went, in the form that its flags ask for.
type report struct {
	env   *Env
	o     *runOptions
	words []string
	lines *lineWriter // with --jsonl

	mu  sync.Mutex
	run string // its identity, as events have it; empty before the first one
}

func newReport(env *Env, o *runOptions, words []string) *report {
	return &report{env: env, o: o, words: words}
}

// attach connects the streams of cmd and the events of runner. Without --json
// and --jsonl the command gets our own streams as they are, and nothing of its
// output passes through this process.
func (r *report) attach(runner *sallyport.Runner, cmd *sallyport.Cmd, cancel context.CancelCauseFunc) {
	switch {
	case r.o.jsonl:
		r.lines = newLineWriter(r.env.Stdout, cancel)
		runner.Events = event.SinkFunc(func(e event.Event) { r.hear(e); r.lines.put(e) })
	case !r.o.json:
		cmd.Stdout, cmd.Stderr = r.env.Stdout, r.env.Stderr
	}
}

// note says something on standard error, unless nothing of ours is wanted there.
func (r *report) note(text string) {
	if !r.o.quiet {
		r.env.say(text)
	}
}

// warn says before a run what is likely not meant. With --json and --jsonl it
// stands in the object.
func (r *report) warn(policy sandbox.Policy, dir string) {
	if r.o.json || r.o.jsonl {
		return
	}
	home, _ := os.UserHomeDir() // empty: nobody knows it
	for _, w := range policy.Bind(sandbox.Places{Dir: dir}).Warnings(home, realPath) {
		r.note("warning: " + w)
	}
}

// hear remembers which run this is.
func (r *report) hear(e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run = e.Run
}

// identity returns the identity of a run that has no result.
func (r *report) identity() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.run == "" {
		r.run = newRunID()
	}
	return r.run
}

// failed reports a run that never began.
func (r *report) failed(err error) error { return r.done(nil, err, r.about(nil, err)) }

// about returns the result of a run as it is printed. Either of res and err may be nil,
// and both may be set when the end of a command is not known.
func (r *report) about(res *sallyport.Result, err error) *sallyport.Result {
	var e ending
	var words string
	if err != nil {
		e, words = said(err)
	}
	if res == nil {
		argv := r.words
		if r.o.hasScript {
			argv = nil // the shell, and so its arguments, were not chosen yet
		}
		return &sallyport.Result{
			Args: argv, Dir: r.env.Dir, ExitCode: e.code, End: sallyport.End(e.word), Error: words,
			Sandbox: sallyport.Sandbox{Mode: r.mode(), Network: r.network(), Sandbox: executor.Sandbox{Level: "none"}},
		}
	}
	about := *res
	if err != nil {
		about.ExitCode, about.Error = e.code, plain(err)
	}
	return &about
}

// said returns what an error means and what to say about it.
func said(err error) (e ending, words string) {
	e, words, mend := classify(err)
	if mend != "" {
		words += "; " + mend
	}
	return e, words
}

// mode and network say which sandbox was asked for.
func (r *report) mode() string { return r.o.preset().Name() }

func (r *report) network() sandbox.Network {
	if n, err := sandbox.ParseNetwork(r.o.network); err == nil {
		return n
	}
	if r.mode() == "full-access" {
		return sandbox.NetworkHost
	}
	return sandbox.NetworkNone
}

// done reports a run, whose object is about, and returns its exit code.
func (r *report) done(res *sallyport.Result, err error, about *sallyport.Result) error {
	if err != nil {
		_, words := said(err)
		r.note(words)
	}
	if res != nil {
		r.notes(res, about.ExitCode)
	}
	if r.o.json || r.o.jsonl {
		if err := r.object(about); err != nil {
			return err
		}
	}
	return exitCode(about.ExitCode)
}

// notes says what people would not see otherwise.
func (r *report) notes(res *sallyport.Result, code int) {
	if r.o.verbose {
		r.note("the launch, step by step:\n" + strings.TrimRight(res.Sandbox.Script, "\n"))
		for _, w := range res.Sandbox.Weaker {
			r.note("weaker than the level promises: " + w)
		}
		r.note("this is run " + res.Run)
		for _, line := range []string{heldBy(res.Limits), used(res.Usage)} {
			if line != "" {
				r.note(line)
			}
		}
	}
	if r.o.json || r.o.jsonl {
		return // all of the rest is in the object
	}
	for _, w := range res.Sandbox.Warnings {
		r.note("warning: " + w)
	}
	home, _ := os.UserHomeDir() // empty: nobody knows it
	for _, line := range keptNotes(res.Denials(), res.DenialsOmitted, home, code == codeOK) {
		r.note(line)
	}
	for _, q := range res.Quarantined {
		r.note(quarantined(q))
	}
	if l := res.Sandbox.Level; l == "bwrap" && r.o.level == "" {
		r.note("the native level cannot be had here, so this ran at the " + l + " level, which has fewer walls; sallyport doctor lists them and says why")
	}
	if res.TimedOut {
		r.note(fmt.Sprintf("timed out after %v and was ended", r.o.timeout))
	}
	if words := limited(res); words != "" {
		r.note(words)
	}
	if len(res.Survivors) > 0 {
		r.note(leftRunning(res.Survivors))
	}
}

// quarantined says which name came into being although it must not.
func quarantined(q executor.Quarantined) string {
	words := q.Path + " appeared while the command ran (" + q.Why + ") and is gone"
	if q.MovedTo != "" {
		words = q.Path + " appeared while the command ran (" + q.Why + ") and was moved to " + q.MovedTo
	}
	if q.Grant != "" {
		words += "; " + q.Grant + " allows it"
	}
	return words
}

// object prints v as the last or only line of standard output.
func (r *report) object(v any) error {
	line, err := encode(v)
	if err != nil {
		return r.hush(fmt.Errorf("the result has no JSON form: %w", err))
	}
	if r.lines != nil {
		if err := r.lines.close(line); err != nil {
			return r.hush(err)
		}
		return nil
	}
	return r.hush(r.env.put(line))
}

// hush keeps an error from being said where nothing of ours is wanted.
func (r *report) hush(err error) error {
	if err != nil && r.o.quiet {
		return &quietError{err}
	}
	return err
}

// encode returns v as one line of JSON, with the letters of HTML as they are.
func encode(v any) ([]byte, error) {
	if m, ok := v.(json.Marshaler); ok {
		// Ours are compact already; the encoder would copy them twice.
		b, err := m.MarshalJSON()
		return append(b, '\n'), err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// A lineWriter prints lines of JSON as they come. When the reader has gone, or
// nothing more can be written, it ends the run: what nobody hears need not be
// done.
type lineWriter struct {
	pipe   chan os.Signal // while it listens, a lost reader is an error and no signal
	cancel context.CancelCauseFunc

	mu  sync.Mutex
	out *os.File
	err error
}

func newLineWriter(out *os.File, cancel context.CancelCauseFunc) *lineWriter {
	w := &lineWriter{pipe: make(chan os.Signal, 1), cancel: cancel, out: out}
	signal.Notify(w.pipe, syscall.SIGPIPE)
	return w
}

// put writes v as a line; after the first error it does nothing.
func (w *lineWriter) put(v any) {
	line, err := encode(v)
	w.write(line, err)
}

func (w *lineWriter) write(line []byte, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	if err == nil {
		_, err = w.out.Write(line)
	}
	if err != nil {
		w.err = &outputError{err}
		w.cancel(w.err)
	}
}

// close writes the last line and returns the first error of all.
func (w *lineWriter) close(line []byte) error {
	w.write(line, nil)
	signal.Stop(w.pipe)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
