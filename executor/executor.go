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
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Executor starts processes on one machine and answers what a Runner must know of that
// machine to make a [Spec]. Its methods may be called concurrently. Host, Places and Shell may return an
// error that is [errors.ErrUnsupported].
type Executor interface {
	// Start starts the process that spec describes. An error other than [ErrEndUnknown] means
	// that no process runs: a *sandbox.UnsupportedError when the policy cannot be enforced there, a
	// *StartError when the program cannot be executed, a *DirError or a *RootError
	// when a directory cannot be used. The end of ctx cancels the start; it does not
	// end a process that has started.
	Start(ctx context.Context, spec *Spec) (Process, error)
	// Host describes the machine. Without it a Runner assumes the zero HostInfo.
	Host(ctx context.Context) (HostInfo, error)
	// Places returns what the special places of a policy mean when a command runs
	// in dir, which may be relative or empty, with the environment env and tmp as in
	// [Spec]. Its Dir is absolute: the directory to run in. Without it a Runner
	// requires an absolute directory and knows no other place.
	Places(ctx context.Context, dir string, env []string, tmp string) (sandbox.Places, error)
	// Shell returns the argument vector that runs script in the named shell, or in the
	// user's shell when name is empty, as a login shell or not. Without it a Runner
	// runs /bin/sh.
	Shell(ctx context.Context, name, script string, login bool) ([]string, error)
}

// ErrEndUnknown says of a command that it may have run, and that its end is not known: starting it
// again could run it twice. Start and Wait return it, for errors.Is, where that cannot be told.
var ErrEndUnknown = errors.New("the end of the command is not known")

// HostInfo describes the machine of an [Executor]. The zero HostInfo is an unknown
// machine that shares no paths with this one.
type HostInfo struct {
	// Local says that a path names the same file for the executor's processes (outside
	// of their sandbox) as for this program.
	Local bool
	OS    string // as GOOS names it; empty when unknown
	Arch  string // as GOARCH names it; empty when unknown
	// Environment names the machine where one program uses several; empty for this machine. What
	// was approved for one is not approved for another.
	Environment string
}

// Stream is an output stream of a process.
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

