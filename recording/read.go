// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
)

// A Header is what a recording says about itself.
type Header struct {
	Format  Format
	Size    executor.Size // of the terminal at the start; zero members are not known
	Started time.Time     // zero where it is not known
	Command string        // empty where it is not known
	Title   string        // empty for none
	// IdleLimit is the longest pause that its author wants to have played; 0 for no limit.
	IdleLimit time.Duration
}

// An Event is something that happened in a session.
type Event struct {
	// At is when, from the start on. It does not decrease from one event to the next.
	At time.Duration
	// Code is what: 'o' output, 'i' input, 'r' a new size ("80x24"), 'm' a mark, 'x' the exit code. Others are
	// of later versions.
	Code rune
	Data string
}

// A FormatError reports what is wrong with a line of a recording.
type FormatError struct {
	Line int // from 1 on
	Err  error
}

// Error returns one sentence.
func (e *FormatError) Error() string {
	return fmt.Sprintf("recording: line %d is not of an asciicast of version 2 or 3: %v", e.Line, e.Err)
}

// Unwrap returns what is wrong.
func (e *FormatError) Unwrap() error { return e.Err }

// maxLine is the longest line that is read, in bytes.
const maxLine = 64 << 20

var (
	errLong    = errors.New("it is longer than 64 MiB")
	errTime    = errors.New("its time is not a number of seconds")
	errCode    = errors.New("its code is not one character")
	errMembers = errors.New("it is not an array of a time, a code and a text")
	errVersion = errors.New("the member version is neither 2 nor 3")
)

// A Reader reads a recording. [NewReader] makes one.
type Reader struct {
	in     *bufio.Reader
	line   int
	buf    []byte
	header Header
	at     time.Duration
}

// NewReader reads the header of a recording. The error is a *FormatError, or that of r.
func NewReader(r io.Reader) (*Reader, error) {
	c := &Reader{in: bufio.NewReaderSize(r, 64<<10)}
	line, err := c.next()
	if errors.Is(err, io.EOF) {
		err = &FormatError{1, io.ErrUnexpectedEOF}
	}
	if err != nil {
		return nil, err
	}
	var h struct {
		headerV3
		Width  int `json:"width"`
		Height int `json:"height"`
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, &FormatError{c.line, err}
	}
	c.header = Header{Command: h.Command, Title: h.Title}
	switch h.Version {
	case 3:
	case 2:
		c.header.Format, h.Term.Cols, h.Term.Rows = V2, h.Width, h.Height
	default:
		return nil, &FormatError{c.line, errVersion}
	}
	c.header.Size = executor.Size{Cols: side(h.Term.Cols), Rows: side(h.Term.Rows)}
	c.header.IdleLimit, _ = seconds(h.IdleLimit) // what is none limits nothing
	if h.Timestamp > 0 {
		c.header.Started = time.Unix(h.Timestamp, 0)
	}
	return c, nil
}

// side returns a side of a terminal; 0 for one that cannot be.
func side(n int) uint16 {
	if n < 0 || n > math.MaxUint16 {
		return 0
	}
	return uint16(n)
}

// seconds returns a number of seconds as a duration.
func seconds(s float64) (time.Duration, bool) {
	const most = float64(math.MaxInt64/int64(time.Second)) / 2
	if !(s >= 0 && s <= most) {
		return 0, false
	}
	return time.Duration(math.Round(s*1e6)) * time.Microsecond, true
}

// Header returns the header.
func (c *Reader) Header() Header { return c.header }

// Next returns the next event; the error is io.EOF after the last one, a *FormatError, or that of the
// reader. Lines that are comments are left out.
func (c *Reader) Next() (Event, error) {
	line, err := c.next()
	if err != nil {
		return Event{}, err
	}
	var members []json.RawMessage
	var at float64
	var code, data string
	if err := json.Unmarshal(line, &members); err != nil {
		return Event{}, &FormatError{c.line, err}
	}
	if len(members) != 3 || json.Unmarshal(members[1], &code) != nil ||
		json.Unmarshal(members[2], &data) != nil {
		return Event{}, &FormatError{c.line, errMembers}
	}
	passed, ok := time.Duration(0), json.Unmarshal(members[0], &at) == nil
	if ok {
		passed, ok = seconds(at)
	}
	if !ok {
		return Event{}, &FormatError{c.line, errTime}
	}
	runes := []rune(code)
	if len(runes) != 1 {
		return Event{}, &FormatError{c.line, errCode}
	}
	switch {
	case c.header.Format == V2:
		c.at = max(c.at, passed)
	case c.at > math.MaxInt64-passed:
		return Event{}, &FormatError{c.line, errTime}
	default:
		c.at += passed
	}
	return Event{c.at, runes[0], data}, nil
}

// next returns the next line that is neither empty nor a comment. It is valid until the next call.
func (c *Reader) next() ([]byte, error) {
	for {
		c.buf = c.buf[:0]
		c.line++
		for {
			part, err := c.in.ReadSlice('\n')
			c.buf = append(c.buf, part...)
			switch {
			case len(c.buf) > maxLine:
				return nil, &FormatError{c.line, errLong}
			case errors.Is(err, bufio.ErrBufferFull):
				continue
			case err != nil && (len(c.buf) == 0 || !errors.Is(err, io.EOF)):
				return nil, err
			}
			break
		}
		line := bytes.TrimSpace(c.buf)
		if len(line) > 0 && (line[0] != '#' || c.line == 1) {
			return line, nil
		}
	}
}
