// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/command/environ"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Cmd describes one command. Only Args, Script or Patch must be set.
type Cmd struct {
	// Args is the program and its arguments. Script is a text for a shell instead;
	// setting both is an error. Args or a script that call apply_patch with a patch, and do nothing
	// else, are a Patch, whose errors begin with "apply_patch verification failed: " then.
	Args   []string
	Script string
	// Patch is a text that begins with "*** Begin Patch", as models write it, in the place of both: names
	// are relative to Dir. It is applied as a whole or not at all, by this process: to files that a command
	// in the sandbox could change and, with an approval, to others. The output is a summary, or with exit
	// code 1 why nothing was changed. Executors on other machines apply none.
	Patch string
	// Shell names the shell for Script; empty means the user's own. Login makes it a
	// login shell; the variables that sallyport and EnvPolicy.Runtime set win over its
	// profile.
	Shell string
	Login bool

	// CallerID is the caller's own name for this run, such as the id of a task or of a tool call: at
	// most 128 bytes that print, without a meaning here and not necessarily unique. It is in every
	// event of the run, in its Result, in lists of sessions and in the log. Empty means that there
	// is none. The command does not see it.
	CallerID string
	// Trace is where the run belongs in a trace of the caller. The command gets it in the variables
	// TRACEPARENT and TRACESTATE, with Runner.Tracer as that of its own run. The zero value is none, and so
	// is an invalid one: the command gets what EnvPolicy and Env say.
	Trace event.TraceContext

	// Arg0 is argv[0] of the program; empty means Args[0].
	Arg0 string
	// Dir is the working directory and, unless the policy names others, the workspace.
	// Empty means the current directory, or that of [Runner.Update].
	Dir string

	// Env are the variables that the command is given, "NAME=value", in place of those that it would
	// inherit; nil means that it inherits from the caller, and an empty list that there are none.
	// They reach the command whatever EnvPolicy inherits. One that its Exclude or IncludeOnly drops is
	// a *CmdError, and so is a name that no command gets. As in package os/exec, the list may be
	// append(os.Environ(), ...): entries of the caller are inherited then, and not given, where all of
	// them are there, and otherwise those that look like secrets; Named of the EnvPolicy passes them.
	Env []string
	// EnvPolicy says which variables of the caller the command inherits. The zero policy passes
	// the core variables only.
	EnvPolicy EnvPolicy

	// Stdin is read by the command; nil is the null device. The command gets an
	// *os.File itself; any other reader is copied to a pipe by a goroutine.
	Stdin io.Reader
	// OpenStdin gives a session without a terminal a pipe as standard input, which stays
	// open until CloseInput; false gives it the null device. See [Runner.Start].
	OpenStdin bool
	// Screen keeps a model of what the terminal of a session shows, for
	// [Session.Screen], and answers the queries that programs send to a terminal. It
	// needs a TTY and costs 10 to 20 KiB; false keeps none.
	Screen bool
	// Retry has a session ask, as a run does, whether its command may be run again when it failed
	// and was denied something. The output of the second attempt follows that of the first. It
	// needs a session on this machine that was sent nothing, neither text nor the end of its input;
	// what is sent while the question is open waits as for a command that does not read. False asks
	// nothing.
	Retry bool
	// Stdout and Stderr receive the output as it comes, in addition to the Result. The
	// command gets an *os.File itself, and then nothing of that stream is retained. Nil
	// means that the output is only retained.
	Stdout, Stderr io.Writer

	// Files are open in the command under the numbers of their keys, which are 3 or more, as
	// process substitution of shells needs it (/dev/fd/63). Nil means none. Each gives the
	// command what the file can do, beyond the policy: a socket is a way to its other end. A
	// directory is an error. Linux only, not at the level bwrap.
	Files map[int]*os.File

	// TTY, if not nil, runs the command on a terminal of its own with that size. What it
	// shows is standard output; Stdin is typed, followed by the terminal's end-of-file
	// character. Only a Stderr that is an *os.File stays a stream of its own.
	TTY *Size
	// Resizes received change the size of the terminal while the command runs. Nil and
	// closed mean none. It is not read after Run has returned.
	Resizes <-chan Size

	// Record, if not nil, records the terminal of the command, see package recording; without a TTY it gets
	// nothing. What became of it is in Recording of the Result. Nil records nothing.
	Record event.Recorder

	// Signals received are sent, by number and in order, to the command's process group
	// while it runs; 0 is skipped. Nil and closed mean none. It is not read after Run has
	// returned.
	Signals <-chan int
	// OnStop, if not nil, is called when the command itself was stopped by a signal, as by
	// Control-Z on its terminal: SIGCONT in Signals lets it go on. It must not block. It is
	// not called where that cannot be known (bwrap, macOS, Windows).
	OnStop func()
	// Ready, if not nil, delays the start of the command until it is closed. What can be
	// prepared is prepared meanwhile. The end of the context ends the wait.
	Ready <-chan struct{}

	// Timeout is how long the command may run; 0 means without a limit.
	Timeout time.Duration
	// Grace is the time between SIGTERM and SIGKILL when the command is stopped; 0 means
	// 2 seconds, negative none.
	Grace time.Duration
	// Retention says how much of the output the Result keeps; the zero value keeps the
	// first and the last half MiB of each stream and counts the rest.
	Retention Retention

	// Resources limits what the command's process tree may use; the zero value limits
	// nothing. See [AgentResources]. With a limit on output all of it passes through the
	// Runner, also where Stdout and Stderr are files: the command then sees pipes, and an
	// *os.File that takes nothing for half a minute loses output, which StdoutErr and
	// StderrErr of the Result report.
	Resources executor.Resources

	// Policy is what this command may touch, in place of the Policy of the Runner, which must allow
	// all of it; nil means the Runner's. Where it is wider, Run and Start fail with [ErrForbidden]
	// and a *sandbox.WiderError that names what. Both are compared as they are bound to the command's
	// directory, with the links on this machine followed. The hosts that Network of the Runner opens
	// stay open to it, unless its network is none.
	Policy *sandbox.Policy

	// Unsandboxed asks to run outside of the sandbox. That needs an approval, unless rules say
	// that all of the command runs there. Under a policy with deny entries it has no effect, and
	// neither where there is no sandbox of ours to leave.
	// Justification is the caller's reason, shown to the approver.
	Unsandboxed   bool
	Justification string
	// Stays says that no rule leads the command outside of the sandbox: others than who wrote the rules chose
	// something about it that rules do not see, such as its variables. Unsandboxed has no effect then.
	Stays bool

	// AskFor is what the command asks for beyond its policy, inside of the sandbox. That needs an
	// approval. Where the sandbox is not ours, or there is none, it has no effect; nil asks for
	// nothing.
	AskFor []sandbox.Grant
	// AskWrites has the Approver asked, while the command runs, about writes, and connections to unix
	// sockets, that the sandbox denies. The call waits for the answer, see [Runner.AnswerTime], and is
	// made once if it is approved; Granted of the Result lists those. What is denied for good is never
	// asked about, nor is anything under approval.Never. At most 20 questions are asked. The time limit,
	// and the waits of a Session, stand still while one is open. Run and Start fail with [ErrNoSandbox]
	// where calls cannot wait. False denies at once.
	AskWrites bool
	// PrefixRule is the rule that the caller proposes to remember with an approval: the words
	// that commands begin with. It is offered if it is narrow, and has the command run without
	// a question. Nil proposes none.
	PrefixRule []string

	// Allow opens things that are closed by default, by name ("unix", "userns").
	Allow []string
	// Stage has what the command writes go to a stage, which [Runner.Stage] shows, applies and discards:
	// every directory of the host that it may write to is seen through a copy-on-write layer, and the host's
	// files do not change before that. The zero Staging makes a new stage, nil changes the host's files. The
	// command never leaves the sandbox then, whatever rules say, and a second attempt has the same stage. Run
	// and Start fail with [ErrNoSandbox] where there are no stages, with an *executor.StageError for a stage
	// that cannot be used and for a policy without a sandbox, and with a *CmdError beside Unsandboxed or for
	// a patch.
	Stage *executor.Staging
	// Publish opens ports of the command's own network to this machine, at 127.0.0.1, where every
	// user of it can connect. Nil opens none. Without such a network Run fails with ErrNoSandbox.
	Publish []network.Publish
	// Tmp is what the command sees as /tmp: "" or "private" for a directory of the
	// Runner, "host", or an absolute path.
	Tmp string
	// NoCaches leaves the caches of toolchains as the policy has them. False gives the
	// command a private writable layer over those of its workspace's toolchains: what it
	// writes stays with the workspace, and the host's caches do not change.
	NoCaches bool
	// NoObserver runs the command without an observer of its system calls: its denials
	// are not known, unix sockets are refused, and a .git that must not exist is
	// quarantined afterwards instead of being denied. False observes wherever that is
	// available; Sandbox.Observed of the Result tells.
	NoObserver bool
	// ProtectHardLinks denies the command writing to files that have further names (hard
	// links), which may lie outside of its workspace, except to those to which it gave
	// them itself. Run and Start fail with ErrNoSandbox where that cannot be enforced.
	// False reports such files in HardLinks of the Result.
	ProtectHardLinks bool
	// OwnershipErrors has the command's changes of the owner or group of a file fail where
	// the sandbox does not know the id. False has them succeed without effect in writable
	// places where the Runner's user may make them, that is for root, so that tar and cp -a
	// work; OwnershipIgnored of the Result counts them. Without an observer they fail.
	OwnershipErrors bool
	// Level is the least sandbox level accepted: "native", "bwrap" or "landlock" on
	// Linux, "seatbelt" on macOS. Empty means "bwrap", that is native or bwrap, and on
	// macOS "seatbelt".
	Level string
	// OnDenied, if not nil, is called with each different denial when it happens first, where
	// an observer sees it, from any goroutine and while the command waits: it must not block.
	// The denials of the Result come later, with rules, grants and counts.
	OnDenied func(sandbox.Denial)
	// OnListen, if not nil, is called with each port at which the command is about to listen in a network of
	// its own, from any goroutine and while it waits: it must not block. Publish opens such a port.
	OnListen func(port uint16)
	// Explain prints how the command was launched into Sandbox.Script of the Result.
	Explain bool
}

