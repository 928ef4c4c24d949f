// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recording writes and reads recordings of terminal sessions, in the format asciicast: version 3, or
// version 2 where it is asked for. Players of other programs play them.
//
// A [Recorder] is what a Cmd of package sallyport takes to record what its terminal shows: when each piece of
// output came, changes of the size, what was typed, marks for denials and approvals, and the exit code. A
// [Reader] reads a recording of any program.
//
// What is typed while the terminal does not show it is never recorded: neither passwords nor what a program
// that reads keys, such as a shell with an editor of lines, shows itself; that is in its output. A line that
// was typed and not shown leaves a mark without its length.
package recording

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A Format is a version of the format asciicast.
type Format uint8

// The versions. The zero Format is V3.
const (
	V3 Format = iota
	V2
)

// String returns "asciicast-v3" or "asciicast-v2".
func (f Format) String() string {
	if f == V2 {
		return "asciicast-v2"
	}
	return "asciicast-v3"
}

// DefaultMaxSize is Options.MaxSize when that is 0, in bytes.
const DefaultMaxSize = 1 << 30

const (
	// maxWaiting is how many bytes wait for the disk before the command has to.
	maxWaiting = 1 << 20
	// flushSize is how many bytes are written at once while there is much output; what is less is written
	// after flushDelay.
	flushSize  = 256 << 10
	flushDelay = 50 * time.Millisecond
	// reserve is how much of the largest size is left for the last lines.
	reserve = 4 << 10
	// endTime is how long the end of a recording waits for the disk.
	endTime = 10 * time.Second
	// maxLabel is the length of a mark, in bytes.
	maxLabel = 500
)

// Options say how a session is recorded.
type Options struct {
	// Open makes the file, which the Recorder closes. It is called once, when the command is about to start.
	Open func() (*os.File, error)
	// Format is that of the file; the zero value is version 3.
	Format Format
	// MaxSize is the largest size of the file in bytes; 0 means DefaultMaxSize, negative no limit. Output
	// beyond it is counted, and a mark at the end says how much is missing.
	MaxSize int64
	// Title is that of the recording; empty for none.
	Title string
}

var (
	errStalled = errors.New("the disk took nothing for 10 seconds")
	errUsed    = errors.New("a Recorder records one run, and this one has recorded another")
	errNoOpen  = errors.New("no file to record to; set Options.Open")
)

// A Recorder records one run of a command to a file. [New] makes one. Its methods may be called from several
// goroutines at once.
type Recorder struct {
	o Options

	mu      sync.Mutex
	file    *os.File // nil before Begin, and where there is none
	path    string
	begun   bool
	ended   bool // nothing more is recorded
	start   time.Time
	last    int64         // the time of the last event, in microseconds from the start
	whole   text.Splitter // of the output
	waiting []byte        // lines that the file does not have
	reuse   []byte        // memory for waiting
	size    int64         // of all lines
	full    bool          // MaxSize is reached
	writing bool          // write runs
	timed   bool          // it will run after flushDelay
	room    chan struct{} // closed when less waits; nil when nothing waits for that
	done    chan struct{} // closed when the file is closed
	gaps    int64
	hidden  int64
	typing  bool // of a line that the terminal does not show
	err     error

	// Of write.
	sum     hash.Hash
	written int64
}

// New returns a Recorder.
func New(o Options) *Recorder {
	o.MaxSize = cmp.Or(o.MaxSize, DefaultMaxSize)
	return &Recorder{o: o, sum: sha256.New(), done: make(chan struct{})}
}

// Begin makes the file and writes its header. It is called once, before the command that spec describes is
// started. An error ends the recording, not the command: End returns it.
func (r *Recorder) Begin(spec *executor.Spec) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun {
		r.err = cmp.Or(r.err, errUsed)
		return
	}
	r.begun, r.start = true, time.Now()
	if r.o.Open == nil {
		r.err = errNoOpen
		return
	}
	file, err := r.o.Open()
	if err != nil {
		r.err = err
		return
	}
	r.file, r.path = file, file.Name()
	r.push(append(header(&r.o, spec, r.start), '\n'))
}

// Output records what the terminal shows. While the disk is behind it blocks, as a pipe does, until stopped
// is closed. It keeps no reference to p.
func (r *Recorder) Output(p []byte, stopped <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.waiting) >= maxWaiting && r.takes() {
		if r.room == nil {
			r.room = make(chan struct{})
		}
		room := r.room
		r.mu.Unlock()
		late := false
		select {
		case <-room:
		case <-stopped:
			late = true
		}
		r.mu.Lock()
		if late {
			break
		}
	}
	if !r.takes() || len(r.waiting) >= maxWaiting {
		r.gaps += int64(len(p))
		return
	}
	r.output(r.whole.Push(p))
}

func (r *Recorder) output(p []byte) {
	if len(p) > 0 && !r.event('o', p) {
		r.gaps += int64(len(p))
	}
}

// Input records what was typed, if the terminal has shown it. It does not block.
func (r *Recorder) Input(p []byte, echo executor.Echo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if echo == executor.EchoOn {
		r.event('i', p)
		return
	}
	r.typing = r.typing || echo == executor.EchoOff
	if bytes.ContainsAny(p, "\r\n") {
		r.hide()
	}
}

