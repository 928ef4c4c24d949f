// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

// The rows of the acceptance list, and where they are:
//
//   - 1, 2, 9-15: TestBuffers; 7i, 17, 42, 43: pure_test.go; 16: TestVariables; 24, 25: TestVictim;
//     31: TestSplit; 44: TestText.
//   - 26-30, 33, 34, 38: times_test.go and tools_test.go, with sessions of a process that exists
//     in the test only, in time that costs nothing.
//   - 22, 23, 32, 35-37: TestOtherMachine.
//   - 3-6, 8i, 18-21, 28, 39-41, 45-53: here, with processes, and those among them that depend
//     on time or chance in the other files too.
//
// Where the time of a row is that of the peer, ours counts: streams that something holds
// after the end (27, 28) have 0.25 s after the last byte, as everywhere in this module.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// newTools returns Tools over a Runner with a workspace of its own.
func newTools(t *testing.T) (*Tools, *heard) {
	t.Helper()
	testenv.NeedUserNS(t)
	dir := t.TempDir()
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(dir)}
	h := &heard{}
	tools := &Tools{Runner: r, Cmd: sallyport.Cmd{Dir: dir}, Events: h.hear, OutputTokens: -1}
	t.Cleanup(func() {
		if err := errors.Join(tools.Close(), r.Close()); err != nil {
			t.Error(err)
		}
		if b, e := len(of[Begin](h)), len(of[End](h)); b != e {
			t.Errorf("%d begin and %d end events", b, e)
		}
	})
	return tools, h
}

// sh returns a request that runs a script in the plain shell and waits long.
func sh(script string) Request {
	return Request{CallID: "call", Command: script, Shell: "sh", Yield: MaxYield}
}

// tty is sh on a terminal.
func tty(script string) Request {
	q := sh(script)
	q.TTY = true
	return q
}

// say writes to a session and waits long.
func say(t *testing.T, tools *Tools, to *Response, text string) *Response {
	t.Helper()
	return write(t, tools, WriteRequest{SessionID: to.SessionID, Chars: text, Yield: MaxYield})
}

// code fails the test unless the response is that of a process that ended so.
func code(t *testing.T, r *Response, want int) {
	t.Helper()
	if r.SessionID != 0 || r.ExitCode == nil || *r.ExitCode != want {
		got := -1
		if r.ExitCode != nil {
			got = *r.ExitCode
		}
		t.Errorf("got session %d and exit code %d with %q, want %d", r.SessionID, got, r.Output, want)
	}
}

// lastEnd waits for the end event of the only process.
func lastEnd(t *testing.T, tools *Tools, h *heard) End {
	t.Helper()
	if err := tools.Close(); err != nil { // which waits for it
		t.Fatal(err)
	}
	end := of[End](h)
	if len(end) != 1 {
		t.Fatalf("the ends are %+v", end)
	}
	return end[0]
}

func TestProcesses(t *testing.T) {
	testenv.RunAsOrdinary(t)
	rows := []struct {
		name  string
		check func(t *testing.T, tools *Tools, h *heard)
	}{
		{"row 3 a shell remembers", rowRemembers},
		{"row 4 two processes are two", rowTwo},
		{"row 5 what comes later comes with a poll", rowLater},
		{"row 6 exit", rowExit},
		{"row 18 list and terminate", rowTerminate},
		{"row 19 terminate during the first call", rowTerminateFirst},
		{"row 21 an exit code over pipes", func(t *testing.T, tools *Tools, _ *heard) { code(t, exec(t, tools, sh("exit 17")), 17) }},
		{"row 28 a grandchild holds the pipe", rowGrandchild},
		{"row 39 an interrupted call", rowInterrupted},
		{"row 40 interrupt over pipes", rowInterrupt},
		{"row 41 text over pipes", rowNoInput},
		{"row 45 a long output", rowLong},
		{"row 46 a letter in two pieces", rowLetter},
		{"row 47 deltas from the first byte", rowDeltas},
		{"row 48 a burst", rowBurst},
		{"row 49 a Python prompt", rowPython},
		{"row 51 a signal on a terminal", func(t *testing.T, tools *Tools, _ *heard) {
			r := exec(t, tools, tty("kill -KILL $$"))
			code(t, r, 137)
			if r.Signal != 9 {
				t.Errorf("the signal is %d", r.Signal)
			}
		}},
		{"row 52 the terminal type of a login shell", rowLogin},
		{"row 53 a fast refusal", rowRefusal},
		{"pipes that stay open", rowPipe},
		{"a pattern and silence", rowConditions},
		{"a published port", rowPublish},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			tools, h := newTools(t)
			row.check(t, tools, h)
		})
	}
}

