// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"strings"
	"time"
)

// A TraceContext is a place in a distributed trace, in the two texts of W3C Trace Context. The zero
// TraceContext is none.
type TraceContext struct {
	Parent string // traceparent: version, trace, span and flags
	State  string // tracestate; may be empty
}

// maxState is how long a tracestate may be.
const maxState = 512

// Valid returns t if a receiver may rely on it, and else the zero TraceContext, or t without a State that is
// too long or does not print: the W3C has an invalid context count as none.
func (t TraceContext) Valid() TraceContext {
	const length = len("00-0123456789abcdef0123456789abcdef-0123456789abcdef-00")
	p := t.Parent
	if len(p) < length || len(p) > length && (p[:2] == "00" || p[length] != '-') || len(p) > maxState ||
		p[2] != '-' || p[35] != '-' || p[52] != '-' || p[:2] == "ff" {
		return TraceContext{}
	}
	trace, span := p[3:35], p[36:52]
	if !isHex(p[:2]) || !isHex(trace) || !isHex(span) || !isHex(p[53:length]) ||
		strings.Trim(trace, "0") == "" || strings.Trim(span, "0") == "" {
		return TraceContext{}
	}
	known := TraceContext{Parent: "00" + p[2:length]} // of later versions these parts are known
	unprintable := func(r rune) bool { return r < ' ' || r > '~' }
	if len(t.State) <= maxState && !strings.ContainsFunc(t.State, unprintable) {
		known.State = t.State
	}
	return known
}

// isHex reports whether s consists of hexadecimal digits in lower case.
func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// A Run is what a [Tracer] is told before the events of a run.
type Run struct {
	ID, CallerID string // as in events
	Tool         string // the kind of call: "shell", "unified_exec" for a session, or "apply_patch"
	TTY          bool   // the command has a terminal
	Start        time.Time
	Trace        TraceContext // of the caller; valid, or zero for none
}

// A Tracer is a Sink that makes traces of runs.
type Tracer interface {
	// Emit takes an event, which is never an [Output], and must not block. The call is made while the run
	// waits.
	Sink
	// Begin is called once before the first event of a run, and must not block. It returns the context that
	// the command gets in TRACEPARENT and TRACESTATE; the zero TraceContext sets neither.
	Begin(r Run) TraceContext
}
