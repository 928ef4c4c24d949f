// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestNotWaiting looks at programs that do not wait for input, again and again.
func TestNotWaiting(t *testing.T) {
	testenv.RunAsOrdinary(t)
	tests := []struct {
		name  string
		args  []string
		until string // output before the looks
		send  string // input after that output
		after string // output after that input
		why   string // a reason that comes soon and then stays
	}{
		{name: "sleep", args: []string{"sh", "-c", "echo go; sleep 500"}, until: "go", why: "no process of"},
		{name: "busy loop", args: []string{"sh", "-c", "echo go; while :; do :; done"}, until: "go", why: "runs"},
		{name: "node server", args: []string{"node", "-e", "require('http').createServer().listen(0,'127.0.0.1',()=>console.log('go'))"}, until: "go", why: "no process of"},
		{name: "socket in poll", args: []string{python, "-c", "import select,socket\na,b=socket.socketpair()\np=select.poll()\np.register(a,1)\nprint('go')\np.poll()"}, until: "go", why: "no process of"},
		{name: "socket in select", args: []string{python, "-c", "import select,socket\na,b=socket.socketpair()\nprint('go')\nselect.select([a],[],[])"}, until: "go", why: "no process of"},
		{name: "accept", args: []string{python, "-c", "import socket\ns=socket.create_server(('127.0.0.1',0))\nprint('go')\ns.accept()"}, until: "go", why: "no process of"},
		{name: "terminal only for writing", args: []string{python, "-c", "import select,socket\na,b=socket.socketpair()\np=select.poll()\np.register(a,1)\np.register(0,0)\nprint('go')\np.poll()"}, until: "go", why: "no process of"},
		{name: "terminal taken out of epoll", args: []string{python, "-c", "import select,socket\na,b=socket.socketpair()\np=select.epoll()\np.register(a,1)\np.register(0,1)\np.unregister(0)\nprint('go')\np.poll()"}, until: "go", why: "no process of"},
		{name: "one thread busy", args: []string{python, "-c", "import threading\ndef f():\n  while True: pass\nthreading.Thread(target=f,daemon=True).start()\ninput('go')"}, until: "go"},
		{name: "busy child", args: []string{"sh", "-c", "(while :; do :; done) & echo go; exec cat"}, until: "go"},
		{name: "loop that polls the terminal", args: []string{python, "-c", "import select\nprint('go')\nwhile True: select.select([0],[],[],.02)"}, until: "go"},
		{name: "loop that polls by epoll", args: []string{python, "-c", "import select\np=select.epoll()\np.register(0,1)\nprint('go')\nwhile True: p.poll(.02)"}, until: "go"},
		{name: "programs that come and go", args: []string{"sh", "-c", "echo go; while :; do /bin/true; done"}, until: "go"},
		{name: "another session", args: []string{python, "-c", "import os\nif os.fork():\n  print('go'); os.wait()\nelse:\n  os.setsid(); os.read(0,9)"}, until: "go"},
		{name: "another terminal", args: []string{python, "-c", "import os,pty\nm,s=pty.openpty()\nprint('go')\nos.read(s,9)"}, until: "go", why: "no process of"},
		{name: "foreground job", args: []string{"bash", "--norc", "--noprofile", "-i"}, until: "PROMPT> ", send: "echo $((1+1))go; sleep 500\n", after: "2go", why: "no process of"},
		{name: "stopped alone", args: []string{"sh", "-c", "echo go; kill -STOP $$"}, until: "go", why: "is stopped"},
		{name: "stopped while reading", args: []string{python, "-c", "import os\nprint('go')\nif os.fork(): os.kill(os.getpid(),19)\nelse:\n  os.kill(os.getpid(),19)"}, until: "go", why: "is stopped"},
		{name: "unread input", args: []string{python, "-c", "import threading,time\nprint('go')\ntime.sleep(500)"}, until: "go", send: "a\n", after: "a\r\n", why: "no process of"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := start(t, test.args...)
			at := c.until(0, test.until)
			if test.send != "" {
				c.send(test.send)
				c.until(at, test.after)
			}
			c.never(rounds)
			if test.why != "" {
				c.settled(test.why)
			}
			for _, look := range c.never(rounds) {
				if !look.Known || look.Why == "" || look.Kind != "" || look.PID != 0 || look.Program != "" {
					t.Errorf("a no is %+v", look)
				}
			}
		})
	}
}

// TestStoppedJob stops a reader under a shell with job control: the shell waits, and
// the reader in the background does not count, stopped by a key or by its own read.
func TestStoppedJob(t *testing.T) {
	testenv.RunAsOrdinary(t)
	c := start(t, "bash", "--norc", "--noprofile", "-i")
	at := c.until(0, "PROMPT> ")
	for range rounds {
		c.await()
		c.send("cat\n")
		at = c.until(at, "cat\r\n")
		if look := c.await(); look.Program != "cat" || look.Kind != Line {
			t.Fatalf("with cat: %+v", look)
		}
		c.send("\x1a")
		at = c.until(at, "PROMPT> ")
		if look := c.await(); look.Program != "bash" || look.Kind != Key {
			t.Fatalf("with cat stopped: %+v", look)
		}
		c.send("bg; echo b\"\"g\n")
		at = c.until(at, "bg\r\n")
		c.send("wait; kill %1; wait; echo e\"\"nd\n")
		at = c.until(at, "end\r\n")
		if look := c.await(); look.Program != "bash" {
			t.Fatalf("with cat ended: %+v", look)
		}
	}
}

