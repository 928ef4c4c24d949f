// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// sharedStage is a Runner with an open sandbox and a workspace.
type sharedStage struct {
	*testing.T
	*sallyport.Runner
	in  *sallyport.Sandbox
	dir string
}

func newSharedStage(t *testing.T, set func(*sallyport.Runner), o sallyport.SandboxOptions) *sharedStage {
	t.Helper()
	testenv.NeedUserNS(t)
	dir := t.TempDir()
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(dir)}
	if set != nil {
		set(r)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	in, err := r.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return &sharedStage{t, r, in, dir}
}

// server starts a session and waits until it listens.
func (s *sharedStage) server(c *sallyport.Cmd) int {
	s.Helper()
	c.Dir = s.dir
	session, err := s.in.Start(s.Context(), c)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = session.Close() })
	reply, err := session.Await(s.Context(), sallyport.Until{Port: true, For: time.Minute})
	if err != nil || reply.Reason != sallyport.ReasonPort {
		s.Fatalf("%v, %+v", err, reply)
	}
	return reply.Port
}

// out runs a command and returns what it prints.
func (s *sharedStage) out(c *sallyport.Cmd) string {
	s.Helper()
	c.Dir = s.dir
	r, err := s.in.Run(s.Context(), c)
	if err != nil {
		s.Fatal(err)
	}
	return strings.TrimSpace(string(r.Output.Bytes()))
}

// TestSharedServer: a server of one command is reached by the next, with the network off.
func TestSharedServer(t *testing.T) {
	testenv.NeedProgram(t, "python3")
	testenv.NeedProgram(t, "curl")
	s := newSharedStage(t, nil, sallyport.SandboxOptions{})
	if err := os.WriteFile(filepath.Join(s.dir, "index.html"), []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	port := s.server(sallyport.Command("python3", "-m", "http.server", "8000", "--bind", "127.0.0.1"))
	if got := s.out(sallyport.Command("curl", "-sS",
		fmt.Sprintf("http://127.0.0.1:%d/", port))); got != "hello" {
		t.Error(got)
	}
	listed := s.in.Processes()
	if !slices.ContainsFunc(listed, func(p executor.SharedProcess) bool {
		return strings.Contains(p.Command, "http.server 8000") && p.Run != ""
	}) {
		t.Errorf("%+v", listed)
	}
	own, err := s.Runner.Run(t.Context(), &sallyport.Cmd{Dir: s.dir,
		Args: []string{"curl", "-sS", "-m", "5", fmt.Sprintf("http://127.0.0.1:%d/", port)}})
	if err != nil || own.ExitCode == 0 || own.Sandbox.Shared {
		t.Errorf("in a sandbox of its own: %v, %+v", err, own)
	}
	if _, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second); err == nil {
		t.Error("this machine reaches the server")
	}
}