// hide marks that a line was typed that the terminal does not show.
func (r *Recorder) hide() {
	if r.typing {
		r.typing = false
		r.hidden++
		r.event('m', []byte("input that is not shown"))
	}
}

// Resize records a change of the size. It does not block.
func (r *Recorder) Resize(s executor.Size) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s = s.OrUsual()
	r.event('r', fmt.Appendf(nil, "%dx%d", s.Cols, s.Rows))
}

// Mark records that something happened that is not on the terminal, on one line. It does not block.
func (r *Recorder) Mark(label string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.event('m', []byte(label[:min(len(label), maxLabel)]))
}

// End records the exit code, negative for one that is not known, and closes the file. It waits at most 10
// seconds for the disk, and returns what was recorded. Nothing is recorded after it.
func (r *Recorder) End(code int) event.Recorded {
	r.mu.Lock()
	if r.file != nil && !r.ended {
		r.output(r.whole.Flush())
		r.hide()
		r.finish(code)
		r.ended = true
		r.kick()
	}
	open := r.file != nil
	r.mu.Unlock()
	stalled := false
	if open {
		timer := time.NewTimer(endTime)
		defer timer.Stop()
		select {
		case <-r.done:
		case <-timer.C:
			stalled = true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if stalled {
		r.err = cmp.Or(r.err, errStalled)
	}
	made := event.Recorded{Path: r.path, Format: r.o.Format.String(), Gaps: r.gaps, Hidden: r.hidden}
	if r.err != nil {
		made.Error = r.err.Error()
	}
	if !stalled {
		made.Bytes, made.SHA256 = r.written, hex.EncodeToString(r.sum.Sum(nil))
	}
	return made
}

// finish writes the last lines, for which there is room also in a full file.
func (r *Recorder) finish(code int) {
	r.full = false
	r.o.MaxSize = -1
	if r.gaps > 0 {
		r.event('m', fmt.Appendf(nil, "%d bytes of output are missing", r.gaps))
	}
	if code >= 0 && r.o.Format == V3 {
		r.event('x', strconv.AppendInt(nil, int64(code), 10))
	}
}

// takes reports whether more is recorded.
func (r *Recorder) takes() bool { return r.file != nil && !r.ended && !r.full && r.err == nil }

// event adds an event, and reports whether there was room for it.
func (r *Recorder) event(code byte, data []byte) bool {
	if !r.takes() {
		return false
	}
	at := time.Since(r.start).Microseconds()
	shown := at
	if r.o.Format == V3 {
		shown -= r.last
	}
	n := len(r.waiting)
	line := appendEvent(r.waiting, shown, code, data)
	if most := r.o.MaxSize; most > 0 && r.size+int64(len(line)-n) > max(most-reserve, 0) {
		r.waiting, r.full = line[:n], true
		return false
	}
	r.last = at
	r.waiting = line
	r.size += int64(len(line) - n)
	r.kick()
	return true
}

// push adds a line.
func (r *Recorder) push(line []byte) {
	r.waiting = append(r.waiting, line...)
	r.size += int64(len(line))
	r.kick()
}

// kick has what waits written, now or soon.
func (r *Recorder) kick() {
	switch {
	case r.writing:
	case r.ended || len(r.waiting) >= flushSize:
		r.writing = true
		go func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.write()
		}()
	case !r.timed:
		r.timed = true
		time.AfterFunc(flushDelay, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.timed = false; !r.writing && !r.ended {
				r.writing = true
				r.write()
			}
		})
	}
}

// write writes what waits, and closes the file at the end of the recording.
func (r *Recorder) write() {
	for first := true; r.err == nil && len(r.waiting) > 0 &&
		(first || r.ended || len(r.waiting) >= flushSize); first = false {
		batch := r.waiting
		r.waiting, r.reuse = r.reuse[:0], nil
		if r.room != nil {
			close(r.room)
			r.room = nil
		}
		r.mu.Unlock()
		n, err := r.file.Write(batch)
		if err != nil { // a line is whole or is not there
			n = bytes.LastIndexByte(batch[:max(n, 0)], '\n') + 1
			_ = r.file.Truncate(r.written + int64(n))
			err = writeError(err)
		}
		r.written += int64(n)
		_, _ = r.sum.Write(batch[:n]) // it does not fail
		r.mu.Lock()
		r.reuse, r.err = batch[:0], cmp.Or(r.err, err)
	}
	r.writing = false
	if r.room != nil && r.err != nil {
		close(r.room)
		r.room = nil
	}
	if r.ended {
		if err := r.file.Close(); r.err == nil && err != nil {
			r.err = writeError(err)
		}
		close(r.done)
	} else if len(r.waiting) > 0 && r.err == nil {
		r.kick()
	}
}

// writeError leaves the path out, which is beside the error.
func writeError(err error) error {
	if of := new(fs.PathError); errors.As(err, &of) {
		err = of.Err
	}
	return fmt.Errorf("cannot write the recording: %w", err)
}
