// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// open opens a shared sandbox that ends with t.
func (a *arena) open(t testing.TB, p sandbox.Policy) *Shared {
	t.Helper()
	s, err := a.host.Open(context.Background(), &executor.SharedSpec{Policy: p})
	must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// An agent is a command in a sandbox that performs attacks one by one, as it is asked, and keeps what
// they have opened.
type agent struct {
	child *Child
	in    *os.File
	out   *os.File
	lines *bufio.Reader
	ended bool
}

// agent starts one that ends with t.
func (a *arena) agent(t testing.TB, j *job) *agent {
	t.Helper()
	in, inW := pipe(t)
	outR, out := pipe(t)
	j.args = []string{os.Getenv(programVar), partAttack, "agent"}
	c, err := a.startIn(j.in, a.request(j), j.change, in, out, out)
	in.Close()
	out.Close()
	must(t, err)
	g := &agent{child: c, in: inW, out: outR, lines: bufio.NewReader(outR)}
	t.Cleanup(func() {
		if !g.ended {
			g.end(t)
		}
	})
	must(t, outR.SetReadDeadline(time.Now().Add(patience)))
	return g
}

const agentSeparator = "\x01"

// do has the agent perform an attack and returns what came of it.
func (g *agent) do(t testing.TB, name string, kv ...string) outcome {
	t.Helper()
	_, err := io.WriteString(g.in, strings.Join(append([]string{name}, kv...), agentSeparator)+"\n")
	must(t, err)
	line, err := g.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %q, %v", name, line, err)
	}
	w := strings.SplitN(strings.TrimSpace(line), " ", 3)
	if len(w) < 2 || w[0] != name {
		t.Fatalf("%s: %q", name, line)
	}
	return outcome{w[1], strings.Join(w[2:], " ")}
}

// fact has the agent do something that must work, and returns what it says.
func (g *agent) fact(t testing.TB, name string, kv ...string) string {
	t.Helper()
	v := g.do(t, name, kv...)
	if v.word != wordOK {
		t.Fatalf("%s: %v", name, v)
	}
	return v.detail
}

// pid is the agent's process, as this machine sees it.
func (g *agent) pid(t testing.TB) int {
	t.Helper()
	pids := g.child.Processes()
	if len(pids) == 0 {
		t.Fatal("the agent is not there")
	}
	return pids[0]
}

// end ends the agent and returns its end.
func (g *agent) end(t testing.TB) *executor.Exit {
	t.Helper()
	g.ended = true
	g.in.Close()
	defer g.out.Close()
	return finish(t, g.child)
}

// undisturbed tries what needs a command that begins with known mounts, until one has. What changes on
// the host meanwhile, such as a mount or a file in the home of other tests, has a command make its own.
func undisturbed(t *testing.T, try func() (known bool)) {
	t.Helper()
	for range 5 {
		if try() {
			return
		}
	}
	t.Error("no command begins with known mounts")
}

// finish waits for the end of a command and of its tree.
func finish(t testing.TB, c *Child) *executor.Exit {
	t.Helper()
	exit := new(executor.Exit)
	var err error
	exit.Code, exit.Signal, err = c.Wait()
	_ = c.Kill() // ends the processes that are left
	if err := errors.Join(err, c.WaitAll(), c.Close(exit)); err != nil {
		t.Error(err)
	}
	return exit
}

// agentAttacks are for agents: "agent" itself, and what it is asked for beside attacks.
func agentAttacks() map[string]attack {
	return map[string]attack{
		"agent":      agentMain,
		"take-ports": takePorts,
		"lay":        layOpen,
		"child":      makeChild,
		"hello":      func(map[string]string) outcome { return fine("hello") },
		"parent-pid": func(map[string]string) outcome { return fine("%d", os.Getppid()) },
		"own-pid":    func(map[string]string) outcome { return fine("%d", os.Getpid()) },
		"memory":     func(map[string]string) outcome { return fine("%s", secretMemory) },
	}
}

