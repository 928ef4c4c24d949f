// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit keeps what happened during runs in a log that shows when it was changed.
//
// A [Log] is an event.Log: give it to a Runner as its Audit. The log is a directory of files of JSON lines.
// Each line has the SHA-256 sum of its text and that of the line before, and all lines together are a
// Merkle tree (golang.org/x/mod/sumdb/tlog) whose root is signed after every write: a checkpoint, in the
// file "checkpoint" and as a line at the end of every file. [Verify] finds lines that were changed,
// removed, moved, doubled or cut off; [Read] returns what is in them. Several processes write one log.
//
// Who can read the key can sign another log. What it proves against such a person rests on a verifier key
// and a checkpoint that are kept elsewhere.
package audit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// The defaults of [Options].
const (
	DefaultMaxSegment = 16 << 20
	DefaultMaxTotal   = 64 << 20
)

// The bounds of what waits to be written.
const (
	maxWaiting      = 4096 // records
	maxWaitingBytes = 32 << 20
)

// Options say where a log is and how it is kept. The zero Options are the defaults.
type Options struct {
	// Dir is the directory, which is made if it is missing, for this user alone; empty means audit in the
	// state directory. Commands must not see it.
	Dir string
	// KeyFile has the key that signs checkpoints; it is made if it is missing, with the verifier key beside
	// it, whose name ends with ".pub". Empty means the file "key" in Dir.
	KeyFile string
	// MaxSegment is how large a file may get, in bytes, and MaxTotal how large all may be together: the
	// oldest are removed. 0 means DefaultMaxSegment and DefaultMaxTotal.
	MaxSegment, MaxTotal int64
	// MaxAge is how old the last line of a file may be before the file is removed, and how long a file is
	// written to, so that no line gets older than twice as much while there are new ones. 0 means any age.
	MaxAge time.Duration
	// Sync has every write go to the disk before Log.Sync returns; else the system has it, which is
	// enough unless the machine crashes or loses its power.
	Sync bool
	// Mask returns an event without secrets, and must not change what the event refers to; nil keeps all.
	Mask func(event.Event) event.Event
}

// DefaultDir returns where a log is unless Options.Dir names another directory. The state directory is
// made if it is missing.
func DefaultDir() (string, error) {
	state, err := dirs.Dir()
	if err != nil {
		return "", err
	}
	return filepath.Join(state, "audit"), nil
}

// A Log is an audit log that is written to. It may be used by several goroutines.
type Log struct {
	mask  func(event.Event) event.Event
	store *store // of the goroutine that writes

	mu      sync.Mutex
	waiting []record
	bytes   int    // of those that are encoded
	writes  bool   // there is a goroutine that writes
	now     *round // that it writes now; nil for none
	next    *round // that it writes next; nil if nothing waits
	lost    uint64 // records that there was no room for, and no line says so yet
	untold  uint64 // likewise, and Sync has not said so yet
	ready   bool   // what the end of a run needs was used once

	more chan struct{} // has one for records that came since it was taken
}

// A record is what waits to be written: an event, or an entry where that has no body.
type record struct {
	entry
	event event.Event
}

// linger is for how long a record waits for others that are written with it, unless Sync is called.
const linger = 50 * time.Millisecond

// A round is one write of all that waits.
type round struct {
	due   chan struct{} // closed by the first Sync that waits for it
	hurry bool          // it is closed
	done  chan struct{} // closed when it is over
	err   error         // valid then
}

// A LostError says that records are missing from the log, because too many waited to be written.
type LostError struct {
	Records uint64 // since it was said last
	Err     error  // why they were not written; nil if they are by now
}