// Spec describes one process.
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

	// Policy is what the process may access, bound to places ([sandbox.Policy.Bind]).
	Policy sandbox.Policy
	// Network decides which hosts the process reaches where the network of Policy is the proxy; it
	// has no effect elsewhere. What it says when it has changed counts from then on. Nil opens the
	// hosts that Policy grants, and no others.
	Network *network.Live
	// AskHost decides about a request for which Network says [network.Ask]. It blocks until there is
	// a decision, and is called from several goroutines at once; ctx ends when the request does.
	// Whatever it returns but Allow denies. Nil denies.
	AskHost func(ctx context.Context, r network.Request) network.Decision
	// Publish are ports of the process's own network that this machine reaches while it runs. Nil
	// publishes none. Start returns a *sandbox.UnsupportedError where the process has no network of
	// its own, or this executor cannot reach it, and an error for a port that is in use.
	Publish []network.Publish
	// Allow lists what is allowed beyond the defaults, by name ("unix", "userns").
	Allow []string
	// Level is the least sandbox level accepted: "native", "bwrap" or
	// "landlock" on Linux, "seatbelt" on macOS; empty means "bwrap", that is native
	// or bwrap, and on macOS "seatbelt".
	Level string
	// Tmp says what /tmp is: empty for a private directory of the executor, "host" for the
	// host's, else an absolute path.
	Tmp string
	// NoCaches leaves the caches of toolchains as the policy has them. False gives the
	// process copy-on-write overlays over the caches of its workspace.
	NoCaches bool
	// NoObserver leaves the process unobserved. Denials are not seen then, and what only an
	// observer can judge is denied as a whole (unix sockets) or found afterwards (protected
	// names that were created).
	NoObserver bool
	// ProtectHardLinks denies writing to files that have further names, except to those to
	// which the process gave them. False reports such files in [Exit.HardLinks]. Start
	// returns a *sandbox.UnsupportedError where that cannot be enforced.
	ProtectHardLinks bool
	// OwnershipErrors has changes of the owner or group of a file fail where the id is one
	// that the process cannot give. False has them succeed without effect in writable places
	// where the user of the executor may make them (root), and counts them in
	// [Exit.OwnershipIgnored]. It needs an observer.
	OwnershipErrors bool
	// Explain asks for [Sandbox.Script], Digest for [Sandbox.Plan].
	Explain, Digest bool

	// Stdin, Stdout and Stderr are passed to the process. A nil Stdin is the null device,
	// unless PipeStdin asks for a pipe. A nil Stdout or Stderr is a pipe to OnOutput and
	// Retain.
	Stdin, Stdout, Stderr *os.File
	PipeStdin             bool
	// Files are passed to the process under the numbers of their keys, which are above 2.
	// Start returns a *sandbox.UnsupportedError where that cannot be done.
	Files map[int]*os.File

	// TTY, when it is not nil, gives the process a new terminal with that size as its
	// controlling terminal and standard streams. Stdin, Stdout and PipeStdin must not be set
	// then. If Stderr is set, it stays standard error. The output of the terminal is standard
	// output for OnOutput and Retain, and Write types on it.
	TTY *Size

	// OnOutput is called with what the process writes, in order of arrival across both
	// streams, one call at a time. It must not keep p. While it blocks, the process
	// blocks in its writes; it may wait for the return of Start. Nil discards.
	OnOutput func(s Stream, p []byte)
	// OnTyped is called with what was typed on the terminal of TTY, in order and once the terminal has taken
	// it, and whether the terminal shows it. It must not keep p, and must not block. Nil is not called, and
	// an executor that cannot know does not call it.
	OnTyped func(p []byte, echo Echo)
	// OnDenied is called with each different denial when it happens first, where an observer
	// sees it, from any goroutine and while the process waits: it must not block. Rule and
	// Grant may be missing. Nil is not called.
	OnDenied func(sandbox.Denial)
	// OnListen is called with each port of the process's own network at which it is about to listen, where an
	// observer sees it and the port could be published: once, from any goroutine and while the process waits.
	// It must not block. Nil is not called.
	OnListen func(port uint16)
	// OnRecord is called with each decision of the proxy and each end of a connection, one at a time,
	// until the Process has ended, but at most MaxRecords times: it must not block. Nil is not called.
	OnRecord func(network.Record)
	// Retain says how much of the output is retained for Process.Output. OnOutput is
	// called with bytes that are retained already.
	Retain Retention

	// Grace is the time between asking the process tree to end and killing it. Zero means 2
	// seconds, negative means none.
	Grace time.Duration

	// Resources limits what the process tree may use. The zero Resources limit
	// nothing. Start returns a *sandbox.UnsupportedError for a limit that this machine
	// cannot enforce.
	Resources Resources

	// OnStop, when it is not nil, is called when the process itself was stopped by a signal.
	// It must not block. Executors that cannot know do not call it.
	OnStop func()

	// OnExit, when it is not nil, is called once when the command itself has ended: with its exit
	// code and signal as in [Exit], and after OnOutput has returned from what was written before.
	// Where that cannot be known, and where other processes go on writing, it is called when the
	// output has ended. It has returned before Wait does, and is not called when Wait returns
	// an error because the end is not known.
	OnExit func(code, signal int)
	// AwaitStreams says that processes that hold the output streams of a command that has ended
	// go on until they close them, or until Stop. False gives them a short time. It has no
	// effect with TTY.
	AwaitStreams bool

	// Ready, when it is not nil, delays the process until it is closed or the context of
	// Start ends. The sandbox is prepared meanwhile.
	Ready <-chan struct{}

	// Stage has what the process writes go to a stage. Nil has it change the host's files. Start returns a
	// *sandbox.UnsupportedError where there are no stages, and a *StageError for one that cannot be used.
	Stage *Staging
	// AskAccess decides about an access to a path that the sandbox would deny, and reports whether exactly
	// this call is made for the process. It blocks until there is a decision, and is called from several
	// goroutines at once; ctx ends when the call does. Nil denies at once. Start returns a
	// *sandbox.UnsupportedError where calls cannot wait.
	AskAccess func(ctx context.Context, q AccessQuestion) bool
}

// Echo says what a terminal does with what is typed on it.
type Echo uint8

// The kinds of Echo.
const (
	EchoOff  Echo = iota // it shows nothing of the lines that a program reads, such as a password
	EchoKeys             // it shows nothing: the program reads keys, and shows what it wants itself
	EchoOn               // it shows what is typed
)

// Size is the size of a terminal in characters. A zero member means the usual one, 80
// columns or 24 rows.
type Size struct {
	Cols uint16 `json:"cols"`
	Rows uint16 `json:"rows"`
}

// OrUsual returns s with the usual size in place of zero members.
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

