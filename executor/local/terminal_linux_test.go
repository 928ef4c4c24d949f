// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A shown is the output of a terminal so far.
type shown struct {
	mu   sync.Mutex
	text []byte
	more chan struct{}
}

func (s *shown) output(_ executor.Stream, p []byte) {
	s.mu.Lock()
	s.text = append(s.text, p...)
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *shown) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.text)
}

// expect waits for text that matches, after what it returned before.
func (s *shown) expect(t *testing.T, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	patience := time.NewTimer(enough)
	defer patience.Stop()
	for {
		s.mu.Lock()
		at := re.FindSubmatchIndex(s.text)
		if at != nil {
			var groups []string
			for i := 0; i < len(at); i += 2 {
				groups = append(groups, string(s.text[at[i]:at[i+1]]))
			}
			s.text = s.text[at[1]:]
			s.mu.Unlock()
			return groups
		}
		s.mu.Unlock()
		select {
		case <-s.more:
		case <-patience.C:
			t.Fatalf("there is no %q in %q", pattern, s)
		}
	}
}

// onTerminal starts a command on a terminal of its own.
func onTerminal(t *testing.T, e *Executor, level string, args ...string) (executor.Process, *shown) {
	t.Helper()
	s := &shown{more: make(chan struct{}, 1)}
	policy := sandbox.ReadOnly()
	if level == "" {
		policy = sandbox.FullAccess()
	}
	spec := newSpec(policy, args...)
	spec.Level = level
	spec.TTY = &executor.Size{Cols: 90, Rows: 30}
	spec.OnOutput = s.output
	p, err := e.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return p, s
}

func types(t *testing.T, p executor.Process, text string) {
	t.Helper()
	if n, err := p.Write([]byte(text)); err != nil || n != len(text) {
		t.Fatalf("%d of %q were written, %v", n, text, err)
	}
}

// TestTerminal drives programs on a terminal at every level.
func TestTerminal(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, level := range survivorLevels {
		t.Run(levelName(level), func(t *testing.T) {
			e := executorAt(t, level)
			t.Run("looks like one", func(t *testing.T) {
				p, s := onTerminal(t, e, level, "sh", "-c",
					`test -t 0 && test -t 1 && test -t 2 && stty size`)
				s.expect(t, "30 90\r\n")
				if x := wait(t, p); x.Code != 0 {
					t.Errorf("%+v; %q", x, s)
				}
				if weaker := strings.Contains(strings.Join(p.Sandbox().Weaker, "\n"),
					"job control"); weaker != (level == "bwrap") {
					t.Errorf("%q", p.Sandbox().Weaker)
				}
			})
			if level == "bwrap" {
				return // it starts its commands in a session without a terminal
			}
			testKeys(t, e, level)
			t.Run("job control", func(t *testing.T) { testJobs(t, e, level) })
			t.Run("stop", func(t *testing.T) {
				// Interactive shells ignore SIGTERM, and end by SIGHUP.
				p, s := onTerminal(t, e, level, "sh", "-c",
					`trap "" TERM; trap "echo bye; exit 5" HUP; echo ready; while :; do sleep 0.01; done`)
				s.expect(t, "ready\r\n")
				p.Stop()
				if x := wait(t, p); x.Code != 5 || !x.Stopped || x.LastSignal != int(syscall.SIGTERM) ||
					!strings.Contains(s.String(), "bye") {
					t.Errorf("code %d, stopped %v, last signal %d, %q", x.Code, x.Stopped, x.LastSignal, s)
				}
			})
		})
	}
}

// TestTerminalAttacks checks that the master end stays outside, and that no process can
// inject input from inside.
func TestTerminalAttacks(t *testing.T) {
	testenv.RunAsOrdinary(t)
	python := testenv.NeedProgram(t, "python3")
	for _, level := range survivorLevels {
		t.Run(levelName(level), func(t *testing.T) {
			e := executorAt(t, level)
			t.Run("descriptors", func(t *testing.T) {
				p, s := onTerminal(t, e, level, "sh", "-c",
					`i=0; while [ $i -lt 64 ]; do readlink /proc/self/fd/$i; i=$((i+1)); done; echo end`)
				wait(t, p)
				if got := s.String(); strings.Contains(got, "ptmx") || strings.Count(got, "\n") != 4 {
					t.Errorf("%q", got)
				}
			})
			if level == "" {
				return // it may inject input into its own terminal
			}
			t.Run("typing", func(t *testing.T) {
				p, s := onTerminal(t, e, level, python, "-c", `if True:
					import fcntl, os
					for fd in 0, 1, 2:
						try: fcntl.ioctl(fd, 0x5412, b"x"); print("WIN")
						except OSError as err: print(err.errno)`)
				wait(t, p)
				if got := s.String(); got != "1\r\n1\r\n1\r\n" {
					t.Errorf("%q", got)
				}
			})
		})
	}
}