// prompt is a shell whose prompt is known.
const prompt = "PS1='$ ' PS2='> ' exec sh -i"

func rowRemembers(t *testing.T, tools *Tools, _ *heard) {
	q := tty(prompt)
	q.Yield = 2500 * time.Millisecond
	r := exec(t, tools, q)
	if r.SessionID == 0 {
		t.Fatalf("got %+v", r)
	}
	say(t, tools, r, "export VALUE=kept\n")
	if r := say(t, tools, r, "echo got=$VALUE\n"); !strings.Contains(string(r.Output), "\r\ngot=kept\r\n") {
		t.Errorf("got %q", r.Output)
	}
}

func rowTwo(t *testing.T, tools *Tools, _ *heard) {
	a := exec(t, tools, tty(prompt))
	say(t, tools, a, "export VALUE=kept\n")
	b := exec(t, tools, sh("echo got=$VALUE"))
	code(t, b, 0)
	if string(b.Output) != "got=\n" {
		t.Errorf("got %q", b.Output)
	}
	if r := say(t, tools, a, "echo got=$VALUE\n"); !strings.Contains(string(r.Output), "\r\ngot=kept\r\n") {
		t.Errorf("got %q", r.Output)
	}
}

func rowLater(t *testing.T, tools *Tools, _ *heard) {
	r := exec(t, tools, tty(prompt))
	r = write(t, tools, WriteRequest{SessionID: r.SessionID,
		Chars: "until test -e go; do sleep 0.01; done; echo la''ter\n", Yield: 10 * time.Millisecond})
	if strings.Contains(string(r.Output), "later") || r.Reason != sallyport.ReasonDeadline {
		t.Errorf("too early: %q, %s", r.Output, r.Reason)
	}
	if err := os.WriteFile(filepath.Join(tools.Cmd.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := write(t, tools, WriteRequest{SessionID: r.SessionID,
		Yield: MaxYield}); !strings.Contains(string(r.Output), "later\r\n") {
		t.Errorf("got %q, %s", r.Output, r.Reason)
	}
}

func rowExit(t *testing.T, tools *Tools, _ *heard) {
	r := exec(t, tools, tty(prompt))
	code(t, say(t, tools, r, "exit\n"), 0)
	_, err := tools.WriteStdin(t.Context(), WriteRequest{SessionID: r.SessionID})
	var unknown *Error
	if !isKind(err, ErrUnknownProcess, &unknown) || unknown.SessionID != r.SessionID {
		t.Errorf("got %v", err)
	}
	if list := tools.List(); len(list) != 0 {
		t.Errorf("row 8i: the list is %+v", list)
	}
}

func rowTerminate(t *testing.T, tools *Tools, h *heard) {
	q := sh("sleep 1000")
	q.Yield = MinYield
	r := exec(t, tools, q)
	list := tools.List()
	if len(list) != 1 || list[0].CallID != "call" || list[0].Command != "sleep 1000" ||
		list[0].Dir != tools.Cmd.Dir || !list[0].Running {
		t.Errorf("the list is %+v", list)
	}
	for i, want := range []bool{true, false} {
		if ok, err := tools.Terminate(t.Context(), r.SessionID); ok != want || err != nil {
			t.Errorf("call %d: %v, %v", i, ok, err)
		}
	}
	if list := tools.List(); len(list) != 0 {
		t.Errorf("the list is %+v", list)
	}
	if end := lastEnd(t, tools, h); end.Status != Failed || end.ExitCode != 143 || end.Signal != 15 {
		t.Errorf("the end is %+v", end)
	}
}

func rowTerminateFirst(t *testing.T, tools *Tools, _ *heard) {
	begun := make(chan int, 1)
	hear := tools.Events
	tools.Events = func(e Event) {
		hear(e)
		if b, ok := e.(Begin); ok {
			begun <- b.SessionID
		}
	}
	var r *Response
	var calls sync.WaitGroup
	calls.Go(func() { r = exec(t, tools, sh("sleep 1000")) })
	if ok, err := tools.Terminate(t.Context(), <-begun); !ok || err != nil {
		t.Errorf("got %v, %v", ok, err)
	}
	calls.Wait()
	code(t, r, 143)
	if list := tools.List(); len(list) != 0 {
		t.Errorf("the list is %+v", list)
	}
}

// rowGrandchild: the response comes 0.25 s after the last output, not when the sleep ends. A
// busy machine delays some of five calls.
func rowGrandchild(t *testing.T, tools *Tools, _ *heard) {
	var waited []time.Duration
	for range 5 {
		r := exec(t, tools, sh("echo hello; sleep 1000 &"))
		code(t, r, 0)
		if string(r.Output) != "hello\n" {
			t.Errorf("got %q", r.Output)
		}
		if r.WallTime <= seconds(0.5) {
			return
		}
		waited = append(waited, r.WallTime)
	}
	t.Errorf("the calls waited %v, want at most half a second", waited)
}

func rowInterrupted(t *testing.T, tools *Tools, h *heard) {
	// The call is cut short when the first output is there.
	ctx, cancel := context.WithCancel(t.Context())
	hear := tools.Events
	tools.Events = func(e Event) {
		hear(e)
		if d, ok := e.(Delta); ok && strings.Contains(string(d.Data), "one") {
			cancel()
		}
	}
	q, no := tty("echo one; read x; echo two"), false
	q.Until.InputWait = &no // or that would end it, too
	_, err := tools.ExecCommand(ctx, q)
	var interrupted *Error
	if !isKind(err, ErrInterrupted, &interrupted) {
		t.Fatalf("got %v", err)
	}
	r := write(t, tools, WriteRequest{SessionID: interrupted.SessionID, Chars: "\n", Yield: MaxYield})
	code(t, r, 0)
	if got := string(r.Output); !strings.HasPrefix(got, "one\r\n") || !strings.HasSuffix(got, "two\r\n") {
		t.Errorf("got %q", got)
	}
}

func rowInterrupt(t *testing.T, tools *Tools, _ *heard) {
	tests := []struct {
		name, script string
		code         int
		output       string
	}{
		{"no trap", "echo ready; exec sleep 1000", 130, ""},
		{"a trap", "trap 'echo trapped; exit 5' INT; echo ready; while :; do sleep 0.1; done", 5, "trapped\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			q := sh(test.script)
			q.Until.MinBytes = len("ready\n")
			r := exec(t, tools, q)
			r = say(t, tools, r, "\x03")
			code(t, r, test.code)
			if string(r.Output) != test.output {
				t.Errorf("got %q", r.Output)
			}
		})
	}
}

func rowNoInput(t *testing.T, tools *Tools, _ *heard) {
	q := sh("echo ready; exec sleep 1000")
	q.Until.MinBytes = 1
	r := exec(t, tools, q)
	_, err := tools.WriteStdin(t.Context(), WriteRequest{SessionID: r.SessionID, Chars: "x"})
	if !errors.Is(err, ErrStdinClosed) {
		t.Errorf("got %v", err)
	}
	// The null device, and not a pipe that is at its end.
	if r := exec(t, tools, sh("readlink /proc/self/fd/0; cat")); string(r.Output) != os.DevNull+"\n" {
		t.Errorf("got %q", r.Output)
	}
}

// sequence is what seq 1 n prints.
func sequence(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.Bytes()
}

func rowLong(t *testing.T, tools *Tools, _ *heard) {
	tools.OutputTokens, tools.Compatible = 0, true
	r := exec(t, tools, sh("seq 1 3000000"))
	code(t, r, 0)
	all := sequence(3_000_000)
	const total, lost, half = 22_888_896, 21_840_320, bufferBytes / 2
	mark := "\n... 21840320 bytes omitted ...\n"
	want := string(all[:half]) + mark + string(all[len(all)-half:])
	if len(all) != total || r.OmittedBytes != lost || string(r.Output) != want {
		t.Errorf("%d bytes, %d omitted, as it must be: %v", len(r.Output), r.OmittedBytes,
			string(r.Output) == want)
	}
	text := r.Text()
	_, body, _ := strings.Cut(text, "Output:\n")
	start := "Warning: truncated output (original token count: 5722224)\n... 21840320 bytes omitted ...\n\n"
	body, ok := strings.CutPrefix(body, start)
	if !ok || !strings.HasPrefix(body, string(all[:5000])+"…") ||
		!strings.HasSuffix(body, " tokens truncated…"+string(all[total-5000:])) {
		t.Errorf("the text begins with %.300q", text)
	}
}

func rowLetter(t *testing.T, tools *Tools, h *heard) {
	r := exec(t, tools, sh(`printf 'A\303'; sleep 0.4; printf '\251B\n'`))
	if string(r.Output) != "AéB\n" {
		t.Errorf("got %q", r.Output)
	}
	lastEnd(t, tools, h)
	var decoded strings.Builder
	for _, d := range of[Delta](h) {
		decoded.WriteString(strings.ToValidUTF8(string(d.Data), "?"))
	}
	if decoded.String() != "AéB\n" {
		t.Errorf("the deltas are %q", decoded.String())
	}
}

func rowDeltas(t *testing.T, tools *Tools, h *heard) {
	r := exec(t, tools, sh("echo first; sleep 0.5; echo second"))
	if string(r.Output) != "first\nsecond\n" {
		t.Errorf("got %q", r.Output)
	}
	end := lastEnd(t, tools, h)
	if s, missing := h.deltaText(); s != "first\nsecond\n" || missing != 0 || string(end.Output) != s {
		t.Errorf("the deltas are %q, the end is %+v", s, end)
	}
}

func rowBurst(t *testing.T, tools *Tools, h *heard) {
	const total = 30_000_004
	r := exec(t, tools, sh("head -c 30000000 /dev/zero | tr '\\0' x; printf done"))
	code(t, r, 0)
	if got := uint64(len(r.Output)) + r.OmittedBytes - uint64(len("\n... 28951428 bytes omitted ...\n")); got != total {
		t.Errorf("the response accounts for %d bytes of %d", got, total)
	}
	lastEnd(t, tools, h)
	s, missing := h.deltaText()
	t.Logf("%d bytes in %d deltas, %d missing", len(s), len(of[Delta](h)), missing)
	if uint64(len(s))+missing != total {
		t.Errorf("the deltas account for %d bytes of %d", uint64(len(s))+missing, total)
	}
	if missing == 0 && !strings.HasSuffix(s, "xdone") {
		t.Errorf("the deltas end with %q", s[len(s)-9:])
	}
}

func rowPython(t *testing.T, tools *Tools, _ *heard) {
	testenv.NeedProgram(t, "python3")
	r := exec(t, tools, tty("exec python3 -q"))
	if r.Reason != sallyport.ReasonInput || !strings.HasSuffix(string(r.Output), ">>> ") {
		t.Fatalf("got %q, %s", r.Output, r.Reason)
	}
	fastest := MaxYield // the one that a busy machine disturbs least
	for i := range 20 {
		began := time.Now()
		r := say(t, tools, r, fmt.Sprintf("print(%d*7)\n", i))
		took := time.Since(began)
		fastest = min(fastest, took)
		if want := fmt.Sprintf("\r\n%d\r\n>>> ", i*7); r.Reason != sallyport.ReasonInput ||
			!strings.HasSuffix(string(r.Output), want) {
			t.Errorf("got %q, %s", r.Output, r.Reason)
		}
	}
	t.Logf("the fastest answer of 20 took %v", fastest)
	if fastest > 150*time.Millisecond {
		t.Errorf("each answer took %v and more", fastest)
	}
	code(t, say(t, tools, r, "exit()\n"), 0)
}

// rowPublish: this machine reaches the server of a process that goes on, and no longer when it has ended.
func rowPublish(t *testing.T, tools *Tools, _ *heard) {
	testenv.NeedProgram(t, "python3")
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	here, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal(l.Addr())
	}
	_ = l.Close()
	tools.Cmd.Publish = []network.Publish{{Port: 3000, HostPort: uint16(here.Port)}}
	q := tty(`exec python3 -c '
import socket
s = socket.create_server(("127.0.0.1", 3000))
input("ready> ")
c = s.accept()[0]
c.sendall(b"inside")
c.close()
input("served> ")'`)
	r := exec(t, tools, q)
	c, err := net.Dial("tcp4", here.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r = say(t, tools, r, "\n")
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if text, err := io.ReadAll(c); string(text) != "inside" || err != nil {
		t.Errorf("%q, %v after %q", text, err, r.Output)
	}
	code(t, say(t, tools, r, "\n"), 0)
	if c, err := net.Dial("tcp4", here.String()); err == nil {
		_ = c.Close()
		t.Error("the port is open after the end")
	}
}

func rowLogin(t *testing.T, tools *Tools, _ *heard) {
	profile := "export TERM=vt100 PAGER=less NO_COLOR= SALLYPORT_CI=0 TMPDIR=/none PROFILE=read\n"
	if err := os.WriteFile(filepath.Join(tools.Cmd.Dir, ".profile"), []byte(profile), 0o600); err != nil {
		t.Fatal(err)
	}
	tools.Cmd.Env = append(os.Environ(), "HOME="+tools.Cmd.Dir, "TMPDIR=/var/tmp")
	tools.AllowLogin = true
	yes := true
	for _, name := range []string{"sh", "bash"} {
		testenv.NeedProgram(t, name)
		for _, onTerminal := range []bool{false, true} {
			q := sh("echo $PROFILE $TERM $NO_COLOR $PAGER $SALLYPORT_CI $TMPDIR")
			q.Shell, q.Login, q.TTY = name, &yes, onTerminal
			if r := exec(t, tools, q); strings.TrimSpace(string(r.Output)) != "read dumb 1 cat 1 /tmp" {
				t.Errorf("%s, terminal %v: got %q", name, onTerminal, r.Output)
			}
		}
	}
}

func rowRefusal(t *testing.T, tools *Tools, h *heard) {
	outside := "/etc/sallyport-row-53" // in a directory that no sandbox lets anybody write
	r := exec(t, tools, sh("echo x >"+outside))
	if r.ExitCode == nil || *r.ExitCode == 0 || r.Denied() == nil {
		t.Fatalf("got %+v", r)
	}
	t.Logf("%s", r.Text())
	if _, err := os.Stat(outside); err == nil {
		t.Error("it was written")
	}
	if !slices.ContainsFunc(r.Denials, func(d sandbox.Denial) bool { return d.Path == outside }) {
		t.Errorf("the denials are %v", r.Denials)
	}
	if end := lastEnd(t, tools, h); len(of[Begin](h)) != 1 || end.Status != Failed {
		t.Errorf("the end is %+v", end)
	}
}

func rowPipe(t *testing.T, tools *Tools, _ *heard) {
	q := sh("while read x; do echo got $x; done; echo over; exit 6")
	q.Stdin, q.Yield = StdinPipe, MinYield
	r := exec(t, tools, q)
	r = write(t, tools, WriteRequest{SessionID: r.SessionID, Chars: "a\nb\n",
		Until: Conditions{MinBytes: len("got a\ngot b\n")}, Yield: MaxYield})
	if string(r.Output) != "got a\ngot b\n" {
		t.Errorf("got %q", r.Output)
	}
	r = write(t, tools, WriteRequest{SessionID: r.SessionID, Chars: "c\n", EOF: true, Yield: MaxYield})
	code(t, r, 6)
	if string(r.Output) != "got c\nover\n" {
		t.Errorf("got %q", r.Output)
	}
}

func rowConditions(t *testing.T, tools *Tools, _ *heard) {
	q := sh("echo one; echo two; sleep 1000")
	q.Until.Match = regexp.MustCompile(`(?m)^two$`)
	if r := exec(t, tools, q); r.Reason != sallyport.ReasonMatch || string(r.Output) != "one\ntwo\n" {
		t.Errorf("got %q, %s", r.Output, r.Reason)
	}
	// In one piece: a busy machine may be silent for a while between two.
	q = sh(`printf 'one\ntwo\n'; sleep 1000`)
	q.Until = Conditions{Idle: 50 * time.Millisecond}
	if r := exec(t, tools, q); r.Reason != sallyport.ReasonQuiet || string(r.Output) != "one\ntwo\n" {
		t.Errorf("got %q, %s", r.Output, r.Reason)
	}
}

func TestManyProcesses(t *testing.T) {
	testenv.RunAsOrdinary(t)
	tools, h := newTools(t)
	var mu sync.Mutex
	started, refused := 0, 0
	var calls sync.WaitGroup
	for range 66 {
		calls.Go(func() {
			q := sh("sleep 1000")
			q.Yield = MinYield
			_, err := tools.ExecCommand(t.Context(), q)
			mu.Lock()
			defer mu.Unlock()
			var full *Error
			switch {
			case err == nil:
				started++
			case isKind(err, ErrTooMany, &full):
				refused++
				if len(full.Candidates) > 64 {
					t.Errorf("%d candidates", len(full.Candidates))
				}
			default:
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if started != 64 || refused != 2 {
		t.Errorf("row 50: %d run, %d were refused", started, refused)
	}
	for _, info := range tools.List() {
		if !info.Running {
			t.Errorf("row 50: %+v has ended", info)
		}
	}
	if err := tools.Close(); err != nil { // row 39: it ends them
		t.Error(err)
	}
	if n := len(of[End](h)); n != 64 {
		t.Errorf("row 39: %d ends", n)
	}
}

// TestEviction ends the process that was left alone for longest.
func TestEviction(t *testing.T) {
	testenv.RunAsOrdinary(t)
	tools, _ := newTools(t)
	tools.Evict, tools.Runner.MaxSessions = EvictLRU, ProtectedProcesses+1
	q := sh("sleep 1000")
	q.Yield = MinYield
	var first *Response
	for i := range ProtectedProcesses + 2 {
		r := exec(t, tools, q)
		if i == 0 {
			first = r
		}
		if evicted := len(r.Notices) > 0; evicted != (i > ProtectedProcesses) {
			t.Errorf("start %d: %q", i, r.Notices)
		}
	}
	var unknown *Error
	if _, err := tools.WriteStdin(t.Context(), WriteRequest{SessionID: first.SessionID}); !isKind(err,
		ErrUnknownProcess, &unknown) {
		t.Errorf("got %v", err)
	}
}
