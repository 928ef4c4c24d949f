// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package executor is the contract between a Runner and whatever runs its
// commands: this machine (executor/local) or another one.
//
// An [Executor] starts a [Spec], a portable description of one process and its sandbox
// policy, and returns a [Process]. The executor turns the policy into what the kernel of
// its machine enforces; a Runner does not know how. The package holds types and no
// behavior beyond the texts of its errors.
package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// An Executor starts processes on one machine and answers what a Runner must know of
// that machine to make a [Spec]. Its methods may be called from several goroutines at
// once. Host, Places and Shell may return an error that is [errors.ErrUnsupported].
type Executor interface {
	// Start starts the process that spec describes. An error means that no process
	// runs: a *sandbox.UnsupportedError when the policy cannot be enforced there, a
	// *StartError when the program cannot be executed, a *DirError or a *RootError
	// when a directory cannot be used. The end of ctx cancels the start; it does not
	// end a process that has started.
	Start(ctx context.Context, spec *Spec) (Process, error)
	// Host describes the machine. Without it a Runner assumes the zero HostInfo.
	Host(ctx context.Context) (HostInfo, error)
	// Places returns what the special places of a policy stand for when a command runs
	// in dir, which may be relative or empty, with the environment env and tmp as in
	// [Spec]. Its Dir is absolute: the directory to run in. Without it a Runner
	// requires an absolute directory and knows no other place.
	Places(ctx context.Context, dir string, env []string, tmp string) (sandbox.Places, error)
	// Shell returns the argument vector that runs script in the named shell, or in the
	// user's shell when name is empty, as a login shell or not. Without it a Runner
	// runs /bin/sh.
	Shell(ctx context.Context, name, script string, login bool) ([]string, error)
}

// A HostInfo describes the machine of an [Executor]. The zero HostInfo is an unknown
// machine that shares no paths with this one.
type HostInfo struct {
	// Local says that a path names the same file for the executor's processes (outside
	// of their sandbox) as for this program.
	Local bool
	OS    string // as GOOS names it; empty when unknown
	Arch  string // as GOARCH names it; empty when unknown
}

// A Stream says where output came from.
type Stream uint8

// The streams of a process. The zero Stream is standard output.
const (
	Stdout Stream = iota
	Stderr
)

// String returns "stdout" or "stderr", the names used on the wire.
func (s Stream) String() string {
	if s == Stderr {
		return "stderr"
	}
	return "stdout"
}

// A Spec describes one process.
type Spec struct {
	// Run identifies the run that the process belongs to, and Attempt counts the
	// attempts of the run from 1. What serves the process from outside, such as a network
	// proxy, attributes its requests with them. They do not change what is executed.
	Run     string
	Attempt int

	Args []string // program and arguments; never empty
	Arg0 string   // what the program sees as its own name; empty means Args[0]
	Dir  string   // absolute
	Env  []string // the whole environment, "K=V"; nothing is inherited implicitly

	// Policy is what the process may touch, with every place in it fixed
	// (sandbox.Policy.Bind).
	Policy sandbox.Policy
	// Allow opens things that are shut by default, by name ("unix", "userns").
	Allow []string
	// Level is the least sandbox level accepted: "native", "bwrap" or
	// "landlock" on Linux, "seatbelt" on macOS; empty means "bwrap", that is native
	// or bwrap, and on macOS "seatbelt".
	Level string
	// Tmp says what /tmp is: empty for a private folder of the executor,
	// "host" for the host's, else an absolute path.
	Tmp string
	// NoCaches leaves the caches of toolchains as the policy has them. False gives
	// the process copy-on-write overlays over those of its workspace.
	NoCaches bool
	// NoObserver leaves the process unobserved: nothing is known then of what it
	// was kept from, and what only an observer can judge is refused as a whole
	// (unix sockets) or found afterwards (names that must not come into being).
	NoObserver bool

	// Stdin, Stdout and Stderr are handed to the process as they are. A nil
	// Stdin is the null device, unless PipeStdin asks for a pipe; a nil Stdout or
	// Stderr is a pipe to OnOutput and Retain.
	Stdin, Stdout, Stderr *os.File
	PipeStdin             bool

	// TTY, when it is not nil, gives the process a terminal of its own with that
	// size: its controlling terminal, and its standard streams. Stdin, Stdout and
	// PipeStdin must not be set then. Where Stderr is, that stays standard error.
	// What the terminal shows is standard output for OnOutput and Retain, and Write types.
	TTY *Size

	// OnOutput is called with what the process writes, in order of arrival across both
	// streams, one call at a time. It must not keep p. While it blocks, the process
	// blocks in its writes. Nil discards.
	OnOutput func(s Stream, p []byte)
	// Retain says how much of the output is retained for Process.Output. OnOutput is
	// called with bytes that are retained already.
	Retain Retention

	// Grace is the time between asking the tree to end and killing it; zero
	// means 2 seconds, negative means none.
	Grace time.Duration

	// Resources limits what the process tree may use. The zero Resources limit
	// nothing. Start returns a *sandbox.UnsupportedError for a limit that this machine
	// cannot enforce.
	Resources Resources

	// Ready, when it is not nil, holds the process back until it is closed or the
	// context of Start ends; what can be prepared is prepared meanwhile.
	Ready <-chan struct{}
}

