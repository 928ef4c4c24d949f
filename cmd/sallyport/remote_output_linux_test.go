// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// cutting returns the URL of a way to a server that ends each connection after so many bytes from it,
// and what has the number of connections. At last they live.
func cutting(t *testing.T, url string, after int64, times int) (string, *atomic.Int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done, count := make(chan struct{}), new(atomic.Int64)
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			d, err := net.Dial("unix", strings.TrimPrefix(url, "unix://"))
			if err != nil {
				_ = c.Close()
				continue
			}
			go func() { _, _ = io.Copy(d, c); _ = d.Close() }()
			last := count.Add(1) > int64(times)
			go func() {
				if last {
					_, _ = io.Copy(c, d)
				} else {
					_, _ = io.CopyN(c, d, after)
				}
				_, _ = c.Close(), d.Close()
			}()
		}
	}()
	t.Cleanup(func() { _ = ln.Close(); <-done })
	return "unix://" + path, count
}

// TestRemoteOutput: a run on another server passes on every byte of each stream that it prints, as many
// as they are, to readers as slow as they are, also where the connection is cut again and again.
func TestRemoteOutput(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	url := d.server(t)
	const size = 12 << 20
	script := fmt.Sprintf(`head -c %d /dev/zero | tr '\0' '\377'; echo err >&2; head -c 3000000 /dev/zero >&2; exit 5`, size)
	want, wantErr := bytes.Repeat([]byte{0xff}, size), append([]byte("err\n"), make([]byte, 3_000_000)...)
	for _, test := range []struct {
		name string
		cuts int
		slow bool
	}{{"whole", 0, false}, {"slow", 0, true}, {"cut", 4, false}} {
		t.Run(test.name, func(t *testing.T) {
			way, count := cutting(t, url, 2_000_000, test.cuts)
			cmd := d.command(t, "sallyport", "run", "--remote", way, "-C", d.work, "--", "sh", "-c", script)
			var out, errs bytes.Buffer
			cmd.Stderr = &errs
			pipe, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if test.slow { // it has printed all that it can before anything is read
				_, _ = io.CopyN(&out, pipe, 1)
				d.waits(t)
			}
			_, _ = io.Copy(&out, pipe)
			_ = cmd.Wait()
			if code := testenv.Code(cmd.ProcessState); code != 5 || !bytes.Equal(out.Bytes(), want) ||
				!bytes.Equal(errs.Bytes(), wantErr) {
				t.Errorf("exit code %d, %d bytes, %d of standard error: %.80q", code, out.Len(),
					errs.Len(), errs.Bytes())
			}
			if count.Load() <= int64(test.cuts) {
				t.Errorf("there were %d connections", count.Load())
			}
		})
	}
}

// waits returns when a run of the server prints nothing for a moment: its reader takes nothing.
func (d parlor) waits(t *testing.T) {
	t.Helper()
	out, _, _ := d.run(t, "ps")
	id := regexp.MustCompile(`(?m)^(\d+) +running`).FindStringSubmatch(out)
	if id == nil {
		t.Fatalf("nothing is running:\n%s", out)
	}
	d.expects(t, 0, "idle\n", "wait", "--for", "quiet=300ms", id[1])
	out, _, _ = d.run(t, "logs", id[1])
	if most := 5 << 20; len(out) > most {
		t.Errorf("%d bytes are ahead of a reader that takes nothing", len(out))
	}
}

// awaitsNoReader is a program that prints, waits until nothing reads that any more, and prints again.
const awaitsNoReader = `
import os, select, signal
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
os.write(1, b"x")
p = select.poll()
p.register(1, 0)
p.poll()
os.write(1, b"y")
`

