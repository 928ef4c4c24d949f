// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// readAll reads a run as its reader, and returns its streams.
func readAll(t *testing.T, r *Run) (streams [2][]byte) {
	t.Helper()
	for after, complete := uint64(0), false; !complete; {
		r.Taken(t.Context(), after, false, false)
		r.AwaitOutput(t.Context(), after)
		p := r.Page(after, DefaultPage)
		for _, c := range p.Chunks {
			if c.Missing > 0 || c.Joined || c.Offset != after {
				t.Fatalf("%d bytes are missing at %d, joined %v", c.Missing, c.Offset, c.Joined)
			}
			streams[c.Stream] = append(streams[c.Stream], c.Data...)
			after = c.End()
		}
		complete = p.Complete
	}
	return streams
}

// aheadAtMost is how much a command that waits can have printed: what its reader is behind, and what
// was read at once.
const aheadAtMost = readerAhead + 512<<10

// TestReader: a command waits for its reader, which gets every byte of both streams, also where there
// is no file for what memory does not hold. Another reader changes nothing.
func TestReader(t *testing.T) {
	for _, spill := range []int64{-1, 0} {
		tab, _ := newTable(t)
		prepare := tab.prepare
		tab.prepare = func(ctx context.Context, q *Request) (*Prepared, error) {
			p, err := prepare(ctx, q)
			p.Runner.Spill, p.Cmd.Retention.Bytes = spill, 1000
			return p, err
		}
		r := begin(t, tab, Request{Reader: true}, "sh", "-c",
			`head -c 4194304 /dev/zero | tr '\0' a; i=0; while [ $i -lt 4000 ]; do echo o; echo e >&2; i=$((i+1)); done; head -c 8388608 /dev/zero`)
		for range 3 { // what has come is not taken: nothing more comes
			r.AwaitOutput(t.Context(), readerAhead)
			if total, missing := r.session.Size(); total > aheadAtMost || missing > 0 {
				t.Fatalf("%d bytes are ahead of the reader, %d are missing", total, missing)
			}
			r.Page(0, MaxPage)
		}
		streams := readAll(t, r)
		want := strings.Repeat("a", 4<<20) + strings.Repeat("o\n", 4000) + strings.Repeat("\x00", 8<<20)
		if !bytes.Equal(streams[0], []byte(want)) || string(streams[1]) != strings.Repeat("e\n", 4000) {
			t.Errorf("spill %d: %d and %d bytes came", spill, len(streams[0]), len(streams[1]))
		}
		if res := ended(t, r); res.ExitCode != 0 {
			t.Error(res)
		}
	}
}

// TestReaderCloses: a command whose reader takes no more of a stream finds out by its next write there,
// also while it waits; the other stream is read on.
func TestReaderCloses(t *testing.T) {
	for _, test := range []struct {
		name, script   string
		stdout, stderr bool
		code           int
	}{
		{"stdout", "exec yes", true, false, 141},
		{"stderr", "exec yes >&2", false, true, 141},
		{"and the other", "yes; echo $? >&2; exit 3", true, false, 3},
		{"ignored", "trap '' PIPE; yes 2>/dev/null; exit 4", true, false, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			tab, _ := newTable(t)
			r := begin(t, tab, Request{Reader: true}, "sh", "-c", test.script)
			r.AwaitOutput(t.Context(), readerAhead)               // it waits, or is about to
			r.Taken(t.Context(), 1<<40, test.stdout, test.stderr) // and has the rest
			res := ended(t, r)
			if res.ExitCode != test.code || test.code == 3 && string(res.Stderr.Bytes()) != "141\n" {
				t.Errorf("%s, %q", res, res.Stderr.Bytes())
			}
		})
	}
}

// TestReaderUnknown: a run whose client has never asked for its output is removed a minute after its
// connection has ended: the answer to the start was lost. One that was asked for goes on.
func TestReaderUnknown(t *testing.T) {
	for _, reads := range []bool{false, true} {
		tab, _ := newTable(t)
		r := begin(t, tab, Request{Reader: true}, "sleep", "600")
		life, cut := context.WithCancel(t.Context())
		r.Taken(life, 0, false, false)
		if reads {
			r.Taken(life, 0, false, false)
		}
		cut()
		var absent *time.Timer
		for absent == nil {
			runtime.Gosched()
			r.reader.mu.Lock()
			absent = r.reader.absent
			r.reader.mu.Unlock()
		}
		absent.Reset(0)
		if !reads {
			<-r.done
		}
		for left := false; reads && !left; runtime.Gosched() {
			r.reader.mu.Lock()
			left = r.reader.left
			r.reader.mu.Unlock()
		}
		if _, err := tab.Find(r.owner, r.id); (err == nil) != reads {
			t.Errorf("reads %v: %v", reads, err)
		}
	}
}

// TestReaderLeaves: a command goes on without a reader that leaves, or whose connection has ended for
// long; not yet when it is there again.
func TestReaderLeaves(t *testing.T) {
	tab, _ := newTable(t)
	size := func(r *Run) uint64 { total, _ := r.session.Size(); return total }
	cmd := []string{"head", "-c", "9000000", "/dev/zero"}

	r := begin(t, tab, Request{Reader: true}, cmd...)
	r.AwaitOutput(t.Context(), readerAhead)
	r.Leave()
	if ended(t, r); size(r) != 9_000_000 {
		t.Errorf("%d bytes", size(r))
	}

	r = begin(t, tab, Request{Reader: true}, cmd...)
	life, cut := context.WithCancel(t.Context())
	r.Taken(life, 0, false, false)
	cut()
	lost := func() *time.Timer {
		r.reader.mu.Lock()
		defer r.reader.mu.Unlock()
		return r.reader.absent
	}
	for lost() == nil {
		r.AwaitOutput(t.Context(), readerAhead)
	}
	r.Taken(t.Context(), 1, false, false) // it is there again
	if lost() != nil || size(r) > aheadAtMost {
		t.Errorf("%v, %d bytes", lost(), size(r))
	}
	life, cut = context.WithCancel(t.Context())
	r.Taken(life, 1, false, false)
	cut()
	for lost() == nil {
		r.AwaitOutput(t.Context(), readerAhead)
	}
	lost().Reset(0)
	if ended(t, r); size(r) != 9_000_000 {
		t.Errorf("%d bytes", size(r))
	}
}

// TestReaderStopped: what ends a command does not wait for its reader.
func TestReaderStopped(t *testing.T) {
	tab, _ := newTable(t)
	r := begin(t, tab, Request{Reader: true}, "yes")
	r.AwaitOutput(t.Context(), readerAhead)
	if alive, err := r.Terminate(t.Context()); !alive || err != nil {
		t.Errorf("%v, %v", alive, err)
	}
	tab.prepare = func(context.Context, *Request) (*Prepared, error) {
		p := &Prepared{Runner: &sallyport.Runner{Policy: sandbox.FullAccess()},
			Cmd: &sallyport.Cmd{Args: []string{"yes"}, Grace: -1, Timeout: 200 * time.Millisecond}}
		return p, nil
	}
	r = begin(t, tab, Request{Reader: true}, "yes")
	if res := ended(t, r); res.End != sallyport.EndTimedOut {
		t.Error(res)
	}
}
