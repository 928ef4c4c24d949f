// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A waitWriter closes seen when what it got holds text.
type waitWriter struct {
	text string
	seen chan struct{}

	mu  sync.Mutex
	got bytes.Buffer
}

func (w *waitWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := strings.Contains(w.got.String(), w.text)
	w.got.Write(p)
	if !before && strings.Contains(w.got.String(), w.text) {
		close(w.seen)
	}
	return len(p), nil
}

// TestRunOnTerminal runs commands to their end on a terminal.
func TestRunOnTerminal(t *testing.T) {
	testenv.NeedUserNS(t)
	r := newRunner(t, sandbox.WorkspaceWrite())
	run := func(t *testing.T, c *sallyport.Cmd) *sallyport.Result {
		t.Helper()
		c.TTY = &sallyport.Size{Cols: 101, Rows: 33}
		res, err := r.Run(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	t.Run("output and code", func(t *testing.T) {
		res := run(t, sallyport.Command("sh", "-c", "stty size; echo err >&2; exit 5"))
		if res.ExitCode != 5 || string(res.Stdout.Bytes()) != "33 101\r\nerr\r\n" ||
			len(res.Stderr.Bytes()) > 0 {
			t.Errorf("%d, %q, %q", res.ExitCode, res.Stdout.Bytes(), res.Stderr.Bytes())
		}
	})
	t.Run("row51 a signal", func(t *testing.T) {
		if res := run(t, sallyport.Command("sh", "-c", "kill -9 $$")); res.ExitCode != 137 ||
			res.Signal != 9 || res.End != sallyport.EndSignaled {
			t.Errorf("%d, signal %d, %s", res.ExitCode, res.Signal, res.End)
		}
	})
	t.Run("no input", func(t *testing.T) {
		if res := run(t, sallyport.Command("cat")); res.ExitCode != 0 {
			t.Errorf("%d, %q", res.ExitCode, res.Stdout.Bytes())
		}
	})
	t.Run("input that ends", func(t *testing.T) {
		c := sallyport.Command("sh", "-c", "stty -echo; cat")
		c.Stdin = strings.NewReader("one\ntwo")
		if res := run(t, c); res.ExitCode != 0 || !strings.HasSuffix(string(res.Stdout.Bytes()),
			"one\r\ntwo") {
			t.Errorf("%d, %q", res.ExitCode, res.Stdout.Bytes())
		}
	})
	t.Run("standard error that is a file", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "err")
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		c := sallyport.Command("sh", "-c", "echo out; echo err >&2; test -t 1 && ! test -t 2")
		c.Stderr = f
		res := run(t, c)
		got, err := os.ReadFile(name)
		if res.ExitCode != 0 || err != nil || string(got) != "err\n" ||
			string(res.Stdout.Bytes()) != "out\r\n" {
			t.Errorf("%d, %q, %q, %v", res.ExitCode, got, res.Stdout.Bytes(), err)
		}
	})
	t.Run("sizes", func(t *testing.T) {
		w := &waitWriter{text: "ready", seen: make(chan struct{})}
		sizes := make(chan sallyport.Size)
		c := sallyport.Command("sh", "-c",
			"trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.01; done")
		c.Stdout, c.Resizes = w, sizes
		var sending sync.WaitGroup
		sending.Go(func() {
			<-w.seen
			sizes <- sallyport.Size{Cols: 44, Rows: 22}
		})
		if res := run(t, c); !strings.Contains(string(res.Stdout.Bytes()), "22 44\r\n") {
			t.Errorf("%q", res.Stdout.Bytes())
		}
		sending.Wait()
	})
	t.Run("sizes without a terminal", func(t *testing.T) {
		c := sallyport.Command("true")
		c.Resizes = make(chan sallyport.Size)
		var bad *sallyport.CmdError
		if _, err := r.Run(context.Background(), c); !errors.As(err, &bad) || bad.Field != "Resizes" {
			t.Errorf("%v", err)
		}
	})
}

// TestOnStop: the caller hears that the command was stopped, as often as it was, and not of its
// children; it goes on when the caller says so.
func TestOnStop(t *testing.T) {
	testenv.NeedUserNS(t)
	for _, policy := range []sandbox.Policy{sandbox.WorkspaceWrite(), sandbox.FullAccess()} {
		t.Run(policy.Name(), func(t *testing.T) {
			runner := &sallyport.Runner{Policy: policy}
			defer runner.Close()
			cmd := sallyport.Script(`sleep 100 & kill -STOP $!; kill -TSTP $$; kill -STOP $$; kill -KILL $!; exit 7`)
			cmd.Dir, cmd.Shell = t.TempDir(), "sh"
			cmd.Tmp = "host"
			signals, stops := make(chan int, 8), 0
			cmd.Signals = signals
			cmd.OnStop = func() { stops++; signals <- int(syscall.SIGCONT) }
			res, err := runner.Run(t.Context(), cmd)
			if err != nil || res.ExitCode != 7 || stops != 2 {
				t.Errorf("%v, %v, %d stops", res, err, stops)
			}
		})
	}
}
