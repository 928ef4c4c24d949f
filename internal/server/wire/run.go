// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"encoding/json"

	"github.com/sallyport-dev/sallyport/executor"
)

// The methods and notifications of runs are an extension. An ID of a run is a decimal number as
// text, behind a prefix where the server has one, and an offset counts the bytes of its output, both streams
// in order of arrival.
const (
	// MethodApprove is a request of the server to the client that started a run.
	MethodApprove = "run/approve"
	// MethodCancel is the notification that a request was withdrawn. Clients send it as well.
	MethodCancel = "request/cancel"
	// MethodRunEvent is the notification for an event of a run.
	MethodRunEvent = "run/event"
)

// RunStart are the parameters of run/start.
type RunStart struct {
	_ struct{} `rule:"name=RunStartParams"`
	// the words after "sallyport run"; not empty
	Args      []string `json:"args" rule:"need" schema:"filled"`
	OpenStdin bool     `json:"openStdin,omitempty"`
	Screen    bool     `json:"screen,omitempty"`
	Events    bool     `json:"events,omitempty"`
	// a session starts no second run with it; "" for none
	StartID string `json:"startId,omitempty"`
	// a credential starts no second run with it; "" for none
	Key string `json:"idempotencyKey,omitempty" rule:"filled"`
	// the command waits for a reader, which says so in its requests
	Reader bool              `json:"reader,omitempty"`
	Dir    string            `json:"cwd,omitempty"` // a path; empty means the directory of the server
	Env    map[string]string `json:"env,omitzero"`  // nil means the environment of the server
	// paths that a run in a sandbox does not read, beside what its policy says
	Hidden  []string    `json:"hidden,omitempty"`
	TTY     *RunSize    `json:"tty,omitempty"`     // nil for none
	Sandbox *RunSandbox `json:"sandbox,omitempty"` // that the run joins; nil for one of its own
	// Transient says that the run is of use to its connection only: it is terminated and forgotten with that,
	// or when its reader has all of the output.
	Transient bool `json:"transient,omitempty"`
	// AskWrites has the client asked about writes that the sandbox denies, as the flag --ask-writes does.
	AskWrites bool `json:"askWrites,omitempty"`
	// Unattended says that no person answers questions, as without a terminal.
	Unattended bool `json:"unattended,omitempty"`
	// Stage takes the place of --stage in args; the zero value asks for none.
	Stage RunStage `json:"stage,omitzero"`
	// Trace is that of the request of a Client, beside its parameters. The zero Trace is none.
	Trace Trace `json:"-" schema:"-"`
}

// RunSandbox is the named sandbox that a run joins.
type RunSandbox struct {
	Name string `json:"name" rule:"need" schema:"filled"`
	// how long it waits without a run before it ends, if this one opens it; 0 for the server's default
	IdleMs uint64 `json:"idleMs,omitempty"`
}

// Validate returns what is wrong with the parameters.
func (s *RunStart) Validate() error { return cmp.Or(notEmpty("args", s.Args), checkKey(s.Key)) }

// RunSize is the size of a terminal. Neither number is 0.
type RunSize struct {
	Cols uint16 `json:"cols" rule:"need,filled"`
	Rows uint16 `json:"rows" rule:"need,filled"`
}

// RunParams are the parameters of the methods that have only the ID of a run.
type RunParams struct {
	RunID string `json:"runId" rule:"need"`
}

// RunStartResult is the result of run/start.
type RunStartResult struct {
	RunID   string `json:"runId"`
	Started bool   `json:"started"`
	// Result is that of a run that was not started, which is not retained; nil for others.
	Result any `json:"result,omitempty"`
}

// RunList is the result of run/list. Runs must not be nil.
type RunList struct {
	Runs []ListedRun `json:"runs"`
	// Version changes with a run that comes, begins, ends or goes, the size of its terminal, and a question
	// about one that comes or goes. It is empty of servers without it.
	Version string `json:"version,omitempty"`
}

// ListWait are the parameters of run/list and question/list, which may be absent.
type ListWait struct {
	_ struct{} `rule:"name=ListParams"`
	// the version that the client has; "" has the list come at once
	Since string `json:"since,omitempty"`
	// how long to wait for another version than Since
	WaitMs uint64 `json:"waitMs,omitempty"`
}

