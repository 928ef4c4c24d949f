// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// enough is far more than any of these tests takes.
const enough = 2 * time.Minute

func start(t testing.TB, cfg Config, c *exec.Cmd) *Process {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return follow(t, s, c)
}

// follow starts a command on streams.
func follow(t testing.TB, s *Streams, c *exec.Cmd) *Process {
	t.Helper()
	child, err := launchPlain(c, s)
	if err != nil {
		s.Close()
		t.Fatal(err)
	}
	p, err := s.Follow(child)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wait(t *testing.T, p *Process) *executor.Exit {
	t.Helper()
	var x *executor.Exit
	var err error
	within(t, enough, "the command", func() { x, err = p.Wait() })
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func sh(script string) *exec.Cmd { return exec.Command("/bin/sh", "-c", script) }

func TestExit(t *testing.T) {
	tests := []struct {
		name, script   string
		code, signal   int
		stdout, stderr string
	}{
		{name: "silent", script: "true"},
		{name: "row1 code", script: "exit 3", code: 3},
		{name: "both streams", script: "echo out; echo err >&2", stdout: "out\n", stderr: "err\n"},
		{name: "no newline at the end", script: "printf out; printf err >&2", stdout: "out", stderr: "err"},
		{name: "row37 kill -9", script: "kill -9 $$", code: 137, signal: 9},
		{name: "row39 stdin is at its end at once", script: "cat; echo end", stdout: "end\n"},
		{name: "NUL bytes", script: "printf 'a\\000b'", stdout: "a\x00b"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			checkFDs(t)
			var h collected
			x := wait(t, start(t, Config{Output: h.output}, sh(test.script)))
			if x.Code != test.code || x.Signal != test.signal || x.Stopped || x.StreamsLeftOpen {
				t.Errorf("exit %+v, want code %d, signal %d", x, test.code, test.signal)
			}
			if got := string(h.by[0]); got != test.stdout {
				t.Errorf("stdout %q, want %q", got, test.stdout)
			}
			if got := string(h.by[1]); got != test.stderr {
				t.Errorf("stderr %q, want %q", got, test.stderr)
			}
		})
	}
}

func TestStreamsClose(t *testing.T) {
	checkFDs(t)
	var order Order
	defer order.Close()
	s, err := Open(Config{PipeStdin: true, Order: &order})
	if err != nil {
		t.Fatal(err)
	}
	if files := s.Files(); slices.Contains(files[:], nil) {
		t.Errorf("a stream is missing: %v", s.Files())
	}
	s.Close()
}

// row40: TestOrderAcknowledged checks the order of lines that are apart in time. The command
// waits for a word between its lines, and gets it when the line before was delivered.
func TestOrderAcknowledged(t *testing.T) {
	const script = "n=0; while read -r word; do echo $n; n=$((n+1)); read -r word; echo $n >&2; n=$((n+1)); done"
	for _, kind := range pumpKinds() {
		t.Run("row40 "+kind.name, func(t *testing.T) {
			checkFDs(t)
			var h collected
			more := make(chan struct{}, 100)
			cfg := Config{PipeStdin: true, Output: func(s executor.Stream,
				p []byte) {
				h.output(s, p)
				more <- struct{}{}
			}}
			p := kind.start(t, cfg, sh(script))
			for range 20 {
				if _, err := io.WriteString(p, "go\n"); err != nil {
					t.Fatal(err)
				}
				select {
				case <-more:
				case <-time.After(enough):
					t.Fatal("no line came")
				}
			}
			if err := p.CloseInput(); err != nil {
				t.Fatal(err)
			}
			wait(t, p)
			if got, want := h.String(), countTo(20); got != want {
				t.Errorf("the output is %q, want %q", got, want)
			}
		})
	}
}

// pumpKind starts a command with one of the two pumps.
type pumpKind struct {
	name  string
	start func(t testing.TB, cfg Config, c *exec.Cmd) *Process
}

func pumpKinds() []pumpKind {
	return []pumpKind{
		{"of this system", start},
		{"portable", startPortable},
	}
}

// startPortable is Start with the portable pump, on every system.
func startPortable(t testing.TB, cfg Config, c *exec.Cmd) *Process {
	t.Helper()
	cfg.Terminal = true // so that no pipes are made
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p, ends, err := newFilePump(&s.cfg, [2]bool{true, true})
	if err != nil {
		t.Fatal(err)
	}
	s.pump, s.child[1], s.child[2], s.cfg.Terminal = p, ends[0], ends[1], false
	s.made = append(s.made, ends[:]...)
	return follow(t, s, c)
}

func TestBothPumps(t *testing.T) {
	for _, kind := range pumpKinds() {
		t.Run(kind.name+"/everything is read", func(t *testing.T) {
			checkFDs(t)
			const size = 3<<20 + 17
			n := 0
			cfg := Config{Output: func(_ executor.Stream, p []byte) { n += len(p) }}
			wait(t, kind.start(t, cfg, play("zeros", "3145745")))
			if n != size {
				t.Errorf("%d bytes read, want %d", n, size)
			}
		})
		t.Run(kind.name+"/row17 row35 a held stream", func(t *testing.T) {
			checkFDs(t)
			soon(t, 500*time.Millisecond, func() time.Duration {
				var h collected
				begin := time.Now()
				x := wait(t, kind.start(t, Config{Output: h.output}, sh("echo hello; sleep 600 & exit 0")))
				if h.String() != "hello\n" || !x.StreamsLeftOpen || x.Code != 0 {
					t.Errorf("the output is %q, exit %+v", h.String(), x)
				}
				return time.Since(begin)
			})
		})
		t.Run(kind.name+"/a holder outside of the tree", func(t *testing.T) {
			testenv.NeedProgram(t, "setsid")
			checkFDs(t)
			// It leaves the group, so the kill does not reach it; the test ends it
			// through its input.
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			c := play("escape")
			c.ExtraFiles = []*os.File{r}
			var h collected
			p := kind.start(t, Config{Output: h.output}, c)
			r.Close()
			x := wait(t, p)
			if !x.StreamsLeftOpen || h.String() != "parent\n" {
				t.Errorf("the output is %q, exit %+v", h.String(), x)
			}
		})
	}
}

func TestStopKills(t *testing.T) {
	checkFDs(t)
	var h collected
	ready := make(chan struct{}, 10)
	cfg := Config{
		PipeStdin: true, Grace: 50 * time.Millisecond,
		Output: func(s executor.Stream, p []byte) { h.output(s, p); ready <- struct{}{} },
	}
	p := start(t, cfg, play("stubborn"))
	<-ready
	p.Stop()
	x := wait(t, p)
	if x.Signal != int(syscall.SIGKILL) || !x.Stopped || x.LastSignal != int(syscall.SIGKILL) {
		t.Errorf("exit %+v, want it killed", x)
	}
}

func TestInput(t *testing.T) {
	t.Run("copied", func(t *testing.T) {
		checkFDs(t)
		var h collected
		p := start(t, Config{PipeStdin: true, Output: h.output}, sh("cat"))
		want := bytes.Repeat([]byte("0123456789abcde\n"), 20_000)
		if err := writeAll(p, want); err != nil {
			t.Fatal(err)
		}
		if err := p.CloseInput(); err != nil {
			t.Fatal(err)
		}
		wait(t, p)
		if h.String() != string(want) {
			t.Errorf("%d bytes came back, want %d", len(h.all), len(want))
		}
		if err := p.CloseInput(); err != nil {
			t.Errorf("closing twice: %v", err)
		}
		if _, err := p.Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
			t.Errorf("writing after the end: %v, want os.ErrClosed", err)
		}
	})
	t.Run("not read", func(t *testing.T) {
		checkFDs(t)
		p := start(t, Config{PipeStdin: true}, sh("exit 0"))
		// More than any pipe takes: it ends because no process reads.
		if err := writeAll(p, make([]byte, 8<<20)); !errors.Is(err, io.ErrClosedPipe) &&
			!errors.Is(err, os.ErrClosed) {
			t.Errorf("a write that no process reads: %v", err)
		}
		wait(t, p)
	})
	t.Run("none", func(t *testing.T) {
		checkFDs(t)
		p := start(t, Config{}, sh("exit 0"))
		if _, err := p.Write([]byte("x")); !errors.Is(err, ErrNoInput) {
			t.Errorf("got %v, want ErrNoInput", err)
		}
		wait(t, p)
	})
}

