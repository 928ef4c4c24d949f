// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestStrangeReaders looks at readers that are built to be misunderstood.
func TestStrangeReaders(t *testing.T) {
	testenv.RunAsOrdinary(t)
	const head = "import ctypes,os,platform,select,sys,threading,time\nlibc=ctypes.CDLL(None,use_errno=True)\n"
	tests := []struct {
		name, program string
		why           string // of a no; empty for a yes
		unknown       bool
		comm          string
	}{
		{name: "name of a stat line", comm: "x) R 1 (\n",
			program: "libc.prctl(15,b'x) R 1 (\\n',0,0,0)\ninput('go')"},
		{name: "name of bytes", comm: "\xff\x1b[31m",
			program: "libc.prctl(15,b'\\xff\\x1b[31m',0,0,0)\ninput('go')"},
		{name: "thread with descriptors of its own",
			program: "def f():\n  libc.unshare(0x400)\n  done.wait()\n  print('go')\n  os.read(0,9)\ndone=threading.Event()\nt=threading.Thread(target=f)\nt.start()\ntime.sleep(.05)\nos.dup2(os.open('/dev/null',0),0)\ndone.set()\nt.join()"},
		{name: "first thread has ended",
			program: "def f():\n  print('go')\n  os.read(0,9)\nthreading.Thread(target=f).start()\nlibc.syscall(60 if platform.machine()=='x86_64' else 93,0)"},
		{name: "array of poll is away", unknown: true, why: "its memory is not in place",
			program: `
import mmap,tempfile
f=tempfile.TemporaryFile()
f.write(b'\0\0\0\0\1\0\0\0'.ljust(4096,b'\0'))
f.flush()
libc.mmap.restype=ctypes.c_void_p
libc.mmap.argtypes=[ctypes.c_void_p,ctypes.c_size_t,ctypes.c_int,ctypes.c_int,ctypes.c_int,ctypes.c_long]
at=libc.mmap(None,4096,3,2,f.fileno(),0)
libc.poll.argtypes=[ctypes.c_void_p,ctypes.c_ulong,ctypes.c_int]
libc.madvise.argtypes=[ctypes.c_void_p,ctypes.c_size_t,ctypes.c_int]
t=threading.Thread(target=lambda:libc.poll(at,1,-1))
t.start()
while True:
  s=open('/proc/self/task/%d/syscall'%t.native_id).read().split()
  if len(s)>2 and s[1]==hex(at): break
libc.madvise(at,4096,4)
print('go')
t.join()`},
		{name: "more descriptors than are looked at", unknown: true, why: "more than a look takes in",
			program: "import resource\nh=resource.getrlimit(7)[1]\nresource.setrlimit(7,(h,h))\na,b=os.pipe()\nP=ctypes.c_uint64*2000\np=P(*[a|1<<32]*2000)\np[1999]=0|1<<32\nprint('go')\nlibc.poll(p,2000,-1)"},
		{name: "number of a member given to the terminal", why: "no process of",
			program: "r,w=os.pipe()\nk=os.dup(r)\np=select.epoll()\np.register(r,1)\nos.dup2(0,r)\nprint('go')\np.poll()"},
		{name: "epoll in epoll is missed", why: "no process of",
			program: "p=select.epoll()\np.register(0,1)\nq=select.epoll()\nq.register(p.fileno(),1)\nprint('go')\nq.poll()"},
		{name: "array of poll is nowhere", why: "no process of",
			program: "print('go')\nlibc.poll(None,0,-1)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := start(t, python, "-c", head+test.program)
			c.until(0, "go")
			if test.why != "" {
				c.settled(test.why)
				for _, look := range c.never(rounds) {
					if look.Known == test.unknown {
						t.Errorf("%+v", look)
					}
				}
				return
			}
			for range rounds {
				if look := c.await(); test.comm != "" && look.Program != test.comm {
					t.Fatalf("%+v, want the name %q", look, test.comm)
				}
			}
		})
	}
}

