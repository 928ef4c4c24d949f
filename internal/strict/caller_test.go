// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
)

// fails calls f as one of the caller's.
func fails(f func()) error {
	return Call("the function", func() error { f(); return io.EOF })
}

func TestCall(t *testing.T) {
	var none *strings.Reader
	for _, test := range []struct {
		name, text string
		f          func()
	}{
		{"none", "EOF", func() {}},
		{"a text", "the function panicked at github.com/sallyport-dev/sallyport/internal/strict.TestCall", func() { panic("no") }},
		{"an address", "nil pointer dereference", func() { none.Len() }},
		{"two lines", `one\ntwo`, func() { panic("one\ntwo") }},
		{"no value", "panic called with nil argument", func() { panic(nil) }}, //nolint:govet // it is what is tested
		{"the end of the goroutine", "the function did not return: it called runtime.Goexit", runtime.Goexit},
		{"the end of it while a panic is under way", "runtime.Goexit", func() {
			defer runtime.Goexit()
			panic("no")
		}},
	} {
		if err := fails(test.f); err == nil || !strings.Contains(err.Error(), test.text) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if err := fails(func() { panic(io.ErrShortWrite) }); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("the value is lost: %v", err)
	}
	if err := fails(runtime.Goexit); !errors.Is(err, ErrExit) {
		t.Errorf("%v is not ErrExit", err)
	}
}

func TestCheck(t *testing.T) {
	var none context.Context
	if err := CheckContext(none); !errors.Is(err, ErrNoContext) {
		t.Errorf("nil: %v", err)
	}
	if err := CheckContext(t.Context()); err != nil {
		t.Error(err)
	}
}
