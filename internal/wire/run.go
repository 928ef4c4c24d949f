// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/jsonrpc"
)

// The methods and notifications of runs are an extension. An ID of a run is a decimal number as
// text, and an offset counts the bytes of its output, both streams in order of arrival.
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
	Args      []string          // the words after "sallyport run"; not empty
	Dir       string            // a path; empty means the directory of the server
	Env       map[string]string // nil means the environment of the server
	TTY       *RunSize          // nil for none
	OpenStdin bool
	Screen    bool
	Events    bool
	Reader    bool     // the command waits for a reader, which says so in its requests
	Hidden    []string // paths that a run in a sandbox does not read, beside what its policy says
	// Transient says that the run is of use to its connection only: it is terminated and forgotten with that,
	// or when its reader has all of the output.
	Transient bool
	// Unattended says that no person answers questions, as without a terminal.
	Unattended bool
	Sandbox    *RunSandbox // that the run joins; nil for one of its own
}

// RunSandbox is the named sandbox that a run joins.
type RunSandbox struct {
	Name   string
	IdleMs uint64 // how long it waits without a run before it ends, if this one opens it; 0 for the server's default
}

// RunSize is the size of a terminal. Neither number is 0.
type RunSize struct{ Cols, Rows uint16 }

// DecodeRunStart reads the parameters of run/start.
func DecodeRunStart(params json.RawMessage) (*RunStart, error) {
	f := object(params, "RunStartParams")
	s := &RunStart{
		Args: f.list("args"), OpenStdin: f.choice("openStdin", false), Screen: f.choice("screen", false), Events: f.choice("events", false), Reader: f.choice("reader", false),
		Transient: f.choice("transient", false), Unattended: f.choice("unattended", false),
	}
	if dir := f.optionalText("cwd"); dir != nil {
		s.Dir = *dir
	}
	if f.optional("env") != nil {
		s.Env = f.texts("env")
	}
	if v := f.optional("hidden"); v != nil {
		s.Hidden = f.listOf(v)
	}
	if v := f.optional("tty"); v != nil {
		size := object(v, "RunSize")
		s.TTY = &RunSize{Cols: size.length("cols"), Rows: size.length("rows")}
		f.fail(size.err)
	}
	if v := f.optional("sandbox"); v != nil {
		in := object(v, "RunSandbox")
		s.Sandbox = &RunSandbox{Name: in.text("name")}
		if idle := in.natural("idleMs", "u64"); idle != nil {
			s.Sandbox.IdleMs = *idle
		}
		f.fail(in.err)
	}
	if f.err == nil && len(s.Args) == 0 {
		f.err = errors.New("args must not be empty")
	}
	return s, f.err
}

// RunStartResult is the result of run/start.
type RunStartResult struct {
	RunID   string `json:"runId"`
	Started bool   `json:"started"`
	// Result is that of a run that was not started, which is not retained; nil for others.
	Result any `json:"result,omitempty"`
}

// DecodeRunID reads the parameters of the methods that have only the ID of a run: run/closeStdin,
// run/screen, run/terminate and run/remove.
func DecodeRunID(params json.RawMessage) (string, error) {
	f := object(params, "RunParams")
	return f.text("runId"), f.err
}

// RunList is the result of run/list. Runs must not be nil.
type RunList struct {
	Runs []ListedRun `json:"runs"`
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
}

// RunRead are the parameters of run/read.
type RunRead struct {
	RunID    string
	After    uint64  // the offset
	MaxBytes *uint64 // nil for the bound of the server
	WaitMs   uint64
	Reader   *RunReader // nil for another one than the reader of the run
}

// RunReader is what the reader of a run says of itself, which has the output before an offset.
type RunReader struct {
	StdoutClosed, StderrClosed bool // it takes no more of the stream
	Leaves                     bool // the command goes on without it
}

// DecodeRunRead reads the parameters of run/read.
func DecodeRunRead(params json.RawMessage) (*RunRead, error) {
	f := object(params, "RunReadParams")
	r := &RunRead{RunID: f.text("runId"), After: f.number("after", "u64"), MaxBytes: f.natural("maxBytes", "u64")}
	if wait := f.natural("waitMs", "u64"); wait != nil {
		r.WaitMs = *wait
	}
	if v := f.optional("reader"); v != nil {
		var err error
		r.Reader, err = runReader(v)
		f.fail(err)
	}
	return r, f.err
}

func runReader(v []byte) (*RunReader, error) {
	f := object(v, "RunReader")
	return &RunReader{StdoutClosed: f.choice("stdoutClosed", false), StderrClosed: f.choice("stderrClosed", false), Leaves: f.choice("leaves", false)}, f.err
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
	RunID   string
	Chunk   []byte
	WriteID string // empty when absent
}

// DecodeRunWrite reads the parameters of run/write.
func DecodeRunWrite(params json.RawMessage) (*RunWrite, error) {
	f := object(params, "RunWriteParams")
	w := &RunWrite{RunID: f.text("runId"), Chunk: f.data("chunk")}
	if id := f.optionalText("writeId"); id != nil {
		if w.WriteID = *id; *id == "" {
			f.fail(errors.New("writeId must not be empty"))
		}
	}
	return w, f.err
}

