// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pacedWriter takes step bytes at a time and needs pause for each call.
type pacedWriter struct {
	mu    sync.Mutex
	pause time.Duration
	got   bytes.Buffer
	fail  error // returned from the second call on
	calls int
	block chan struct{} // when set, every call waits for it
}

func (w *pacedWriter) Write(p []byte) (int, error) {
	if w.pause > 0 {
		<-time.After(w.pause)
	}
	if w.block != nil {
		<-w.block
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	if w.fail != nil && w.calls > 1 {
		return 0, w.fail
	}
	return w.got.Write(p)
}

func TestRelay(t *testing.T) {
	broken := errors.New("broken pipe")
	const chunk = 100_000
	tests := []struct {
		name   string
		writer *pacedWriter
		chunks int
		took   time.Duration // until everything was pushed and closed
		got    int
		err    error
		missed uint64
	}{
		{name: "quick", writer: &pacedWriter{}, chunks: 50, got: 50 * chunk},
		{name: "nothing", writer: &pacedWriter{}},
		// Two pieces of the first chunk and four of the other two, half a second each.
		{name: "slow and alive", writer: &pacedWriter{pause: time.Second / 2}, chunks: 3, got: 3 * chunk, took: 3 * time.Second},
		{name: "fails", writer: &pacedWriter{fail: broken}, chunks: 1, got: relayPiece, err: broken, missed: chunk - relayPiece},
		// The first chunk is in the writer's hands, the queue holds one MiB more.
		{name: "row42 never takes anything", writer: &pacedWriter{block: make(chan struct{})}, chunks: 100,
			took: patience, missed: 100 * chunk},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := test.writer
				if w.block != nil {
					w.block = make(chan struct{}) // one of this bubble
				}
				l := newRelay(w)
				begin := time.Now()
				p := bytes.Repeat([]byte("x"), chunk)
				for i := range test.chunks {
					l.push(p)
					if i == 0 {
						synctest.Wait() // the writer has begun
					}
				}
				l.close(time.Now().Add(10 * time.Second))
				if took := time.Since(begin); took != test.took {
					t.Errorf("it took %v, want %v", took, test.took)
				}
				w.mu.Lock()
				got := w.got.Len()
				w.mu.Unlock()
				if got != test.got {
					t.Errorf("the writer got %d bytes, want %d", got, test.got)
				}
				if l.missed != test.missed || !errors.Is(l.err, test.err) {
					t.Errorf("%d bytes missed, %v; want %d and %v", l.missed, l.err, test.missed, test.err)
				}
				if w.block != nil {
					close(w.block) // it may go now, and gets nothing more
				}
			})
		})
	}
}

// A writer that was stuck and lives again gets what comes from then on.
func TestRelayRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &pacedWriter{block: make(chan struct{})}
		l := newRelay(w)
		l.push([]byte("first"))
		synctest.Wait()
		l.push(bytes.Repeat([]byte("x"), relaySize+1000)) // waits for the patience to end
		close(w.block)
		synctest.Wait()
		l.push([]byte("last"))
		l.close(time.Now().Add(time.Second))
		if l.missed != 1000 || l.err != nil {
			t.Errorf("%d bytes missed, %v; want 1000", l.missed, l.err)
		}
		if got := w.got.Bytes(); len(got) != len("first")+relaySize+len("last") ||
			!bytes.HasSuffix(got, []byte("last")) {
			t.Errorf("the writer got %d bytes", len(got))
		}
	})
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestSameWriter(t *testing.T) {
	var b bytes.Buffer
	tests := []struct {
		name string
		a, b io.Writer
		want bool
	}{
		{"one buffer", &b, &b, true},
		{"two buffers", &b, new(bytes.Buffer), false},
		{"functions cannot be compared", writerFunc(nil), writerFunc(nil), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := same(test.a, test.b); got != test.want {
				t.Errorf("same is %v, want %v", got, test.want)
			}
		})
	}
}

// FuzzRelay pushes chunks of drawn sizes; a writer that lives gets every byte.
func FuzzRelay(f *testing.F) {
	f.Add([]byte{1, 200, 0, 255, 7})
	f.Fuzz(func(t *testing.T, sizes []byte) {
		w := &pacedWriter{}
		l := newRelay(w)
		var want bytes.Buffer
		for i, n := range sizes {
			p := bytes.Repeat([]byte{byte(i)}, int(n)*97)
			want.Write(p)
			l.push(p)
		}
		l.close(time.Now().Add(time.Minute))
		if l.missed > 0 || l.err != nil || !bytes.Equal(w.got.Bytes(), want.Bytes()) {
			t.Errorf("%d bytes of %d arrived, %d missed, %v", w.got.Len(), want.Len(), l.missed, l.err)
		}
	})
}

// TestFilePatience: a file gets its time also inside of another writer, as the terminal that a
// command writes to and whose output is retained on the way.
func TestFilePatience(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for want, writers := range map[time.Duration][]io.Writer{
		filePatience: {f, struct{ *os.File }{f}},
		patience:     {new(bytes.Buffer), struct{ io.Writer }{f}},
	} {
		for _, w := range writers {
			r := newRelay(w)
			r.close(time.Now().Add(drainTime))
			if r.patience != want {
				t.Errorf("%T: %v, want %v", w, r.patience, want)
			}
		}
	}
}