// Process is a running command and its process tree. SetInputDeadline,
// Resize, AwaitInput and AwaitPort may return an error that is [errors.ErrUnsupported]; the latter two
// return it at once, also when their context has ended.
type Process interface {
	// Write writes to the standard input of Spec.PipeStdin, or types on the terminal of
	// Spec.TTY. It blocks while the input buffer is full. It returns len(p), or how much was
	// written and an error, which is io.ErrShortWrite when a part was written and the rest would
	// block, and io.ErrClosedPipe when no process reads any more.
	Write(p []byte) (int, error)
	// CloseInput closes standard input. A terminal gets its end-of-file character.
	CloseInput() error
	// SetInputDeadline makes writes return os.ErrDeadlineExceeded from t on, including
	// one that is in progress. The zero Time is no deadline.
	SetInputDeadline(t time.Time) error
	// Resize changes the size of the terminal of Spec.TTY and signals its foreground
	// process group. It returns os.ErrProcessDone when the command has ended.
	Resize(Size) error
	// Signal sends a signal by number to the command's process group. On a terminal the
	// signals of keys (SIGINT, SIGQUIT, SIGTSTP) go to the foreground process group. It
	// returns os.ErrProcessDone when the command has ended.
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
	// Sandbox returns what is enforced.
	Sandbox() Sandbox
	// Stop ends the process tree: it asks first and kills after Spec.Grace. It does not wait;
	// Wait does.
	Stop()
	// Wait blocks until the command and its process tree have ended and their output was
	// read. It must be called, and may be called more than once. The Exit is never nil; with
	// an error it contains what is known.
	Wait() (*Exit, error)
}

// InputKind is the kind of input that a program waits for.
type InputKind string

// The kinds of input.
const (
	InputLine     InputKind = "line"     // a whole line
	InputKey      InputKind = "key"      // any key: the program edits lines itself, or draws
	InputPassword InputKind = "password" // a whole line that is not shown
	InputData     InputKind = "data"     // it reads from a pipe
)

// InputWait is a process that waits for input.
type InputWait struct {
	Kind    InputKind `json:"kind"`
	PID     int       `json:"pid"`     // as the executor's machine sees it
	Program string    `json:"program"` // its name, which it can choose
	// Timed says that the program also waits for a time to pass, such as one that redraws
	// every second.
	Timed bool `json:"timed,omitempty"`
}

// Exit is how a process ended.
type Exit struct {
	Code   int // the exit code; 128+Signal when a signal ended it; -1 when it is unknown
	Signal int // the signal that ended it, or 0
	// Stopped says that Stop was called before the command ended by itself, and LastSignal
	// is the last signal that Stop sent.
	Stopped    bool
	LastSignal int
	// Survivors are the processes that were running when the command had ended. They were
	// ended. The first 20 have their command line.
	Survivors []Survivor
	// SurvivorsBy is the means by which survivors are found and ended, such as ByNamespace;
	// empty when it is unknown.
	SurvivorsBy string
	// StreamsLeftOpen says that a survivor had an output stream open for longer than Wait
	// waits.
	StreamsLeftOpen bool
	Sandbox         Sandbox
	// Quarantined are protected names that were created while the process ran. They were
	// quarantined before Wait returned.
	Quarantined []Quarantined
	// New are files that other programs run or obey later, and git repositories, that appeared
	// in writable directories while the process ran. They are still there. Nil also where the
	// executor does not look.
	New []New
	// Denials are the accesses that were denied, as far as the executor knows. Equal ones
	// (same operation and target) are one, with a count.
	Denials []sandbox.Denial
	// DenialsOmitted counts denied accesses that are not in Denials because there were too
	// many different ones.
	DenialsOmitted int
	// NetworkDenials are the hosts that the proxy refused, in the order in which they were refused
	// first: at most MaxNetworkDenials. They are among Denials as well, and those that were left
	// out are in DenialsOmitted. Nil where there was no proxy.
	NetworkDenials []NetworkDenial
	// NetworkHosts are the hosts that the process reached through the proxy, in the order in which
	// their first connection ended: at most MaxNetworkHosts. Nil where there was no proxy.
	NetworkHosts []NetworkHost
	// NetworkFailures are the hosts that the policy of the proxy allows, and that could not be reached, in
	// the order in which they failed first: at most MaxNetworkFailures.
	NetworkFailures []NetworkFailure
	// HardLinks are files that the process opened for writing although they have further
	// names, which may lie outside of the places that it may write to. HardLinksOmitted
	// counts those that are not in HardLinks because there were too many.
	HardLinks        []HardLink
	HardLinksOmitted int
	// OwnershipIgnored counts changes of owners and groups that succeeded without effect.
	OwnershipIgnored int
	// Limits lists what enforced each limit of Spec.Resources, in the order of its
	// members. Limit is the one that ended the process ("memory", "pids" or "disk");
	// empty when none did.
	Limits []Enforced
	Limit  string
	// Usage is what the process tree used.
	Usage Usage
	// Stage is the stage that the process had; nil for none.
	Stage *Staged
	// Broken says what made the sandbox incomplete while the process ran, such as a program
	// outside that replaced a protected file. The process was ended then.
	// Nil means that the sandbox was complete.
	Broken error
}