// A Size is that of a terminal in characters. A zero member means the usual one, 80
// columns and 24 rows.
type Size struct {
	Cols uint16 `json:"cols"`
	Rows uint16 `json:"rows"`
}

// OrUsual returns s with what is zero replaced by the usual size.
func (s Size) OrUsual() Size {
	const cols, rows = 80, 24
	if s.Cols == 0 {
		s.Cols = cols
	}
	if s.Rows == 0 {
		s.Rows = rows
	}
	return s
}

// A Process is a running command and everything that it starts. SetInputDeadline,
// Resize, AwaitInput and AwaitPort may return an error that is [errors.ErrUnsupported].
type Process interface {
	// Write writes to the standard input that Spec.PipeStdin asked for, or types on
	// the terminal of Spec.TTY. It blocks while that is full, and returns how much
	// was taken: all of it, or an error, which is io.ErrClosedPipe when nobody reads
	// any more.
	Write(p []byte) (int, error)
	// CloseInput ends standard input. A terminal gets its end-of-file character.
	CloseInput() error
	// SetInputDeadline makes writes return os.ErrDeadlineExceeded from t on, including
	// one that is in progress. The zero Time is no deadline.
	SetInputDeadline(t time.Time) error
	// Resize changes the size of the terminal of Spec.TTY and signals its foreground
	// process group. It returns os.ErrProcessDone when the command has ended.
	Resize(Size) error
	// Signal sends a signal by number to the command's process group; on a terminal
	// those that keys stand for (SIGINT, SIGQUIT, SIGTSTP) go to the foreground group.
	// It is os.ErrProcessDone when the command has ended.
	Signal(sig int) error
	// AwaitInput blocks until the process waits for input on its terminal, or on the
	// pipe of Spec.PipeStdin. It returns os.ErrProcessDone when the command ends before
	// that, and the cause of ctx when ctx ends.
	AwaitInput(ctx context.Context) (*InputWait, error)
	// AwaitPort blocks until a process of the tree listens on a TCP port that is not in
	// known. Its errors are those of AwaitInput.
	AwaitPort(ctx context.Context, known []int) (int, error)
	// Output returns the output that Spec.Retain asks for, during the life of the process
	// and after it; without retention, an Output that is empty and complete. The caller
	// closes it when it is no longer needed.
	Output() Output
	// Sandbox says what was enforced.
	Sandbox() Sandbox
	// Stop ends the whole tree: it asks first, and kills after the grace. It
	// does not wait; Wait does.
	Stop()
	// Wait blocks until the command has ended, its output has been heard and
	// nothing of its tree is left. It must be called, and may be called more than
	// once. The Exit is never nil; with an error it is what is known all the same.
	Wait() (*Exit, error)
}

// An InputKind says what a program waits for.
type InputKind string

// The kinds of input.
const (
	InputLine     InputKind = "line"     // a whole line
	InputKey      InputKind = "key"      // any key: the program edits lines itself, or draws
	InputPassword InputKind = "password" // a whole line that is not shown
	InputData     InputKind = "data"     // it reads from a pipe
)

// An InputWait says who waits for input.
type InputWait struct {
	Kind    InputKind `json:"kind"`
	PID     int       `json:"pid"`     // as the executor's machine sees it
	Program string    `json:"program"` // its name, which it can choose
	// Timed says that the program also waits for a time to pass, as one does that
	// draws every second. It may be busy in other ways.
	Timed bool `json:"timed,omitempty"`
}

// An Exit is how a process ended.
type Exit struct {
	Code   int // the exit code; 128+Signal when a signal ended it; -1 when nothing is known
	Signal int // the signal that ended it, or 0
	// Stopped says that Stop was called before the command ended by itself, and
	// LastSignal which signal that sent last.
	Stopped    bool
	LastSignal int
	// Survivors are the processes that were still there when the command had
	// ended. They were ended. The first 20 have their command line.
	Survivors []Survivor
	// SurvivorsBy says by what means they are found and ended, one of the constants
	// By...; empty when that is not known.
	SurvivorsBy string
	// StreamsLeftOpen says that a survivor still held an output stream when
	// the wait for it was over.
	StreamsLeftOpen bool
	Sandbox         Sandbox
	// Quarantined are names that must not come into being and that appeared
	// while the process ran. They were moved away before Wait returned.
	Quarantined []Quarantined
	// Denials are what the process was kept from, as far as its executor knows.
	// Equal ones (same operation and target) are one, with a count.
	Denials []sandbox.Denial
	// DenialsOmitted counts refused accesses that are not in Denials because
	// there were too many different ones.
	DenialsOmitted int
	// Limits lists what enforced each limit of Spec.Resources, in the order of its
	// members. Limit is the one that ended the process ("memory", "pids" or "disk");
	// empty when none did.
	Limits []Enforced
	Limit  string
	// Usage is what the process and everything that it started used.
	Usage Usage
	// Broken says what took a wall of the sandbox away while the process ran,
	// such as somebody outside who removed a folder that stood for a protected
	// name. The process was ended then. Nil means that the walls stood.
	Broken error
}

