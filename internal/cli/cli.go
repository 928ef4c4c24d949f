// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of sallyport: words in, exit code out.
//
// Flow: [Main] finds the verb in a table and calls its function, each of which
// has a file of its own and the form func(ctx, *Env, args) error. An error
// becomes one plain sentence on standard error and an exit code; standard
// output belongs to the command that is run, and to verbs whose answer was
// asked for.
//
// The package decides nothing about permissions: it turns flags into a policy
// and a command, and what the Runner answers into text. What it cannot do yet it
// refuses in words, because a limit or a wall that was asked for and silently
// left out would be a weaker run than the one that was asked for.
//
// Flags and completion are its own. A command line library costs a third of a
// millisecond at every start, through its imports alone, and the front end
// stands before every command of an agent.
package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The exit codes of our own; those of commands are 0 to 255 too, as with
// env(1) and timeout(1), whose numbers these are where they have one.
const (
	codeOK          = 0
	codeNo          = 1   // the answer to a question is no
	codeUnavailable = 121 // no sandbox of the level that was asked for
	codeForbidden   = 122
	codeRefused     = 123
	codeTimedOut    = 124
	codeFailed      = 125 // our own error, usage included
	codeCannotRun   = 126
	codeNotFound    = 127
)

// Env is the world of one invocation. The streams must be set; a nil
// Environ is the empty environment.
type Env struct {
	Stdin, Stdout, Stderr *os.File
	// Environ holds the variables as "NAME=value".
	Environ []string
	// Dir is the current directory, absolute; relative names begin there. Empty
	// means that there is none any more: what needs it fails.
	Dir string
	// Last says that this process ends with the invocation, so that there is no
	// need to clean up what ends with a process. False is for tests.
	Last bool
}

// System returns the Env of this process. Dir is empty where the current
// directory cannot be named, for example because it was removed.
func System() *Env {
	env := &Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Last: true}
	if dir, err := os.Getwd(); err == nil {
		env.Dir = dir
	}
	return env
}

// say writes one line for people to standard error.
func (e *Env) say(text string) {
	// Nobody is left to tell when standard error fails.
	_, _ = io.WriteString(e.Stderr, "sallyport: "+text+"\n")
}

// put writes to standard output, in one write. A reader that has gone away is
// an error and not the death of this process.
func (e *Env) put(p []byte) error {
	pipe := make(chan os.Signal, 1)
	// While somebody listens for SIGPIPE, the write fails with EPIPE instead.
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	if _, err := e.Stdout.Write(p); err != nil {
		return &outputError{err}
	}
	return nil
}

// A verb is one word after the program's name.
type verb struct {
	name  string
	short string // one line of the overview; empty hides it
	usage func() string
	run   func(ctx context.Context, env *Env, args []string) error
}

// verbs returns the table, in the order of the overview.
func verbs() []verb {
	return []verb{
		{"run", "run a command in the sandbox", runUsage, runVerb},
		{"why", "say what the last run was kept from, and what would allow it", whyUsage, whyVerb},
		{"doctor", "say what this machine can enforce, and how to mend it", doctorUsage, doctorVerb},
		{"caches", "list or clear what commands wrote to toolchain caches", cachesUsage, cachesVerb},
		{"version", "say which version this is", versionUsage, versionVerb},
		{"completion", "print a completion script for a shell", completionUsage, completionVerb},
		{"help", "explain a verb", helpUsage, helpVerb},
		{completeName, "", nil, completeVerb},
	}
}

// Main does what args (without the program's name) ask for and returns the exit
// code. It blocks until a command that it runs has ended with everything that
// the command has started.
func Main(args []string, env *Env) int {
	if len(args) == 0 {
		env.say("nothing to do; try sallyport run -- CMD, or sallyport help")
		return codeFailed
	}
	err := dispatch(context.Background(), env, args)
	var done exitCode
	if err == nil || errors.As(err, &done) {
		return int(done)
	}
	code, words := explain(err)
	var hushed *quietError
	if !errors.As(err, &hushed) {
		env.say(words)
	}
	return code
}

func dispatch(ctx context.Context, env *Env, args []string) error {
	name, rest := args[0], args[1:]
	switch name {
	case "-h", "--help":
		name = "help"
	case "-V", "--version":
		name = "version"
	}
	var known []string
	for _, v := range verbs() {
		if v.name == name {
			return v.run(ctx, env, rest)
		}
		if v.short != "" {
			known = append(known, v.name)
		}
	}
	if strings.HasPrefix(name, "-") {
		return usage("flags stand after the verb: sallyport run %s ...", name)
	}
	return usage("there is no verb %q in this version%s", name, hint(name, known, "sallyport help lists them"))
}