// MaxNetworkDenials is how many different requests [Exit.NetworkDenials] lists.
const MaxNetworkDenials = 50

// NetworkDenial is a host to which the proxy refused to connect.
type NetworkDenial struct {
	// normalized; what the program sent, quoted, where that is no host
	Host     string           `json:"host"`
	Port     uint16           `json:"port"` // 0 where it is unknown
	Protocol network.Protocol `json:"protocol"`
	Reason   network.Reason   `json:"reason"`
	Count    int              `json:"count"` // how often it was refused
	// milliseconds from the start of the process to the first refusal
	FirstMS int64 `json:"first_ms"`
}

// MaxRecords is how many records of its network one process has; what is above is counted in its Exit only.
const MaxRecords = 1000

// MaxNetworkHosts is how many different hosts [Exit.NetworkHosts] lists.
const MaxNetworkHosts = 100

// NetworkHost is a host that was reached through the proxy, and what went there and came back.
type NetworkHost struct {
	Host        string `json:"host"` // normalized
	Port        uint16 `json:"port"`
	Connections int    `json:"connections"` // requests, where a connection carries several
	Up          int64  `json:"bytes_up"`    // from the process
	Down        int64  `json:"bytes_down"`
}

// MaxNetworkFailures is how many different hosts [Exit.NetworkFailures] lists.
const MaxNetworkFailures = 50

// NetworkFailure is a host that the policy allows and that the proxy could not reach.
type NetworkFailure struct {
	Host  string `json:"host"` // normalized
	Port  uint16 `json:"port"`
	Name  bool   `json:"unresolved,omitempty"` // the name has no address; false is a failed connection
	Error string `json:"error"`                // a few words
	Count int    `json:"count"`
}

// Quarantined is a protected name that was created and then quarantined.
type Quarantined struct {
	Path    string `json:"path"`               // where it was created
	MovedTo string `json:"moved_to,omitempty"` // where it is now; empty when it is gone
	Why     string `json:"why"`                // what tools outside use the name for, a few words
	Grant   string `json:"grant,omitempty"`    // the grant that allows it; empty when none does
}

// HardLink is a file that was changed in place although it has further names.
type HardLink struct {
	Path  string `json:"path"`  // the name by which it was opened
	Links uint32 `json:"links"` // how many names it had then
}

// New is a file that other programs run or obey later, or a git repository, that was not there
// before a process ran. For a repository it is its .git, or the directory of a bare one.
type New struct {
	Path  string `json:"path"`  // absolute
	Grant string `json:"grant"` // the grant for such files, as flags; it was given if Granted
	// Granted says that the process was allowed to change such files where they exist.
	Granted bool `json:"granted,omitempty"`
	// More counts files beside this one, in the same new directory, that are not listed. There
	// may be further ones that were not counted.
	More int `json:"more,omitempty"`
}

// A Task is what this process does in the place of another one: what it writes is the output, and what it
// returns the end, without a sandbox. Where ctx ends first, it does nothing and returns nil.
type Task func(ctx context.Context, stdout, stderr io.Writer) *Exit

// Writing is called before files are written without a process. What it returns tells, after that, which of
// them are what [Exit.New] lists.
type Writing func(files []string) (made func() []New)

// The means by which survivors are found and ended, for [Exit.SurvivorsBy].
const (
	// ByNamespace is a PID namespace: no process can leave it, and the kernel ends all of
	// them at once.
	ByNamespace = "pid-namespace"
	// BySubreaper is a process that inherits every orphan of the tree. Processes are ended
	// one by one until none is left.
	BySubreaper = "subreaper"
	// ByJob is a job object: no process can leave it, and it is ended as a whole.
	ByJob = "job-object"
	// ByGroup is the process group of the command: processes that left it are not found.
	ByGroup = "process-group"
)

// CommandShown is the longest command line of a [Survivor] in bytes.
const CommandShown = 200

// Survivor is a process that was running when its command had ended.
type Survivor struct {
	PID  int    `json:"pid"` // as the executor's machine sees it
	Name string `json:"name"`
	// Command is its command line for people, at most CommandShown bytes: control
	// characters are replaced and values that look like secrets are masked. A process
	// without a command line has its name in brackets; empty means that it was not read.
	Command string `json:"command,omitempty"`
}