// RunWait are the parameters of run/wait. Without a condition it waits for the end of the run.
type RunWait struct {
	RunID       string
	QuietMs     uint64 // 0 for no such condition
	Input       bool
	Match       string // a regular expression; empty for none
	Port        bool
	FirstOutput bool
	Bytes       uint64  // 0 for no such condition
	Raw         bool    // Match is for the bytes, with control sequences
	After       *uint64 // the offset from which on output counts; nil for that of the waits without one
	TimeoutMs   *uint64 // nil means no limit
}

// conditions are the members of "for".
var conditions = []string{"exit", "quietMs", "input", "match", "port", "firstOutput", "bytes", "raw", "after"}

// DecodeRunWait reads the parameters of run/wait.
func DecodeRunWait(params json.RawMessage) (*RunWait, error) {
	f := object(params, "RunWaitParams")
	w := &RunWait{RunID: f.text("runId"), TimeoutMs: f.natural("timeoutMs", "u64")}
	v := f.need("for")
	if v == nil {
		return w, f.err
	}
	c := object(v, "RunConditions")
	for _, name := range slices.Sorted(maps.Keys(c.members)) {
		if !slices.Contains(conditions, name) { // to wait for nothing in its place would take for ever
			c.fail(fmt.Errorf("unknown field `%s`, expected one of `%s`", name, strings.Join(conditions, "`, `")))
		}
	}
	c.choice("exit", false) // that ends each wait
	w.Raw, w.After = c.choice("raw", false), c.natural("after", "u64")
	w.Input, w.Port, w.FirstOutput = c.choice("input", false), c.choice("port", false), c.choice("firstOutput", false)
	if n := c.natural("quietMs", "u64"); n != nil {
		w.QuietMs = *n
	}
	if n := c.natural("bytes", "u64"); n != nil {
		w.Bytes = *n
	}
	if text := c.optionalText("match"); text != nil {
		w.Match = *text
	}
	f.fail(c.err)
	return w, f.err
}

// RunWaitResult is the result of run/wait.
type RunWaitResult struct {
	Reason    string `json:"reason"`
	Next      uint64 `json:"next"`             // the offset after all output so far
	After     uint64 `json:"after"`            // the offset from which on a next wait looks at the output
	Input     any    `json:"input,omitempty"`  // what waits for input, for the reasons input_wait and password
	Port      int    `json:"port,omitempty"`   // for the reason port
	Result    any    `json:"result,omitempty"` // for the reason exited
	ElapsedMs int64  `json:"elapsedMs"`
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
	RunID string
	RunSize
}

// DecodeRunResize reads the parameters of run/resize.
func DecodeRunResize(params json.RawMessage) (*RunResize, error) {
	f := object(params, "RunResizeParams")
	r := &RunResize{RunID: f.text("runId"), RunSize: RunSize{Cols: f.length("cols"), Rows: f.length("rows")}}
	return r, f.err
}

// RunSignal are the parameters of run/signal.
type RunSignal struct{ RunID, Signal string }

// DecodeRunSignal reads the parameters of run/signal. Known reports whether the server can send a
// signal of that name.
func DecodeRunSignal(params json.RawMessage, known func(name string) bool) (*RunSignal, error) {
	f := object(params, "RunSignalParams")
	s := &RunSignal{RunID: f.text("runId"), Signal: f.text("signal")}
	if f.err == nil && !known(s.Signal) {
		f.fail(fmt.Errorf("unknown variant `%s`, expected a signal of this system, such as `SIGTERM`", s.Signal))
	}
	return s, f.err
}

// RunResultOf are the parameters of run/result.
type RunResultOf struct {
	RunID  string
	Output bool    // the result has its output
	From   *uint64 // the offset in the JSON form of the result, which comes in parts; nil for all of it
}

// DecodeRunResult reads the parameters of run/result.
func DecodeRunResult(params json.RawMessage) (*RunResultOf, error) {
	f := object(params, "RunResultParams")
	return &RunResultOf{RunID: f.text("runId"), Output: f.choice("output", true), From: f.natural("from", "u64")}, f.err
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

// Canceled are the parameters of request/cancel from the server.
type Canceled struct {
	ID jsonrpc.ID `json:"id"`
}

// RunApproval is the answer to run/approve.
type RunApproval struct {
	Decision string
	Message  string // empty when absent
}

// DecodeRunApproval reads the answer to run/approve.
func DecodeRunApproval(result json.RawMessage) (*RunApproval, error) {
	f := object(result, "RunApproval")
	a := &RunApproval{Decision: f.text("decision")}
	if text := f.optionalText("message"); text != nil {
		a.Message = *text
	}
	return a, f.err
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

// DecodeSandboxName reads the parameters of sandbox/stop.
func DecodeSandboxName(params json.RawMessage) (string, error) {
	f := object(params, "SandboxParams")
	return f.text("name"), f.err
}