// TestSharedThings: what commands of one sandbox have in common, and what goes with the sandbox.
func TestSharedThings(t *testing.T) {
	testenv.NeedProgram(t, "python3")
	s := newSharedStage(t, nil, sallyport.SandboxOptions{})
	python := func(text string) *sallyport.Cmd { return sallyport.Command("python3", "-c", text) }
	for _, test := range []struct {
		name        string
		first, then *sallyport.Cmd
		want        string
	}{
		{"a file in /tmp", sallyport.Script("echo a >/tmp/file"), sallyport.Script("cat /tmp/file"), "a"},
		{"a file in /dev/shm", sallyport.Script("echo b >/dev/shm/file"), sallyport.Script("cat /dev/shm/file"), "b"},
		{
			"shared memory of POSIX",
			python("from multiprocessing import shared_memory, resource_tracker as r\nm=shared_memory.SharedMemory('sp',True,8); m.buf[0]=7; r.unregister('/sp','shared_memory')"),
			python("from multiprocessing import shared_memory, resource_tracker as r\nm=shared_memory.SharedMemory('sp'); print(m.buf[0]); r.unregister('/sp','shared_memory')"), "7",
		},
		{
			"shared memory of System V",
			python("import ctypes; c=ctypes.CDLL(None); c.shmat.restype=ctypes.c_void_p; i=c.shmget(77,64,0o1600); ctypes.memmove(c.shmat(i,None,0),b'seg',3)"),
			python("import ctypes; c=ctypes.CDLL(None); c.shmat.restype=ctypes.c_void_p; i=c.shmget(77,64,0o600); print(ctypes.string_at(c.shmat(i,None,0),3).decode())"), "seg",
		},
		{"the host name", sallyport.Script("hostname"), sallyport.Script("test $(hostname) = $(cat /proc/sys/kernel/hostname) && echo same"), "same"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := s.out(test.first); test.name != "the host name" && got != "" {
				t.Error(got)
			}
			if got := s.out(test.then); got != test.want {
				t.Errorf("%q", got)
			}
			if got, err := s.Runner.Run(t.Context(), &sallyport.Cmd{Dir: s.dir, Args: test.then.Args,
				Script: test.then.Script}); err != nil || test.name != "the host name" && got.ExitCode == 0 {
				t.Errorf("in a sandbox of its own: %v, %s", err, got.Output.Bytes())
			}
		})
	}
	if err := s.in.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-s.in.Done():
	default:
		t.Error("it has not ended")
	}
	if _, err := s.in.Run(t.Context(), sallyport.Command("true")); !errors.Is(err, executor.ErrSharedEnded) {
		t.Error(err)
	}
}

// TestSharedUnixSocket: by a path and by an abstract name.
func TestSharedUnixSocket(t *testing.T) {
	testenv.NeedProgram(t, "python3")
	const serve = `import socket,sys
s=socket.socket(socket.AF_UNIX); s.bind(sys.argv[1].replace('@','\0')); s.listen(); print('ready',flush=True)
while True:
    c,_=s.accept(); c.sendall(b'served'); c.close()`
	const ask = "import socket,sys\ns=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1].replace('@','\\0')); print(s.recv(9).decode())"
	s := newSharedStage(t, nil, sallyport.SandboxOptions{})
	for _, name := range []string{"/tmp/socket", "@socket"} {
		t.Run(name, func(t *testing.T) {
			session, err := s.in.Start(t.Context(),
				&sallyport.Cmd{Dir: s.dir, Args: []string{"python3", "-c", serve, name}})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			if _, err := session.Await(t.Context(),
				sallyport.Until{FirstOutput: true, For: time.Minute}); err != nil {
				t.Fatal(err)
			}
			if got := s.out(sallyport.Command("python3", "-c", ask, name)); got != "served" {
				t.Error(got)
			}
			wider := sallyport.Command("python3", "-c", ask, name)
			wider.Dir = s.dir
			s.Update(sandbox.WorkspaceWrite(s.dir).WithEntries(sandbox.PathEntry(t.TempDir(),
				sandbox.LevelWrite)), "")
			defer s.Update(s.Policy, "")
			r, err := s.in.Run(t.Context(), wider)
			if err != nil || r.ExitCode == 0 || len(r.Denials()) == 0 {
				t.Errorf("with another policy: %v, %s, %v", err, r.Output.Bytes(), r.Denials())
			}
		})
	}
}