// A Size is that of a terminal in characters; a zero member means 80 columns or 24
// rows.
type Size = executor.Size

// Command returns a Cmd that runs a program with arguments.
func Command(args ...string) *Cmd { return &Cmd{Args: args} }

// Script returns a Cmd that runs a script in the user's shell.
func Script(text string) *Cmd { return &Cmd{Script: text} }

// check refuses an invalid Cmd.
func (c *Cmd) check() error {
	switch {
	case c == nil:
		return &CmdError{Field: "", Reason: "the command is nil; use Command or Script to make one"}
	case c.Patch != "" && (c.Script != "" || len(c.Args) > 0):
		return &CmdError{Field: "Patch", Reason: "Args or Script is set too; use one of the three"}
	case c.Script != "" && len(c.Args) > 0:
		return &CmdError{Field: "Script", Reason: "Args is set too; use one of the two"}
	case c.Script == "" && c.Patch == "" && len(c.Args) == 0:
		return executor.ErrNoArgs
	case c.Script == "" && (c.Shell != "" || c.Login):
		return &CmdError{Field: "Shell",
			Reason: "it is for a Script, and Args is set; leave Shell and Login out"}
	case len(c.Args) > 0 && c.Args[0] == "":
		return &CmdError{Field: "Args", Reason: "the name of the program is empty"}
	case c.Resizes != nil && c.TTY == nil:
		return &CmdError{Field: "Resizes",
			Reason: "it changes the size of a terminal, and the command has none; set TTY too"}
	case c.Screen && c.TTY == nil:
		return &CmdError{Field: "Screen",
			Reason: "it shows a terminal, and the command has none; set TTY too"}
	case c.OpenStdin && c.Stdin != nil:
		return &CmdError{Field: "OpenStdin", Reason: "Stdin is set too; use one of the two"}
	case c.Timeout < 0:
		return &CmdError{Field: "Timeout", Reason: "it is negative; use 0 for no time limit"}
	}
	if why := strict.CheckID(c.CallerID); why != "" {
		return &CmdError{Field: "CallerID", Reason: why}
	}
	if err := c.Resources.Check(); err != nil {
		return err
	}
	for n, f := range c.Files {
		info, err := f.Stat()
		switch {
		case n < 3:
			return &CmdError{Field: "Files",
				Reason: fmt.Sprintf("descriptor %d is a standard one; use Stdin, Stdout or Stderr", n)}
		case err != nil:
			return &CmdError{Field: "Files", Reason: fmt.Sprintf("descriptor %d cannot be used: %v", n, err)}
		case info.IsDir():
			return &CmdError{Field: "Files",
				Reason: fmt.Sprintf("descriptor %d is a directory, which would open everything below it; name its path in the policy", n)}
		}
	}
	for _, entry := range slices.Concat(c.Env, c.EnvPolicy.Base) {
		if strings.ContainsRune(entry, 0) {
			name, _, _ := strings.Cut(entry, "=")
			return &executor.NULError{Where: fmt.Sprintf("the environment variable %q", name)}
		}
	}
	return nil
}