// TestRefused looks at programs that an ordinary user may not look into.
func TestRefused(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedOrdinaryUser(t)
	tests := []struct {
		name  string
		args  []string
		until string
	}{
		{name: "private memory", args: []string{python, "-c", "import ctypes\nctypes.CDLL(None).prctl(4,0,0,0,0)\ninput('go')"}, until: "go"},
		{name: "another user", args: []string{"su"}, until: "assword:"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := start(t, test.args...)
			c.until(0, test.until)
			c.settled("belongs to another user or keeps its memory private")
			for _, look := range c.never(rounds) {
				if look.Known {
					t.Errorf("%+v", look)
				}
			}
			if strings.Contains(c.text(), "su: ") {
				t.Error("su does not ask")
			}
		})
	}
}

// TestPrivateMemoryOfRoot has the same as root, who may look at everything.
func TestPrivateMemoryOfRoot(t *testing.T) {
	testenv.NeedRoot(t)
	c := start(t, python, "-c", "import ctypes\nctypes.CDLL(None).prctl(4,0,0,0,0)\ninput('go')")
	c.until(0, "go")
	c.await()
}

// TestTerminalAlone looks at files that are not terminals, and at terminals without programs.
func TestTerminalAlone(t *testing.T) {
	testenv.RunAsOrdinary(t)
	t.Run("nil", func(t *testing.T) {
		if look := Terminal(nil, []int{os.Getpid()}); look.Known || look.Waiting || look.Why == "" {
			t.Errorf("%+v", look)
		}
	})
	t.Run("closed", func(t *testing.T) {
		master, slave := openTerminal(t)
		slave.Close()
		master.Close()
		if look := Terminal(master, []int{os.Getpid()}); look.Known || look.Waiting || look.Why == "" {
			t.Errorf("%+v", look)
		}
	})
	t.Run("not a terminal", func(t *testing.T) {
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		if look := Terminal(null, []int{os.Getpid()}); look.Known || look.Waiting || look.Why == "" {
			t.Errorf("%+v", look)
		}
	})
	t.Run("never opened", func(t *testing.T) {
		fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		master := os.NewFile(uintptr(fd), "ptmx")
		defer master.Close()
		if look := Terminal(master, []int{os.Getpid()}); !look.Known || look.Waiting ||
			!strings.Contains(look.Why, "no foreground") {
			t.Errorf("%+v", look)
		}
		// The look must not have been the first to open the other end and to close it.
		if _, err := unix.Read(fd, make([]byte, 1)); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("read after the look: %v, want %v", err, unix.EAGAIN)
		}
	})
	t.Run("processes of others", func(t *testing.T) {
		c := start(t, "cat")
		c.await()
		for _, pids := range [][]int{nil, {os.Getpid()}, {-1, 0, 1 << 30}} {
			if look := Terminal(c.input, pids); look.Known || look.Waiting ||
				!strings.Contains(look.Why, "not among") {
				t.Errorf("%v: %+v", pids, look)
			}
		}
	})
	t.Run("ended", func(t *testing.T) {
		c := start(t, "true")
		<-c.ended
		if look := c.look(); look.Waiting || look.Why == "" {
			t.Errorf("%+v", look)
		}
	})
	t.Run("exclusive", func(t *testing.T) {
		testenv.NeedOrdinaryUser(t)
		c := start(t, python, "-c", "import fcntl,termios\nfcntl.ioctl(0,termios.TIOCEXCL)\ninput('go')")
		c.until(0, "go")
		c.settled("keeps the terminal for itself")
	})
}

// TestUnreadOutput leaves the question unread: no program waits before it was read.
func TestUnreadOutput(t *testing.T) {
	testenv.RunAsOrdinary(t)
	c := start(t, "sh", "-c", "read x; echo go; read x")
	c.await()
	c.mu.Lock() // nothing is taken from here on
	_, err := c.input.WriteString("\n")
	pids := c.pids()
	look := Terminal(c.input, pids)
	for range 1000 {
		if look = Terminal(c.input, pids); look.Waiting {
			break
		}
	}
	c.mu.Unlock()
	if err != nil || look.Waiting || !look.Known {
		t.Errorf("%v, %+v", err, look)
	}
	c.until(0, "go")
	c.await()
}