// TestSharedApart: what cannot run in the sandbox.
func TestSharedApart(t *testing.T) {
	for _, apart := range []bool{false, true} {
		s := newSharedStage(t, nil, sallyport.SandboxOptions{Apart: apart})
		s.Update(sandbox.WorkspaceWrite(s.dir).WithNetwork(sandbox.NetworkHost), "")
		r, err := s.in.Run(t.Context(), &sallyport.Cmd{Dir: s.dir, Args: []string{"true"}})
		var no *executor.ApartError
		switch {
		case !apart && !errors.As(err, &no):
			t.Errorf("%v", err)
		case apart && (err != nil || r.Sandbox.Shared ||
			!strings.Contains(r.Sandbox.Apart, "its network is host")):
			t.Errorf("%v, %+v", err, r)
		}
	}
	fake := &sallyport.Runner{Policy: sandbox.ReadOnly(),
		Executor: &e2e.Fake{Play: func(*executor.Spec, *e2e.FakeProcess) {}}}
	defer fake.Close()
	if _, err := fake.Open(t.Context(), sallyport.SandboxOptions{}); !errors.Is(err, sallyport.ErrNoSandbox) {
		t.Error(err)
	}
	in, err := fake.Open(t.Context(), sallyport.SandboxOptions{Apart: true})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := in.Run(t.Context(), &sallyport.Cmd{Dir: "/", Args: []string{"true"}}); err != nil ||
		!strings.Contains(r.Sandbox.Apart, "this executor has none") {
		t.Errorf("%v, %+v", err, r)
	}
}

// TestSharedHolderKilled: the end of the holder ends the commands, and each says so.
func TestSharedHolderKilled(t *testing.T) {
	s := newSharedStage(t, nil, sallyport.SandboxOptions{})
	session, err := s.in.Start(t.Context(), &sallyport.Cmd{Dir: s.dir, Script: "echo runs; sleep 1000"})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if _, err := session.Await(t.Context(), sallyport.Until{FirstOutput: true,
		For: time.Minute}); err != nil {
		t.Fatal(err)
	}
	killHolder(t)
	r, err := session.Wait(t.Context())
	if !errors.Is(err, executor.ErrSharedEnded) || r == nil || r.End != sallyport.EndFailed ||
		string(r.Stdout.Bytes()) != "runs\n" {
		t.Errorf("%v, %+v", err, r)
	}
	if _, err := s.in.Run(t.Context(), &sallyport.Cmd{Dir: s.dir, Args: []string{"true"}}); !errors.Is(err,
		executor.ErrSharedEnded) {
		t.Error(err)
	}
}

