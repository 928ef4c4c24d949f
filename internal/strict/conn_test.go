// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// A scripted connection answers as a test says.
type scripted struct {
	n   int
	err error
	bad bool // it panics
}

func (s scripted) Read([]byte) (int, error)  { return s.answer() }
func (s scripted) Write([]byte) (int, error) { return s.answer() }
func (s scripted) Close() error              { _, err := s.answer(); return err }

func (s scripted) answer() (int, error) {
	if s.bad {
		panic("no")
	}
	return s.n, s.err
}

// TestConn: what is right passes, and what is wrong is an error with the name of the connection.
func TestConn(t *testing.T) {
	failure := errors.New("a failure")
	for _, test := range []struct {
		name             string
		c                io.ReadWriteCloser
		n                int
		read, write, end string // parts of the errors; empty for none
	}{
		{"all", scripted{n: 4}, 4, "", "", ""},
		{"a part", scripted{n: 3}, 3, "", "short write", ""},
		{"nothing", scripted{}, 0, "", "short write", ""},
		{"too much", scripted{n: 5}, 0, "the way returned an impossible number", "short write", ""},
		{"less than nothing", scripted{n: -1}, 0, "the way returned an impossible number", "short write", ""},
		{"a part and an error", scripted{n: 2, err: failure}, 2, "a failure", "a failure", "a failure"},
		{"a panic", scripted{bad: true}, 0, "the way panicked", "the way panicked", "the way panicked"},
		{"none", nil, 0, "the way panicked", "the way panicked", "the way panicked"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := Conn("the way", test.c)
			n, err := c.Read(make([]byte, 4))
			if n != test.n || !strings.Contains(ErrorText(err), test.read) || (err == nil) != (test.read == "") {
				t.Errorf("Read: %d, %v", n, err)
			}
			if _, err := c.Write(make([]byte, 4)); !strings.Contains(ErrorText(err), test.write) ||
				(err == nil) != (test.write == "") {
				t.Errorf("Write: %v", err)
			}
			if err := c.Close(); !strings.Contains(ErrorText(err), test.end) || (err == nil) != (test.end == "") {
				t.Errorf("Close: %v", err)
			}
		})
	}
}
