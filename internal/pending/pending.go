// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pending lets the user answer questions of running processes from elsewhere.
//
// A process with an open question ([Post]) listens on a unix socket in the state directory, which
// no command in a sandbox sees, and answers processes of the same user that are in no sandbox.
// [List] asks all of them, [Answer] and [Forget] one. A connection carries one line of JSON each
// way. The package decides nothing: an answer counts as if it were given on the terminal.
package pending

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
)

// version is that of the form of the lines.
const version = 1

// What a call asks for.
const (
	doList   = "list"
	doAnswer = "answer"
	doForget = "forget" // an approval for the session
)

// A call is the line to the listener.
type call struct {
	Version  int             `json:"version"`
	Do       string          `json:"do"`
	ID       string          `json:"id,omitempty"`
	Decision approval.Answer `json:"decision,omitempty"` // of an answer
	Message  string          `json:"message,omitempty"`
}

// A reply is the line of the listener.
type reply struct {
	Version int                 `json:"version"`
	Error   string              `json:"error,omitempty"` // one of the words below
	Pending []*approval.Request `json:"pending,omitempty"`
	Session []Session           `json:"session,omitempty"`
}

// A Session is an approval for the session that a running process remembers.
type Session struct {
	ID       string    `json:"id"` // of its question
	PID      int       `json:"pid"`
	Args     []string  `json:"argv"`
	Dir      string    `json:"cwd"`
	Requires []string  `json:"requires"`
	Time     time.Time `json:"time"` // when it was given

	door door
}

// Errors of [Answer] and [Forget].
var (
	ErrUnknown    = errors.New("it is not open: there was none, or it was answered or withdrawn")
	ErrNotOffered = errors.New("this answer is not offered")
	ErrVersion    = errors.New("another version of sallyport asks it")
	ErrConfined   = errors.New("a process in a sandbox cannot answer")
	errInvalid    = errors.New("the call is invalid")
)

// wordsOf are the words of a reply for errors.
var wordsOf = map[string]error{
	"unknown": ErrUnknown, "not_offered": ErrNotOffered, "version": ErrVersion, "confined": ErrConfined, "invalid": errInvalid,
}

func (r *reply) err() error {
	if r.Error == "" {
		return nil
	}
	if err := wordsOf[r.Error]; err != nil {
		return err
	}
	return errInvalid
}

// answers are those that can be given from elsewhere.
var answers = []approval.Answer{approval.Denied, approval.Abort, approval.Approved, approval.ApprovedForSession, approval.ApprovedRule}

// decodeCall reads the line to the listener, strictly.
func decodeCall(line []byte) (*call, error) {
	var seen struct{ Version int }
	if err := json.Unmarshal(line, &seen); err != nil {
		return nil, errInvalid
	}
	if seen.Version != version {
		return nil, ErrVersion
	}
	var c call
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return nil, errInvalid
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errInvalid
	}
	switch {
	case c.Do == doList && c.ID == "", c.Do == doForget && c.ID != "",
		c.Do == doAnswer && c.ID != "" && slices.Contains(answers, c.Decision):
		return &c, nil
	}
	return nil, errInvalid
}

// readLine reads one line of at most most bytes.
func readLine(r io.Reader, most int64) ([]byte, error) {
	line, err := bufio.NewReader(io.LimitReader(r, most+1)).ReadBytes('\n')
	switch {
	case int64(len(line)) > most:
		return nil, errInvalid
	case err != nil:
		return nil, fmt.Errorf("no whole line came: %w", err)
	}
	return line, nil
}

// decodeReply reads the line of a listener.
func decodeReply(line []byte) (*reply, error) {
	var r reply
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, fmt.Errorf("its answer is no reply: %w", err)
	}
	if r.Version != version {
		return nil, errors.New("it is another version of sallyport")
	}
	if slices.Contains(r.Pending, nil) {
		return nil, errors.New("its answer is no reply: a question is missing")
	}
	return &r, r.err()
}

// encode returns a line.
func encode(v any) ([]byte, error) {
	line, err := json.Marshal(v)
	return append(line, '\n'), err
}