// killHolder kills the holder of the only sandbox of this process: its child that has no child of its own.
func killHolder(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		children, err := os.ReadFile("/proc/" + e.Name() + "/task/" + e.Name() + "/children")
		if len(fields) > 1 && fields[1] == fmt.Sprint(os.Getpid()) && err == nil && len(children) == 0 &&
			strings.Contains(string(stat), "(memfd:sallyport)") {
			var pid int
			_, _ = fmt.Sscan(e.Name(), &pid)
			p, _ := os.FindProcess(pid)
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("no holder")
}

// TestSharedIdle: a sandbox in which nothing runs is closed after its time, and not before.
func TestSharedIdle(t *testing.T) {
	s := newSharedStage(t, nil, sallyport.SandboxOptions{Idle: time.Second})
	session, err := s.in.Start(t.Context(), &sallyport.Cmd{Dir: s.dir, Script: "read x", OpenStdin: true})
	if err != nil {
		t.Fatal(err)
	}
	if s.out(sallyport.Command("sleep", "1.2")) != "" {
		t.Error("output")
	}
	if err := session.CloseInput(); err != nil {
		t.Error(err)
	}
	if _, err := session.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	<-s.in.Done()
}

// TestSharedLimits: what all commands use together, and what each is told.
func TestSharedLimits(t *testing.T) {
	testenv.NeedProgram(t, "python3")
	s := newSharedStage(t, nil, sallyport.SandboxOptions{Resources: executor.Resources{Memory: 200 << 20}})
	hungry := &sallyport.Cmd{Dir: s.dir, Args: []string{"python3", "-c",
		"b=bytearray(140<<20); print('has it', flush=True); input()"}, OpenStdin: true}
	first, err := s.in.Start(t.Context(), hungry)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if r, err := first.Await(t.Context(), sallyport.Until{Match: nil, FirstOutput: true,
		For: time.Minute}); err != nil || string(r.Output.Bytes()) != "has it\n" {
		t.Fatalf("%v, %+v", err, r)
	}
	second, err := s.in.Start(t.Context(), hungry)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	for _, one := range []*sallyport.Session{first, second} {
		if r, err := one.Wait(t.Context()); err != nil || r.End != sallyport.EndOOM {
			t.Errorf("%v, %+v", err, r)
		}
	}
	if s.out(sallyport.Command("echo", "goes on")) != "goes on" {
		t.Error("the sandbox is not usable any more")
	}
	if u := s.in.Usage(); u.CPU == nil || *u.CPU <= 0 {
		t.Errorf("%+v", u)
	}
}

// TestSharedManaged: commands with a managed network have one proxy, and each is told of its own
// connections only.
func TestSharedManaged(t *testing.T) {
	testenv.NeedProgram(t, "python3")
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		fmt.Fprint(w, "reached")
	}))
	defer upstream.Close()
	_, port, _ := net.SplitHostPort(upstream.Listener.Addr().String())
	s := newSharedStage(t, func(r *sallyport.Runner) {
		r.Policy = r.Policy.WithNetwork(sandbox.NetworkProxy)
		p, err := network.New(network.Config{Mode: network.Full,
			Entries: []network.Entry{{Pattern: "localhost:" + port}}})
		if err != nil {
			t.Fatal(err)
		}
		r.Network = p
	}, sallyport.SandboxOptions{})
	const ask = `import sys,urllib.request,urllib.error
for u in sys.argv[1:]:
    try: print(urllib.request.urlopen(u,timeout=60).read().decode(),flush=True)
    except urllib.error.HTTPError as e: print(e.code,flush=True)
    except Exception as e: print(e,flush=True)
sys.stdin.read()`
	session, err := s.in.Start(t.Context(), &sallyport.Cmd{Dir: s.dir,
		Args: []string{"python3", "-c", "print('up',flush=True); input()"}, OpenStdin: true})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close() // so that there are several
	if _, err := session.Await(t.Context(), sallyport.Until{FirstOutput: true,
		For: time.Minute}); err != nil {
		t.Fatal(err)
	}
	var each sync.WaitGroup
	for i := range 4 {
		each.Go(func() {
			own := fmt.Sprintf("refused%d.example", i)
			r, err := s.in.Run(context.Background(),
				&sallyport.Cmd{Dir: s.dir, Args: []string{"python3", "-c", ask, "http://localhost:" + port +
					"/", "http://" + own + "/"}})
			if err != nil {
				t.Error(err)
				return
			}
			if got := string(r.Stdout.Bytes()); got != "reached\n403\n" {
				t.Errorf("%d: %q %s", i, got, r.Stderr.Bytes())
			}
			if len(r.NetworkDenials) != 1 || r.NetworkDenials[0].Host != own || len(r.NetworkHosts) != 1 {
				t.Errorf("%d: %+v, %+v", i, r.NetworkDenials, r.NetworkHosts)
			}
		})
	}
	each.Wait()
}

// TestSharedNames: with the network off each command is told which names it has asked for.
func TestSharedNames(t *testing.T) {
	testenv.NeedProgram(t, "getent")
	s := newSharedStage(t, nil, sallyport.SandboxOptions{})
	session, err := s.in.Start(t.Context(), &sallyport.Cmd{Dir: s.dir, Script: "echo up; read x",
		OpenStdin: true})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for i := range 3 {
		name := fmt.Sprintf("asked%d.example", i)
		r, err := s.in.Run(t.Context(), &sallyport.Cmd{Dir: s.dir, Args: []string{"getent", "ahosts", name}})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.NetworkDenials) != 1 || r.NetworkDenials[0].Host != name {
			t.Errorf("%s: %+v", name, r.NetworkDenials)
		}
	}
}

