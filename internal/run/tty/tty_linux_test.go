// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tty

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// programVar makes this test binary a program on a terminal.
const programVar = "SALLYPORT_TEST_TTY"

func TestMain(m *testing.M) {
	if question, ok := os.LookupEnv(promptProgramVar); ok {
		fmt.Printf("%s\n", ask(question))
		os.Exit(0)
	}
	if what := os.Getenv(programVar); what != "" {
		os.Exit(program(what))
	}
	testenv.DefaultSignals()
	os.Exit(m.Run())
}

// program shows keys and sizes on the terminal until "q" is typed or the terminal is
// gone. What it is called says what is different.
func program(what string) int {
	if what == "shell" {
		if err := shell(); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			return 5
		}
		return 0
	}
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(os.Stdout, format+"\r\n", args...) }
	x, err := Open(os.Stdin)
	if err != nil {
		say("%v", err)
		return 2
	}
	defer x.Close()
	if what != "cooked" {
		if err := x.Raw(what == "output"); err != nil {
			say("%v", err)
			return 3
		}
	}
	flags, err := unix.FcntlInt(0, unix.F_GETFL, 0)
	say("ready %v %v", flags&unix.O_NONBLOCK != 0, err)
	switch what {
	case "panic":
		panic("as asked for")
	case "output":
		_, _ = io.WriteString(os.Stdout, "a\nb\n")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for size := range x.Sizes() {
			say("size %d %d", size.Cols, size.Rows)
		}
		say("no more sizes")
	}()
	for p := make([]byte, 64); ; {
		n, err := x.Read(p)
		if err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err, errors.Is(err, ErrGone))
			return 4
		}
		say("%q", p[:n])
		switch string(p[:n]) {
		case "q":
			return bye(x, say, done)
		case "s":
			say("%v", x.Suspend())
		case "t":
			_ = unix.Kill(0, unix.SIGSTOP)
		}
	}
}

// bye closes the terminal while a read waits, and reads on with what the shell has.
func bye(x *Terminal, say func(string, ...any), done <-chan struct{}) int {
	read := make(chan error, 1)
	go func() {
		_, err := x.Read(make([]byte, 1))
		read <- err
	}()
	err := errors.Join(x.Close(), x.Close())
	<-done
	say("closed %v %v %v", err, <-read, x.Raw(false))
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	say("then %q %v", line, err)
	return 0
}

// start runs a program on a terminal.
func start(t *testing.T, what string) (*testenv.Terminal, *strings.Builder) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(testenv.Environ(), programVar+"="+what)
	var errs strings.Builder
	cmd.Stderr = &errs
	return testenv.StartTerminal(t, cmd, 80, 24), &errs
}

// isRaw reports whether keys are passed on as they are.
func isRaw(m unix.Termios) bool { return m.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG) == 0 }