// ListedRun is a run of the credential.
type ListedRun struct {
	RunID    string   `json:"runId"`
	Argv     []string `json:"argv"`
	CWD      string   `json:"cwd"` // a path
	TTY      bool     `json:"tty"`
	Started  int64    `json:"startedAtMs"` // in milliseconds since 1970
	LastUsed int64    `json:"lastUsedMs"`  // when it was last written to or waited for, the same way
	Starting bool     `json:"starting"`    // it has not begun: it is judged, or waits for an approval
	Running  bool     `json:"running"`     // false before that, and when all of its processes have ended
	ExitCode *int     `json:"exitCode"`    // nil before the end
	Signal   int      `json:"signal"`      // that ended it; 0 for none
	End      *string  `json:"end"`         // how it ended; nil before the end
	// Size is that of its terminal; nil without one, and before it begins.
	Size *executor.Size `json:"size,omitempty"`
	// LastLine is the last line of the output so far that is not empty, without control sequences, at
	// most 200 bytes of it.
	LastLine string `json:"lastLine,omitempty"`
	// Denials counts the accesses that the sandbox denied so far; nil before the start.
	Denials *int `json:"denials,omitempty"`
	// CPU is the processor time that its processes have used so far, in milliseconds, and Memory the bytes
	// that they have now; nil where that is not known.
	CPU    *int64 `json:"cpuMs,omitempty"`
	Memory *int64 `json:"memoryBytes,omitempty"`
	// WaitsFor is "answer" while a question about it is open, "password" or "input" while it waits for
	// that; empty for neither, or where it is not known.
	WaitsFor string `json:"waitsFor,omitempty"`
}

// RunRead are the parameters of run/read.
type RunRead struct {
	_        struct{}   `rule:"name=RunReadParams"`
	RunID    string     `json:"runId" rule:"need"`
	After    uint64     `json:"after" rule:"need"`  // the offset
	MaxBytes *uint64    `json:"maxBytes,omitempty"` // nil for the bound of the server
	WaitMs   uint64     `json:"waitMs,omitempty"`
	Reader   *RunReader `json:"reader,omitempty"` // nil for another one than the reader of the run
}

// RunReader is what the reader of a run says of itself, which has the output before an offset.
type RunReader struct {
	StdoutClosed bool `json:"stdoutClosed,omitempty"` // it takes no more of the stream
	StderrClosed bool `json:"stderrClosed,omitempty"`
	Leaves       bool `json:"leaves,omitempty"` // the command goes on without it
}

// RunChunk is a piece of the output of a run.
type RunChunk struct {
	Offset  uint64 `json:"offset"`            // of its first byte
	Missing uint64 `json:"missing,omitempty"` // how many bytes directly before it are not retained
	Stream  string `json:"stream"`            // "stdout" or "stderr"; a terminal has "stdout" only
	// Joined says that it may hold bytes of both streams, whose order is known in blocks only.
	Joined bool   `json:"joined,omitempty"`
	Chunk  []byte `json:"chunk"`
}

// RunReadResult is the result of run/read. Chunks must not be nil.
type RunReadResult struct {
	Chunks   []RunChunk `json:"chunks"`
	Next     uint64     `json:"next"`     // the offset after them
	Complete bool       `json:"complete"` // the run has ended, and there is no output after Next
	// Result is that of the run, without its output: with the end of the output, for the reader of a run
	// that is transient. Nil for others.
	Result json.RawMessage `json:"result,omitempty"`
}

// RunWrite are the parameters of run/write.
type RunWrite struct {
	_       struct{} `rule:"name=RunWriteParams"`
	RunID   string   `json:"runId" rule:"need"`
	Chunk   []byte   `json:"chunk" rule:"need"`
	WriteID string   `json:"writeId,omitempty" rule:"filled"` // empty when absent
}

// RunWait are the parameters of run/wait. Without a condition it waits for the end of the run.
type RunWait struct {
	_             struct{} `rule:"name=RunWaitParams"`
	RunID         string   `json:"runId" rule:"need"`
	TimeoutMs     *uint64  `json:"timeoutMs,omitempty"` // nil means no limit
	RunConditions `json:"for" rule:"need"`
}

