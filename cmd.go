// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"io"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/environ"
)

// A Cmd describes one command. Only Args or Script must be set.
type Cmd struct {
	// Args is the program and its arguments. Script is a text for a shell
	// instead; never both.
	Args   []string
	Script string
	// Shell names the shell for Script; empty means the user's own. Login
	// makes it a login shell.
	Shell string
	Login bool

	// Arg0 is what the program sees as its own name; empty means Args[0].
	Arg0 string
	// Dir is the working directory and, unless the policy names others, the
	// workspace. Empty means the current one.
	Dir string

	// Env is the environment before the environment policy, "K=V"; nil means
	// the environment of this process.
	Env []string
	// EnvPolicy says what of it the command gets. The zero policy hands on the
	// core variables only.
	EnvPolicy EnvPolicy

	// Stdin is read by the command; nil is the null device. An *os.File is
	// handed on as it is.
	Stdin io.Reader
	// OpenStdin gives a session without a terminal a pipe as standard input, which
	// stays open until CloseInput; else it reads the null device. See [Runner.Start].
	OpenStdin bool
	// Screen keeps a model of what a person would see on the terminal of a session, for
	// [Session.Screen], and answers what programs ask a terminal: what it is, and where
	// its cursor is. It needs a TTY and costs 10 to 20 KiB; false keeps none.
	Screen bool
	// Stdout and Stderr hear the output as it comes, besides its being kept in
	// the Result. An *os.File is handed to the command as it is, and then
	// nothing of that stream is kept. Nil means that it is only kept.
	Stdout, Stderr io.Writer

	// TTY, when it is not nil, runs the command on a terminal of its own with that
	// size. What it shows is the output, all of it standard output; Stdin is typed, and
	// at its end the terminal's end-of-file character. Only a Stderr that is an
	// *os.File stays standard error.
	TTY *Size
	// Resizes received change the size of the terminal while the command runs. Nil
	// and closed mean none. It is never read again after Run has returned.
	Resizes <-chan Size

	// Signals received are sent on, by number and in order, to the command's
	// process group while it runs; 0 is skipped. Nil and closed mean none. It is
	// never read again after Run has returned.
	Signals <-chan int
	// Ready, when it is not nil, holds the command back until it is closed, for
	// callers that have to be there when the command speaks. Everything that can
	// be prepared is prepared meanwhile. The end of the context ends the wait.
	Ready <-chan struct{}

	// Timeout is how long the command may run; 0 means without a limit.
	Timeout time.Duration
	// Grace is the time between asking the command's tree to end and killing
	// it; 0 means 2 seconds, negative none.
	Grace time.Duration
	// Retention says how much of the output the Result keeps; the zero value keeps the
	// first and the last half MiB of each stream and counts the rest.
	Retention Retention

	// Resources bounds what the command and everything that it starts may use; the
	// zero value bounds nothing. See [AgentResources]. With a limit on output all of
	// it passes through the Runner, also where Stdout and Stderr are files: the command then
	// sees pipes, and an *os.File that takes nothing for half a minute loses output,
	// which StdoutErr and StderrErr of the Result tell.
	Resources executor.Resources

	// Unsandboxed asks to run outside the sandbox. It always needs an approval.
	Unsandboxed   bool
	Justification string

	// Allow opens things that are shut by default, by name ("unix", "userns").
	Allow []string
	// Tmp is what /tmp is: "" or "private" for a folder of the Runner, "host",
	// or an absolute path.
	Tmp string
	// NoCaches leaves the caches of toolchains as the policy has them. Otherwise
	// the command may write to those of its workspace's toolchains without changing
	// them: what it writes stays with the workspace.
	NoCaches bool
	// NoObserver runs the command without a supervisor of its system calls. Nothing is
	// known then of what it was kept from, unix sockets are refused, and a .git that
	// must not be is moved away afterwards instead of being refused. False observes
	// wherever that can be had; executor.Sandbox.Observed tells.
	NoObserver bool
	// Level is the least sandbox level accepted: "native", "bwrap" or "landlock" on
	// Linux, "seatbelt" on macOS. Empty means "bwrap", that is native or bwrap, and
	// on macOS "seatbelt".
	Level string
}

// A Size is that of a terminal in characters; a zero member means 80 columns or 24
// rows.
type Size = executor.Size

// Command returns a Cmd that runs a program with arguments.
func Command(args ...string) *Cmd { return &Cmd{Args: args} }

// Script returns a Cmd that runs a script in the user's shell.
func Script(text string) *Cmd { return &Cmd{Script: text} }

// EnvPolicy says what of the environment a command gets.
type EnvPolicy = environ.Policy
