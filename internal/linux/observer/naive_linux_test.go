// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/notify"
	"github.com/sallyport-dev/sallyport/internal/linux/seccomp"
	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// These are the attacks that cmd/sallyport tries against the whole sandbox, here
// against a supervisor alone: no mount and no Landlock stands behind it. Where it lets
// the kernel look again they win, which is why it is no wall by itself and why it
// connects sockets with its own hands.
const attacks = "../../../cmd/sallyport/testdata/attacks"

// An observed is a program that runs under a supervisor and nothing else.
type observed struct {
	*Supervisor
	out *os.File
	l   launch.Launcher
	p   *launch.Process
}

// start starts a program. Prepare changes the supervisor before; it may be nil.
func start(t *testing.T, cfg Config, prepare func(*Supervisor), argv ...string) *observed {
	t.Helper()
	options := seccomp.Options{Arch: runtime.GOARCH, OwnPID: true, Observe: true}
	filter, err := seccomp.Program(options)
	must(t, err)
	seal, err := seccomp.Seal(runtime.GOARCH)
	must(t, err)
	cfg.Refusals, err = seccomp.NewRefusals(options)
	must(t, err)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	must(t, err)
	defer null.Close()
	out, outEnd, err := os.Pipe()
	must(t, err)
	defer outEnd.Close()
	inbox, err := notify.Listen()
	must(t, err)
	defer inbox.Started()
	supervisor, err := newSupervisor(cfg)
	must(t, err)
	if prepare != nil {
		prepare(supervisor)
	}
	go supervisor.run(inbox)
	o := &observed{Supervisor: supervisor, out: out}
	o.p, err = o.l.Start(nil, &launch.Script{Steps: []launch.Step{
		{Op: launch.OpSubreaper},
		{Op: launch.OpStartCommand},
		{Op: launch.OpNewGroup},
		{Op: launch.OpStdio},
		{Op: launch.OpNoNewPrivs},
		{Op: launch.OpObserve, Filter: launch.Filter(filter), Value: seccomp.HandOver},
		{Op: launch.OpSeccomp, Filter: launch.Filter(seal)},
		{Op: launch.OpCloseFiles},
		{Op: launch.OpResetSignals},
		{Op: launch.OpExec, Path: argv[0], Argv: argv, Env: []string{"PATH=" + os.Getenv("PATH"), childVar + "=1"}},
	}}, launch.Files{Stdin: null, Stdout: outEnd, Stderr: null, Observer: inbox.Theirs()})
	inbox.Started()
	if err != nil {
		supervisor.Close()
		t.Fatal(err)
	}
	return o
}

// wait returns what the program printed, when it has ended.
func (o *observed) wait(t *testing.T) string {
	t.Helper()
	defer o.out.Close()
	defer o.l.Close()
	text, err := io.ReadAll(o.out)
	if err != nil {
		t.Error(err)
	}
	if _, err := o.p.Wait(); err != nil {
		t.Error(err)
	}
	if err := o.p.WaitAll(); err != nil {
		t.Error(err)
	}
	if err := o.p.Close(); err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(string(text))
}

// observedRun runs a program and returns what it printed and the report.
func observedRun(t *testing.T, cfg Config, prepare func(*Supervisor), argv ...string) (string, Report) {
	t.Helper()
	o := start(t, cfg, prepare, argv...)
	text := o.wait(t)
	report := o.Close()
	if report.Err != nil {
		t.Error(report.Err)
	}
	return text, report
}

// answering listens and answers with a word.
func answering(t *testing.T, at, word string) {
	t.Helper()
	l, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, word)
			c.Close()
		}
	}()
}

// answeringDatagrams answers each message with a word.
func answeringDatagrams(t *testing.T, at, word string) {
	t.Helper()
	c, err := net.ListenPacket("unixgram", at)
	must(t, err)
	done := make(chan struct{})
	t.Cleanup(func() { c.Close(); <-done })
	go func() {
		defer close(done)
		for {
			_, from, err := c.ReadFrom(make([]byte, 16))
			if err != nil {
				return
			}
			if from != nil {
				_, _ = c.WriteTo([]byte(word), from)
			}
		}
	}()
}

// short makes a directory whose name leaves room for a socket in it.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// lookOnly judges a connect or a send without making it.
func lookOnly(c *connecting) syscall.Errno {
	if c.addr == nil {
		c.scratch = new(scratch)
		c.domain, _ = unix.GetsockoptInt(c.sock, unix.SOL_SOCKET, unix.SO_DOMAIN)
		var errno syscall.Errno
		if c.addr, errno = c.message(0); errno != 0 {
			return errno
		}
	}
	name := c.addr.Unix()
	if c.domain != unix.AF_UNIX || c.addr.Family() != unix.AF_UNIX || name == "" || name[0] == '@' {
		return 0
	}
	p, lerr := c.find(atCwd, []byte(name), true)
	if lerr != nil {
		return lerr.errno
	}
	defer p.close()
	if c.fileWall(&p) != 0 {
		return unix.EACCES
	}
	return 0
}

