// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package event says what happened during runs.
//
// A Runner emits events; a [Sink] receives them: an audit log, a recording, a console,
// a terminal. An [Event] is an envelope with a [Body]. Both have a versioned JSON form,
// so that the same lines can be written to a file and read by programs in other
// languages.
//
// The package has names and shapes. It does not format for people, does not feed
// anything back into a run, and starts no goroutine.
package event

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
)

// Version is the version of the JSON form, the member "v" of every event. It
// changes when a member changes its meaning; new members do not change it.
const Version = 1

// An Event is something that happened during a run.
type Event struct {
	Time time.Time
	// Seq numbers the events of one Runner from 1, without gaps, in the order in
	// which they are emitted.
	Seq uint64
	// Run is the identity of the run; Attempt counts its tries from 1, 0 before
	// the first.
	Run     string
	Attempt int
	// CallerID is that of the command; empty for none.
	CallerID string
	Body     Body
}

// A Body is one of [Judged], [ApprovalRequested], [ReviewStarted], [ReviewCompleted],
// [ApprovalDecided], [Granted], [Started], [Output], [Listening], [Network], [Denied], [Quarantined],
// [Survived], [Exited], [Retrying], [SandboxOutcome], [Recorded] and [Ended], or after decoding [Unknown].
type Body interface {
	// Kind is the member "type" of the JSON form, in lower case.
	Kind() string
	body()
}

// envelope holds the members that all events share; those of the body follow.
type envelope struct {
	Version int       `json:"v"`
	Type    string    `json:"type"`
	Time    time.Time `json:"time"`
	Seq     uint64    `json:"seq"`
	Run     string    `json:"run"`
	Attempt int       `json:"attempt"`

	CallerID string `json:"caller_id,omitempty"`
}

// MarshalJSON returns one object: the members v, type, time, seq, run,
// attempt and, where there is one, caller_id, and beside them those of the body. An Event without a body
// is an error.
func (e Event) MarshalJSON() ([]byte, error) {
	if e.Body == nil {
		return nil, fmt.Errorf("event: event %d has no body", e.Seq)
	}
	head, err := e.head()
	if err != nil {
		return nil, err
	}
	body, err := encode(e.Body)
	if err != nil {
		return nil, err
	}
	if string(body) == "{}" {
		return head, nil
	}
	head[len(head)-1] = ','
	return append(head, body[1:]...), nil
}

// head is the form of the envelope, as encode would have it: every event has one, and this is faster.
func (e *Event) head() ([]byte, error) {
	const usual = 512 // with the body of most
	b := appendText(append(make([]byte, 0, usual), `{"v":1,"type":`...), e.Body.Kind())
	b = append(b, `,"time":"`...)
	b, err := e.Time.UTC().AppendText(b)
	if err != nil {
		return nil, fmt.Errorf("event: %w", err)
	}
	b = strconv.AppendUint(append(b, `","seq":`...), e.Seq, 10)
	b = appendText(append(b, `,"run":`...), e.Run)
	b = strconv.AppendInt(append(b, `,"attempt":`...), int64(e.Attempt), 10)
	if e.CallerID != "" {
		b = appendText(append(b, `,"caller_id":`...), e.CallerID)
	}
	return append(b, '}'), nil
}

// appendText appends a JSON string.
func appendText(b []byte, s string) []byte {
	plain := func(r rune) bool { return ' ' <= r && r <= '~' && r != '"' && r != '\\' }
	if strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		text, _ := encode(s) // text always encodes
		return append(b, text...)
	}
	return append(append(append(b, '"'), s...), '"')
}

// encode returns the JSON form of v without the escapes that are only for HTML:
// people read these lines too. An encoder that wants them puts them in itself.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("event: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// A Sink hears events, one at a time and in order. The Runner calls it from a
// goroutine of its own.
type Sink interface {
	// Emit should not block: a Sink that is slow loses output events (which are
	// counted), or has commands wait where the Runner says so, and holds up the
	// events after it. It must not change what the body refers to. One that panics gets nothing more, and
	// one that ends the goroutine, as a test by t.FailNow, gets what follows: Runner.Flush tells of both.
	Emit(e Event)
}

// A SinkFunc is a function that is a Sink.
type SinkFunc func(Event)

// Emit calls f.
func (f SinkFunc) Emit(e Event) { f(e) }

// A Log is a Sink that keeps what it gets for good, such as that of package audit.
type Log interface {
	// Emit takes an event, and does not block. What refers to memory of others must not be changed
	// afterwards by either side.
	Sink
	// Sync blocks until everything that was emitted before the call is kept, and returns why something is
	// not, or the cause of ctx. The Log says what kept means.
	Sync(ctx context.Context) error
}

// A Recorder records what the terminal of one command shows: *recording.Recorder is one. Its methods may be
// called from several goroutines at once, also before Begin and after End, and only Output may block.
type Recorder interface {
	// Begin is called once, when the first process runs and before its first output. The arguments of the
	// Spec have no secrets in them; it must not be kept.
	Begin(spec *executor.Spec)
	// Output gets what the terminal shows. While it blocks, the command blocks in its writes; it must return
	// when stopped is closed. It must not keep p.
	Output(p []byte, stopped <-chan struct{})
	// Input gets what was typed, where the executor knows whether the terminal has shown it. It must not keep
	// p.
	Input(p []byte, echo executor.Echo)
	// Resize gets a new size of the terminal.
	Resize(size executor.Size)
	// Mark gets one line about something that is not on the terminal: a denial, an approval, a second
	// attempt.
	Mark(label string)
	// End is called once after Begin, with the exit code of the result, or -1, and returns what was recorded.
	End(exitCode int) Recorded
}
