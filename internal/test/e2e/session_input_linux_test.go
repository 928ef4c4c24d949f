// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// ready waits until the session has said so.
func ready(t *testing.T, s *sallyport.Session) {
	t.Helper()
	send(t, s, "", sallyport.Until{For: enough, Match: regexp.MustCompile("ready\r?\n")},
		sallyport.ReasonMatch)
}

// stubborn is a command that ends neither for a signal nor for a closed terminal.
const stubborn = `trap '' TERM HUP INT; echo ready; while :; do sleep 1000; done`

// TestSessionBadInput is about calls for which it is too late.
func TestSessionBadInput(t *testing.T) {
	testenv.RunAsOrdinary(t)
	r := sessionRunner(t)
	t.Run("after the end", func(t *testing.T) {
		for _, c := range []*sallyport.Cmd{{Args: []string{"true"}, TTY: new(sallyport.Size)},
			{Args: []string{"true"}, OpenStdin: true}} {
			s := begin(t, r, c)
			over(t, s)
			if _, err := s.Write([]byte("x")); !errors.Is(err, os.ErrProcessDone) {
				t.Errorf("write: %v", err)
			}
			for name, err := range map[string]error{
				"interrupt": s.Interrupt(), "signal": s.Signal(15), "resize": s.Resize(sallyport.Size{Cols: 9, Rows: 9}),
			} {
				if want := os.ErrProcessDone; !errors.Is(err, want) &&
					(name != "resize" || !errors.Is(err, errors.ErrUnsupported) || c.TTY != nil) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if err := s.CloseInput(); err != nil {
				t.Errorf("the end of input: %v", err)
			}
			if alive, err := s.Terminate(t.Context()); alive || err != nil {
				t.Errorf("terminate: %v, %v", alive, err)
			}
			send(t, s, "too late", sallyport.Until{}, sallyport.ReasonExited)
			for range 2 {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			if res, err := s.Wait(t.Context()); res == nil || err != nil {
				t.Errorf("wait: %v, %v", res, err)
			}
		}
	})
	t.Run("closed input", func(t *testing.T) {
		s := piped(t, r, "cat; echo ready; exec sleep 1000")
		for range 2 {
			if err := s.CloseInput(); err != nil {
				t.Error(err)
			}
		}
		ready(t, s)
		if n, err := s.Write([]byte("x")); n != 0 || !errors.Is(err, sallyport.ErrInputClosed) {
			t.Errorf("%d, %v", n, err)
		}
		if reply, err := s.Send(t.Context(), []byte("x"), sallyport.Until{}); reply != nil ||
			!errors.Is(err, sallyport.ErrInputClosed) {
			t.Errorf("%v, %v", reply, err)
		}
		// Nothing was lost and nothing was ended by it.
		if !s.Info().Running {
			t.Error("it has ended")
		}
		s.Close()
	})
	t.Run("no input", func(t *testing.T) {
		c := sh("readlink /proc/self/fd/0; cat; echo ready; exec sleep 1000")
		c.Dir = t.TempDir()
		s, err := r.Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ready(t, s)
		if n, err := s.Write([]byte("x")); n != 0 || !errors.Is(err, sallyport.ErrInputClosed) {
			t.Errorf("%d, %v", n, err)
		}
	})
}

// lateReader reads as many bytes as the file count says, when it is told to, and counts them.
const lateReader = `go=; trap 'go=1' USR1; echo ready; while [ -z "$go" ]; do sleep 1000 & wait; kill $!; done 2>/dev/null
head -c "$(cat count)" >got; echo done; exec sleep 1000`

// TestSessionPartTaken: a write to a command that does not read is over 2 seconds after the last
// byte that was taken, says how much that was, and the command finds that much.
func TestSessionPartTaken(t *testing.T) {
	testenv.RunAsOrdinary(t)
	r := sessionRunner(t)
	for name, c := range map[string]*sallyport.Cmd{
		"pipe":     {Script: lateReader, Shell: "sh", OpenStdin: true},
		"terminal": {Script: "stty raw -echo; " + lateReader, Shell: "sh", TTY: new(sallyport.Size)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the command reads nothing, for seconds
			c.Dir = t.TempDir()
			s, err := r.Start(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ready(t, s)
			data := make([]byte, 1<<20)
			for i := range data {
				data[i] = byte('a' + i%23)
			}
			begin := time.Now()
			n, err := s.Write(data)
			const least, slack = 2 * time.Second, time.Second // of a busy machine
			if took := time.Since(begin); !errors.Is(err, sallyport.ErrInputFull) || n == 0 ||
				n == len(data) || took < least || took > least+slack {
				t.Errorf("%d bytes, %v after %v", n, err, took)
			}
			if err := os.WriteFile(filepath.Join(c.Dir, "count"), []byte(strconv.Itoa(n+1000)),
				0o600); err != nil {
				t.Fatal(err)
			}
			if err := s.Signal(int(syscall.SIGUSR1)); err != nil {
				t.Fatal(err)
			}
			if m, err := s.Write(data[n : n+1000]); m != 1000 || err != nil {
				t.Fatalf("the rest: %d, %v", m, err)
			}
			send(t, s, "", sallyport.Until{For: enough, Match: regexp.MustCompile("done")},
				sallyport.ReasonMatch)
			if got, err := os.ReadFile(filepath.Join(c.Dir, "got")); err != nil ||
				!bytes.Equal(got, data[:n+1000]) {
				t.Errorf("%d bytes arrived, want %d; %v", len(got), n+1000, err)
			}
		})
	}
}

// TestSessionBadArguments is about arguments that cannot be what was meant.
func TestSessionBadArguments(t *testing.T) {
	r := sessionRunner(t)
	t.Run("size zero", func(t *testing.T) {
		s := begin(t, r, sallyport.Command("sh", "-c",
			"stty size; read x; stty size; read x; stty size; read x"))
		send(t, s, "", sallyport.Until{For: enough, Match: regexp.MustCompile("24 80\r\n")},
			sallyport.ReasonMatch)
		for _, step := range []struct {
			size sallyport.Size
			want string
		}{{sallyport.Size{Cols: 7}, "24 7\r\n"}, {sallyport.Size{}, "24 80\r\n"}} {
			if err := s.Resize(step.size); err != nil {
				t.Error(err)
			}
			typed(t, s, "\n")
			send(t, s, "", sallyport.Until{For: enough, Match: regexp.MustCompile(step.want)},
				sallyport.ReasonMatch)
		}
	})
	t.Run("conditions", func(t *testing.T) {
		s := piped(t, r, "cat")
		defer s.Close()
		var bad *sallyport.UntilError
		if reply, err := s.Send(t.Context(), []byte("never sent"),
			sallyport.Until{Quiet: -time.Second}); reply != nil || !errors.As(err, &bad) ||
			bad.Field != "Quiet" {
			t.Errorf("%v, %v", reply, err)
		}
		if out := send(t, s, "sent", sallyport.Until{FirstOutput: true},
			sallyport.ReasonOutput); out != "sent" {
			t.Errorf("%q", out)
		}
	})
	t.Run("a line that is too long", func(t *testing.T) {
		s := begin(t, r, sallyport.Command("sh", "-c", "stty -echo; echo ready; cat"))
		defer s.Close()
		ready(t, s)
		if n, err := s.Write(bytes.Repeat([]byte("x"), 5000)); n != 0 || err == nil ||
			!strings.Contains(err.Error(), "4095") {
			t.Errorf("%d, %v", n, err)
		}
	})
	t.Run("unknown", func(t *testing.T) {
		s := piped(t, r, "cat")
		id := s.ID()
		if got, ok := r.Session(id); !ok || got != s {
			t.Errorf("%v, %v", got, ok)
		}
		s.Close()
		for _, id := range []string{id, "", "-1", "999", "0" + id, "100000", "x"} {
			if got, ok := r.Session(id); ok || got != nil {
				t.Errorf("%q is %v", id, got)
			}
		}
	})
}

// TestSessionBytes: what is no text comes through unchanged, both ways.
func TestSessionBytes(t *testing.T) {
	testenv.RunAsOrdinary(t)
	r := sessionRunner(t)
	var all []byte
	for i := range 256 {
		all = append(all, byte(i))
	}
	all = append(all, "\xc3\x28\xed\xa0\x80\xff\xfe\xf8\x88\x80\x80\x80A\xcc"...)
	for _, c := range []struct {
		name string
		cmd  *sallyport.Cmd
	}{
		{"pipe", &sallyport.Cmd{Script: "echo ready; exec cat -u", Shell: "sh", OpenStdin: true}},
		{"terminal", &sallyport.Cmd{Script: "stty raw -echo; echo ready; exec cat -u", Shell: "sh", TTY: new(sallyport.Size)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t, r, c.cmd)
			defer s.Close()
			ready(t, s)
			start, _ := s.Size()
			reply, err := s.Send(t.Context(), all, sallyport.Until{For: enough, Bytes: uint64(len(all))})
			if err != nil || reply.Reason != sallyport.ReasonBytes ||
				!bytes.Equal(reply.Output.Bytes(), all) {
				t.Errorf("%+v, %v", reply, err)
			}
			if text := reply.Output.String(); !strings.Contains(text, "ABCDEF") ||
				strings.ToValidUTF8(text, "") != text {
				t.Errorf("%q", text)
			}
			var got []byte
			for d, err := range s.Deltas(t.Context(), start) {
				if got = append(got, d.Data...); err != nil || len(got) >= len(all) {
					break
				}
			}
			if !bytes.Equal(got, all) {
				t.Errorf("a reader got %q", got)
			}
		})
	}
}

// TestSessionStubborn: what ends for no signal is killed after the grace.
func TestSessionStubborn(t *testing.T) {
	testenv.RunAsOrdinary(t)
	r := sessionRunner(t)
	for _, tty := range []*sallyport.Size{nil, {}} {
		c := sh(stubborn)
		c.TTY, c.OpenStdin, c.Grace = tty, tty == nil, time.Millisecond
		s := begin(t, r, c)
		ready(t, s)
		if err := s.Interrupt(); err != nil {
			t.Error(err)
		}
		if alive, err := s.Terminate(t.Context()); !alive || err != nil {
			t.Errorf("%v, %v", alive, err)
		}
		res, _ := s.Wait(t.Context())
		if res == nil || res.Signal != 9 || res.ExitCode != 137 || res.End != sallyport.EndCanceled ||
			s.Info().Running || s.Info().ExitCode != 137 {
			t.Errorf("%+v, %+v", res, s.Info())
		}
	}
}

// TestSessionNoGrace: with no grace nothing is asked.
func TestSessionNoGrace(t *testing.T) {
	r := sessionRunner(t)
	for grace, want := range map[time.Duration]string{-1: "ready\n", enough: "ready\nasked\n"} {
		c := sh(`trap 'echo asked; exit 0' TERM; echo ready; while :; do :; done`)
		c.OpenStdin, c.Grace = true, grace
		s := begin(t, r, c)
		for d, err := range s.Deltas(t.Context(), 0) {
			if err != nil || d.Offset+uint64(len(d.Data)) == uint64(len("ready\n")) {
				break
			}
		}
		if alive, err := s.Terminate(t.Context()); !alive || err != nil {
			t.Errorf("%v, %v", alive, err)
		}
		if out := send(t, s, "", sallyport.Until{}, sallyport.ReasonExited); out != want {
			t.Errorf("grace %v: %q", grace, out)
		}
	}
}

// TestSessionWaitsLeaveNothing: a wait that is over looks at the command no more.
func TestSessionWaitsLeaveNothing(t *testing.T) {
	r := sessionRunner(t)
	s := piped(t, r, "exec sleep 1000")
	defer s.Close()
	before := runtime.NumGoroutine()
	const waits = 50
	for range waits {
		send(t, s, "", sallyport.Until{For: time.Nanosecond, Input: true, Port: true},
			sallyport.ReasonDeadline)
	}
	late := time.After(enough)
	for runtime.NumGoroutine() >= before+waits {
		select {
		case <-late:
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		default:
			runtime.Gosched()
		}
	}
}

// TestSessionSurvivor: a process that has the terminal open keeps no session from its
// end, and is counted.
func TestSessionSurvivor(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, "setsid")
	r := sessionRunner(t)
	mark := "987" + strconv.Itoa(os.Getpid())
	for _, tty := range []*sallyport.Size{nil, {}} {
		c := sh("trap '' HUP; setsid sh -c 'trap \"\" HUP TERM; echo ready; exec sleep " +
			mark + "' & read x")
		c.TTY, c.OpenStdin, c.Grace = tty, tty == nil, time.Millisecond
		s := begin(t, r, c)
		ready(t, s)
		typed(t, s, "\n")
		res := over(t, s)
		if len(res.Survivors) != 1 || !strings.Contains(res.Survivors[0].Command, mark) {
			t.Errorf("terminal %v: %+v", tty != nil, res.Survivors)
		}
		if left := marked(t, mark); len(left) > 0 {
			t.Errorf("left over: %v", left)
		}
	}
}