// clone returns a Cmd that the caller cannot change.
func (c *Cmd) clone() *Cmd {
	own := *c
	own.Args, own.Env, own.Allow = slices.Clone(c.Args), slices.Clone(c.Env), slices.Clone(c.Allow)
	if c.TTY != nil {
		size := *c.TTY
		own.TTY = &size
	}
	if c.Stage != nil {
		stage := *c.Stage
		own.Stage = &stage
	}
	return &own
}

// A Retention says how much of a command's output its Result keeps. Writers, events and
// counts get all of the output whatever it says, and the command is never held back.
// The zero Retention keeps the first and the last half MiB of each stream. A session keeps as many
// bytes in memory, of both streams, and passes at most that many in one Reply: the first and the
// last half of them; there negative is the default as well.
type Retention struct {
	// Bytes is how much is kept of each stream; 0 is 1 MiB, negative is nothing.
	Bytes int
	// Lines, if positive, is how many lines are kept of each stream, unless Bytes is
	// reached before. It implies HeadOnly.
	Lines int
	// HeadOnly keeps the beginning only; false keeps both ends.
	HeadOnly bool
	// Unlimited keeps everything; memory grows with the output.
	Unlimited bool
}

// capture returns the buffers for a retention.
func (r Retention) capture() *output.Capture {
	limit := output.Limit{Bytes: r.Bytes, Lines: r.Lines, HeadOnly: r.HeadOnly, Unlimited: r.Unlimited}
	if r.Bytes == 0 {
		limit.Bytes = output.DefaultBytes
	}
	return output.NewCapture(limit)
}