// TestNaive: an observer that stood alone would lose every race.
func TestNaive(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedSeccomp(t)
	testenv.NeedFile(t, attacks)
	cc := testenv.NeedProgram(t, "cc")
	for _, c := range []struct {
		name, args string
		naive      bool // connects are let go on after a look
		wins       bool
	}{
		{"path_rewrite", "mkdir %[1]s/aaaaa %[2]s/won12", false, true},
		{"path_rewrite", "creat %[1]s/aaaaa %[2]s/won12", false, true},
		{"link_swap", "%[1]s %[2]s", false, true},
		{"cwd_swap", "%[1]s %[2]s won", false, true},
		{"fd_reuse", "%[1]s %[2]s", false, true},
		{"sockaddr_rewrite", "%[1]s/sock %[2]s/sock", true, true},
		{"sockaddr_rewrite", "%[1]s/sock %[2]s/sock", false, false},
		{"datagram_swap", "memory %[1]s/sock %[2]s/datagrams", true, true},
		{"datagram_swap", "descriptor %[1]s/sock %[2]s/datagrams", true, true},
	} {
		word, _, _ := strings.Cut(c.args, " ")
		t.Run(fmt.Sprintf("%s %s, naive %v", c.name, word, c.naive), func(t *testing.T) {
			dir := short(t)
			in, out := dir+"/ws", dir+"/no"
			for _, d := range []string{in, out} {
				if err := os.Mkdir(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			answering(t, out+"/sock", "secret")
			answeringDatagrams(t, out+"/datagrams", "secret")
			program := dir + "/attack"
			if text, err := exec.Command(cc, "-O1", "-static", "-pthread", "-o", program,
				filepath.Join(attacks, c.name+".c")).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			argv := append([]string{program}, strings.Fields(fmt.Sprintf(c.args, in, out))...)
			cfg := Config{Writable: []string{in}}
			var prepare func(*Supervisor)
			if c.naive {
				prepare = func(s *Supervisor) { s.naive = lookOnly }
			}
			won := false
			for try := 0; try == 0 || c.wins && !won && try < 10; try++ {
				// a busy machine may not let it win at once
				got, report := observedRun(t, cfg, prepare, argv...)
				t.Logf("%s; %d calls", got, report.Calls)
				if report.Calls == 0 {
					t.Error("nothing was seen")
				}
				won = strings.Contains(got, "WIN")
			}
			if won != c.wins {
				t.Errorf("it wins: %v, want %v", won, c.wins)
			}
		})
	}
}

// TestSignalsMeanwhile: a task that gets signals while it waits for answers gets each
// call done once.
func TestSignalsMeanwhile(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedSeccomp(t)
	dir := t.TempDir()
	const script = `trap 'n=$((n+1))' USR1; n=0
(while kill -USR1 $$ 2>/dev/null; do :; done) & k=$!
i=0; while [ $i -lt 200 ]; do mkdir "$0/d$i" || echo "failed $i"; i=$((i+1)); done
kill $k; echo done`
	got, report := observedRun(t, Config{Writable: []string{dir}}, nil, "/bin/sh", "-c", script, dir)
	if got != "done" || len(report.Denials) > 0 {
		t.Errorf("%q, %v", got, report.Denials)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 200 {
		t.Errorf("%d directories, %v", len(entries), err)
	}
}

// TestRefusedStaysRefused: a connect that was judged is not performed because its task
// has gone meanwhile: others may hold the same socket.
func TestRefusedStaysRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		kind int
	}{{"stream", unix.SOCK_STREAM}, {"datagram", unix.SOCK_DGRAM}} {
		t.Run(c.name, func(t *testing.T) {
			sock, err := unix.Socket(unix.AF_INET, c.kind|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(sock)
			r := selfRequest(t)
			r.cfg.PrivateNetwork = true
			to := &tasks.Address{Len: unix.SizeofSockaddrInet4}
			to.Raw[0], to.Raw[3], to.Raw[4], to.Raw[7] = unix.AF_INET, 53, 192, 1
			r.l = new(notify.Listener) // no task waits there
			if errno := (&connecting{request: r, sock: sock, addr: to}).internet(); errno == 0 {
				t.Error("it would be connected")
			}
		})
	}
}