// TestSharedPIDs: commands see and signal each other's processes, and what one leaves behind is still found.
func TestSharedPIDs(t *testing.T) {
	testenv.NeedProgram(t, "ps")
	s := newSharedStage(t, nil, sallyport.SandboxOptions{SharePIDs: true})
	first, err := s.in.Start(t.Context(), &sallyport.Cmd{Dir: s.dir, Script: "echo up; exec sleep 98765"})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := first.Await(t.Context(), sallyport.Until{FirstOutput: true, For: time.Minute}); err != nil {
		t.Fatal(err)
	}
	// The shell has said "up" before it becomes sleep.
	if got := s.out(sallyport.Script("until ps ax -o args | grep -qx 'sleep 98765'; do :; done; ps ax -o args")); !strings.Contains(got, "sleep 98765") {
		t.Error(got)
	}
	left, err := s.in.Run(t.Context(), &sallyport.Cmd{Dir: s.dir,
		Script: "setsid sleep 12345 >/dev/null 2>&1 & exit 0"})
	if err != nil || len(left.Survivors) != 1 || left.SurvivorsBy != executor.BySubreaper {
		t.Errorf("%v, %+v", err, left)
	}
	if got := s.out(sallyport.Command("ps", "ax", "-o", "args")); strings.Contains(got, "sleep 12345") ||
		!strings.Contains(got, "sleep 98765") {
		t.Error(got)
	}
	if got := s.out(sallyport.Script("kill -TERM $(ps ax -o pid,args | awk '$2==\"sleep\" && $3==98765 {print $1}') && echo sent")); got != "sent" {
		t.Error(got)
	}
	if r, err := first.Wait(t.Context()); err != nil || r.Signal != 15 {
		t.Errorf("%v, %+v", err, r)
	}
	s.Update(sandbox.WorkspaceWrite(s.dir).WithEntries(sandbox.PathEntry(t.TempDir(),
		sandbox.LevelWrite)), "")
	var apart *executor.ApartError
	if _, err := s.in.Run(t.Context(), &sallyport.Cmd{Dir: s.dir,
		Args: []string{"true"}}); !errors.As(err, &apart) {
		t.Errorf("with another policy: %v", err)
	}
	s.Update(sandbox.WorkspaceWrite(s.dir), "")
	if r, err := s.in.Run(t.Context(), &sallyport.Cmd{Dir: s.dir,
		Script: "kill -KILL 1; kill -0 1 && echo lives"}); err != nil ||
		!strings.Contains(string(r.Output.Bytes()), "lives") {
		t.Errorf("a signal to the holder: %v, %s", err, r.Output.Bytes())
	}
	// A command can kill its own reaper. Nothing stays, and the result says that the end is not known.
	r, err := s.in.Run(t.Context(), &sallyport.Cmd{Dir: s.dir, Script: "kill -KILL $PPID; sleep 1000"})
	if !errors.Is(err, executor.ErrSharedEnded) || r == nil || r.End != sallyport.EndFailed {
		t.Errorf("%v, %+v", err, r)
	}
	<-s.in.Done()
}

// TestSharedRedis: a database that a session runs is asked by the commands beside it, by TCP and by a unix
// socket.
func TestSharedRedis(t *testing.T) {
	testenv.NeedProgram(t, "redis-server")
	testenv.NeedProgram(t, "redis-cli")
	s := newSharedStage(t, nil, sallyport.SandboxOptions{})
	port := s.server(sallyport.Command("redis-server", "--port", "6399", "--save", "", "--unixsocket",
		"/tmp/redis", "--dir", "/tmp"))
	if got := s.out(sallyport.Command("redis-cli", "-p", fmt.Sprint(port), "set", "key",
		"value")); got != "OK" {
		t.Error(got)
	}
	if got := s.out(sallyport.Command("redis-cli", "-s", "/tmp/redis", "get", "key")); got != "value" {
		t.Error(got)
	}
}