// TestSessionNobodyReads: output that nobody reads costs bounded memory, and keeps the
// command from nothing.
func TestSessionNobodyReads(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	r := sessionRunner(t)
	over(t, piped(t, r, "seq 1 200000")) // whatever is made once is made
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse
	}
	before := heap()
	const size = 64 << 20
	s := piped(t, r, fmt.Sprintf("head -c %d /dev/zero | tr '\\0' 'x'; echo; echo the end", size))
	res := over(t, s)
	after := heap()
	if after > before+16<<20 {
		t.Errorf("%d KiB of heap before and %d after", before>>10, after>>10)
	}
	if tail := res.Output.Tail(); res.Output.Total != size+uint64(len("\nthe end\n")) ||
		!bytes.HasSuffix(tail, []byte("x\nthe end\n")) {
		t.Errorf("%d bytes, the last are %q", res.Output.Total, tail[max(0, len(tail)-20):])
	}
	runtime.KeepAlive(s)
}

// TestSessionTwoWriters: what two write at once comes whole.
func TestSessionTwoWriters(t *testing.T) {
	r := sessionRunner(t)
	for _, c := range []struct {
		name string
		cmd  *sallyport.Cmd
	}{
		{"pipe", &sallyport.Cmd{Script: "echo ready; exec cat", Shell: "sh", OpenStdin: true}},
		{"terminal", &sallyport.Cmd{Script: "stty raw -echo; echo ready; exec cat", Shell: "sh", TTY: new(sallyport.Size)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t, r, c.cmd)
			defer s.Close()
			ready(t, s)
			start, _ := s.Size()
			const lines = 300
			filler := strings.Repeat("-", 2000)
			var writers sync.WaitGroup
			sum := 0
			for w := range 2 {
				for i := range lines {
					sum += len(fmt.Sprintf("%d %d %s\n", w, i, filler))
				}
				writers.Go(func() {
					for i := range lines {
						line := fmt.Sprintf("%d %d %s\n", w, i, filler)
						if n, err := s.Write([]byte(line)); n != len(line) || err != nil {
							t.Errorf("%d, %v", n, err)
							return
						}
					}
				})
			}
			var got []byte
			for d, err := range s.Deltas(t.Context(), start) {
				if got = append(got, d.Data...); err != nil || len(got) >= sum {
					break
				}
			}
			writers.Wait()
			next := [2]int{}
			for line := range strings.Lines(string(got)) {
				var w, i int
				var rest string
				if n, err := fmt.Sscanf(line, "%d %d %s\n", &w, &i, &rest); n != 3 || err != nil || w > 1 ||
					next[w] != i || rest != filler {
					t.Fatalf("%.80q", line)
				}
				next[w]++
			}
			if next != [2]int{lines, lines} {
				t.Errorf("lines: %v", next)
			}
		})
	}
}