// Quarantined is a name that appeared where none may be and was moved away.
type Quarantined struct {
	Path    string `json:"path"`               // where it appeared
	MovedTo string `json:"moved_to,omitempty"` // where it is now; empty when it is gone
	Why     string `json:"why"`                // what the name is to tools outside, a few words
	Grant   string `json:"grant,omitempty"`    // the grant that permits it, as a flag; empty when none does
}

// What survivors are found and ended by, for [Exit.SurvivorsBy].
const (
	// ByNamespace is a process namespace: nothing can leave it, and the kernel ends
	// all of it at once.
	ByNamespace = "pid-namespace"
	// BySubreaper is a process that inherits every orphan of the tree. The tree is
	// ended process by process, until nothing is left.
	BySubreaper = "subreaper"
	// ByJob is a job object: nothing can leave it, and it is ended as a whole.
	ByJob = "job-object"
	// ByGroup is the process group of the command: what left it is not found.
	ByGroup = "process-group"
)

// CommandShown is how long the command line of a [Survivor] is at most, in bytes.
const CommandShown = 200

// A Survivor is a process that outlived its command.
type Survivor struct {
	PID  int    `json:"pid"` // as the executor's machine sees it
	Name string `json:"name"`
	// Command is its command line for people, at most CommandShown bytes: control
	// characters are replaced and values that look like secrets are masked. A process
	// without a command line has its name in brackets; empty means that it was not read.
	Command string `json:"command,omitempty"`
}

// A Sandbox is what was enforced.
type Sandbox struct {
	Level     string   `json:"level"`            // the level reached: "native", "bwrap", "landlock", "seatbelt", or "none" for full access
	Mechanism []string `json:"mechanism"`        // for example userns, mountns, landlock, seccomp; seatbelt
	Weaker    []string `json:"weaker,omitempty"` // what is weaker than the level promises, one sentence each
	// Observed says that every access that the sandbox denied was seen: no denial then
	// means that nothing was denied.
	Observed bool     `json:"observed"`
	Warnings []string `json:"-"` // what people should know and the command can do without
	Script   string   `json:"-"` // the launch, printed for people
}

// A StartError says why a program could not be executed.
type StartError struct {
	Program  string
	NotFound bool // there is no such program, as opposed to one that cannot run
	Err      error
}

// Error returns one sentence that names the program and what is wrong with it.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *StartError) Unwrap() error { return e.Err }

// ErrNoArgs is the error for a command without a program. Its text is the one
// that agents know from their usual tools.
var ErrNoArgs = errors.New("command args are empty")

// A NULError says that a text for the kernel holds a NUL character, which would
// end it there.
type NULError struct {
	Where string // such as "argument 2"; arguments are counted from the program, which is 0
}

// Error returns one sentence that names the place.
func (e *NULError) Error() string {
	return "a command cannot hold NUL characters, and there is one in " + e.Where
}

// A DirError is a working directory that cannot be used.
type DirError struct {
	Dir string
	Err error
}

// Error returns one sentence that names the directory and what is wrong with it.
func (e *DirError) Error() string {
	why := fmt.Sprintf("cannot be used: %v", e.Err)
	var hidden *sandbox.HiddenError
	switch {
	case errors.As(e.Err, &hidden):
		why = "is not visible under this policy; add --ro " + hidden.Path + " to show it"
	case errors.Is(e.Err, fs.ErrNotExist):
		why = "does not exist"
	case errors.Is(e.Err, ErrNotDir):
		why = "is not a folder"
	case errors.Is(e.Err, fs.ErrPermission):
		why = "cannot be entered: permission denied"
	}
	return fmt.Sprintf("the working directory %s %s", e.Dir, why)
}

// Unwrap gives the cause.
func (e *DirError) Unwrap() error { return e.Err }

// ErrNotDir is the cause in a [DirError] for something that is not a folder.
var ErrNotDir = errors.New("not a folder")

// A RootError is a place of a policy that cannot be used.
type RootError struct {
	Path string
	Why  string // the rest of a sentence that begins with the path
	Fix  string // what helps, as a clause; empty when nothing is known to
}

// Error returns one sentence that names the path, and the fix.
func (e *RootError) Error() string {
	s := e.Path + " " + e.Why
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return s
}
