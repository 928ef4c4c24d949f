// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
)

// A fakeOutput is an executor.Output that shares no code with package output, as that of
// another machine would. It retains the last bytes of what is written.
type fakeOutput struct {
	retain int

	mu      sync.Mutex
	all     []byte
	ended   bool
	closed  bool
	err     error
	changed chan struct{}
}

func newFakeOutput(retain int) *fakeOutput {
	return &fakeOutput{retain: retain, changed: make(chan struct{})}
}

func (o *fakeOutput) write(p []byte) {
	o.set(func() { o.all = append(o.all, p...) })
}

func (o *fakeOutput) end() { o.set(func() { o.ended = true }) }

func (o *fakeOutput) set(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *fakeOutput) firstLocked() int { return max(len(o.all)-o.retain, 0) }

func (o *fakeOutput) Read(ctx context.Context, from uint64) (executor.Chunk, error) {
	for {
		o.mu.Lock()
		at := max(from, uint64(o.firstLocked()))
		ended, changed := o.ended, o.changed
		var data []byte
		if at < uint64(len(o.all)) {
			data = bytes.Clone(o.all[at:])
		}
		o.mu.Unlock()
		switch {
		case data != nil:
			return executor.Chunk{Offset: at, Missing: at - from, Data: data}, nil
		case ended:
			return executor.Chunk{}, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return executor.Chunk{}, context.Cause(ctx)
		}
	}
}

func (o *fakeOutput) Size() (total, missing uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return uint64(len(o.all)), uint64(o.firstLocked())
}

func (o *fakeOutput) LineCount() int { return len(o.lines()) }

func (o *fakeOutput) lines() []executor.Line {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []executor.Line
	for i, l := range strings.Split(strings.TrimSuffix(string(o.all), "\n"), "\n") {
		out = append(out, executor.Line{Number: i + 1, Data: []byte(l), Size: uint64(len(l))})
	}
	return out
}

func (o *fakeOutput) Lines(from, to int) ([]executor.Line, bool) {
	lines := o.lines()
	if to < 1 {
		to = len(lines)
	}
	return lines[min(max(from, 1)-1, len(lines)):min(to, len(lines))], false
}

func (o *fakeOutput) Search(_ context.Context, pattern *regexp.Regexp, _ int) (executor.Found, error) {
	var found executor.Found
	for _, l := range o.lines() {
		if pattern.Match(l.Data) {
			found.Matches = append(found.Matches, executor.Match{Line: l.Number, Data: l.Data})
		}
	}
	return found, nil
}

func (o *fakeOutput) Err() error { return o.err }

func (o *fakeOutput) Close() error {
	o.set(func() { o.closed = true })
	return nil
}

// TestSessionOverAnyOutput: a session reads through Process.Output, whatever retains the
// output: two readers with offsets of their own, one of them late, a counted gap, lines, a
// search, the reason for what is not retained, and Close.
func TestSessionOverAnyOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, p := scriptedSession(t, &Cmd{})
		if want := (executor.Retention{Memory: 1 << 20, File: -1}); p.spec.Retain != want {
			t.Errorf("the session asks to retain %+v, want %+v", p.spec.Retain, want)
		}
		p.out.retain = 10
		read := func(out *string) func() {
			return func() {
				for d, err := range s.Deltas(t.Context(), 0) {
					if err != nil {
						t.Error(err)
						return
					}
					*out += fmt.Sprintf("%d+%d:%s ", d.Offset, d.Missing, d.Data)
				}
			}
		}
		var early, late string
		var readers sync.WaitGroup
		readers.Go(read(&early))
		synctest.Wait()
		p.say("one two\n")
		synctest.Wait()
		p.say("three four\n")
		synctest.Wait()
		readers.Go(read(&late))
		synctest.Wait()
		p.say("five")
		synctest.Wait()
		p.out.err = errors.New("the disk is full")
		r, err := s.Await(t.Context(), Until{FirstOutput: true})
		if err != nil || r.Output.String() != "one two\nthree four\nfive" || r.Offset != 23 || len(r.Notices) != 1 {
			t.Errorf("%+v, %v", r, err)
		}
		if err := s.SpillErr(); err == nil || !strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("SpillErr = %v", err)
		}
		if total, missing := s.Size(); total != 23 || missing != 13 || s.LineCount() != 3 {
			t.Errorf("%d bytes, %d missing, %d lines", total, missing, s.LineCount())
		}
		if lines, more := s.Lines(2, 3); more || len(lines) != 2 || string(lines[0].Data) != "three four" {
			t.Errorf("lines %+v", lines)
		}
		if found, err := s.Search(t.Context(), regexp.MustCompile("f"), 0); err != nil || len(found.Matches) != 2 {
			t.Errorf("found %+v, %v", found, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for d, err := range s.Deltas(ctx, 23) {
			if !errors.Is(err, context.DeadlineExceeded) || d.Offset != 23 {
				t.Errorf("a reader at the end gets %+v, %v", d, err)
			}
		}
		p.exit()
		readers.Wait()
		if want := "0+0:one two\n 9+1:hree four\n 19+0:five "; early != want {
			t.Errorf("the early reader got %q, want %q", early, want)
		}
		if want := "9+9:hree four\n 19+0:five "; late != want {
			t.Errorf("the late reader got %q, want %q", late, want)
		}
		if err := s.Close(); err != nil || !p.out.closed {
			t.Errorf("Close = %v, the output is closed: %v", err, p.out.closed)
		}
	})
}

// TestRunnerClosesOutputs: an Executor that the caller set keeps its files no longer than
// the Runner.
func TestRunnerClosesOutputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, p := scriptedSession(t, &Cmd{})
		p.exit()
		if err := r.Close(); err != nil || !p.out.closed {
			t.Errorf("Close = %v, the output is closed: %v", err, p.out.closed)
		}
	})
}