// AgentResources returns limits for commands that agents run unattended. They are far
// above what builds and tests of large projects need, and far below what takes a machine
// down:
//
//   - 8 GiB of memory: linkers and bundlers of large projects stay below it.
//   - 2048 processes and threads: a parallel build with a few runtimes of hundreds of
//     threads each. A fork bomb ends there.
//   - 16 GiB of disk: a cold build of a large project with all of its dependencies.
//     Set it to 0 with full access, where no executor can enforce it.
//   - 64 MiB of output: agents get its head and tail only.
//   - no limit on processors: a command that uses all of them is slow at worst, and
//     one that is slowed down exceeds time limits.
//
// A Cmd has no limits unless Cmd.Resources sets some.
func AgentResources() executor.Resources {
	return executor.Resources{Memory: 8 << 30, PIDs: 2048, Disk: 16 << 30, Output: 64 << 20}
}

// EnvPolicy says which environment variables a command gets of those of its caller. The zero
// EnvPolicy passes the core set without variables that look like secrets. The fields are in the order
// in which they count; variables that [Cmd.Env] gives explicitly are added together with Set. The JSON
// names are those of the configuration that other agents use, too.
type EnvPolicy struct {
	// Inherit chooses the variables to start with.
	Inherit EnvInherit `json:"inherit"`
	// KeepSecrets passes variables that look like secrets: by a part of the name, such as KEY,
	// TOKEN, PASS or AUTH, or by a value such as an address with a password or a private key. False
	// drops them, except names that are known to be harmless, and those in Named, Set or Runtime.
	KeepSecrets bool `json:"ignore_default_excludes"`
	// Exclude drops inherited names that match one of these patterns, in which '*' stands for any
	// characters and '?' for one; letter case does not matter. Nil drops none.
	Exclude []string `json:"exclude,omitempty"`
	// Set adds variables, or replaces those that are there. A name that is empty or contains '=' or
	// NUL, or a value with NUL, is a *CmdError of Run and an error of Apply. Nil sets none.
	Set map[string]string `json:"set,omitempty"`
	// IncludeOnly, if not empty, keeps only names that match one of these patterns, also of
	// those in Named and Set.
	IncludeOnly []string `json:"include_only,omitempty"`

	// Named lists variables of the caller that are inherited whatever Inherit, KeepSecrets and
	// Exclude say. Those that the caller does not have are left out.
	Named []string `json:"-"`
	// Runtime contains the variables that the runtime sets. They are added last and win, also over
	// the profile that a login shell reads; those that tell a command about its sandbox come from
	// sallyport in this step. Only the two names that no command gets, those of the identity of an
	// agent's model account, are removed then. The errors are those of Set.
	Runtime map[string]string `json:"-"`
	// RuntimeOnly lists names that only Runtime can set: a value that the caller inherited from a
	// run around it, or that is in Set, is removed.
	RuntimeOnly []string `json:"-"`

	// Base are the variables of the caller, as "NAME=value", of which the command inherits some; nil
	// means those of this process, and an empty list none. Apply gets them as its argument.
	Base []string `json:"-"`
	// System is the operating system of the command, as GOOS names it; empty means that of the
	// executor. On "windows" names that differ only in letter case are the same.
	System string `json:"-"`
	// Core replaces the names that InheritCore inherits, as patterns; nil means those that
	// docs/reference.md lists.
	Core []string `json:"-"`
}

// An EnvResult is the environment of a command.
type EnvResult struct {
	// Env lists "NAME=value" sorted by name, each name once; it is never nil.
	Env []string
	// Withheld lists the sorted names of variables that the caller has or the policy sets and that
	// the command does not get.
	Withheld []string
}

// Apply returns what a command without variables of its own gets of those of the caller, base, before
// the Runner adds its own. Of entries with the same name the last one counts; entries without '=', with
// an empty name or with NUL are dropped. It changes neither base nor p.
func (p EnvPolicy) Apply(base []string) (EnvResult, error) {
	res, err := environ.Policy(p).Apply(base)
	return EnvResult(res), err
}

// EnvInherit says which variables of the caller a command starts with. Its text forms
// are "core", "all" and "none".
type EnvInherit = environ.Inherit

// The values of EnvPolicy.Inherit.
const (
	// InheritCore starts with the few variables that programs need to find each other,
	// such as PATH, HOME and LANG.
	InheritCore EnvInherit = environ.InheritCore
	// InheritAll starts with all variables.
	InheritAll EnvInherit = environ.InheritAll
	// InheritNone starts with no variable.
	InheritNone EnvInherit = environ.InheritNone
)
