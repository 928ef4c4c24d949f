// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package named

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The first argument of this program as another one.
const (
	keeps  = "keeps"
	fails  = "fails"
	silent = "silent"
	hangs  = "hangs"
	joins  = "joins" // the socket that the second argument names; it prints the answer
)

func TestMain(m *testing.M) {
	testenv.DefaultSignals()
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case keeps:
			if err := Keep(context.Background(), os.Stdin); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
			os.Exit(0)
		case fails:
			fmt.Fprintln(os.Stderr, "sallyport: it is broken\nmore")
			os.Exit(125)
		case silent:
			os.Exit(3)
		case hangs:
			select {} //nolint:revive // until it is killed
		case joins:
			fmt.Println(foreigner(os.Args[2]))
			os.Exit(0)
		}
	}
	goleak.VerifyTestMain(m)
}

// foreigner asks the keeper at a socket to join, and returns the answer.
func foreigner(path string) string {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err.Error()
	}
	answer, files, err := ask(c, &call{Do: doJoin})
	switch {
	case err != nil:
		return err.Error()
	case answer.Refused == nil || len(files) > 0:
		return fmt.Sprintf("%d files came", len(files))
	}
	return answer.Refused.Error()
}

// place gives a test a state directory and a workspace. Sandboxes that are left end with the test.
func place(t *testing.T) (workspace string) {
	t.Helper()
	testenv.NeedUserNS(t)
	base, err := os.MkdirTemp("/var/tmp", "sallyport-named-") //nolint:usetesting // commands have a /tmp of their own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	t.Setenv("XDG_STATE_HOME", filepath.Join(base, "state"))
	t.Cleanup(func() {
		all, err := List(context.Background())
		if err != nil {
			t.Error(err)
		}
		for _, i := range all {
			wait := watch(t, i.PID)
			if err := Stop(context.Background(), i.Name); err != nil && !errors.Is(err, ErrUnknown) {
				t.Error(err)
			}
			wait()
		}
	})
	workspace = filepath.Join(base, "w")
	if err := os.Mkdir(workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	return workspace
}

func request(workspace string) *Request {
	p := sandbox.WorkspaceWrite().Bind(sandbox.Places{Dir: workspace, SlashTmp: "/tmp"})
	return &Request{Name: "n", Workspace: workspace, Policy: p}
}

func starter(t *testing.T, what string, idle time.Duration) *Starter {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// A program with the race detector would rest for a second before it exits.
	return &Starter{Program: []string{"/usr/bin/env", "GORACE=atexit_sleep_ms=0", self, what}, Environ: os.Environ(), Idle: idle}
}

// join joins the sandbox, until the end of the test.
func join(t *testing.T, r *Request, idle time.Duration) *Joined {
	t.Helper()
	j, err := Join(t.Context(), r, starter(t, keeps, idle))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// start starts a script in the sandbox.
func (j *Joined) start(t *testing.T, r *Request, script string, out *os.File) executor.Process {
	t.Helper()
	p, err := j.Start(t.Context(), &executor.Spec{Args: []string{"/bin/sh", "-c", script}, Dir: r.Workspace, Env: testenv.Environ(), Policy: r.Policy, Stdout: out})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// output runs a script in the sandbox and returns what it prints.
func (j *Joined) output(t *testing.T, r *Request, script string) string {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	p := j.start(t, r, script, write)
	write.Close()
	text, err := io.ReadAll(read)
	exit, werr := p.Wait()
	if err = errors.Join(err, werr); err != nil || exit.Code != 0 {
		t.Fatalf("%s: %v, %+v", script, err, exit)
	}
	return string(text)
}

func list(t *testing.T) Infos {
	t.Helper()
	all, err := List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// watch returns what returns when a process has ended.
func watch(t *testing.T, pid int) (wait func()) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return func() {}
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		defer unix.Close(fd)
		for {
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}
}

// keeperOf returns the process of the only sandbox, and what returns when that has ended.
func keeperOf(t *testing.T) (pid int, wait func()) {
	t.Helper()
	all := list(t)
	if len(all) != 1 {
		t.Fatalf("%+v", all)
	}
	return all[0].PID, watch(t, all[0].PID)
}

func socketPath() string {
	return filepath.Join(os.Getenv("XDG_STATE_HOME"), "sallyport", roomName, "n"+socketType)
}

func TestForm(t *testing.T) {
	policies := map[string]sandbox.Policy{
		"workspace": bound(), "read only": sandbox.ReadOnly().WithNetwork(sandbox.NetworkHost).Bind(sandbox.Places{Dir: "/w"}),
		"every file":   sandbox.FullAccess().WithNetwork(sandbox.NetworkNone),
		"grants":       bound().With(sandbox.Grant{Name: "git"}, sandbox.Grant{Name: "docker"}),
		"patterns":     bound(sandbox.GlobEntry("**/.env"), sandbox.PathEntry("/x\xff y", sandbox.LevelDeny)),
		"a scan depth": bound().WithGlobScanDepth(3),
		"nothing":      sandbox.Policy{}.Bind(sandbox.Places{Dir: "/w", Minimal: []string{"/usr"}}),
	}
	for name, p := range policies {
		t.Run(name, func(t *testing.T) {
			r := &Request{Name: "n", Workspace: "/w\xff", Policy: p, Openings: []string{"--allow unix"}}
			form, err := r.encode()
			if err != nil {
				t.Fatal(err)
			}
			got, err := form.decode()
			if err != nil || !got.Policy.Equal(p) || got.Name != r.Name || got.Workspace != r.Workspace || !slices.Equal(got.Openings, r.Openings) {
				t.Errorf("%+v, %v; want %+v", got, err, r)
			}
		})
	}
}

// TestShared: commands of two runs share the network, /tmp and nothing of their policies; a run that may not
// join is refused.
func TestShared(t *testing.T) {
	testenv.RunAsOrdinary(t)
	r := request(place(t))
	one, two := join(t, r, time.Hour), join(t, r, time.Hour)
	if got := list(t); len(got) != 1 || got[0].Running != 2 || got[0].IdleLeft != nil || got[0].Workspace != r.Workspace || got[0].Idle != time.Hour.Milliseconds() {
		t.Errorf("%+v", got)
	}
	one.output(t, r, "echo hello >/tmp/file")
	if got := two.output(t, r, "cat /tmp/file"); got != "hello\n" {
		t.Errorf("the second run read %q", got)
	}
	const networks = "readlink /proc/self/ns/net /proc/self/ns/ipc"
	if a, b := one.output(t, r, networks), two.output(t, r, networks); a != b || a == "" {
		t.Errorf("%q and %q", a, b)
	}
	if got := one.output(t, r, "ls -A "+filepath.Dir(socketPath())+" 2>/dev/null; true"); got != "" {
		t.Errorf("a command sees the sockets: %q", got)
	}
	wide := *r
	wide.Openings = []string{"--allow unix"}
	var no *RefusedError
	if _, err := Join(t.Context(), &wide, starter(t, keeps, time.Hour)); !errors.As(err, &no) {
		t.Errorf("a wider run: %v", err)
	}
	if err := errors.Join(one.Close(), two.Close()); err != nil {
		t.Error(err)
	}
	three := join(t, r, time.Hour)
	if got := three.output(t, r, "cat /tmp/file"); got != "hello\n" {
		t.Errorf("a later run read %q", got)
	}
	if st, err := os.Stat(socketPath()); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", st, err)
	}
	if st, err := os.Stat(filepath.Dir(socketPath())); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("its directory: %v, %v", st, err)
	}
}

// TestManyStarters: of several runs that start the sandbox at once, one does.
func TestManyStarters(t *testing.T) {
	r := request(place(t))
	const n = 8
	all := make([]*Joined, n)
	var starting sync.WaitGroup
	for i := range all {
		starting.Go(func() { all[i] = join(t, r, time.Hour) })
	}
	starting.Wait()
	if got := list(t); len(got) != 1 || got[0].Running != n {
		t.Errorf("%+v", got)
	}
}

// TestEnds: a keeper ends with its sandbox, the commands in it, its socket and /tmp, and the next run starts
// another one.
func TestEnds(t *testing.T) {
	for _, test := range []struct {
		name   string
		leaves bool // the socket and /tmp, which later processes remove
		end    func(t *testing.T, pid int)
	}{
		{"stopped", false, func(t *testing.T, _ int) {
			if err := Stop(t.Context(), "n"); err != nil {
				t.Error(err)
			}
		}},
		{"SIGTERM", false, func(t *testing.T, pid int) {
			if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}},
		{"SIGKILL", true, func(t *testing.T, pid int) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := request(place(t))
			j := join(t, r, time.Hour)
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			p := j.start(t, r, "echo started; exec sleep 600", write)
			write.Close()
			if _, err := io.ReadFull(read, make([]byte, len("started\n"))); err != nil {
				t.Fatal(err)
			}
			pid, wait := keeperOf(t)
			left := make(chan struct{})
			go func() { // as a run does
				defer close(left)
				exit, err := p.Wait()
				if err != nil || !errors.Is(exit.Broken, executor.ErrSharedEnded) {
					t.Errorf("the command: %+v, %v", exit, err)
				}
				if err := j.Close(); err != nil {
					t.Error(err)
				}
			}()
			test.end(t, pid)
			wait()
			<-left
			_, err = os.Stat(socketPath())
			if gone := errors.Is(err, fs.ErrNotExist); gone == test.leaves {
				t.Errorf("the socket: %v", err)
			}
			tmp, err := filepath.Glob(filepath.Join(os.Getenv("XDG_STATE_HOME"), "sallyport", "tmp", "run-*"))
			if err != nil || (len(tmp) > 0) != test.leaves {
				t.Errorf("/tmp: %q, %v", tmp, err)
			}
			if got := list(t); len(got) != 0 {
				t.Errorf("%+v", got)
			}
			if err := Stop(t.Context(), "n"); !errors.Is(err, ErrUnknown) {
				t.Errorf("stopped again: %v", err)
			}
			next := join(t, r, time.Hour)
			next.output(t, r, "true")
			if got := list(t); len(got) != 1 || got[0].PID == pid {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestIdle: the sandbox ends when no run has used it for long enough, and not before.
func TestIdle(t *testing.T) {
	r := request(place(t))
	j := join(t, r, time.Millisecond)
	_, wait := keeperOf(t)
	j.output(t, r, "exec sleep 0.05") // longer than the idle time
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	wait()
	if got := list(t); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	var waits []func()
	for range 5 { // each meets an ending keeper, or none
		j := join(t, r, time.Millisecond)
		_, wait := keeperOf(t)
		waits = append(waits, wait)
		j.output(t, r, "true")
		_ = j.Close()
	}
	for _, wait := range waits {
		wait()
	}
}

// TestIdleLeft: the time runs from the end of the last run on.
func TestIdleLeft(t *testing.T) {
	r := request(place(t))
	j := join(t, r, time.Hour)
	_ = j.Close()
	for { // until the keeper has seen it
		if got := list(t); len(got) == 1 && got[0].Running == 0 {
			if l := got[0].IdleLeft; l == nil || *l <= 0 || *l > time.Hour.Milliseconds() {
				t.Errorf("%+v", got)
			}
			return
		}
	}
}

// TestEnding: a run that meets a keeper which is ending starts another one.
func TestEnding(t *testing.T) {
	r := request(place(t))
	own, err := makeRoom()
	if err != nil {
		t.Fatal(err)
	}
	defer own.close()
	l, err := own.listen("n")
	if err != nil {
		t.Fatal(err)
	}
	var ending sync.WaitGroup
	ending.Go(func() {
		c, err := l.AcceptUnix()
		if err != nil {
			t.Error(err)
			return
		}
		_ = own.Remove("n" + socketType)
		_ = send(c, &reply{Gone: true})
		_ = c.Close()
		_ = l.Close()
	})
	join(t, r, time.Hour).output(t, r, "true")
	ending.Wait()
}

// TestOtherUser: a process of another user that reaches the socket gets nothing.
func TestOtherUser(t *testing.T) {
	testenv.NeedRoot(t)
	r := request(place(t))
	join(t, r, time.Hour)
	for at := socketPath(); filepath.Base(at) != "state"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range []string{os.Getenv("XDG_STATE_HOME"), filepath.Dir(os.Getenv("XDG_STATE_HOME"))} {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(filepath.Dir(r.Workspace), "program")
	if err := testenv.WriteProgram(program, text); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, joins, socketPath())
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.HasPrefix(out, []byte("cannot join the sandbox n: it belongs to another user")) {
		t.Errorf("%s, %v", out, err)
	}
	if got := listed(t); len(got) != 0 { // our own directory is open to others now
		t.Errorf("%+v", got)
	}
	if err := errors.Join(os.Chmod(filepath.Join(os.Getenv("XDG_STATE_HOME"), "sallyport"), 0o700), os.Chmod(filepath.Dir(socketPath()), 0o700)); err != nil {
		t.Fatal(err)
	}
}

// listed lists what is found where directories may be refused.
func listed(t *testing.T) Infos {
	t.Helper()
	all, _ := List(t.Context())
	return all
}

// TestForeignState: a state directory of another user is refused.
func TestForeignState(t *testing.T) {
	testenv.NeedRoot(t)
	r := request(place(t))
	dir := filepath.Join(os.Getenv("XDG_STATE_HOME"), "sallyport")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chown(dir, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	var no *RefusedError
	if _, err := Join(t.Context(), r, starter(t, keeps, time.Hour)); !errors.As(err, &no) {
		t.Error(err)
	}
}

func TestStartFails(t *testing.T) {
	for _, test := range []struct{ what, want string }{
		{fails, "cannot start the sandbox n: it is broken"},
		{silent, "cannot start the sandbox n: it ended before it listened (exit status 3)"},
	} {
		t.Run(test.what, func(t *testing.T) {
			r := request(place(t))
			_, err := Join(t.Context(), r, starter(t, test.what, time.Hour))
			if failed := new(StartError); !errors.As(err, &failed) || err.Error() != test.want {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
	t.Run("no program", func(t *testing.T) {
		s := &Starter{Program: []string{"/missing"}, Idle: time.Hour}
		if _, err := Join(t.Context(), request(place(t)), s); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	t.Run("canceled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Join(ctx, request(place(t)), starter(t, hangs, time.Hour)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("no sandbox", func(t *testing.T) {
		r := request(place(t))
		r.Policy = sandbox.FullAccess()
		var none *sandbox.UnsupportedError
		if _, err := Join(t.Context(), r, starter(t, keeps, time.Hour)); !errors.As(err, &none) {
			t.Error(err)
		}
	})
}

// TestKeeperEnviron: a keeper gets no secrets of the run that starts it.
func TestKeeperEnviron(t *testing.T) {
	got := keeperEnviron([]string{"HOME=/h", "TOKEN=x", "PATH=/bin", "XDG_STATE_HOME=/s", "HOMEX=y"})
	if strings.Join(got, " ") != "HOME=/h PATH=/bin XDG_STATE_HOME=/s" {
		t.Errorf("%q", got)
	}
}