// TestSessionCancel ends each call in its middle by its context.
func TestSessionCancel(t *testing.T) {
	testenv.RunAsOrdinary(t)
	r := sessionRunner(t)
	full := bytes.Repeat([]byte("x"), 4<<20)
	for _, c := range []struct {
		name string
		call func(ctx context.Context, s *sallyport.Session) error
	}{
		{"Send", func(ctx context.Context, s *sallyport.Session) error {
			_, err := s.Send(ctx, full, sallyport.Until{For: -1})
			return err
		}},
		{"Await", func(ctx context.Context, s *sallyport.Session) error {
			_, err := s.Await(ctx, sallyport.Until{For: -1, Input: true, Port: true, Quiet: time.Hour,
				Match: regexp.MustCompile("never")})
			return err
		}},
		{"Yield", func(ctx context.Context, s *sallyport.Session) error {
			_, err := s.Yield(ctx, time.Hour)
			return err
		}},
		{"Deltas", func(ctx context.Context, s *sallyport.Session) (err error) {
			for _, err = range s.Deltas(ctx, 0) {
			}
			return err
		}},
		{"Wait", func(ctx context.Context, s *sallyport.Session) error {
			_, err := s.Wait(ctx)
			return err
		}},
		{"Terminate", func(ctx context.Context, s *sallyport.Session) error {
			alive, err := s.Terminate(ctx)
			if !alive {
				return errors.New("it was not alive")
			}
			return err
		}},
		{"TerminateAll", func(ctx context.Context, s *sallyport.Session) error {
			_, err := r.TerminateAll(ctx)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := sh(stubborn)
			// only Close would wait for it, which is not called before the kill
			cmd.OpenStdin, cmd.Grace = true, time.Hour
			s := begin(t, r, cmd)
			defer func() {
				if err := s.Signal(9); err != nil {
					t.Error(err)
				}
				if _, err := s.Wait(t.Context()); err != nil && !errors.Is(err, sallyport.ErrClosed) {
					t.Error(err)
				}
				s.Close()
			}()
			// The output is there, and nobody has had it.
			for d, err := range s.Deltas(t.Context(), 0) {
				if err != nil || d.Offset+uint64(len(d.Data)) >= uint64(len("ready\n")) {
					break
				}
			}
			cancels(t, func(ctx context.Context) error { return c.call(ctx, s) })
			if reply, err := s.Await(t.Context(),
				sallyport.Until{For: enough, FirstOutput: true}); err != nil ||
				reply.Output.String() != "ready\n" {
				t.Errorf("what came before is lost: %+v, %v", reply, err)
			}
		})
	}
}

