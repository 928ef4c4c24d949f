// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/sallyport-dev/sallyport/internal/jsonrpc"
)

// Interrupt is the signal that every peer knows. Names such as "SIGTERM" are an extension.
const Interrupt = "interrupt"

// Signal are the parameters of process/signal.
type Signal struct {
	ProcessID string `json:"processId"`
	Signal    string `json:"signal"`
}

// DecodeSignal reads the parameters of process/signal. Known reports whether the server can send
// a signal of that name.
func DecodeSignal(params json.RawMessage, known func(name string) bool) (*Signal, error) {
	f := object(params, "SignalParams")
	s := &Signal{ProcessID: f.text("processId"), Signal: f.text("signal")}
	if f.err == nil && s.Signal != Interrupt && !known(s.Signal) {
		f.fail(fmt.Errorf("unknown variant `%s`, expected `interrupt` or a signal of this system, such as `SIGTERM`", s.Signal))
	}
	return s, f.err
}

// Terminate are the parameters of process/terminate.
type Terminate struct {
	ProcessID string `json:"processId"`
	GraceMs   uint64 `json:"graceMs,omitempty"` // an extension: the time between SIGTERM and SIGKILL; 0 is SIGKILL at once
}

// DecodeTerminate reads the parameters of process/terminate.
func DecodeTerminate(params json.RawMessage) (*Terminate, error) {
	f := object(params, "TerminateParams")
	t := &Terminate{ProcessID: f.text("processId")}
	if grace := f.natural("graceMs", "u64"); grace != nil {
		t.GraceMs = *grace
	}
	return t, f.err
}

// TerminateResult is the result of process/terminate.
type TerminateResult struct {
	Running bool `json:"running"`
}

// Resize are the parameters of process/resize, which is an extension. Neither number is 0.
type Resize struct {
	ProcessID string `json:"processId"`
	Cols      uint16 `json:"cols"`
	Rows      uint16 `json:"rows"`
}

// DecodeResize reads the parameters of process/resize.
func DecodeResize(params json.RawMessage) (*Resize, error) {
	f := object(params, "ResizeParams")
	r := &Resize{ProcessID: f.text("processId"), Cols: f.length("cols"), Rows: f.length("rows")}
	return r, f.err
}

// length returns a number of characters that must be there, from 1.
func (f *fields) length(name string) uint16 {
	n := f.number(name, "u16")
	if n == 0 || n > math.MaxUint16 {
		f.fail(fmt.Errorf("%s must be between 1 and %d", name, math.MaxUint16))
		return 0
	}
	return uint16(n)
}

// CloseStdin are the parameters of process/closeStdin, which is an extension. Its result is a
// [WriteResult].
type CloseStdin struct {
	ProcessID string `json:"processId"`
	WriteID   string `json:"writeId,omitempty"` // as of process/write; empty when absent
}

// DecodeCloseStdin reads the parameters of process/closeStdin.
func DecodeCloseStdin(params json.RawMessage) (*CloseStdin, error) {
	f := object(params, "CloseStdinParams")
	c := &CloseStdin{ProcessID: f.text("processId")}
	if id := f.optionalText("writeId"); id != nil {
		if c.WriteID = *id; *id == "" {
			f.fail(errors.New("writeId must not be empty"))
		}
	}
	return c, f.err
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
	Signal    string   `json:"signal,omitempty"` // that of Exited
}

// DecodeCancel reads the parameters of request/cancel, which is an extension: the ID of a request.
func DecodeCancel(params json.RawMessage) (jsonrpc.ID, error) {
	f := object(params, "CancelParams")
	var id jsonrpc.ID
	if v := f.need("id"); v != nil {
		f.fail(json.Unmarshal(v, &id))
	}
	return id, f.err
}