// Sandbox is what was enforced.
type Sandbox struct {
	// the level reached: "native", "bwrap", "landlock", "seatbelt", or "none" for full access
	Level     string   `json:"level"`
	Mechanism []string `json:"mechanism"`        // for example userns, mountns, landlock, seccomp; seatbelt
	Weaker    []string `json:"weaker,omitempty"` // what is weaker than the level promises, one sentence each
	// Published are the ports that this machine reached; nil for none.
	Published []network.Publish `json:"published,omitempty"`
	// Hidden lists the named grants that would open what is hidden although no entry of the
	// policy says so: stores of secrets, such as "credentials:aws". Attempts to read them are not
	// observed.
	Hidden []string `json:"hidden,omitempty"`
	// Replaced lists the files of settings that are shown as copies, with dummies for the secrets in
	// them. The named grants for stores of secrets show the files themselves.
	Replaced []string `json:"replaced,omitempty"`
	// Observed says that every access that the sandbox denied was seen: no denial then
	// means that nothing was denied.
	Observed bool `json:"observed"`
	// Shared says that the process ran in a shared sandbox, see [Shared].
	Shared   bool     `json:"shared,omitempty"`
	Warnings []string `json:"-"` // for people; the command runs all the same
	Script   string   `json:"-"` // the launch, printed for people; empty without [Spec.Explain]
	// Plan is the SHA-256 of the Script in hexadecimal digits; empty without [Spec.Digest], and where the
	// executor has no script.
	Plan string `json:"plan_sha256,omitempty"`
}

// StartError reports a program that could not be executed.
type StartError struct {
	Program  string
	NotFound bool // there is no such program; otherwise it cannot be run
	Err      error
}

// Error returns one sentence with the program and the reason.
func (e *StartError) Error() string { return text.Line(e.Err.Error()) }

// Unwrap gives the cause.
func (e *StartError) Unwrap() error { return e.Err }

// ErrPrivateTmp is the cause of a [StartError] for a program that lies in the host's /tmp, in
// whose place the command has a private directory.
var ErrPrivateTmp = errors.New("is in /tmp, which is private inside")

// ErrNoArgs reports a command without a program. Agents know its text from other tools.
var ErrNoArgs = errors.New("command args are empty")

// NULError reports a NUL character in an argument, a variable or a path, which would end it
// for the kernel.
type NULError struct {
	Where string // such as "argument 2"; arguments are counted from the program, which is 0
}

// Error returns one sentence with the place.
func (e *NULError) Error() string {
	return "a command cannot contain NUL characters, and there is one in " + text.Line(e.Where)
}

// DirError reports a working directory that cannot be used.
type DirError struct {
	Dir string
	Err error
}

// Error returns one sentence with the directory and the reason.
func (e *DirError) Error() string {
	why := text.Line(fmt.Sprintf("cannot be used: %v", e.Err))
	var hidden *sandbox.HiddenError
	switch {
	case errors.As(e.Err, &hidden):
		why = "is not visible under this policy; make " + text.Word(hidden.Path) + " readable to show it"
	case errors.Is(e.Err, fs.ErrNotExist):
		why = "does not exist"
	case errors.Is(e.Err, ErrNotDir):
		why = "is not a directory"
	case errors.Is(e.Err, fs.ErrPermission):
		why = "cannot be entered: permission denied"
	}
	return "the working directory " + text.Word(e.Dir) + " " + why
}

// Unwrap gives the cause.
func (e *DirError) Unwrap() error { return e.Err }

// ErrNotDir is the cause in a [DirError] for a path that is not a directory.
var ErrNotDir = errors.New("not a directory")

// RootError reports a place of a policy that cannot be used.
type RootError struct {
	Path string
	Why  string // the rest of a sentence that begins with the path
	Fix  string // how to fix it; may be empty
	Err  error  // what the system said; may be nil
}

// Unwrap returns Err.
func (e *RootError) Unwrap() error { return e.Err }

// Error returns one sentence with the path, the reason and the fix.
func (e *RootError) Error() string {
	s := text.Word(e.Path) + " " + e.Why
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return text.Line(s)
}

// As returns the first of an executor, and those that it stands in front of by a method Unwrap, that is a T.
func As[T any](e Executor) (found T, ok bool) {
	for e != nil {
		if found, ok = e.(T); ok {
			return found, true
		}
		w, wraps := e.(interface{ Unwrap() Executor })
		if !wraps {
			break
		}
		e = w.Unwrap()
	}
	return found, false
}