// exitCode ends an invocation with a code and without words: the command's own,
// or one whose words have been said. Zero is success.
type exitCode int

func (c exitCode) Error() string { return "exit" }

// A quietError is said to nobody; only its exit code counts.
type quietError struct{ err error }

func (e *quietError) Error() string { return e.err.Error() }
func (e *quietError) Unwrap() error { return e.err }

// A sentenceError is an error that is a whole sentence for people already.
type sentenceError struct {
	code  int
	words string
	mend  string // what to do about it, a clause; may be empty
}

func (e *sentenceError) Error() string {
	if e.mend == "" {
		return e.words
	}
	return e.words + "; " + e.mend
}

// An outputError says that standard output could not be written.
type outputError struct{ err error }

func (e *outputError) Error() string {
	if errors.Is(e.err, syscall.EPIPE) {
		return "the reader of standard output is gone"
	}
	return "standard output cannot be written: " + cause(e.err).Error()
}

func (e *outputError) Unwrap() error { return e.err }

// explain returns the exit code of an error and what to say about it.
func explain(err error) (code int, words string) {
	end, words, mend := classify(err)
	if mend != "" {
		words += "; " + mend
	}
	return end.code, words
}

// An ending is how a run is told to have ended that never began.
type ending struct {
	code int
	word string // for the member "end"
}

// classify says what an error means for the exit code and for people.
func classify(err error) (e ending, words, mend string) {
	var (
		own         *sentenceError
		start       *executor.StartError
		unsupported *sandbox.UnsupportedError
	)
	switch {
	case errors.As(err, &own):
		return ending{own.code, endWord(own.code)}, own.words, own.mend
	case errors.As(err, &unsupported):
		return ending{codeUnavailable, "unavailable"},
			"the sandbox needs " + unsupported.Need + ", but " + unsupported.Have, unsupported.Hint
	case errors.Is(err, sallyport.ErrNoSandbox):
		return ending{codeUnavailable, "unavailable"}, plain(err), "sallyport doctor says what is missing"
	case errors.Is(err, sallyport.ErrForbidden):
		return ending{codeForbidden, "forbidden"}, plain(err), ""
	case errors.Is(err, sallyport.ErrRefused):
		return ending{codeRefused, "refused"}, plain(err), ""
	case errors.As(err, &start):
		return classifyStart(start)
	}
	return ending{codeFailed, "failed"}, plain(err), ""
}

// classifyStart is classify for programs that could not be executed.
func classifyStart(start *executor.StartError) (e ending, words, mend string) {
	name, looked := start.Program, new(fs.PathError)
	switch {
	case start.NotFound && !errors.Is(start.Err, fs.ErrNotExist):
		e, words = ending{codeNotFound, "not_found"}, plain(start.Err)
	case start.NotFound && errors.As(start.Err, &looked):
		e, words = ending{codeNotFound, "not_found"}, name+": there is no such program"
	case start.NotFound:
		// It was seen, and then the kernel missed something.
		e, words = ending{codeNotFound, "not_found"}, name+": it is there, but inside either it or the interpreter that it names is not"
		mend = "look at its first line, or, if it lies in /tmp, move it or use --tmp host"
	default:
		e = ending{codeCannotRun, "failed"}
		words, mend = whyNot(start.Err)
		words = name + ": " + words
	}
	return e, words, mend
}

// whyNot says why a program that is there cannot be executed.
func whyNot(err error) (words, mend string) {
	var hidden *sandbox.HiddenError
	switch {
	case errors.As(err, &hidden):
		return hidden.What + " " + hidden.Path + " is not visible under this policy", "add --ro " + hidden.Path + " to show it"
	case errors.Is(err, syscall.E2BIG):
		return "the arguments and the environment are too long for this system", "pass large data in a file or on standard input"
	case errors.Is(err, syscall.EISDIR):
		return "it is a folder, not a program", ""
	case errors.Is(err, fs.ErrPermission):
		return "it is there but may not be executed", "is chmod +x set, and does the sandbox let it be read?"
	case errors.Is(err, syscall.ENOEXEC):
		return "it is not a program that this system can execute", "a script needs a first line such as #!/bin/sh"
	}
	return "it cannot be executed: " + cause(err).Error(), ""
}

// endWord is the member "end" for a code of our own.
func endWord(code int) string {
	switch code {
	case codeUnavailable:
		return "unavailable"
	case codeForbidden:
		return "forbidden"
	case codeRefused:
		return "refused"
	}
	return "failed"
}
