// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

// Interrupt is the signal that every peer knows. Names such as "SIGTERM" are an extension.
const Interrupt = "interrupt"

// Signal are the parameters of process/signal.
type Signal struct {
	_         struct{} `rule:"name=SignalParams"`
	ProcessID string   `json:"processId" rule:"need"`
	Signal    string   `json:"signal" rule:"need"`
}

// Terminate are the parameters of process/terminate.
type Terminate struct {
	_         struct{} `rule:"name=TerminateParams"`
	ProcessID string   `json:"processId" rule:"need"`
	// an extension: the time between SIGTERM and SIGKILL; 0 is SIGKILL at once
	GraceMs uint64 `json:"graceMs,omitempty"`
}

// TerminateResult is the result of process/terminate.
type TerminateResult struct {
	Running bool `json:"running"`
}

// Resize are the parameters of process/resize, which is an extension. Neither number is 0.
type Resize struct {
	_         struct{} `rule:"name=ResizeParams"`
	ProcessID string   `json:"processId" rule:"need"`
	Cols      uint16   `json:"cols" rule:"need,filled"`
	Rows      uint16   `json:"rows" rule:"need,filled"`
}

// CloseStdin are the parameters of process/closeStdin, which is an extension. Its result is a
// [WriteResult].
type CloseStdin struct {
	_         struct{} `rule:"name=CloseStdinParams"`
	ProcessID string   `json:"processId" rule:"need"`
	WriteID   string   `json:"writeId,omitempty" rule:"filled"` // as of process/write; empty when absent
}

// ListResult is the result of process/list, which is an extension. Processes must not be nil.
type ListResult struct {
	Processes []ListedProcess `json:"processes"`
}

// ListedProcess is a process of the session.
type ListedProcess struct {
	ProcessID string   `json:"processId"`
	Argv      []string `json:"argv"`
	TTY       bool     `json:"tty"`
	Started   int64    `json:"startedAtMs"` // when it was asked for, in milliseconds since 1970
	Starting  bool     `json:"starting"`    // whether it runs is not decided yet
	Running   bool     `json:"running"`
	ExitCode  *int     `json:"exitCode"` // nil before the exit
	Closed    bool     `json:"closed"`   // no event comes any more
	NextSeq   uint64   `json:"nextSeq"`
	Signal    string   `json:"signal,omitempty"` // that of Exited, as Lost
	Lost      bool     `json:"lost,omitempty"`
}