// TestContinuedPoll stops a program in a poll with and without timeout and continues
// it: the kernel goes on with another call then.
func TestContinuedPoll(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, timeout := range []string{"", "500000"} {
		t.Run("poll("+timeout+")", func(t *testing.T) {
			c := start(t, "bash", "--norc", "--noprofile", "-i")
			at := c.until(0, "PROMPT> ")
			c.await()
			c.send(python + ` -c "import select; p=select.poll(); p.register(0,1); print(1+1,'go',p.poll(` +
				timeout + "))\"\n")
			at = c.until(at, "))\"\r\n")
			for range rounds {
				look := c.await()
				if look.Program != "python3" || look.Timed != (timeout != "") {
					t.Fatalf("in poll: %+v", look)
				}
				c.send("\x1a")
				at = c.until(at, "PROMPT> ")
				if look := c.await(); look.Program != "bash" {
					t.Fatalf("stopped: %+v", look)
				}
				c.send("fg\n")
				at = c.until(at, "fg\r\n")
				at = c.until(at, "\r\n")
			}
			c.await()
			c.send("\n")
			c.until(at, "2 go [(0, 1)]")
		})
	}
}

// TestSleepThenRead is busy first and waits then.
func TestSleepThenRead(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for range 3 {
		started := time.Now()
		c := start(t, "sh", "-c", "sleep 0.6; read x")
		if look := c.await(); look.Kind != Line || look.Program != "sh" {
			t.Errorf("waits like %+v", look)
		}
		if took := time.Since(started); took < 600*time.Millisecond {
			t.Errorf("waits after %v, while it sleeps", took)
		}
	}
}

// TestCompile looks all the time while a compiler runs.
func TestCompile(t *testing.T) {
	testenv.RunAsOrdinary(t)
	source := filepath.Join(t.TempDir(), "slow.c")
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "double f%d(double *a, int n) { double s = 0; for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) s += a[i] * a[j] / (a[(i * %d + j) %% n] + 1); return s; }\n", i, i+1)
	}
	text.WriteString("int main(void) { return 0; }\n")
	if err := os.WriteFile(source, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	c := start(t, "gcc", "-O2", "-pipe", "-c", "-o", source+".o", source)
	looks := c.never(1 << 20)
	if len(looks) < rounds {
		t.Errorf("only %d looks at a compiler", len(looks))
	}
	if state := c.cmd.ProcessState; !state.Success() {
		t.Errorf("gcc: %v", state)
	}
}

// TestLinesInParts writes a line in two parts: the program waits for the rest.
func TestLinesInParts(t *testing.T) {
	testenv.RunAsOrdinary(t)
	c := start(t, "cat")
	at := 0
	for range rounds {
		c.await()
		c.send("abc")
		at = c.until(at, "abc")
		if look := c.await(); look.Kind != Line {
			t.Fatalf("in the middle of a line: %+v", look)
		}
		c.send("d\n")
		at = c.until(at, "abcd\r\n")
	}
}

// TestMultiplexer pins that a multiplexer is never seen to wait: its client waits for
// a server, which reads the terminal from a session of its own.
func TestMultiplexer(t *testing.T) {
	testenv.RunAsOrdinary(t)
	c := start(t, "tmux", "-S", "socket", "-f", "/dev/null", "new", "echo go; cat")
	t.Cleanup(func() {
		quit := command(t, "tmux", "-S", filepath.Join(c.cmd.Dir, "socket"), "kill-server")
		if output, err := quit.CombinedOutput(); err != nil {
			t.Errorf("tmux kill-server: %v\n%s", err, output)
		}
	})
	c.until(0, "go")
	c.settled("no process of")
	c.never(rounds)
}

// TestMisleading pins the answers that the package comment warns of: each of these
// programs may be at work, and the look cannot know.
func TestMisleading(t *testing.T) {
	testenv.RunAsOrdinary(t)
	tests := []struct {
		name  string
		args  []string
		until string
		timed bool
	}{
		{name: "top", args: []string{"top", "-d", "300"}, until: "PID", timed: true},
		{name: "script", args: []string{"script", "-qc", "echo go; sleep 500", "/dev/null"}, until: "go"},
		{name: "node prompt with a timer", args: []string{"node", "-i", "-e", "setTimeout(()=>0,500000); 0"}, until: "> ", timed: true},
		{name: "remote at work", args: []string{python, "-c", "import select,socket\na,b=socket.socketpair()\np=select.poll()\np.register(a,1)\np.register(0,1)\nprint('go')\np.poll()"}, until: "go"},
		{name: "alarm to come", args: []string{python, "-c", "import signal\nsignal.alarm(500)\ninput('go')"}, until: "go"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := start(t, test.args...)
			c.until(0, test.until)
			if look := c.await(); look.Timed != test.timed {
				t.Errorf("%+v, want Timed %v", look, test.timed)
			}
		})
	}
}