// Error returns one sentence.
func (e *LostError) Error() string {
	s := fmt.Sprintf("audit: %d records are lost: they could not be written in time", e.Records)
	if e.Err != nil {
		s += "; " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Err }

var errKind = errors.New("audit: a kind of record is a word of lower case letters, and its body is a JSON object")

// Open opens a log, and makes its directory if that is missing. It reads nothing and waits for no other
// process. The error is a [*safefile.ForeignError] where another thing stands in the place of the
// directory, or the system's.
func Open(o Options) (*Log, error) {
	if o.Dir == "" {
		dir, err := DefaultDir()
		if err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		o.Dir = dir
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	root, err := safefile.MakeDirs(dir)
	if err != nil {
		return nil, &WriteError{dir, err}
	}
	return &Log{mask: o.Mask, more: make(chan struct{}, 1), store: &store{
		dir: root, keyFile: cmp.Or(o.KeyFile, filepath.Join(dir, keyName)),
		maxSegment: cmp.Or(o.MaxSegment, DefaultMaxSegment), maxTotal: cmp.Or(o.MaxTotal, DefaultMaxTotal),
		maxAge: o.MaxAge, sync: o.Sync,
	}}, nil
}

// Emit takes an event, and does not block. What the event refers to must not be changed afterwards.
func (l *Log) Emit(e event.Event) { l.take(record{event: e}) }

// Append takes a record that is no event. The kind is a word of lower case letters such as "run", and the
// body a JSON object without secrets, which is copied. It does not block; the error says that one of both
// is no such thing.
func (l *Log) Append(kind string, body json.RawMessage) error {
	var b bytes.Buffer
	if err := json.Compact(&b, body); err != nil || !isKind(kind) || b.Bytes()[0] != '{' {
		return errKind
	}
	l.take(record{entry: entry{time.Now(), kind, shorten(b.Bytes())}})
	return nil
}

// take has the goroutine write a record.
func (l *Log) take(r record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= maxWaiting || l.bytes > maxWaitingBytes {
		l.lost++
		l.untold++
		return
	}
	l.bytes += len(r.body)
	l.waiting = append(l.waiting, r)
	l.roundLocked()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// roundLocked returns the write that has all that waits.
func (l *Log) roundLocked() *round {
	if l.next == nil {
		l.next = &round{due: make(chan struct{}), done: make(chan struct{})}
	}
	if !l.writes {
		l.writes = true
		go l.write()
	}
	return l.next
}

// Sync blocks until all records that were taken before are written, and returns why some are not, or the
// cause of ctx: a [*WriteError], [*KeyError], [*safefile.HeldError], or a [*LostError]. What could not be
// written waits for the next record or call.
func (l *Log) Sync(ctx context.Context) error {
	l.mu.Lock()
	r := l.now
	if len(l.waiting) > 0 || l.lost > 0 {
		if r = l.roundLocked(); !r.hurry {
			r.hurry = true
			close(r.due)
		}
	}
	l.mu.Unlock()
	var err error
	if r != nil {
		select {
		case <-r.done:
			err = r.err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if lost := l.untold; lost > 0 {
		l.untold = 0
		return &LostError{lost, err}
	}
	return err
}

// Close writes what waits, and closes the directory. Nothing may be called afterwards.
func (l *Log) Close() error {
	err := l.Sync(context.Background())
	return errors.Join(err, l.store.dir.Close())
}

// write writes as long as something waits. While it waits for more it makes ready what a write needs: the
// command runs meanwhile.
func (l *Log) write() {
	l.store.prepare()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.next != nil {
		l.lingerLocked()
		l.encodeLocked()
		batch, lost := make([]entry, 0, len(l.waiting)+1), l.lost
		if lost > 0 {
			batch = append(batch, entry{time.Now(), kindLost, fmt.Appendf(nil, `{"records":%d}`, lost)})
		}
		for _, r := range l.waiting {
			batch = append(batch, r.entry)
		}
		l.now, l.next, l.waiting, l.bytes = l.next, nil, nil, 0
		l.mu.Unlock()
		kept, err := l.store.append(batch)
		l.mu.Lock()
		l.settleLocked(batch[kept:], lost)
		l.now.err = err
		close(l.now.done)
		l.now = nil
	}
	l.writes = false
}

// lingerLocked encodes records as they come, until a Sync waits or the first one has waited long enough.
func (l *Log) lingerLocked() {
	r := l.next
	timer := time.NewTimer(linger)
	defer timer.Stop()
	for waits := true; waits && !r.hurry; {
		l.encodeLocked()
		first := !l.ready && !r.hurry
		l.ready = l.ready || first
		l.mu.Unlock()
		if first {
			makeReady()
		}
		select {
		case <-l.more:
		case <-r.due:
		case <-timer.C:
			waits = false
		}
		l.mu.Lock()
	}
}

// makeReady encodes and reads once what is so at the end of a run. The first time takes as long as a
// signature; now the command runs meanwhile.
func makeReady() {
	for _, b := range []event.Body{event.Exited{}, event.Ended{}} {
		_, _ = event.Event{Body: b}.MarshalJSON() // it goes nowhere
	}
	text, _ := json.Marshal(new(cursor))
	splitState(text)
}

// encodeLocked encodes what waits. Only the goroutine that writes takes records away, so those that come
// meanwhile are behind them.
func (l *Log) encodeLocked() {
	for i := 0; i < len(l.waiting); i++ {
		r := l.waiting[i]
		if r.body != nil {
			continue
		}
		l.mu.Unlock()
		r = record{entry: l.encodeEvent(r.event)}
		l.mu.Lock()
		l.waiting[i] = r
		l.bytes += len(r.body)
	}
}

// settleLocked puts back what was not written.
func (l *Log) settleLocked(left []entry, lost uint64) {
	if lost > 0 && (len(left) == 0 || left[0].kind != kindLost) {
		l.lost -= lost
	}
	var records []record
	for _, e := range left {
		if e.kind != kindLost {
			records = append(records, record{entry: e})
			l.bytes += len(e.body)
		}
	}
	l.waiting = append(records, l.waiting...)
}

func (l *Log) encodeEvent(e event.Event) entry {
	if l.mask != nil {
		e = l.mask(e)
	}
	body, err := e.MarshalJSON()
	if err != nil { // of no event of ours
		body, _ = json.Marshal(map[string]any{"seq": e.Seq, "run": e.Run, "error": text.Line(err.Error())})
	}
	return entry{e.Time, kindEvent, shorten(body)}
}

// maxBody is how long a body may be: what is left of a line.
const maxBody = maxLine - 1<<10

// shorten returns a body, or what is kept of one that is too long: the members that all events have, and
// its sum.
func shorten(body []byte) []byte {
	if len(body) <= maxBody {
		return body
	}
	var head struct {
		Version int    `json:"v"`
		Type    string `json:"type"`
		Seq     uint64 `json:"seq"`
		Run     string `json:"run"`
		Attempt int    `json:"attempt"`
		Omitted int    `json:"omitted_bytes"`
		Sum     sum    `json:"omitted_sha256"`
	}
	_ = json.Unmarshal(body, &head) // what is not there stays empty
	head.Type, head.Run = cut(head.Type), cut(head.Run)
	head.Omitted, head.Sum = len(body), sha256.Sum256(body)
	b, _ := json.Marshal(head) // such a struct can be encoded
	return b
}

func cut(s string) string { return text.Line(s[:min(len(s), 128)]) }