// RunConditions are what a wait waits for. An unknown one is refused: to wait for nothing in its
// place would take for ever.
type RunConditions struct {
	_           struct{} `rule:"strict"`
	Exit        bool     `json:"exit,omitempty"`    // that ends each wait
	QuietMs     uint64   `json:"quietMs,omitempty"` // 0 for no such condition
	Input       bool     `json:"input,omitempty"`
	Match       string   `json:"match,omitempty"` // a regular expression; empty for none
	Port        bool     `json:"port,omitempty"`
	FirstOutput bool     `json:"firstOutput,omitempty"`
	Bytes       uint64   `json:"bytes,omitempty"` // 0 for no such condition
	Raw         bool     `json:"raw,omitempty"`   // Match is for the bytes, with control sequences
	// the offset from which on output counts; nil for that of the waits without one
	After *uint64 `json:"after,omitempty"`
}

// RunWaitResult is the result of run/wait.
type RunWaitResult struct {
	Reason string `json:"reason"`
	Next   uint64 `json:"next"`  // the offset after all output so far
	After  uint64 `json:"after"` // the offset from which on a next wait looks at the output
	// what waits for input, for the reasons input_wait and password
	Input     any   `json:"input,omitempty"`
	Port      int   `json:"port,omitempty"`   // for the reason port
	Result    any   `json:"result,omitempty"` // for the reason exited
	ElapsedMs int64 `json:"elapsedMs"`
}

// RunScreen is the result of run/screen. Lines must not be nil.
type RunScreen struct {
	Lines     []string `json:"lines"` // from top to bottom, without trailing blanks
	Cols      int      `json:"cols"`
	Rows      int      `json:"rows"`
	Col       int      `json:"col"` // of the cursor, from 0
	Row       int      `json:"row"`
	Hidden    bool     `json:"hidden"` // the cursor is not shown
	Title     string   `json:"title"`
	Alternate bool     `json:"alternate"` // it is the second screen, for full-screen programs
	// Modes are the sequences that bring a terminal into the modes of the program.
	Modes string `json:"modes,omitempty"`
}

// RunResize are the parameters of run/resize.
type RunResize struct {
	_     struct{} `rule:"name=RunResizeParams"`
	RunID string   `json:"runId" rule:"need"`
	RunSize
}

// RunSignal are the parameters of run/signal.
type RunSignal struct {
	_      struct{} `rule:"name=RunSignalParams"`
	RunID  string   `json:"runId" rule:"need"`
	Signal string   `json:"signal" rule:"need" schema:"example=SIGTERM"`
}

// RunResultOf are the parameters of run/result.
type RunResultOf struct {
	_      struct{} `rule:"name=RunResultParams"`
	RunID  string   `json:"runId" rule:"need"`
	Output bool     `json:"output" rule:"true"` // the result has its output
	// the offset in the JSON form of the result, which comes in parts; nil for all of it
	From *uint64 `json:"from,omitempty"`
}

// RunResult is the result of run/result: the result of the run, or a part of its JSON form.
type RunResult struct {
	Result   any    `json:"result,omitempty"`
	Part     []byte `json:"part,omitempty"`
	Complete bool   `json:"complete,omitempty"` // it is the last part
}

// RunEvent are the parameters of run/event.
type RunEvent struct {
	RunID string `json:"runId"`
	Event any    `json:"event"` // a line of "sallyport run --jsonl"
}

// RunApprove are the parameters of run/approve.
type RunApprove struct {
	RunID   string          `json:"runId"`
	Request json.RawMessage `json:"request"` // what an approver program gets
}

// Canceled are the parameters of request/cancel: the ID of a request.
type Canceled struct {
	_  struct{} `rule:"name=CancelParams"`
	ID ID       `json:"id" rule:"need"`
}

// RunApproval is the answer to run/approve.
type RunApproval struct {
	Decision string `json:"decision" rule:"need"`
	Message  string `json:"message,omitempty"`
	Path     string `json:"path,omitempty"` // of the offer; empty for the first one
}

// SandboxList is the result of sandbox/list. Sandboxes must not be nil.
type SandboxList struct {
	Sandboxes []ListedSandbox `json:"sandboxes"`
}

// ListedSandbox is a named sandbox of the credential.
type ListedSandbox struct {
	Name      string `json:"name"`
	Workspace string `json:"workspace"`   // a path
	Network   string `json:"network"`     // "none" or "host"
	Started   int64  `json:"startedAtMs"` // in milliseconds since 1970
	Running   int    `json:"running"`     // how many runs are in it
	PID       int    `json:"pid"`         // of the server
	Idle      int64  `json:"idleMs"`
	IdleLeft  *int64 `json:"idleLeftMs"` // before it ends; nil while something runs
}

// SandboxParams are the parameters of sandbox/stop.
type SandboxParams struct {
	Name string `json:"name" rule:"need"`
}
