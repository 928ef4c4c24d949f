// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

var errCut = errors.New("connection reset by peer")

// halfInput is an input that breaks off.
func halfInput() io.Reader {
	return io.MultiReader(strings.NewReader("half\n"), iotest.ErrReader(errCut))
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// noReturn is a stream that panics, or ends its goroutine.
type noReturn func()

func (f noReturn) Write([]byte) (int, error) { f(); return 0, nil }

func (f noReturn) Read([]byte) (int, error) { f(); return 0, nil }

// TestStreamErrors: an input that breaks off, and output that is not taken, are in the result, in Err of
// one that is successful otherwise, and in the JSON.
func TestStreamErrors(t *testing.T) {
	testenv.RunAsOrdinary(t)
	errFull := errors.New("no space left")
	r := newRunner(t, sandbox.WorkspaceWrite())
	for _, test := range []struct {
		name, script string
		change       func(*sallyport.Cmd)
		is           error  // Err is it; nil for none
		member       string // of the JSON; empty for none
		text         string
	}{
		{"a whole input", "cat", func(c *sallyport.Cmd) { c.Stdin = strings.NewReader("whole") }, nil, "", ""},
		{"an input that is not read", "true", func(c *sallyport.Cmd) { c.Stdin = strings.NewReader(strings.Repeat("x", 1<<20)) }, nil, "", ""},
		{"an input that breaks off", "cat", func(c *sallyport.Cmd) { c.Stdin = halfInput() }, errCut, "stdin_error", "reset by peer"},
		{"on a terminal", "cat", func(c *sallyport.Cmd) { c.Stdin, c.TTY = halfInput(), new(sallyport.Size) }, errCut, "stdin_error", "reset by peer"},
		{"an output that fails", "echo x", func(c *sallyport.Cmd) { c.Stdout = failingWriter{errFull} }, errFull, "stdout_error", "no space left"},
		{"an error output that fails", "echo x >&2", func(c *sallyport.Cmd) { c.Stderr = failingWriter{errFull} }, errFull, "stderr_error", "no space left"},
		{"an output that panics", "echo x", func(c *sallyport.Cmd) { c.Stdout = noReturn(func() { panic("no writer") }) }, nil, "stdout_error", "the writer panicked"},
		{"an output that ends its goroutine", "echo x", func(c *sallyport.Cmd) { c.Stdout = noReturn(runtime.Goexit) }, strict.ErrExit, "stdout_error", "Goexit"},
		{"an input that panics", "cat", func(c *sallyport.Cmd) { c.Stdin = noReturn(func() { panic("no reader") }) }, nil, "stdin_error", "Cmd.Stdin panicked"},
		{"an input that ends its goroutine", "cat", func(c *sallyport.Cmd) { c.Stdin = noReturn(runtime.Goexit) }, strict.ErrExit, "stdin_error", "Goexit"},
		{"on a terminal, too", "cat", func(c *sallyport.Cmd) { c.Stdin, c.TTY = noReturn(runtime.Goexit), new(sallyport.Size) }, strict.ErrExit, "stdin_error", "Goexit"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := sh(test.script)
			test.change(c)
			res := run(t, r, c)
			err := res.Err()
			if res.ExitCode != 0 || test.is != nil && !errors.Is(err, test.is) ||
				(err == nil) != (test.member == "") {
				t.Errorf("exit code %d, error %v", res.ExitCode, err)
			}
			text, err := res.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			var members map[string]any
			var back sallyport.Result
			if err := errors.Join(json.Unmarshal(text, &members), json.Unmarshal(text, &back)); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"stdin_error", "stdout_error", "stderr_error"} {
				said, _ := members[name].(string)
				if (said != "") != (name == test.member) || !strings.Contains(said, test.text) && said != "" {
					t.Errorf("%s is %q", name, said)
				}
			}
			if err := back.Err(); (err == nil) != (test.member == "") {
				t.Errorf("decoded: %v", err)
			}
		})
	}
	c := sh("cat; exit 3")
	c.Stdin = halfInput()
	res := run(t, r, c)
	var exit *sallyport.ExitError
	var broken *sallyport.ReaderError
	if !errors.As(res.Err(), &exit) || !errors.As(res.StdinErr, &broken) {
		t.Errorf("a command that fails: %v, %v", res.Err(), res.StdinErr)
	}
}

// TestStartedFirst: no output is told before the start of its command, also while others start.
func TestStartedFirst(t *testing.T) {
	r := newRunner(t, sandbox.FullAccess())
	var mu sync.Mutex
	started := map[string]bool{}
	r.Events = event.SinkFunc(func(e event.Event) {
		mu.Lock()
		defer mu.Unlock()
		switch e.Body.(type) {
		case event.Started:
			started[e.Run] = true
		case event.Output:
			if !started[e.Run] {
				t.Error("output came before the start")
			}
		}
	})
	var runs sync.WaitGroup
	for range 4 {
		runs.Go(func() {
			for range 50 {
				if _, err := r.Run(t.Context(), sallyport.Command("echo", "x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	runs.Wait()
}
