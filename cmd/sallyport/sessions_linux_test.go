// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// A parlor is a seat with a directory for the daemon, which ends with the test.
type parlor struct {
	seat
	runtime string
}

func newParlor(t *testing.T) parlor {
	t.Helper()
	testenv.NeedUserNS(t)
	d := parlor{seat: newSeat(t)}
	d.runtime = filepath.Join(filepath.Dir(d.work), "run")
	if err := os.Mkdir(d.runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endDaemon(d.runtime) })
	return d
}

// daemonOf returns a connection to the daemon in a directory, and its process; 0 for none.
func daemonOf(runtime string) (io.ReadCloser, int) {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: filepath.Join(runtime, "sallyport", "daemon.sock"), Net: "unix"})
	if err != nil {
		return nil, 0
	}
	raw, err := c.SyscallConn()
	check(err)
	pid := 0
	check(raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	}))
	return c, pid
}

// endDaemon ends the daemon in a directory, if there is one, and waits for that.
func endDaemon(runtime string) {
	c, pid := daemonOf(runtime)
	if pid == 0 {
		return
	}
	_ = syscall.Kill(pid, syscall.SIGTERM)
	_, _ = io.Copy(io.Discard, c) // until it closes the connection
	_ = c.Close()
}

// command is that of the seat, with the daemon.
func (d parlor) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := d.seat.command(t, args...)
	cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR="+d.runtime)
	return cmd
}

