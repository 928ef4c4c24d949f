// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/executor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reader is a process that takes input only when a test says so.
type reader struct {
	executor.Process
	turns chan error // what the next write returns

	mu  sync.Mutex
	got bytes.Buffer
}

func (r *reader) Write(p []byte) (int, error) {
	err := <-r.turns
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(err, io.ErrShortWrite) {
		r.got.Write(p[:1])
		return 1, err
	}
	if err != nil {
		return 0, err
	}
	return r.got.Write(p)
}

// TestInput: writes reach the process in their order and once each, whatever it does.
func TestInput(t *testing.T) {
	for _, test := range []struct {
		name   string
		ids    string // one letter is one write of itself
		turns  []error
		want   string
		failed int // of the writes of ids, answered with an error
	}{
		{"in order", "abc", []error{nil, nil, nil}, "abc", 0},
		{"again", "abab", []error{nil, nil}, "ab", 0},
		{"closed by the process", "abc", []error{nil, io.ErrClosedPipe}, "a", 0},
		{"lost", "abc", []error{errors.New("line too long"), nil}, "c", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &reader{turns: make(chan error, 10)}
				in := newInput(r, false)
				for _, err := range test.turns {
					r.turns <- err
				}
				accepted, failed := 0, 0
				for _, id := range test.ids {
					if err := in.write(string(id), []byte(string(id)), func() { accepted++ }); err != nil {
						failed++
					}
					synctest.Wait()
				}
				if got := r.got.String(); got != test.want || failed != test.failed || accepted+failed != len(test.ids) {
					t.Errorf("%q, %d accepted, %d failed, want %q, %d failed", got, accepted, failed, test.want, test.failed)
				}
			})
		})
	}
}

// TestInputWaits: much input for a process that does not read is accepted when its turn comes,
// too much is refused, and the end of the process answers what waits.
func TestInputWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{turns: make(chan error)}
		in := newInput(r, false)
		accepted := 0
		count := func() { accepted++ }
		write := func(id string, size int) error { return in.write(id, make([]byte, size), count) }
		for i := range maxInput / freeInput {
			if err := write(fmt.Sprint(i), freeInput); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if accepted != 1 {
			t.Errorf("%d writes were accepted, want 1", accepted)
		}
		if err := write("more", 1); !errors.Is(err, errInputFull) {
			t.Errorf("%v", err)
		}
		r.turns <- nil
		synctest.Wait()
		if accepted != 2 {
			t.Errorf("%d writes were accepted, want 2", accepted)
		}
		if err := write("more", 1); err != nil { // a write that was refused is not remembered
			t.Error(err)
		}
		in.close()
		r.turns <- io.ErrClosedPipe
		synctest.Wait()
		if want := maxInput/freeInput + 1; accepted != want {
			t.Errorf("%d writes were accepted, want %d", accepted, want)
		}
	})
}

// CloseInput notes the end as a point.
func (r *reader) CloseInput() error {
	_, err := r.Write([]byte("."))
	return err
}

// TestInputEnd: the input ends after what was written before, once, and nothing comes after it. A
// terminal takes more.
func TestInputEnd(t *testing.T) {
	for _, test := range []struct {
		name     string
		terminal bool
		ids      string // a point is an end without ID, a capital letter one with that ID
		want     string
		ended    int // of the writes of ids, refused because the input is closed
	}{
		{"pipe", false, "ab.", "ab.", 0},
		{"written late", false, "a.b", "a.", 1},
		{"written again", false, "a.a", "a.", 0},
		{"ended again", false, "a..AA", "a.", 0},
		{"terminal", true, "a.b.", "a.b.", 0},
		{"terminal, ended again", true, "aAAbB", "a.b.", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &reader{turns: make(chan error)}
				in := newInput(r, test.terminal)
				accepted, ended := 0, 0
				for _, c := range test.ids {
					id, count := string(c), func() { accepted++ }
					var err error
					switch {
					case c == '.':
						err = in.end("", count)
					case c < 'a':
						err = in.end(id, count)
					default:
						err = in.write(id, []byte(id), count)
					}
					if errors.Is(err, errInputEnded) {
						ended++
					}
				}
				close(r.turns) // it reads what waits
				synctest.Wait()
				if got := r.got.String(); got != test.want || ended != test.ended || accepted+ended != len(test.ids) {
					t.Errorf("%q, %d accepted, %d refused, want %q, %d refused", got, accepted, ended, test.want, test.ended)
				}
			})
		})
	}
}

// TestInputMany: a bounded number of writes waits, however small they are.
func TestInputMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{turns: make(chan error)}
		in := newInput(r, true)
		n := 0
		for ; n < 2*maxWaiting; n++ {
			if err := in.end("", func() {}); err != nil {
				if !errors.Is(err, errInputFull) {
					t.Error(err)
				}
				break
			}
		}
		if n > maxWaiting+1 { // one is on its way
			t.Errorf("%d writes wait", n)
		}
		in.close()
		close(r.turns)
	})
}

// TestWriteIDs: a bounded number of writes is remembered.
func TestWriteIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{turns: make(chan error)}
		in := newInput(r, false)
		in.close()
		for i := range 3 * maxWriteIDs {
			if err := in.write(fmt.Sprint(i), []byte("x"), func() {}); err != nil {
				t.Fatal(err)
			}
		}
		if len(in.ids) != maxWriteIDs || len(in.recent) != maxWriteIDs {
			t.Errorf("%d IDs, %d recent", len(in.ids), len(in.recent))
		}
	})
}