// testKeys tests what only a controlling terminal does.
func testKeys(t *testing.T, e *Executor, level string) {
	t.Helper()
	t.Run("is one", func(t *testing.T) {
		p, s := onTerminal(t, e, level, "sh", "-c",
			`test -t 0 && test -t 1 && test -t 2 && stty size && echo to the terminal >/dev/tty; exit 3`)
		s.expect(t, "30 90\r\n")
		s.expect(t, "to the terminal\r\n")
		if x := wait(t, p); x.Code != 3 || x.StreamsLeftOpen || len(x.Survivors) > 0 {
			t.Errorf("%+v; %q", x, s)
		}
	})
	t.Run("size", func(t *testing.T) {
		p, s := onTerminal(t, e, level, "sh", "-c",
			`trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.01; done`)
		s.expect(t, "ready")
		if err := p.Resize(executor.Size{Cols: 100, Rows: 40}); err != nil {
			t.Fatal(err)
		}
		s.expect(t, "40 100\r\n")
		wait(t, p)
		if err := p.Resize(executor.Size{}); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("after the end: %v", err)
		}
	})
	t.Run("input", func(t *testing.T) {
		p, s := onTerminal(t, e, level, "cat")
		types(t, p, "one\n")
		s.expect(t, "one\r\none\r\n") // the echo, and the answer
		types(t, p, "in the middle")
		s.expect(t, "in the middle")
		if err := p.CloseInput(); err != nil {
			t.Fatal(err)
		}
		s.expect(t, "in the middle")
		if x := wait(t, p); x.Code != 0 {
			t.Errorf("%+v", x)
		}
		if _, err := p.Write([]byte("late")); !errors.Is(err, os.ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
	})
	t.Run("keys are signals", func(t *testing.T) {
		for _, c := range []struct {
			name string
			send func(p executor.Process) error
		}{
			{"typed", func(p executor.Process) error { _, err := p.Write([]byte{3}); return err }},
			{"sent", func(p executor.Process) error { return p.Signal(int(syscall.SIGINT)) }},
		} {
			t.Run(c.name, func(t *testing.T) {
				p, s := onTerminal(t, e, level, "sh", "-c", `echo ready; exec sleep 60`)
				s.expect(t, "ready")
				if err := c.send(p); err != nil {
					t.Fatal(err)
				}
				if x := wait(t, p); x.Code != 130 || x.Signal != int(syscall.SIGINT) {
					t.Errorf("%+v", x)
				}
			})
		}
	})
}

// testJobs checks that a shell stops a job, continues it, and lets it be interrupted. Keys
// are typed only after output of the job, which is in the foreground then; earlier they
// would reach the shell. The job does not fork: a vfork child that is stopped before its
// exec would prevent the job from stopping.
func testJobs(t *testing.T, e *Executor, level string) {
	t.Helper()
	p, s := onTerminal(t, e, level, testenv.NeedProgram(t, "bash"), "--norc", "--noprofile", "-i")
	s.expect(t, `[$#] $`) // the prompt
	types(t, p, "sh -c 'trap \"echo on\" CONT; echo up; while :; do :; done'\n")
	s.expect(t, `[\n\r]up\r\n`)
	types(t, p, "\x1a")
	s.expect(t, `(?s)Stopped.*[$#] $`)
	types(t, p, "fg\n")
	s.expect(t, `[\n\r]on\r\n`) // the shell gives the job the terminal before it continues it
	types(t, p, "\x03")
	s.expect(t, `[$#] $`)
	types(t, p, "echo was $?; tty; echo code $?\n")
	s.expect(t, `[\n\r]was 130\r\n`)
	s.expect(t, `/dev/pts/\d+\r\n`)
	s.expect(t, "code 0\r\n")
	types(t, p, "exit 7\n")
	if x := wait(t, p); x.Code != 7 || strings.Contains(s.String(), "no job control") {
		t.Errorf("%+v; %q", x, s)
	}
}

// TestTerminalLate checks that all output before the end is delivered.
func TestTerminalLate(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, level := range survivorLevels {
		t.Run(levelName(level), func(t *testing.T) {
			e := executorAt(t, level)
			for _, c := range []struct{ name, script, want string }{
				{"at the end", `i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done`, "line 1999\r\n"},
				{"nothing", `:`, ""},
				{"no end of line", `printf last`, "last"},
				{"closed and opened again", `T=$(tty); exec </dev/null >/dev/null 2>&1; sleep 0.1; echo again >$T`, "again\r\n"},
			} {
				t.Run(c.name, func(t *testing.T) {
					if c.name == "closed and opened again" && level == "bwrap" {
						return // the terminal has no name there
					}
					for range 5 {
						p, s := onTerminal(t, e, level, "sh", "-c", c.script)
						wait(t, p)
						if got := s.String(); !strings.HasSuffix(got, c.want) || c.want == "" && got != "" ||
							c.name == "at the end" && strings.Count(got, "\n") != 2000 {
							t.Fatalf("%d bytes, the end is %q", len(got), got[max(0, len(got)-40):])
						}
					}
				})
			}
		})
	}
}

// TestTerminalLongLine checks that input that a terminal would discard is refused.
func TestTerminalLongLine(t *testing.T) {
	e := executorAt(t, "native")
	p, s := onTerminal(t, e, "native", "sh", "-c", "stty -echo; echo ready; cat >/dev/null")
	s.expect(t, "ready")
	long := strings.Repeat("x", 4096)
	if n, err := p.Write([]byte(long)); n != 0 || err == nil || !strings.Contains(err.Error(), "4095") {
		t.Errorf("%d, %v", n, err)
	}
	types(t, p, long[:4095]+"\n")
	types(t, p, strings.Repeat("short\n", 100))
	if err := p.CloseInput(); err != nil {
		t.Fatal(err)
	}
	if x := wait(t, p); x.Code != 0 {
		t.Errorf("%+v", x)
	}
}