// run runs sallyport to its end.
func (d parlor) run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := d.command(t, append([]string{"sallyport"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if exit := new(exec.ExitError); !errors.As(err, &exit) {
			t.Fatal(err)
		}
	}
	return out.String(), errs.String(), testenv.Code(cmd.ProcessState)
}

// inside returns the path of a program that commands can run: the usual one is in /tmp, and theirs
// is private.
func (d parlor) inside(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(d.work, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	usual, err := exec.LookPath(name)
	var text []byte
	if err == nil {
		text, err = os.ReadFile(usual)
	}
	if err == nil {
		err = testenv.WriteProgram(path, text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// start starts a session and returns its ID.
func (d parlor) start(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := d.run(t, append([]string{"run", "--detach"}, args...)...)
	if code != 0 || errs != "" {
		t.Fatalf("%s%s, exit code %d", out, errs, code)
	}
	return strings.TrimSuffix(out, "\n")
}

// attach attaches a terminal to a session.
func (d parlor) attach(t *testing.T, args ...string) *testenv.Terminal {
	t.Helper()
	return testenv.StartTerminal(t, d.command(t, append([]string{"sallyport", "attach"}, args...)...), 80, 24)
}

// expects runs sallyport and compares what comes of it.
func (d parlor) expects(t *testing.T, code int, out string, args ...string) {
	t.Helper()
	got, errs, exit := d.run(t, args...)
	if exit != code || got != out {
		t.Errorf("%q: %q, exit code %d (%s), want %q, %d", args, got, exit, errs, out, code)
	}
}

// reads waits until the running session, of which there is one, reads. A shell that gets a signal just
// before it reads runs its trap after the next line only.
func (d parlor) reads(t *testing.T) {
	t.Helper()
	out, _, _ := d.run(t, "ps")
	id := regexp.MustCompile(`(?m)^(\d+) +running`).FindStringSubmatch(out)
	if id == nil {
		t.Fatalf("no session is running:\n%s", out)
	}
	d.expects(t, 0, "password\n", "wait", "--for", "input", id[1]) // it does not show what is typed
}

// talks is a program on a terminal that answers until it is told to end.
const talks = `stty -echo; trap 'echo "got INT"' INT; echo ready; while :; do
	read x || continue
	case $x in end) exit 7;; sized) until [ "$(stty size)" = "37 101" ]; do :; done;; esac
	echo "said $x"
done`

// TestAttach: two terminals at once see and type the same, a key detaches one, the size follows,
// Control-C is the program's, and the end of the session is that of the terminals.
func TestAttach(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	id := d.start(t, "-t", "--", "bash", "-c", talks)
	first := d.attach(t, id)
	first.Expect("ready\r\n")
	first.Send("one\r")
	first.Expect("said one\r\n")
	second := d.attach(t, "--detach-keys", "ctrl-p,q", id)
	second.Expect("(?s)ready\r\n.*said one\r\n") // from the beginning
	second.Send("t\x10wo\r")
	first.Expect("said t\x10wo\r\n")
	second.Expect("said t\x10wo\r\n")
	d.reads(t)
	first.Send("\x03")
	second.Expect("got INT\r\n")
	second.Resize(101, 37)
	first.Send("\rsized\r")
	first.Expect("said sized\r\n")
	second.Send("x\x10q")
	second.Expect(`sallyport: detached from session ` + id + `, which keeps running; to return: sallyport attach ` + id + `\r\n`)
	if code := second.Wait(); code != 0 || second.Modes() != second.ModesBefore() {
		t.Errorf("exit code %d; modes %v, before %v", code, second.Modes(), second.ModesBefore())
	}
	first.Send("\rend\r") // the x before it was typed
	if code := first.Wait(); code != 7 || first.Modes() != first.ModesBefore() {
		t.Errorf("exit code %d; modes %v, before %v", code, first.Modes(), first.ModesBefore())
	}
	again := d.attach(t, id)
	again.Expect("(?s)ready.*said x\r\n")
	if code := again.Wait(); code != 7 {
		t.Errorf("after the end: exit code %d", code)
	}
	d.expects(t, 7, "", "wait", id)
}

// TestAttachEnds: a terminal is as before when attach is ended, and the session goes on.
func TestAttachEnds(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	id := d.start(t, "-t", "--", "bash", "-c", `printf '\033[?1049h\033[?2004h'; `+talks)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP} {
		x := d.attach(t, id)
		x.Expect("ready\r\n")
		x.Signal(sig)
		x.Expect(`\x1b\[\?1049l(?s:.*)sallyport: detached from session ` + id + `, which keeps running, by `)
		if code := x.Wait(); code != 128+int(sig) || x.Modes() != x.ModesBefore() {
			t.Errorf("%v: exit code %d; modes %v, before %v", sig, code, x.Modes(), x.ModesBefore())
		}
	}
	x := d.attach(t, id)
	x.Expect("ready\r\n")
	x.HangUp()
	if code := x.Wait(); code != 128+int(syscall.SIGHUP) {
		t.Errorf("after a hang-up: exit code %d", code)
	}
	x = d.attach(t, id)
	x.Expect("ready\r\n")
	x.Send("\x1c")
	x.Expect(`detached from session`)
	if code := x.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	d.expects(t, 0, "", "send", id, "end")
	d.expects(t, 7, "", "wait", id)
}

// TestAttachState: a terminal that comes late gets the modes that the program has set long ago and whole
// sequences, and one at which the program ends gets them reset.
func TestAttachState(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	id := d.start(t, "-t", "--", "bash", "-c", `printf '\033[?1049h\033[?1h\033[?1002;1006h\033[?2004h\033]2;my title\a'
		for i in {1..60000}; do printf '\033[38;5;102m界 text\033[m'; done; stty -echo; echo; echo READY; read x; exit 7`)
	d.expects(t, 0, "match\n", "wait", "--for", "match=READY", id)
	x := d.attach(t, id)
	x.Expect("READY\r\n")
	seen := x.Transcript()
	for _, mode := range []string{"1049", "1", "1002", "1006", "2004"} {
		if !strings.Contains(seen, "\x1b[?"+mode+"h") {
			t.Errorf("mode %s is not set", mode)
		}
	}
	if !strings.Contains(seen, "\x1b]2;my title\x1b\\") {
		t.Error("there is no title")
	}
	if piece := regexp.MustCompile(`(^|[^[0-9;])(;?[0-9]+)+m`).FindString(seen); piece != "" {
		t.Errorf("half a sequence: %q", piece)
	}
	x.Send("\r")
	x.Expect(`\x1b\[\?2004l(?s:.*)\x1b\[\?1049l`)
	if code := x.Wait(); code != 7 {
		t.Errorf("exit code %d", code)
	}
}

// TestRunState: modes that a program on a terminal of its own has left on are reset at its end, however that
// comes, and nothing is printed after one that has left none.
func TestRunState(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	for script, want := range map[string]string{
		`printf '\033[?1049h\033[?1000h\033[?25l'; echo go; kill -9 $$`: "\x1b[?1049l\x1b[?1000l\x1b[?25h\x1b[m" +
			"sallyport: killed by signal 9 (killed)\r\n",
		`printf '\033[?2004h\033[31m'; echo go; exit 3`:             "\x1b[?2004l\x1b[m",
		`printf '\033[?2004h\033[?2004l\033[31mred\033[m'; echo go`: "",
	} {
		x := testenv.StartTerminal(t, d.command(t, "sallyport", "run", "-t", "--", "sh", "-c", script), 80, 24)
		x.Expect("go\r\n")
		x.Wait()
		if _, seen, _ := strings.Cut(x.Transcript(), "go\r\n"); seen != want {
			t.Errorf("%s: %q, want %q at the end", script, seen, want)
		}
	}
}

// TestPlainTerminal: a terminal that takes no control sequences gets none of ours: at the end of a run, of a
// run on another server and of an attachment, at its begin, and beside a question.
func TestPlainTerminal(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	const script = `printf '\033[?2004h\033[?1000h'; echo go; read a; echo "got $a"`
	const own = "\x1b[?2004h\x1b[?1000h" // of the program
	url := d.server(t)
	for _, term := range []string{"TERM=dumb", "TERM=", "TERM=xterm"} {
		id := d.start(t, "-t", "--", "sh", "-c", "printf '\\033[?2004h\\033[?1000h'; seq 300000; read a")
		for name, args := range map[string][]string{
			"run":    {"run", "-t", "--", "sh", "-c", script},
			"remote": {"run", "--remote", url, "-C", d.work, "-t", "--", "sh", "-c", script},
			"ask":    {"run", "-t", "-a", "untrusted", "--", "sh", "-c", script},
			"attach": {"attach", id},
		} {
			cmd := d.command(t, append([]string{"sallyport"}, args...)...)
			cmd.Env = append(cmd.Env, term)
			x := testenv.StartTerminal(t, cmd, 80, 24)
			if name == "ask" {
				x.Expect("deny .*> $")
				x.Send("y\r")
			}
			switch name {
			case "attach":
				x.Expect("300000\r\n")
				x.Send("\x1c")
			default:
				x.Expect("go\r\n")
				x.Send("x\r")
			}
			x.Wait()
			seen := strings.ReplaceAll(x.Transcript(), own, "")
			if plain := !strings.Contains(seen, "\x1b"); plain != (term != "TERM=xterm") {
				t.Errorf("%s, %s: %q", name, term, seen[max(0, len(seen)-300):])
			}
		}
	}
}

// TestAttachAsks: a program that asks the terminal something gets one answer, however many are
// attached.
func TestAttachAsks(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	id := d.start(t, "-t", "--", "bash", "-c", `stty raw -echo; printf ready; read -rn1; printf 'a\033[6n\033[cb'; read -rd c answer; printf '%q' "$answer"; exec sleep 600`)
	x, y := d.attach(t, id), d.attach(t, id)
	x.Expect("ready")
	y.Expect("ready")
	x.Send("g")
	x.Expect(`^ab\$'\\E\[1;7R\\E\[\?1;2'$`)
	y.Expect(`^ab\$'\\E\[1;7R\\E\[\?1;2'$`)
	if seen := x.Transcript() + y.Transcript(); strings.Contains(seen, "\x1b[6n") || strings.Contains(seen, "\x1b[c") {
		t.Errorf("the terminals were asked: %q", seen)
	}
}

// TestAttachPipe: a session without a terminal is shown, gets Control-C as a signal, and can be
// left.
func TestAttachPipe(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	id := d.start(t, "--", "sh", "-c", `trap 'echo "got INT"; exit 9' INT; echo up; echo down >&2; `+idles)
	x := d.attach(t, id)
	x.Expect("up\r\n")
	x.Send("abc\x1c")
	x.Expect(`detached from session`)
	if code := x.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	x = d.attach(t, id)
	x.Expect("up\r\n")
	x.Send("\x03")
	x.Expect("got INT\r\n")
	if code := x.Wait(); code != 9 {
		t.Errorf("exit code %d", code)
	}
}

// TestDetachAsks: run --detach asks on its terminal before the session begins.
func TestDetachAsks(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	for _, test := range []struct {
		answer, say string
		code        int
	}{{"y\r", `\r\n(\d+)\r\n$`, 0}, {"n\r", "sallyport: refused", 123}} {
		x := testenv.StartTerminal(t, d.command(t, "sallyport", "run", "--detach", "-a", "untrusted", "--", "cp", "/dev/null", "copy"+test.answer[:1]), 80, 24)
		x.Expect("may this command run")
		x.Expect("deny .*> $")
		x.Send(test.answer)
		x.Expect(test.say)
		if code := x.Wait(); code != test.code {
			t.Errorf("%q: exit code %d, want %d", test.answer, code, test.code)
		}
	}
	d.expects(t, 0, "", "wait", "1")
	if _, err := os.Stat(filepath.Join(d.work, "copyy")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(d.work, "copyn")); err == nil {
		t.Error("it ran, and was denied")
	}
	cmd := d.command(t, "sallyport", "run", "--detach", "-a", "untrusted", "--", "cp", "/dev/null", "copy")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); !errors.As(err, &exit) || testenv.Code(exit.ProcessState) != 123 {
		t.Errorf("%s, %v, want exit code 123", out, err)
	}
}

// TestDaemonOnce: several who start the daemon at once have one. It goes on when they, and the
// terminal that they were started from, have ended.
func TestDaemonOnce(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	const many = 4
	x := testenv.StartTerminal(t, d.command(t, "bash", "-c", fmt.Sprintf(`for i in $(seq %d); do sallyport run --detach -i -- cat </dev/null >>ids & done; wait; echo done`, many)), 80, 24)
	x.Expect("done\r\n")
	x.Wait()
	x.HangUp()
	text, err := os.ReadFile(filepath.Join(d.work, "ids"))
	ids := strings.Fields(string(text))
	slices.Sort(ids)
	if err != nil || !slices.Equal(ids, []string{"1", "2", "3", "4"}) {
		t.Fatalf("%q, %v: each daemon counts from 1", ids, err)
	}
	for _, id := range ids {
		d.expects(t, 0, "", "send", id, "hello "+id)
		d.expects(t, 0, "match\n", "wait", "--for", "match=hello "+id+"\n", id)
		d.expects(t, 0, "", "send", "--eof", id)
		d.expects(t, 0, "", "wait", id)
		d.expects(t, 0, "hello "+id+"\n", "logs", "-f", id)
	}
}

// TestDaemonKilled: nothing of its sessions is left when the daemon is killed.
func TestDaemonKilled(t *testing.T) {
	t.Parallel()
	modes := []string{"workspace-write"}
	if testenv.IsLong() {
		modes = append(modes, "full-access")
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			d := newParlor(t)
			held := filepath.Join(d.work, "held")
			if err := unix.Mkfifo(held, 0o600); err != nil {
				t.Fatal(err)
			}
			var opened sync.WaitGroup
			var f *os.File
			opened.Go(func() { f, _ = os.Open(held) }) // when the program has opened it
			id := d.start(t, "-s", mode, "--", "bash", "-c", `trap "" TERM INT HUP; exec 3>held; setsid sleep 600 & echo up; sleep 600`)
			opened.Wait()
			defer f.Close()
			d.expects(t, 0, "match\n", "wait", "--for", "match=up", id)
			c, pid := daemonOf(d.runtime)
			if pid == 0 {
				t.Fatal("there is no daemon")
			}
			_ = c.Close()
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if err := f.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(f); err != nil { // it ends with the last process
				t.Error(err)
			}
			d.expects(t, 0, "No sessions.\n", "ps")
			if next := d.start(t, "--", "true"); next != "2" { // numbers name one session for ever
				t.Errorf("the session after %s is %s, with a new daemon", id, next)
			}
		})
	}
}

// TestDaemonConfined: a command in a sandbox does not reach the daemon, which would run another one
// for it outside, also with the host's network and unix sockets. The wall is in internal/server/listen.
func TestDaemonConfined(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	d.start(t, "--", "true")
	for _, args := range [][]string{{"ps"}, {"run", "--detach", "-s", "full-access", "--", "touch", "escaped"}} {
		out, errs, code := d.run(t, append([]string{"run", "--net", "host", "--allow", "unix", "--rw", d.runtime, "--", d.inside(t, "sallyport")}, args...)...)
		if code != 125 || out != "" || !strings.Contains(errs, "sallyport: ") {
			t.Errorf("%q in a sandbox: %q, %q, exit code %d", args, out, errs, code)
		}
	}
	c, pid := daemonOf(d.runtime)
	if pid == 0 {
		t.Fatal("the daemon has ended")
	}
	_ = c.Close()
	out, errs, _ := d.run(t, "run", "--net", "host", "--allow", "unix", "--", d.inside(t, "eavesdrop"), "connect", filepath.Join(d.runtime, "sallyport", "daemon.sock"))
	if out != "" {
		t.Errorf("the daemon said %q to a command in a sandbox (%s)", out, errs)
	}
	if _, err := os.Stat(filepath.Join(d.work, "escaped")); err == nil {
		t.Error("a command in a sandbox has run one outside")
	}
	d.expects(t, 0, "", "wait", "1")
}

// TestDaemonPlanted: what a command in a sandbox has put in the place of the daemon gets no word
// of the user: no environment, no keys. The wall is peer.Dial.
func TestDaemonPlanted(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	dir := filepath.Join(d.runtime, "sallyport")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := d.command(t, "sallyport", "run", "--allow", "unix", "--rw", dir, "--", d.inside(t, "eavesdrop"), "listen", filepath.Join(dir, "daemon.sock"))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	begin := make([]byte, len("listening\n"))
	if _, err := io.ReadFull(out, begin); err != nil {
		_ = cmd.Wait() // what it printed says why
		t.Fatalf("%v: %s", err, errs.Bytes())
	}
	for _, args := range [][]string{{"ps"}, {"attach", "1"}, {"send", "1", "secret"}, {"run", "--detach", "--", "true"}} {
		said, errs, code := d.run(t, args...)
		if code != 125 || said != "" || !strings.HasPrefix(errs, "sallyport: ") {
			t.Errorf("%q: %q, %q, exit code %d", args, said, errs, code)
		}
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	heard, err := io.ReadAll(out)
	if err != nil || len(heard) > 0 {
		t.Errorf("the command heard %q, %v", heard, err)
	}
	_ = cmd.Wait() // it was ended
}

// eavesdrop is a program that prints what it hears on a unix socket.
func eavesdrop() {
	path := os.Args[2]
	if os.Args[1] == "connect" {
		c, err := net.Dial("unix", path)
		check(err)
		_, err = io.WriteString(c, "GET /readyz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		check(err)
		_, _ = io.Copy(os.Stdout, c) // what came counts
		return
	}
	l, err := net.Listen("unix", path)
	check(err)
	fmt.Println("listening")
	for {
		c, err := l.Accept()
		check(err)
		buf := make([]byte, 4096)
		n, _ := c.Read(buf) // nothing may come
		_, err = os.Stdout.Write(buf[:n])
		check(err)
		_ = c.Close()
	}
}

// TestDaemonGone: who uses a session of a daemon that is killed is told at once, on a terminal that is
// as before.
func TestDaemonGone(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	const told = "sallyport: the daemon has ended, and its sessions with it; daemon.log beside its socket may say why"
	kill := func() {
		c, pid := daemonOf(d.runtime)
		if pid == 0 {
			t.Fatal("there is no daemon")
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}
	id := d.start(t, "-t", "--", "sh", "-c", `printf '\033[?1049h'; echo go; exec sleep 600`)
	x := d.attach(t, id)
	x.Expect("go\r\n")
	kill()
	x.Expect(`\x1b\[\?1049l`)
	x.Expect(regexp.QuoteMeta(told))
	if code := x.Wait(); code != 125 {
		t.Errorf("attach: exit code %d", code)
	}
	id = d.start(t, "--", "sh", "-c", "echo go; exec sleep 600")
	cmd := d.command(t, "sallyport", "logs", "-f", id)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	kill()
	_ = cmd.Wait()
	if code := testenv.Code(cmd.ProcessState); code != 125 || errs.String() != told+"\n" {
		t.Errorf("logs: exit code %d, %q", code, errs.String())
	}
}
