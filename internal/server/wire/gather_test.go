// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// A counted is a connection that keeps what is written.
type counted struct {
	net.Conn
	writes []string
}

func (c *counted) Write(p []byte) (int, error) {
	c.writes = append(c.writes, string(p))
	return len(p), nil
}

// TestGather writes pieces of what was announced. Nothing stays behind, also when others write
// between them.
func TestGather(t *testing.T) {
	long := strings.Repeat("x", maxHeld)
	for _, test := range []struct {
		name   string
		expect int
		pieces []string
		want   string // the calls that are made, where a list of parts is several
	}{
		{"nothing announced", 0, []string{"a", "b"}, "a|b"},
		{"held until the last", 3, []string{"a", "b", "c"}, "ab|c"},
		{"another writer", 3, []string{"a", "pong", "bc"}, "a|pong|bc"},
		{"more than is held", 2*maxHeld + 1, []string{"a", long, long}, "a|" + long + "|" + long},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := new(counted)
			g := &gather{Conn: c, turn: make(chan struct{}, 1)}
			g.expect(test.expect)
			for _, piece := range test.pieces {
				if n, err := g.Write([]byte(piece)); n != len(piece) || err != nil {
					t.Fatal(n, err)
				}
			}
			if got := strings.Join(c.writes, "|"); got != test.want {
				t.Errorf("got %.100q, want %.100q", got, test.want)
			}
		})
	}
}

// A batches is a stream whose writes wait for a signal.
type batches struct {
	begun, proceed chan struct{}
	got            [][]Outgoing
}

func (b *batches) Read() ([]byte, error) { return nil, io.EOF }
func (b *batches) Write([]byte) error    { panic("it takes batches") }
func (b *batches) Close() error          { return nil }
func (b *batches) WriteBatch(messages []Outgoing) error {
	b.begun <- struct{}{}
	<-b.proceed
	b.got = append(b.got, bytesOf(messages))
	return nil
}

// bytesOf copies messages, which the caller clears.
func bytesOf(messages []Outgoing) []Outgoing {
	var list []Outgoing
	for _, m := range messages {
		list = append(list, Outgoing{Data: bytes.Clone(m.Data), Binary: m.Binary})
	}
	return list
}

// A late message is text that is encoded when it is written.
type late string

func (l late) Append(b []byte) []byte { return append(b, l...) }
func (l late) Size() int              { return len(l) }

// TestBatch requires that messages that wait are written together, in their order and up to a bound,
// and that the first does not wait for others.
func TestBatch(t *testing.T) {
	b := &batches{begun: make(chan struct{}), proceed: make(chan struct{})}
	c := NewConn(b)
	defer c.Close()
	if err := c.Send([]byte("0")); err != nil {
		t.Fatal(err)
	}
	<-b.begun
	for i := range 100 {
		var err error
		switch text := []byte(fmt.Sprint(i + 1)); i {
		case 50:
			err = c.Send(append(bytes.Repeat([]byte(" "), maxBatch), text...))
		case 60:
			err = c.SendLate(late(text), true)
		case 61, 62:
			err = c.SendLate(late(text), false)
		default:
			err = c.Send(text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		b.proceed <- struct{}{}
		for range b.begun {
			b.proceed <- struct{}{}
		}
	}()
	c.Finish()
	close(b.begun)
	var sizes []int
	next := 0
	for _, batch := range b.got {
		sizes = append(sizes, len(batch))
		for _, m := range batch {
			if got := string(bytes.TrimSpace(m.Data)); got != fmt.Sprint(next) || m.Binary != (next == 61) {
				t.Fatalf("got %q, binary %v, in the place of %d", got, m.Binary, next)
			}
			next++
		}
	}
	if got := fmt.Sprint(sizes); got != "[1 50 1 49]" {
		t.Errorf("batches of %s", got)
	}
}