// TestRemoteReaderGone: the command of a run on another server ends as one here when the reader of what
// it prints has gone, with the same exit code.
func TestRemoteReaderGone(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	url := d.server(t)
	testenv.NeedProgram(t, "python3")
	for _, test := range []struct {
		name, flags, script string
		stderr              bool
		code                int
	}{
		{"endless", "", "yes", false, 141},
		{"between two writes", "", `exec python3 -c '` + awaitsNoReader + `'`, false, 141},
		{"much, then nothing", "", "head -c 20000000 /dev/zero && exec sleep 600", false, 141},
		{"standard error", "", "yes >&2", true, 141},
		{"ignored", "", "trap '' PIPE; yes 2>/dev/null; exit 6", false, 6},
		{"terminal", "-t", "yes", false, 141},
		{"lines", "--jsonl", "yes", false, 125},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"sallyport", "run", "--remote", url, "-C", d.work},
				strings.Fields(test.flags)...)
			cmd := d.command(t, append(args, "--", "sh", "-c", test.script)...)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stdout = w
			if test.stderr {
				cmd.Stdout, cmd.Stderr = nil, w
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = w.Close()
			if _, err := r.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			_ = r.Close()
			_ = cmd.Wait()
			code := testenv.Code(cmd.ProcessState)
			if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
				code = 128 + int(ws.Signal())
			}
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if out, _, _ := d.run(t, "ps"); strings.Contains(out, "running") {
				t.Errorf("it goes on:\n%s", out)
			}
		})
	}
}

// TestRemoteReaderStuck: what ends a run on another server waits for no reader that takes nothing, as
// nothing does here, and what has ended by itself is passed on whole.
func TestRemoteReaderStuck(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	url := d.server(t)
	for _, test := range []struct {
		name  string
		flags []string
		kill  syscall.Signal
		code  int
	}{{"time limit", []string{"--timeout", "1s"}, 0, 124}, {"signal", nil, syscall.SIGTERM, 143}} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"sallyport", "run", "--remote", url, "-C", d.work}, test.flags...)
			cmd := d.command(t, append(args, "--", "yes")...)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			var errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = w, &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = w.Close()
			if _, err := r.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			if test.kill != 0 {
				d.waits(t)
				_ = cmd.Process.Signal(test.kill)
			}
			_ = cmd.Wait()
			code := testenv.Code(cmd.ProcessState)
			if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
				code = 128 + int(ws.Signal())
			}
			if code != test.code || !strings.Contains(errs.String(),
				"not all of the command's output was written") {
				t.Errorf("exit code %d, want %d: %s", code, test.code, errs.String())
			}
		})
	}
	cmd := d.command(t, "sallyport", "run", "--remote", url, "-C", d.work, "--", "sh", "-c",
		"head -c 600000 /dev/zero; exit 7")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for out := ""; !strings.Contains(out, "exited (7)"); {
		out, _, _ = d.run(t, "ps")
	}
	if n, err := io.Copy(io.Discard, pipe); n != 600_000 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	_ = cmd.Wait()
}

// TestRemoteJSON: the result of a run on another server has all of the output that one here has, also
// where no message carries it.
func TestRemoteJSON(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	url := d.server(t)
	texts := make([]string, 2)
	for i, flags := range [][]string{nil, {"--remote", url, "-C", d.work}} {
		args := append([]string{"run", "--json"}, flags...)
		out, errs, code := d.run(t, append(args, "--", "head", "-c", "3000000", "/dev/zero")...)
		var res struct {
			Stdout, Output string
			Bytes          int `json:"stdout_bytes"`
			Omitted        int `json:"omitted_bytes"`
			Notices        []string
		}
		if err := json.Unmarshal([]byte(out), &res); err != nil || code != 0 || errs != "" {
			t.Fatalf("%v, exit code %d, %q", err, code, errs)
		}
		texts[i] = fmt.Sprint(len(res.Stdout), len(res.Output), res.Bytes, res.Omitted, res.Notices)
	}
	if texts[0] != texts[1] {
		t.Errorf("here %s, there %s", texts[0], texts[1])
	}
}