// agentMain performs what its input says until that ends.
func agentMain(map[string]string) outcome {
	table := attacks()
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return fine("ended")
		}
		w := strings.Split(strings.TrimSuffix(line, "\n"), agentSeparator)
		v := bad("there is no such attack")
		if f := table[w[0]]; f != nil {
			v = guarded(f, keyValues(w[1:]))
		}
		fmt.Printf("%s %s %s\n", w[0], v.word, strings.ReplaceAll(v.detail, "\n", " "))
	}
}

// What an agent has open: kept so that nothing closes it.
var (
	secretMemory []byte
	keptFiles    []*os.File
	keptMapping  []byte
)

// layOpen reads the secret "secret" into memory, keeps it open, and maps an object in "private".
func layOpen(kv map[string]string) outcome {
	f, err := os.Open(kv["secret"])
	if err != nil {
		return bad("%v", err)
	}
	if secretMemory, err = io.ReadAll(f); err != nil {
		return bad("%v", err)
	}
	o, err := os.OpenFile(kv["private"]+"/object", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return bad("%v", err)
	}
	if _, err = o.Write(make([]byte, 4096)); err != nil {
		return bad("%v", err)
	}
	if keptMapping, err = unix.Mmap(int(o.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED); err != nil {
		return bad("%v", err)
	}
	copy(keptMapping, "shared object")
	keptFiles = append(keptFiles, f, o)
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return bad("%v", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return bad("%v", err)
	}
	h, _, err := unix.NameToHandleAt(fd, "", unix.AT_EMPTY_PATH)
	handle := ""
	if err == nil {
		handle = fmt.Sprintf("%d:%s", h.Type(), hex.EncodeToString(h.Bytes()))
	}
	keptFiles = append(keptFiles, os.NewFile(uintptr(fd), "itself"))
	return fine("fd=%d addr=%d pidfd=%s", f.Fd(), uintptr(unsafe.Pointer(&secretMemory[0])), handle)
}

// makeChild starts a process that may be traced by its user, and says which.
func makeChild(map[string]string) outcome {
	r, w, err := os.Pipe()
	if err != nil {
		return bad("%v", err)
	}
	cmd := exec.Command("/bin/cat")
	cmd.Stdin = r
	if err := cmd.Start(); err != nil {
		return bad("%v", err)
	}
	keptFiles = append(keptFiles, r, w)
	return fine("%s", strconv.Itoa(cmd.Process.Pid))
}

// takePorts binds every port from "from" on that programs are given by the kernel, with the help of others
// of its kind.
func takePorts(kv map[string]string) outcome {
	from, last := 32768, 60999
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		_, _ = fmt.Sscan(string(b), &from, &last)
	}
	if kv["from"] != "" {
		from = number(kv["from"])
	}
	for port := from; port <= last; port++ {
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == unix.EMFILE {
			for _, f := range keptFiles {
				f.Close()
			}
			return takePortsToo(port)
		}
		if err == nil {
			err = unix.Bind(s, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
		}
		if err != nil {
			return bad("port %d: %v", port, err)
		}
		if port%100 == 0 { // for the pipes of a helper
			if f, err := os.Open(os.DevNull); err == nil {
				keptFiles = append(keptFiles, f)
			}
		}
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(s, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		return bad("there is one more port")
	}
	return fine("the last one is %d, then %v", last, err)
}

// takePortsToo starts a process that goes on, and lives as long as this one.
func takePortsToo(from int) outcome {
	cmd := exec.Command(os.Args[0], partAttack, "agent")
	in, err := cmd.StdinPipe()
	if err != nil {
		return bad("%v", err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = fmt.Fprintf(in, "take-ports%sfrom=%d\n", agentSeparator, from)
	}
	if err != nil {
		return bad("%v", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "take-ports OK ") {
		return bad("%q, %v", line, err)
	}
	return fine("by another process: %s", strings.TrimSpace(line))
}
