// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// unchanged checks that the terminal is as it was before the program.
func unchanged(t *testing.T, x *testenv.Terminal) {
	t.Helper()
	if before, after := x.ModesBefore(), x.Modes(); before != after {
		t.Errorf("the modes of the terminal are %+v, and were %+v", after, before)
	}
}

// isRaw reports whether a terminal hands keys on as they are.
func isRaw(m unix.Termios) bool { return m.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG) == 0 }

// TestFullScreen works with programs that draw: an editor and a pager. They give the
// screen and the terminal back.
func TestFullScreen(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	const (
		away = "\x1b[?1049h" // another screen
		back = "\x1b[?1049l"
	)
	t.Run("vim", func(t *testing.T) {
		s := newSeat(t)
		testenv.NeedProgram(t, "vim")
		name := filepath.Join(s.work, "note.txt")
		if err := os.WriteFile(name, []byte("first\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		x := s.run(t, "--", "vim", "-u", "NONE", "-i", "NONE", "-N", "note.txt")
		play(x, []turn{{`first`, "osecond"}, {`second`, ""}})
		view := text.NewScreen(80, 24)
		_, _ = view.Write([]byte(x.Transcript())) // it cannot fail
		compare(t, filepath.Join("testdata", "terminal", "vim.txt"),
			strings.Join(view.Snapshot().Lines, "\n")+"\n")
		x.Send("\x1b:wq\r")
		if code := x.Wait(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		unchanged(t, x)
		if text, err := os.ReadFile(name); err != nil || string(text) != "first\nsecond\n" {
			t.Errorf("%q, %v", text, err)
		}
		if seen := x.Transcript(); strings.Count(seen, away) != 1 || strings.Count(seen, back) != 1 ||
			strings.LastIndex(seen, back) < strings.Index(seen, "second") {
			t.Errorf("no other screen and back in %q", seen)
		}
	})
	t.Run("less", func(t *testing.T) {
		s := newSeat(t)
		testenv.NeedProgram(t, "less")
		var text strings.Builder
		for i := range 200 {
			fmt.Fprintf(&text, "line %d.\n", i)
		}
		if err := os.WriteFile(filepath.Join(s.work, "long"), []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		x := s.run(t, "--", "less", "long")
		x.Expect(`line 22\.`)
		x.Send("G")
		x.Expect(`line 199\.`)
		x.Send("q")
		if code := x.Wait(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		unchanged(t, x)
		if seen := x.Transcript(); strings.Contains(seen, "line 100.") || strings.Count(seen, back) != 1 {
			t.Errorf("%q", seen)
		}
	})
}

// TestWindow changes the size of the window.
func TestWindow(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	s := newSeat(t)
	// A shell that reads would miss a signal in the moment before it does.
	x := s.run(t, "--", "sh", "-c",
		`trap "stty size; told=1" WINCH; stty size; until test "$told"; do sleep 0.01; done; trap - WINCH; read a; stty size`)
	x.Expect(`^24 80\r\n`)
	x.Resize(120, 50)
	x.Expect(`^50 120\r\n`)
	x.Send("\r")
	x.Expect(`\r\n50 120\r\n`)
	if code := x.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestUnknownSize: a terminal that does not know its size, and none at all, make one
// of the usual size.
func TestUnknownSize(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	s := newSeat(t)
	x := testenv.StartTerminal(t, s.command(t, "sallyport", "run", "--", "stty", "size"), 0, 0)
	x.Expect(`^24 80\r\n`)
	x.Wait()
	out, err := s.command(t, "sallyport", "run", "-t", "--", "stty", "size").Output()
	if err != nil || string(out) != "24 80\r\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestStreamsBeside: standard streams that go elsewhere.
func TestStreamsBeside(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedInotify(t)
	const which = `for i in 0 1 2; do test -t $i && echo $i; done; `
	t.Run("input from a pipe", func(t *testing.T) {
		s := newSeat(t)
		cmd := s.command(t, "sallyport", "run", "-t", "--", "sh", "-c",
			`test -t 0 && test -t 1 && test -t 2 && stty -echo && echo "$(tty) ok"; cat; echo end`)
		cmd.Stdin = strings.NewReader("a line\nno line")
		x := testenv.StartTerminal(t, cmd, 80, 24)
		// What was typed before the echo went off is shown once more.
		x.Expect(`/dev/pts/0 ok\r+\n(?s:.*)a line\r+\nno lineend\r+\n`)
		if code := x.Wait(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		unchanged(t, x)
	})
	t.Run("a pipe without -t", func(t *testing.T) {
		s := newSeat(t)
		cmd := s.command(t, "sallyport", "run", "--", "sh", "-c",
			`test -t 0 || cat; tty </dev/tty || echo none`)
		cmd.Stdin = strings.NewReader("a line\n")
		x := testenv.StartTerminal(t, cmd, 80, 24)
		x.Expect(`^a line\r\n(?s:.*)none\r\n`)
		x.Wait()
	})
	t.Run("errors to a file", func(t *testing.T) {
		s := newSeat(t)
		name := filepath.Join(s.work, "errors")
		file, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		cmd := s.command(t, "sallyport", "run", "--", "sh", "-c", which+`echo oops >&2; tty`)
		cmd.Stderr = file
		x := testenv.StartTerminal(t, cmd, 80, 24)
		x.Expect(`^0\r\n1\r\n/dev/pts/0\r\n`)
		x.Wait()
		unchanged(t, x)
		if text, err := os.ReadFile(name); err != nil || string(text) != "oops\n" {
			t.Errorf("%q, %v", text, err)
		}
	})
	t.Run("all to one file", func(t *testing.T) {
		s := newSeat(t)
		cmd := s.command(t, "sallyport", "run", "-t", "--", "sh", "-c", which+`echo oops >&2`)
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != "0\r\n1\r\n2\r\noops\r\n" {
			t.Errorf("%q, %v", out, err)
		}
	})
	t.Run("output to a pipe", func(t *testing.T) {
		s := newSeat(t)
		cmd := s.command(t, "sallyport", "run", "-t", "--", "sh", "-c", which+`read a; echo "got $a"`)
		var out bytes.Buffer
		cmd.Stdout = &out
		x := testenv.StartTerminal(t, cmd, 80, 24)
		x.Send("key\r")
		if code := x.Wait(); code != 0 || !strings.HasSuffix(out.String(), "got key\r\n") ||
			x.Transcript() != "" && x.Transcript() != "key\r\n" {
			t.Errorf("%d, %q, %q", code, out.String(), x.Transcript())
		}
		unchanged(t, x)
	})
}

// TestCaptured: with -t, an object has what the terminal has shown, in one stream.
func TestCaptured(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	s := newSeat(t)
	for _, form := range []string{"--json", "--jsonl"} {
		t.Run(form, func(t *testing.T) {
			x := s.run(t, "-t", form, "--", "sh", "-c",
				"echo err >&2; test -t 2 && tty; read a; echo $a; exit 6")
			if form == "--jsonl" {
				x.Expect(`dev/pts/0`)
			}
			x.Send("word\r")
			object := x.Expect(`(?m)^\{[^\n]*"stdout_bytes":[^\n]*\}\r$`)[0]
			if code := x.Wait(); code != 6 {
				t.Errorf("exit code %d", code)
			}
			unchanged(t, x)
			var got struct{ Stdout, Stderr string }
			if err := json.Unmarshal([]byte(strings.TrimSpace(object)), &got); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(got.Stdout, "err\r\n") || !strings.Contains(got.Stdout, "/dev/pts/0\r\n") ||
				!strings.HasSuffix(got.Stdout, "word\r\n") || got.Stderr != "" {
				t.Errorf("%+v", got)
			}
		})
	}
	t.Run("the default", func(t *testing.T) {
		x := s.run(t, "--json", "--", "sh", "-c", "test -t 1; echo $?")
		x.Expect(`"stdout":"1\\n"`)
		x.Wait()
	})
}

// TestSwitch: -t=false passes on our own terminal, which is no terminal of the sandbox.
func TestSwitch(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	s := newSeat(t)
	for _, flag := range []string{"-t=false", "--tty=false"} {
		t.Run(flag, func(t *testing.T) {
			x := s.run(t, flag, "--", "sh", "-c",
				"test -t 0 && test -t 1 && echo passed; (echo x >/dev/tty) 2>/dev/null || echo none; echo go; read a; echo got $a")
			x.Expect(`^passed\r\nnone\r\ngo\r\n`)
			if m := x.Modes(); isRaw(m) {
				t.Errorf("the modes are %+v", m)
			}
			x.Send("word\r")
			x.Expect(`^word\r\ngot word\r\n`)
			if code := x.Wait(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
	for flag, want := range map[string]string{"-t=maybe": `-t: invalid value "maybe" (true, false)`,
		"--tty=": "", "-tq": ""} {
		t.Run(flag, func(t *testing.T) {
			out, err := s.command(t, "sallyport", "run", flag, "--", "true").CombinedOutput()
			if (err != nil) != (want != "") || !strings.Contains(string(out), want) {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
}

// TestTerm: what kind of terminal it is the command learns in any case, and what a flag
// says wins.
func TestTerm(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	s := newSeat(t)
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"as usual", nil, "xterm"},
		{"nothing else", []string{"--env-inherit", "none"}, "xterm"},
		{"another one", []string{"-e", "TERM=dumb"}, "dumb"},
		{"no terminal", []string{"-t=false", "--env-inherit", "none"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := s.run(t, append(tt.args, "--", "/bin/sh", "-c",
				`echo "[$TERM]"; env | { n=0; while read -r l; do case $l in TERM=*) n=$((n+1)); esac; done; echo $n; }`)...)
			n := 1
			if tt.want == "" {
				n = 0
			}
			x.Expect(fmt.Sprintf(`^\[%s\]\r\n%d\r\n`, tt.want, n))
			x.Wait()
		})
	}
}

// TestSignalsOnTerminal sends signals to the front end, from outside.
func TestSignalsOnTerminal(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	tests := []struct {
		name   string
		signal syscall.Signal
		script string
		code   int
		says   string
	}{
		{"terminate", syscall.SIGTERM, "echo go; exec sleep 600", 143, ""},
		{"hang up", syscall.SIGHUP, "echo go; exec sleep 600", 129, ""},
		{"interrupt", syscall.SIGINT, "echo go; exec sleep 600", 130, ""},
		{"quit", syscall.SIGQUIT, "echo go; exec sleep 600", 131, ""},
		{"it is handled", syscall.SIGTERM, `trap "echo bye; exit 3" TERM; echo go; while :; do :; done`, 3, "bye\r\n"},
		{"window is no signal", syscall.SIGWINCH, `trap "echo winch" WINCH; echo go; read a; exit 4`, 4, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSeat(t)
			x := s.run(t, "--", "sh", "-c", tt.script)
			x.Expect(`go\r\n`)
			if m := x.Modes(); !isRaw(m) {
				t.Errorf("the modes are %+v", m)
			}
			x.Signal(tt.signal)
			if tt.signal == syscall.SIGWINCH {
				x.Send("\r")
			}
			if code := x.Wait(); code != tt.code || !strings.Contains(x.Transcript(), tt.says) ||
				strings.Contains(x.Transcript(), "winch") {
				t.Errorf("exit code %d, %q", code, x.Transcript())
			}
			unchanged(t, x)
		})
	}
}

// TestOuterShell: a shell around it stops the front end and lets it go on, and starts
// it in the background.
func TestOuterShell(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	s := newSeat(t)
	testenv.NeedProgram(t, "bash")
	x := testenv.StartTerminal(t, s.command(t, append(plainBash, "-i")...), 80, 24)
	x.Expect(prompt)
	x.Send(`sallyport run -q -- sh -c 'trap "stty size" WINCH; echo go; while :; do read a && test -n "$a" && echo got $a && test $a = end && exit 9; done'` + "\r")
	x.Expect(`go\r\n$`)
	for i, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGTSTP} {
		if m := x.Modes(); !isRaw(m) {
			t.Errorf("the modes are %+v", m)
		}
		if err := syscall.Kill(x.Foreground(), sig); err != nil {
			t.Fatal(err)
		}
		x.Expect(`Stopped(?s:.*)` + prompt)
		unchanged(t, x)
		x.Resize(uint16(100+i), 30)
		x.Send("fg\r")
		x.Expect(`done'\r\n`)
		// The size is told after the keys are passed on again. Of a signal that comes just before it
		// reads a key, a shell hears with the key.
		x.Send("\r")
		x.Expect(fmt.Sprintf(`(?:^|\n)30 %d\r\n`, 100+i))
		if m := x.Modes(); !isRaw(m) {
			t.Errorf("the modes are %+v", m)
		}
		x.Send(fmt.Sprintf("word%d\r", i))
		x.Expect(fmt.Sprintf(`^(?:\r\n)?word%d\r\ngot word%d\r\n`, i, i))
	}
	x.Send("end\r")
	x.Expect(prompt)
	x.Send("echo code $?\r")
	x.Expect(`code 9\r\n` + prompt)
	unchanged(t, x)
	// In the background: a terminal of its own, which shows what it prints, and ours stays the shell's.
	x.Send("sallyport run -q -- sh -c '(echo x >/dev/tty) 2>/dev/null || echo none; exit 8' & wait $!; echo code $?\r")
	x.Expect(`x\r+\n(?s:.*)code 8\r\n` + prompt)
	unchanged(t, x)
	x.Send("exit 0\r")
	x.Wait()
}

// TestLostTerminal: when the terminal goes away, the command hears of it once, and
// nothing is left.
func TestLostTerminal(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	tests := []struct {
		name, around, script, want string
	}{
		// A read would miss a signal just before it: dash looks for one when the read is over.
		{"it is told", "", `trap "echo hup >&2; exit" HUP; echo go; while :; do :; done`, "hup\n"},
		{"it ends", "", `echo go; exec sleep 600`, ""},
		{"a shell with a job", "", `exec bash --norc --noprofile --noediting -i 2>&1`, ""},
		{"it is ignored", `trap "" HUP; `, `echo go; read a; echo "end $?" >&2`, "end 1\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if strings.Contains(tt.script, "bash") {
				testenv.NeedProgram(t, "bash")
			}
			s := newSeat(t)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer w.Close()
			cmd := s.command(t, "/bin/sh", "-c", tt.around+`exec sallyport run -q -- sh -c "$0"`, tt.script)
			cmd.Stderr = w
			x := testenv.StartTerminal(t, cmd, 80, 24)
			_ = w.Close()
			if strings.Contains(tt.script, "bash") {
				x.Expect(prompt)
				x.Send("sh -c 'echo go; exec cat'\r")
				x.Expect(`\ngo\r\n`)
				x.Send("word\r")
				x.Expect(`word\r\nword\r\n`)
			} else {
				x.Expect("go")
			}
			x.HangUp()
			// The end of it is the end of all processes.
			got, err := io.ReadAll(r)
			if err != nil || string(got) != tt.want {
				t.Errorf("%q, %v", got, err)
			}
			x.Wait()
		})
	}
}

// TestKilledOnTerminal ends everything when the front end dies in an instant. The
// command holds the writing end of our pipe.
func TestKilledOnTerminal(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	s := newSeat(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	cmd := s.command(t, "sallyport", "run", "-q", "--", "sh", "-c",
		`trap "" TERM INT HUP; sleep 600 & setsid sleep 600 & echo go; wait`)
	cmd.Stderr = w
	x := testenv.StartTerminal(t, cmd, 80, 24)
	_ = w.Close()
	x.Expect("go")
	x.Signal(os.Kill)
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Fatal(err)
	}
	if code := x.Wait(); code != 128+int(unix.SIGKILL) {
		t.Errorf("exit code %d", code)
	}
}

// TestRefusedOnTerminal: what cannot run is told on a terminal that is as it was.
func TestRefusedOnTerminal(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	s := newSeat(t)
	x := s.run(t, "--", "./missing")
	x.Expect(`^sallyport: [^\r\n]*missing[^\r\n]*\r\n$`)
	if code := x.Wait(); code != 127 {
		t.Errorf("exit code %d", code)
	}
	unchanged(t, x)
}

// TestStoppedAlone: without a shell that could continue it nothing stays stopped, neither
// sallyport nor the command, as with every program that a terminal window begins with.
func TestStoppedAlone(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	s := newSeat(t)
	x := s.run(t, "--", "sh", "-c", `trap "echo cont" CONT; echo go; until test -e end; do :; done`)
	for range 2 {
		x.Expect("go|cont")
		x.Send("\x1a")
	}
	x.Expect("cont")
	x.Signal(syscall.SIGTSTP)
	x.Expect("cont")
	if m := x.Modes(); !isRaw(m) {
		t.Errorf("the modes are %+v", m)
	}
	if err := os.WriteFile(filepath.Join(s.work, "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := x.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	unchanged(t, x)
}

// TestLostUntold: the loss of a terminal that is not the controlling one is told by no
// signal, and the command hears of it all the same.
func TestLostUntold(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	s := newSeat(t)
	master, slave := testenv.OpenTerminal(t, 80, 24)
	cmd := s.command(t, "sallyport", "run", "-q", "-t", "--", "sh", "-c",
		`trap "echo hup >&2; exit 7" HUP; echo go; while :; do :; done`)
	cmd.Stdin, cmd.Stdout = slave, slave
	var errs bytes.Buffer
	cmd.Stderr = &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := master.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(master).ReadString('\n'); line != "go\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	_ = master.Close()
	if err := cmd.Wait(); testenv.Code(cmd.ProcessState) != 7 || errs.String() != "hup\n" {
		t.Errorf("%v, %q", err, errs.String())
	}
}