// TestUnreadInput leaves input unread: it is the reason before what the processes read,
// here a pipe.
func TestUnreadInput(t *testing.T) {
	testenv.RunAsOrdinary(t)
	c := start(t, "sh", "-c", "(echo go; sleep 500) | cat")
	c.until(0, "go")
	c.send("abc\n")
	c.settled(unreadInput) // cat is back in its read
	for range rounds {
		if look := c.look(); look.Waiting || !look.Known || look.Why != unreadInput {
			t.Fatalf("%+v", look)
		}
	}
}

// TestProgressDuringLook lets a program read and sleep again between the two parts of a
// look: it waits at both times, but not in between.
func TestProgressDuringLook(t *testing.T) {
	testenv.RunAsOrdinary(t)
	c := start(t, "cat")
	c.await()
	for _, progress := range []bool{false, true} {
		s := &scan{}
		if answer, ok := s.join(c.pids(), 0); !ok {
			t.Fatalf("%+v", answer)
		}
		if answer, ok := s.first(); !ok {
			t.Fatalf("%+v", answer)
		}
		if progress {
			c.send("a\n")
			c.until(0, "a\r\na\r\n")
			c.await()
		}
		if answer := s.decide(terminalOf(t, c)); answer.Waiting == progress || progress &&
			!strings.Contains(answer.Why, "changed") {
			t.Errorf("progress %v: %+v", progress, answer)
		}
		s.close()
	}
}