// writeAll writes as often as a part is taken.
func writeAll(p *Process, b []byte) error {
	for {
		n, err := p.Write(b)
		if b = b[n:]; !errors.Is(err, io.ErrShortWrite) || n == 0 {
			return err
		}
	}
}

func TestFilesAreHandedOn(t *testing.T) {
	checkFDs(t)
	f, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var h collected
	wait(t, start(t, Config{Stdout: f, Output: h.output}, sh("echo out; echo err >&2")))
	got, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != "out\n" || h.String() != "err\n" {
		t.Errorf("the file has %q, the pipe had %q", got, h.String())
	}
}

// TestSlowOutput checks that a slow Output delays the command and loses nothing.
func TestSlowOutput(t *testing.T) {
	checkFDs(t)
	n := 0
	gate := make(chan struct{})
	cfg := Config{Output: func(_ executor.Stream, p []byte) {
		<-gate
		n += len(p)
	}}
	p := start(t, cfg, play("zeros", "4194304"))
	close(gate)
	wait(t, p)
	if n != 4<<20 {
		t.Errorf("%d bytes read, want %d", n, 4<<20)
	}
}

// BenchmarkCapture guards the claim that hearing a command costs at most half as
// much again as letting cat throw its output away.
func BenchmarkCapture(b *testing.B) {
	const size = 512 << 20
	b.Run("captured", func(b *testing.B) {
		b.SetBytes(size)
		var order Order
		defer order.Close()
		for b.Loop() {
			kept := output.NewCapture(output.Limit{Bytes: output.DefaultBytes})
			p := start(b, Config{Output: kept.Write, Order: &order},
				exec.Command("head", "-c", "512M", "/dev/zero"))
			if _, err := p.Wait(); err != nil {
				b.Fatal(err)
			}
			if n := kept.Snapshot().Stdout.Total; n != size {
				b.Fatalf("%d bytes captured, want %d", n, size)
			}
		}
	})
	b.Run("cat", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			if err := exec.Command("/bin/sh", "-c",
				"head -c 512M /dev/zero | cat >/dev/null").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
