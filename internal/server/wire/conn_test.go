// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lineConn returns a Conn whose peer is the other ends of two pipes.
func lineConn() (c *Conn, in *io.PipeWriter, out *io.PipeReader) {
	r, in := io.Pipe()
	out, w := io.Pipe()
	return NewConn(Lines(r, w)), in, out
}

// TestSendWaits: a sender waits while the queue is full, by messages and by bytes, and goes on
// when the peer reads.
func TestSendWaits(t *testing.T) {
	for _, test := range []struct {
		name string
		size int
		most int // messages that fit
		all  int
	}{
		{"small", 1, queueMessages + 1, 300}, // one is on its way
		{"large", queueBytes / 4, 4, 10},
		{"too large for the queue", queueBytes + 1, 1, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _, out := lineConn()
				sent := 0
				var mu sync.Mutex
				go func() {
					for range test.all {
						if err := c.Send([]byte(strings.Repeat("x", test.size))); err != nil {
							t.Error(err)
						}
						mu.Lock()
						sent++
						mu.Unlock()
					}
					c.Finish()
					c.Close()
				}()
				synctest.Wait()
				mu.Lock()
				if sent != test.most {
					t.Errorf("%d messages were queued, want %d", sent, test.most)
				}
				mu.Unlock()
				text, err := io.ReadAll(out)
				if want := test.all * (test.size + 1); err != nil || len(text) != want {
					t.Errorf("%d bytes, %v, want %d", len(text), err, want)
				}
			})
		})
	}
}

// TestCloseReleases: the end of a connection ends every call that waits.
func TestCloseReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := lineConn()
		ends := make(chan error, 3)
		go func() {
			var err error
			for err == nil {
				err = c.Send([]byte("x"))
			}
			ends <- err
		}()
		go func() {
			_, err := c.Read()
			ends <- err
		}()
		synctest.Wait()
		c.Close()
		c.Close()
		for range 2 {
			if err := <-ends; err == nil || !errors.Is(err, ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("%v", err)
			}
		}
		c.Finish()
		if err := c.Send([]byte("x")); !errors.Is(err, ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}

// TestWriteFails: a peer that reads no more ends the connection.
func TestWriteFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, out := lineConn()
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		_ = c.Send([]byte("x"))
		if _, err := c.Read(); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%v", err)
		}
		c.Finish()
	})
}

func TestLines(t *testing.T) {
	const most = 100_000
	long := strings.Repeat("x", 70_000) // longer than the buffer
	for _, test := range []struct {
		name, text string
		want       []string // empty is a line that is too long
		err        error
	}{
		{"lines", "a\nb\r\n\n\r\nc\n", []string{"a", "b", "c"}, io.EOF},
		{"no end", "a\nb", []string{"a", "b"}, io.EOF},
		{"nothing", "", nil, io.EOF},
		{"long", long + "\nb\n", []string{long, "b"}, io.EOF},
		{"too long", "a\n" + strings.Repeat("x", most) + "\nb\n", []string{"a", "", "b"}, io.EOF},
		{"twice too long", long + long + "\r\n" + long + long + "\nb", []string{"", "", "b"}, io.EOF},
		{"too long without end", strings.Repeat("x", most+1), nil, ErrTooLong},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, ok := Lines(io.NopCloser(strings.NewReader(test.text)), nil).(*lines)
			if !ok {
				t.Fatal("no lines")
			}
			s.most = most
			for _, want := range test.want {
				got, err := s.Read()
				if want == "" && errors.Is(err, ErrTooLong) {
					continue
				}
				if err != nil || string(got) != want {
					t.Fatalf("%.20q, %v, want %.20q", got, err, want)
				}
			}
			if _, err := s.Read(); !errors.Is(err, test.err) {
				t.Errorf("%v, want %v", err, test.err)
			}
		})
	}
}
