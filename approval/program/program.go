// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package program asks a program for approval: one JSON object on its standard input, one on its
// standard output. It runs outside of the sandbox, in "/", with the environment of this process,
// without directories in PATH and variables that lead to what commands can change.
package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// DefaultTimeout is how long a program may take if it is not said.
const DefaultTimeout = time.Minute

// maxAnswer is how much of its output is read, in bytes: an answer is a decision and a sentence.
const maxAnswer = 64 << 10

// An Approver asks a program.
type Approver struct {
	// Args is the program and its arguments. A name without a slash is looked up in PATH, but
	// never where commands can write; another one must be absolute. Nothing is asked if commands
	// can change the program, its interpreter, or a file that an argument names: in the workspace,
	// and in all that the Runner which asks knows to be writable.
	Args []string
	// Timeout is how long it may take; 0 means DefaultTimeout.
	Timeout time.Duration
	// PassOnFailure leaves the question to the next approver when the program fails. False
	// denies.
	PassOnFailure bool
}

// A FailedError says that the program gave no answer.
type FailedError struct {
	Program string
	Why     string // a clause
	Err     error  // the cause; nil for none
}

func (e *FailedError) Error() string {
	return "the approver " + text.Word(e.Program) + " gave no answer: " + e.Why
}

// Unwrap returns the cause.
func (e *FailedError) Unwrap() error { return e.Err }

// Approve runs the program. Its process group is gone when it returns.
func (a *Approver) Approve(ctx context.Context, r *approval.Request) (approval.Decision, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return approval.Decision{}, err
	}
	d, err := a.ask(ctx, r)
	if err == nil || ctx.Err() != nil || errors.Is(err, approval.ErrPass) {
		return d, err
	}
	if a.PassOnFailure {
		return approval.Decision{}, approval.ErrPass
	}
	return approval.Decision{Source: approval.FromHook}, err
}

func (a *Approver) ask(ctx context.Context, r *approval.Request) (approval.Decision, error) {
	var none approval.Decision
	failed := func(format string, args ...any) error {
		err := fmt.Errorf(format, args...)
		return &FailedError{strings.Join(a.Args[:min(1, len(a.Args))], ""), err.Error(), errors.Unwrap(err)}
	}
	path, env, err := a.find(ctx, r)
	if err != nil {
		return none, failed("%w", err)
	}
	question, err := json.Marshal(r)
	if err != nil {
		return none, failed("%v", err)
	}
	question = append([]byte(`{"type":"approval_request",`), question[1:]...)
	limit := a.Timeout
	if limit == 0 {
		limit = DefaultTimeout
	}
	out := &bounded{most: maxAnswer}
	said := &bounded{most: maxAnswer}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(timed, path, a.Args[1:]...)
	cmd.Dir, cmd.Env = "/", append(env, "SALLYPORT_APPROVER=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(append(question, '\n')), out, said
	cmd.WaitDelay = time.Second / 4 // after its end, for pipes that its children hold
	own(cmd)
	out.full = cancel
	if err = cmd.Run(); errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it ended well, and what it printed is here
	}
	end(cmd)
	switch {
	case ctx.Err() != nil:
		return none, context.Cause(ctx)
	case out.over:
		return none, failed("it printed more than %d KiB", maxAnswer>>10)
	case timed.Err() != nil:
		return none, failed("it took longer than %v", limit)
	case err != nil:
		return none, failed("%v%s", err, lastLine(said.kept))
	}
	return a.answer(out.kept, r, failed)
}

// answer reads what the program printed.
func (a *Approver) answer(s []byte, r *approval.Request,
	failed func(string, ...any) error) (approval.Decision, error) {
	var said struct {
		Decision string `json:"decision"`
		Message  string `json:"message"`
		Path     string `json:"path"` // of an offer
	}
	var none approval.Decision
	if err := strict.Unmarshal(s, &said); err != nil {
		return none, failed("its output is no JSON object with a decision: %s", text.Line(err.Error()))
	}
	if said.Decision == "none" {
		return none, approval.ErrPass
	}
	var answer approval.Answer
	if err := answer.UnmarshalText([]byte(said.Decision)); err != nil || answer == approval.TimedOut {
		return none, failed("%q is no decision", text.Line(said.Decision))
	}
	d := r.DecideOn(answer, said.Path)
	d.Message, d.Source = said.Message, approval.FromHook
	if !r.Takes(&d) {
		return approval.Decision{}, failed("the decision %s was not offered", d.Answer)
	}
	return d, nil
}

// find returns the program's file and its environment. It looks right before the start, with what
// the command may write by now: what is out of reach then stays as it is.
func (a *Approver) find(ctx context.Context, r *approval.Request) (path string, env []string, err error) {
	if len(a.Args) == 0 || a.Args[0] == "" {
		return "", nil, errors.New("no program is named")
	}
	in := reach.From(ctx)
	if in == nil {
		in = reach.New(reach.Area{Workspace: r.Dir, HostTmp: true})
	}
	env, _ = in.Environ("/", os.Environ())
	if filepath.Base(a.Args[0]) != a.Args[0] && !filepath.IsAbs(a.Args[0]) {
		return "", nil, errors.New("its path must be absolute")
	}
	if path, err = lookUp(a.Args[0], env, in); err == nil {
		err = in.Command(append([]string{path}, a.Args[1:]...), "/", env)
	}
	if err == nil {
		err = in.Words(a.Args[1:])
	}
	if in := new(reach.Error); errors.As(err, &in) {
		err = fmt.Errorf("%w; move it to a directory where they cannot write", err)
	}
	return path, env, err
}

// lookUp returns the file of a program: of those in PATH, the first one that is out of reach.
func lookUp(name string, env []string, in *reach.Reach) (path string, err error) {
	if filepath.Base(name) != name {
		return name, in.Program(name, env) // what is not there fails when it is started
	}
	for _, v := range env {
		list, _ := strings.CutPrefix(v, "PATH=")
		for _, dir := range filepath.SplitList(list) {
			path, err := exec.LookPath(filepath.Join(dir, name))
			if v != list && err == nil && in.Program(path, env) == nil {
				return path, nil
			}
		}
	}
	return "", errors.New("it is not in PATH (what commands can change does not count)")
}

// lastLine is the last line of what the program said, as part of a sentence.
func lastLine(said []byte) string {
	lines := bytes.Split(bytes.TrimSpace(said), []byte("\n"))
	if line := text.Line(string(lines[len(lines)-1])); line != "" {
		return " (" + line + ")"
	}
	return ""
}

// bounded keeps the first bytes that are written to it. When there are more it calls full.
type bounded struct {
	kept []byte
	most int
	over bool
	full func()
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.most - len(b.kept); len(p) > room {
		b.kept, b.over = append(b.kept, p[:room]...), true
		if b.full != nil {
			b.full()
		}
		return len(p), nil
	}
	b.kept = append(b.kept, p...)
	return len(p), nil
}