// TestKeys: in raw mode each key arrives as it was typed, and what is typed after the
// end belongs to the next reader. The modes are then those of the beginning, and the
// flags of the descriptor never change.
func TestKeys(t *testing.T) {
	testenv.RunAsOrdinary(t)
	x, _ := start(t, "keys")
	before := x.ModesBefore()
	x.Expect(`ready false <nil>\r\n`)
	if m := x.Modes(); !isRaw(m) || m.Oflag&unix.OPOST != 0 {
		t.Errorf("the modes are %+v", m)
	}
	for _, key := range []string{"a", "\x03", "\x1a", "\x1c", "\x04", "\r", "\x11", "\x16", "é"} {
		x.Send(key)
		x.Expect(`^` + strings.ReplaceAll(fmt.Sprintf("%q", key), `\`, `\\`) + `\r\n`)
	}
	x.Send("q")
	x.Expect(`no more sizes\r+\nclosed <nil> file already closed file already closed\r+\n`)
	if got := x.Modes(); got != before {
		t.Errorf("the modes are %+v, and were %+v", got, before)
	}
	x.Send("line\r")
	x.Expect(`then "line\\n" <nil>\r+\n`)
	if code := x.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestKeepOutput: a line feed begins a new line where that is wanted.
func TestKeepOutput(t *testing.T) {
	x, _ := start(t, "output")
	x.Expect(`ready.*\r\na\r\nb\r\n`)
	if m := x.Modes(); !isRaw(m) {
		t.Errorf("the modes are %+v", m)
	}
	x.Signal(os.Kill)
	x.Wait()
}

// TestCooked: without raw mode, the end of file is the key that it was.
func TestCooked(t *testing.T) {
	x, _ := start(t, "cooked")
	before := x.ModesBefore()
	x.Expect(`ready`)
	x.Send("\x04")
	x.Expect(`"\\x04"\r+\n`)
	x.Send("word\r")
	x.Expect(`"word\\n"\r+\n`)
	if got := x.Modes(); got != before {
		t.Errorf("the modes are %+v, and were %+v", got, before)
	}
	x.Signal(os.Kill)
	x.Wait()
}

// TestPanic: the modes come back when the owner of the terminal panics.
func TestPanic(t *testing.T) {
	x, errs := start(t, "panic")
	before := x.ModesBefore()
	x.Expect("ready")
	if code := x.Wait(); code != 2 || !strings.Contains(errs.String(), "as asked for") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if got := x.Modes(); got != before {
		t.Errorf("the modes are %+v, and were %+v", got, before)
	}
}

// TestSizes: a new size is told, also one that came while the process was stopped.
func TestSizes(t *testing.T) {
	x, _ := start(t, "sizes")
	x.Expect("ready")
	x.Resize(100, 30)
	x.Expect(`^.*\r\nsize 100 30\r\n`)
	stop(t, x)
	x.Resize(70, 20)
	x.Signal(syscall.SIGCONT)
	x.Expect(`^size 70 20\r\n`)
	x.Resize(70, 20)
	x.Resize(71, 21)
	x.Expect(`^size 71 21\r\n`) // no news is not told
	x.Signal(os.Kill)
	x.Wait()
}

// stop stops the program, and waits until it has.
func stop(t *testing.T, x *testenv.Terminal) {
	t.Helper()
	x.Signal(syscall.SIGSTOP)
	stopped(t, x.PID())
}

// stopped waits until a child of ours is stopped. The end of it stays for others to
// wait for.
func stopped(t *testing.T, pid int) {
	t.Helper()
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}

// TestGoesOn: a process that was stopped, while a shell made the terminal its own,
// makes it raw again, and puts back at its end what was there at its beginning.
func TestGoesOn(t *testing.T) {
	testenv.RunAsOrdinary(t)
	tests := []struct {
		name    string
		suspend bool
	}{{"stopped from outside", false}, {"with a word before", true}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x, _ := start(t, "keys")
			before := x.ModesBefore()
			x.Expect("ready")
			if tt.suspend {
				x.Send("s")
				x.Expect(`"s"\r\n<nil>\r+\n`)
				if got := x.Modes(); got != before {
					t.Errorf("the modes are %+v, and were %+v", got, before)
				}
			}
			stop(t, x)
			x.SetModes(before)
			x.Resize(50, 50)
			x.Signal(syscall.SIGCONT)
			x.Expect("size 50 50") // said after the modes are set
			if m := x.Modes(); !isRaw(m) {
				t.Errorf("the modes are %+v", m)
			}
			x.Send("\x03")
			x.Expect(`"\\x03"\r\n`)
			x.Send("q")
			x.Expect("closed")
			if got := x.Modes(); got != before {
				t.Errorf("the modes are %+v, and were %+v", got, before)
			}
			x.Send("\r")
			x.Wait()
		})
	}
}

// TestHangUp: the end of the terminal is told, and is no error for whoever puts its
// modes back.
func TestHangUp(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, what := range []string{"keys", "cooked"} {
		t.Run(what, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			// A shell in front of it that SIGHUP does not end: the kernel sends that to both.
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c",
				`trap "" HUP; "$0"; echo "code $?" >&2`, self)
			cmd.Env = append(testenv.Environ(), programVar+"="+what)
			var errs strings.Builder
			cmd.Stderr = &errs
			x := testenv.StartTerminal(t, cmd, 80, 24)
			x.Expect("ready")
			x.HangUp()
			x.Wait()
			if want := "the terminal is gone true\ncode 4\n"; errs.String() != want {
				t.Errorf("%q, want %q", errs.String(), want)
			}
		})
	}
}

// shell is a shell with one job, which it starts in the background and brings to the
// foreground without a word to it.
func shell() error {
	signal.Ignore(syscall.SIGTTOU) // so that it can give the terminal away and take it back
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), programVar+"=keys")
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	heard := bufio.NewReader(out)
	for {
		line, err := heard.ReadString('\n')
		if err != nil {
			return errors.Join(cmd.Wait(), unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, unix.Getpgrp()))
		}
		if strings.HasPrefix(line, "ready") {
			err = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, cmd.Process.Pid)
		}
		_, _ = fmt.Fprintf(os.Stdout, "%s (%v)\r\n", strings.TrimSpace(line), err)
	}
}

// TestToldNothing: a job that is brought to the foreground and is not told notices with
// the first keys.
func TestToldNothing(t *testing.T) {
	x, errs := start(t, "shell")
	before := x.ModesBefore()
	x.Expect(`ready.*\(<nil>\)`)
	if got := x.Modes(); got != before {
		t.Errorf("in the background: the modes are %+v, and were %+v", got, before)
	}
	x.Send("line\r")
	x.Expect(`"line\\n"`)
	x.Send("\x03")
	x.Expect(`"\\x03"`)
	if m := x.Modes(); !isRaw(m) {
		t.Errorf("in the foreground: the modes are %+v", m)
	}
	x.Send("q")
	x.Expect("closed")
	x.Send("\r")
	if code := x.Wait(); code != 0 {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if got := x.Modes(); got != before {
		t.Errorf("at the end: the modes are %+v, and were %+v", got, before)
	}
}

// TestJobs: a shell with jobs moves the program between background and foreground. In
// the background it leaves the shell's terminal alone.
func TestJobs(t *testing.T) {
	testenv.RunAsOrdinary(t)
	bash := testenv.NeedProgram(t, "bash")
	testenv.NeedProgram(t, "grep")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bash, "--norc", "--noprofile", "--noediting", "-i")
	cmd.Env = append(testenv.Environ(), programVar+"=keys", "PS1=> ", "SELF="+self)
	x := testenv.StartTerminal(t, cmd, 80, 24)
	x.Expect("> $")
	before := x.ModesBefore()
	const untilStopped = "until jobs %1 | grep -q Stopped; do :; done; echo has $((6*7))\r"
	x.Send("\"$SELF\" & p=$!\r")
	x.Expect(`ready`)
	x.Send("kill -STOP $p; " + untilStopped)
	x.Expect(`has 42\r\n(?s:.*)> $`)
	if got := x.Modes(); got != before {
		t.Errorf("in the background: the modes are %+v, and were %+v", got, before)
	}
	for _, cols := range []uint16{50, 60} {
		x.Resize(cols, 24)
		x.Send("fg\r")
		x.Expect(fmt.Sprintf(`size %d 24`, cols))
		x.Send("k")
		x.Expect(`"k"`)
		if m := x.Modes(); !isRaw(m) {
			t.Errorf("in the foreground: the modes are %+v", m)
		}
		if cols == 50 {
			x.Send("t") // it stops itself
			x.Expect(`Stopped(?s:.*)> $`)
			if got := x.Modes(); got != before {
				t.Errorf("while it is stopped: the modes are %+v, and were %+v", got, before)
			}
		}
	}
	x.Send("q")
	x.Expect("closed")
	x.Send("\r")
	x.Expect(`then.*\r\n> $`)
	if got := x.Modes(); got != before {
		t.Errorf("at the end: the modes are %+v, and were %+v", got, before)
	}
	x.Send("exit 0\r")
	if code := x.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestNoTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for name, f := range map[string]*os.File{"nil": nil, "pipe": r} {
		t.Run(name, func(t *testing.T) {
			if Is(f) || Foreground(f) || SizeOf(f) != (executor.Size{}) {
				t.Error("it is a terminal")
			}
			if x, err := Open(f); err == nil {
				t.Error("it can be opened")
				_ = x.Close()
			}
		})
	}
}

// TestAnotherSession: a terminal of another session has no jobs of ours, so it can be
// changed at any time.
func TestAnotherSession(t *testing.T) {
	testenv.RunAsOrdinary(t)
	master, slave := testenv.OpenTerminal(t, 33, 44)
	if !Is(slave) || !Foreground(slave) || SizeOf(slave) != (executor.Size{Cols: 33, Rows: 44}) {
		t.Errorf("%v %v %v", Is(slave), Foreground(slave), SizeOf(slave))
	}
	x, err := Open(slave)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := x.Raw(false); err != nil {
		t.Fatal(err)
	}
	if _, err := master.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 8)
	if n, err := x.Read(p); err != nil || string(p[:n]) != "\x03" {
		t.Errorf("%q, %v", p[:n], err)
	}
	if n, err := x.Read(nil); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// TestCloseWhileReading: a Read that is woken ends when Close comes at that moment.
func TestCloseWhileReading(t *testing.T) {
	_, slave := testenv.OpenTerminal(t, 80, 24)
	for range 3000 {
		x, err := Open(slave)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := x.Read(make([]byte, 8))
			done <- err
		}()
		runtime.Gosched()
		x.Resume()
		_ = x.Close()
		if err := <-done; !errors.Is(err, os.ErrClosed) {
			t.Fatal(err)
		}
	}
}