// TestSessionCancelOther is about calls that have no session, or have it all.
func TestSessionCancelOther(t *testing.T) {
	r := sessionRunner(t)
	r.MaxSessions = 1 // a start that gave its place back does not stop the next one
	t.Run("Start", func(t *testing.T) {
		cancels(t, func(ctx context.Context) error {
			_, err := r.Start(ctx, &sallyport.Cmd{Args: []string{"cat"}, Dir: t.TempDir(),
				Ready: make(chan struct{})})
			return err
		})
		if known := r.Sessions(); len(known) > 0 {
			t.Errorf("%+v", known)
		}
	})
	t.Run("Send to a full terminal", func(t *testing.T) {
		s := begin(t, r, sallyport.Command("sh", "-c", "stty -icanon -echo; echo ready; exec sleep 1000"))
		defer s.Close()
		ready(t, s)
		cancels(t, func(ctx context.Context) error {
			_, err := s.Send(ctx, bytes.Repeat([]byte("x"), 1<<20), sallyport.Until{For: -1})
			return err
		})
		// Nothing of it is left that could hold up an end.
		if alive, err := s.Terminate(t.Context()); !alive || err != nil {
			t.Errorf("%v, %v", alive, err)
		}
	})
	t.Run("Search", func(t *testing.T) {
		s := piped(t, r, "seq 1 300000")
		over(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if found, err := s.Search(ctx, regexp.MustCompile("7"), 0); !errors.Is(err,
			context.Canceled) || found.More {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

// cancels fails the test unless a call that is under way ends with its context.
func cancels(t *testing.T, call func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- call(ctx) }()
	for range 100 { // so that it is likely to be in its middle; it must not matter
		runtime.Gosched()
	}
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	case <-time.After(enough):
		t.Error("it goes on")
	}
}

// TestRunLongInput: the whole of Cmd.Stdin reaches a command that reads slowly, piece by piece.
func TestRunLongInput(t *testing.T) {
	testenv.RunAsOrdinary(t)
	r := sessionRunner(t)
	data := bytes.Repeat([]byte("0123456789abcde\n"), 64<<10) // 16 pipes
	c := sh("dd bs=3000 status=none of=got")
	c.Dir, c.Stdin = t.TempDir(), bytes.NewReader(data)
	if res, err := r.Run(t.Context(), c); err != nil || res.ExitCode != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	if got, err := os.ReadFile(filepath.Join(c.Dir, "got")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes arrived, want %d; %v", len(got), len(data), err)
	}
}