// terminalOf returns the terminal of a console as a target.
func terminalOf(t *testing.T, c *console) target {
	t.Helper()
	end, err := endOf(c.input)
	if err != nil {
		t.Fatal(err)
	}
	peer, err := end.peer()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(peer)
	to, _, err := terminalTarget(peer)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// TestGone checks that a process that was opened is not taken for the next one.
func TestGone(t *testing.T) {
	testenv.RunAsOrdinary(t)
	c := start(t, "cat")
	c.await()
	s := scan{of: "it", verb: "reads"}
	defer s.close()
	if look, ok := s.join(c.pids(), 0); !ok {
		t.Fatalf("%+v", look)
	}
	if look, ok := s.first(); !ok {
		t.Fatalf("%+v", look)
	}
	c.cmd.Process.Kill()
	<-c.ended
	p := s.processes[0]
	if _, err := p.stat(p.pid); !errors.Is(err, errGone) {
		t.Errorf("stat: %v", err)
	}
	if err := p.memory(p.pid, 4096, make([]byte, 8)); !errors.Is(err, errGone) {
		t.Errorf("memory: %v", err)
	}
	if why := s.again(0); why == "" {
		t.Error("the process is still at rest")
	}
	if look := s.decide(target{}); look.Waiting {
		t.Errorf("%+v", look)
	}
}

// TestNothingKept counts the descriptors before and after looks.
func TestNothingKept(t *testing.T) {
	testenv.RunAsOrdinary(t)
	c := start(t, "node")
	c.until(0, "> ")
	c.await()
	before := descriptors(t)
	for range 20 {
		c.look()
		if _, err := ListeningPorts(c.pids(), false); err != nil {
			t.Fatal(err)
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	names, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// TestPipe has the same questions with a pipe.
func TestPipe(t *testing.T) {
	testenv.RunAsOrdinary(t)
	tests := []struct {
		name  string
		args  []string
		until string
		busy  bool
	}{
		{name: "cat", args: []string{"cat"}},
		{name: "sh read", args: []string{"sh", "-c", "while read x; do sleep 0.02; echo $x; done"}},
		{name: "python", args: []string{python, "-uc", "while True: print(input())"}},
		{name: "node", args: []string{"node", "-e", "process.stdin.on('data',d=>process.stdout.write(d))"}},
		{name: "poll", args: []string{python, "-uc", "import os,select\np=select.poll()\np.register(0,1)\nwhile p.poll(): os.write(1,os.read(0,99))"}},
		{name: "splice", args: []string{python, "-c", "import os\nwhile os.splice(0,1,99): pass"}},
		{name: "loop that waits 100 ms", args: []string{python, "-uc", "import os,select\nwhile True:\n if select.select([0],[],[],.1)[0]: os.write(1,os.read(0,99))"}},
		{name: "busy in another group", args: []string{"sh", "-c", "setsid sh -c 'while :; do :; done' & exec cat"}},
		{name: "sleep", args: []string{"sh", "-c", "echo go; sleep 500"}, until: "go", busy: true},
		{name: "busy in the group", args: []string{"sh", "-c", "(while :; do :; done) & echo go; exec cat"}, until: "go", busy: true},
		{name: "node server", args: []string{"node", "-e", "require('http').createServer().listen(0,'127.0.0.1',()=>console.log('go'))"}, until: "go", busy: true},
		{name: "another pipe", args: []string{python, "-uc", "import os\nr,w=os.pipe()\nprint('go')\nos.read(r,9)"}, until: "go", busy: true},
		{name: "loop that polls", args: []string{python, "-uc", "import select\nprint('go')\nwhile True: select.select([0],[],[],.02)"}, until: "go", busy: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := startPipe(t, test.args...)
			at := c.until(0, test.until)
			if test.busy {
				c.never(rounds)
				return
			}
			for range rounds {
				if look := c.await(); look.Kind != Line {
					t.Fatalf("%+v", look)
				}
				c.send("abc\n")
				c.await()
				if end := len(c.text()); c.until(at, "abc\n") != end {
					t.Fatal("waited, they say, before the answer")
				}
				at = len(c.text())
			}
		})
	}
	t.Run("unread", func(t *testing.T) {
		c := startPipe(t, "sleep", "500")
		c.send("abc\n")
		if look := c.look(); look.Waiting || !look.Known || look.Why != unreadInput {
			t.Errorf("%+v", look)
		}
	})
	t.Run("stopped", func(t *testing.T) {
		c := startPipe(t, "cat")
		c.await()
		if err := unix.Kill(c.cmd.Process.Pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		c.settled("the tree is stopped")
	})
	t.Run("not a pipe", func(t *testing.T) {
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		for _, file := range []*os.File{nil, null} {
			if look := Pipe(file, []int{os.Getpid()}); look.Known || look.Waiting || look.Why == "" {
				t.Errorf("%+v", look)
			}
		}
	})
	t.Run("no processes", func(t *testing.T) {
		c := startPipe(t, "cat")
		c.await()
		if look := Pipe(c.input, nil); look.Waiting || !look.Known || look.Why == "" {
			t.Errorf("%+v", look)
		}
	})
}

// BenchmarkLook measures one look without the listing of the processes.
func BenchmarkLook(b *testing.B) {
	for _, bench := range []struct {
		name  string
		args  []string
		until string
		busy  bool
	}{
		{name: "cat", args: []string{"cat"}},
		{name: "bash", args: []string{"bash", "--norc", "--noprofile"}, until: "PROMPT> "},
		{name: "node", args: []string{"node"}, until: "> "},
		{name: "sleep", args: []string{"sleep", "500"}, busy: true},
		{name: "busy", args: []string{"sh", "-c", "echo go; while :; do :; done"}, until: "go", busy: true},
	} {
		b.Run(bench.name, func(b *testing.B) {
			c := start(b, bench.args...)
			c.until(0, bench.until)
			if !bench.busy {
				c.await()
			}
			pids := c.pids()
			b.ReportAllocs()
			wrong := 0
			for b.Loop() {
				if Terminal(c.input, pids).Waiting == bench.busy {
					wrong++
				}
			}
			if wrong > b.N/10+1 { // one may be, as at any time, when there are few
				b.Errorf("%d of %d looks are wrong", wrong, b.N)
			}
		})
	}
}
