// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Two commands run in one shared sandbox: the wide one may read a credential, has a directory for itself
// and another one that it may write to; the narrow one attacks it.
type neighbors struct {
	*arena
	shared              *Shared
	wide, narrow        *agent
	secret, private, rw string
	widePolicy, policy  sandbox.Policy
	facts               map[string]string // what the wide one says about itself
	child               string            // a child of the wide one, by its own number
}

// neighborsFor starts both. The narrow one comes second, and begins with mounts that another narrow
// command has made before, if after is true.
func neighborsFor(t *testing.T, after bool, allow ...string) *neighbors {
	t.Helper()
	a := newArena(t)
	n := &neighbors{arena: a, secret: a.out + "/secret", private: a.out + "/private", rw: a.out + "/rw"}
	must(t, os.Mkdir(n.private, 0o755))
	must(t, os.Mkdir(n.rw, 0o755))
	write(t, n.secret, "the credential")
	write(t, n.rw+"/file", "x")
	n.widePolicy = a.policy().WithEntries(sandbox.PathEntry(n.private, sandbox.LevelWrite),
		sandbox.PathEntry(n.rw, sandbox.LevelWrite))
	n.policy = a.policy().WithEntries(sandbox.PathEntry(n.private, sandbox.LevelDeny),
		sandbox.PathEntry(n.secret, sandbox.LevelDeny))
	n.shared = a.open(t, n.policy)
	if after {
		if res := mustRun(t, a, &job{in: n.shared, policy: &n.policy, allow: allow,
			args: sh(`:`)}); res.code != 0 {
			t.Fatalf("%+v", res)
		}
	}
	n.wide = a.agent(t, &job{in: n.shared, policy: &n.widePolicy, allow: allow})
	n.facts = keyValues(strings.Fields(n.wide.fact(t, "lay", "secret="+n.secret, "private="+n.private)))
	n.narrow = a.agent(t, &job{in: n.shared, policy: &n.policy, allow: allow})
	return n
}

// A neighborAttack is what the narrow command does to the wide one, and who is seen to succeed with it.
type neighborAttack struct {
	name, attack string
	kv           func(n *neighbors, pid string) []string
	perPID       bool   // for the command, its reaper, and the holder
	control      string // "wide": the same by the wide one; "child": on a child of it; "": none
}

func neighborAttacks() []neighborAttack {
	file := func(name func(n *neighbors) string) func(*neighbors, string) []string {
		return func(n *neighbors, _ string) []string { return []string{"file=" + name(n), "at=/tmp"} }
	}
	pid := func(_ *neighbors, pid string) []string { return []string{"pid=" + pid} }
	none := func(*neighbors, string) []string { return nil }
	secret := file(func(n *neighbors) string { return n.secret })
	return []neighborAttack{
		{"a credential", "reach-read", secret, false, "wide"},
		{"a credential by a link in the common /tmp", "through-link", secret, false, "wide"},
		{"a file in a writable directory", "reach-write", file(func(n *neighbors) string { return n.rw + "/file" }), false, "wide"},
		{"a new file in a writable directory", "reach-write", file(func(n *neighbors) string { return n.rw + "/new" }), false, "wide"},
		{"a directory that is denied", "reach-list", file(func(n *neighbors) string { return n.private }), false, "wide"},
		{"a shared object in that", "reach-read", file(func(n *neighbors) string { return n.private + "/object" }), false, "wide"},
		{"a new object in that", "reach-write", file(func(n *neighbors) string { return n.private + "/new" }), false, "wide"},
		{"the list of processes", "list-processes", none, false, "child"},
		{"files in /proc of all", "proc-of-all", none, false, "child"},
		{"files in /proc by number", "proc-of-pid", pid, true, "child"},
		{"is there", "see-process", pid, true, "child"},
		{"signal", "kill", pid, true, "child"},
		{"signal a group", "signal-group", pid, true, ""},
		{"signal a thread", "signal-thread", pid, true, "child"},
		{"signal all", "signal-all", none, false, "child"},
		{"trace", "ptrace", pid, true, "child"},
		{"read memory", "read-memory-at", func(n *neighbors, pid string) []string { return []string{"pid=" + pid, "addr=" + n.facts["addr"]} }, true, "child"},
		{"take a descriptor", "steal-file", pid, true, ""},
		{"a handle", "pidfd", pid, true, "child"},
		{"a handle by its file handle", "pidfd-handle", func(n *neighbors, _ string) []string { return []string{"handle=" + n.facts["pidfd"]} }, false, ""},
		{"priority", "priority", pid, true, "child"},
		{"affinity", "affinity", pid, true, "child"},
		{"limits", "limits", pid, true, "child"},
		{"namespaces by /proc", "setns", pid, true, ""},
		{"namespaces of all", "setns-all", none, false, ""},
		{"namespaces by a handle", "setns-pidfd", pid, true, ""},
		{"mounts that are kept", "mounts-of-tree", func(n *neighbors, _ string) []string { return []string{"namespace=" + n.facts["tree"]} }, false, ""},
		{"mounts beside its own", "next-mounts", none, false, ""},
		{"mounts that lead to others", "own-mounts", hostNamespaces, false, ""},
		{"descriptors that it has", "descriptors", none, false, "wide"},
		{"terminals", "terminals", none, false, ""},
	}
}

// TestNeighbors: with what one command has, another one can do nothing.
func TestNeighbors(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for name, c := range map[string]struct {
		after bool
		allow []string
	}{
		"new mounts":         {false, nil},
		"known mounts":       {true, nil},
		"everything allowed": {true, []string{"ptrace", "userns", "unix", "bpf", "perf", "keyring"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := neighborsFor(t, c.after, c.allow...)
			n.facts["tree"] = treeNumber(t, n.shared)
			pids := map[string]string{
				"command": fmt.Sprint(n.wide.pid(t)), "reaper": fmt.Sprint(n.wide.child.PID()), "holder": fmt.Sprint(n.shared.holder.PID()),
				"own reaper": fmt.Sprint(n.narrow.child.PID()),
			}
			for _, at := range neighborAttacks() {
				targets := map[string]string{"": ""}
				if at.perPID {
					targets = pids
				}
				for target, pid := range targets {
					t.Run(strings.TrimSuffix(at.name+"/"+target, "/"), func(t *testing.T) {
						if v := n.narrow.do(t, at.attack, at.kv(n, pid)...); v.word != wordDenied {
							t.Errorf("%v", v)
						}
					})
				}
			}
			for _, at := range neighborAttacks() {
				if at.control != "" {
					t.Run("control/"+at.name, func(t *testing.T) { n.control(t, at, len(c.allow) > 0) })
				}
			}
			n.unharmed(t)
		})
	}
}

// control sees that an attack is one: the wide command does the same with what is its own.
func (n *neighbors) control(t *testing.T, at neighborAttack, open bool) {
	t.Helper()
	pid := ""
	if at.control == "child" {
		if n.child == "" {
			n.child = n.wide.fact(t, "child")
		}
		pid = n.child
	}
	v := n.wide.do(t, at.attack, at.kv(n, pid)...)
	traces := at.attack == "ptrace" || at.attack == "read-memory-at"
	if v.word != wordBreach && (open || !traces) {
		t.Errorf("%v", v)
	}
}

// unharmed checks that the wide command is as it was.
func (n *neighbors) unharmed(t *testing.T) {
	t.Helper()
	if got := n.wide.fact(t, "memory"); got != "the credential" {
		t.Errorf("its memory is %q", got)
	}
	if b, err := os.ReadFile(n.secret); err != nil || string(b) != "the credential" {
		t.Errorf("%q, %v", b, err)
	}
}

// treeNumber numbers the mount namespace that is kept; 0 where the kernel does not.
func treeNumber(t *testing.T, s *Shared) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.roots) == 0 {
		t.Fatal("no mounts are kept")
	}
	var id uint64
	const getID = 0x8008b705 // NS_GET_MNTNS_ID
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, s.roots[0].namespace.Fd(), getID, uintptr(unsafe.Pointer(&id)))
	return fmt.Sprint(id)
}

// TestKillEverything: what a command kills ends with its own processes.
func TestKillEverything(t *testing.T) {
	testenv.RunAsOrdinary(t)
	n := neighborsFor(t, true)
	for _, line := range []string{`kill -9 -1; exit 0`, `kill -TERM 1; kill -9 1; exit 0`,
		`for p in $(seq 1 3000); do kill -9 $p 2>/dev/null; done`} {
		res := mustRun(t, n.arena, &job{in: n.shared, policy: &n.policy, args: sh(line)})
		if res.lost != nil {
			t.Errorf("%s: %+v", line, res)
		}
	}
	n.unharmed(t)
	n.narrow.fact(t, "hello")
	select {
	case <-n.shared.Done():
		t.Error("the sandbox has ended")
	default:
	}
}

// TestGrantEnds: no command can do what the wide command could, when that has ended.
func TestGrantEnds(t *testing.T) {
	testenv.RunAsOrdinary(t)
	n := neighborsFor(t, false)
	if v := n.wide.do(t, "reach-write", "file="+n.rw+"/file"); v.word != wordBreach {
		t.Fatalf("the wide one itself: %v", v)
	}
	if e := n.wide.end(t); e.Code != 0 || e.Broken != nil {
		t.Errorf("%+v", e)
	}
	if v := n.narrow.do(t, "reach-write", "file="+n.rw+"/file"); v.word != wordDenied {
		t.Errorf("a command that has been there: %v", v)
	}
	for i, p := range []*sandbox.Policy{&n.policy, &n.policy, &n.widePolicy, &n.policy} {
		g := n.agent(t, &job{in: n.shared, policy: p})
		for attack, file := range map[string]string{"reach-write": n.rw + "/file", "reach-read": n.secret,
			"reach-list": n.private} {
			want := wordDenied
			if p == &n.widePolicy {
				want = wordBreach
			}
			if v := g.do(t, attack, "file="+file); v.word != want {
				t.Errorf("command %d: %s %v, want %s", i, attack, v, want)
			}
		}
		g.end(t)
	}
}

// TestTerminalOfNeighbor: what is typed on the terminal of one command comes from its user alone.
func TestTerminalOfNeighbor(t *testing.T) {
	testenv.RunAsOrdinary(t)
	n := neighborsFor(t, true)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	must(t, err)
	defer null.Close()
	r := n.request(&job{policy: &n.widePolicy,
		args: sh(`stty -echo; ls /dev/pts; read line; echo "got $line"`)})
	r.TTY = new(executor.Size)
	c, err := n.startIn(n.shared, r, nil, null, null, null)
	must(t, err)
	master := c.Terminal()
	defer master.Close()
	must(t, master.SetReadDeadline(time.Now().Add(patience)))
	lines := bufio.NewReader(master)
	if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "0") {
		t.Fatalf("its own terminal is not there: %q, %v", line, err)
	}
	for _, attack := range []string{"terminals", "terminal", "tiocsti"} {
		if v := n.narrow.do(t, attack); v.word != wordDenied && v.detail != "ioctl 0x5412: errno 25" {
			t.Errorf("%s: %v", attack, v)
		}
	}
	_, err = io.WriteString(master, "hello\n")
	must(t, err)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%q, %v", line, err)
		}
		if word, ok := strings.CutPrefix(strings.TrimSpace(line), "got "); ok {
			if word != "hello" {
				t.Errorf("it read %q", word)
			}
			break
		}
	}
	finish(t, c)
}

// A meeting is a way in which commands reach each other. Between commands with different files, apart
// says that it is closed.
type meeting struct {
	name, give, take string
	kv               []string
	got              string // what tells the giver that it has come
	apart            bool
}

func meetings() []meeting {
	unixAt := func(network, name string) []string { return []string{"net=" + network, "name=" + name} }
	return []meeting{
		{name: "tcp4", give: "give-stream", take: "take-stream", kv: unixAt("tcp4", "127.0.0.1:4711")},
		{name: "tcp6", give: "give-stream", take: "take-stream", kv: unixAt("tcp6", "[::1]:4712")},
		{name: "udp4", give: "give-datagram", take: "take-datagram", got: "got-datagram", kv: unixAt("udp4", "127.0.0.1:4713")},
		{name: "udp6", give: "give-datagram", take: "take-datagram", got: "got-datagram", kv: unixAt("udp6", "[::1]:4714")},
		{name: "file in /tmp", give: "give-file", take: "take-file", kv: []string{"name=/tmp/met"}},
		{name: "file in /dev/shm", give: "give-file", take: "take-file", kv: []string{"name=/dev/shm/met"}},
		{name: "named pipe", give: "give-pipe", take: "take-pipe", kv: []string{"name=/tmp/pipe"}},
		{name: "System V memory", give: "give-shm", take: "take-shm", kv: []string{"key=4711"}},
		{name: "System V semaphores", give: "give-sem", take: "take-sem", kv: []string{"key=4712"}},
		{name: "System V messages", give: "give-msg", take: "take-msg", kv: []string{"key=4713"}},
		{name: "POSIX messages", give: "give-mq", take: "take-mq", kv: []string{"key=met"}},
		{name: "path socket", give: "give-stream", take: "take-stream", kv: unixAt("unix", "/tmp/stream"), apart: true},
		{name: "path socket with packets", give: "give-stream", take: "take-stream", kv: unixAt("unixpacket", "/tmp/packets"), apart: true},
		{name: "path datagrams", give: "give-datagram", take: "take-datagram", got: "got-datagram", kv: unixAt("unixgram", "/tmp/datagrams"), apart: true},
		{name: "abstract socket", give: "give-stream", take: "take-stream", kv: unixAt("unix", "@met"), apart: true},
		{name: "abstract datagrams", give: "give-datagram", take: "take-datagram", got: "got-datagram", kv: unixAt("unixgram", "@met-datagrams"), apart: true},
		{name: "a descriptor by a path", give: "give-descriptor", take: "take-descriptor", kv: unixAt("unix", "/tmp/pass"), apart: true},
		{name: "a descriptor by an abstract name", give: "give-descriptor", take: "take-descriptor", kv: unixAt("unix", "@pass"), apart: true},
	}
}

// unavailable checks that a command in a sandbox of its own cannot give, either.
func (m *meeting) unavailable(t *testing.T, kv []string) {
	t.Helper()
	a := newArena(t)
	if v := a.agent(t, &job{}).do(t, m.give, kv...); v.word != wordBad {
		t.Errorf("in a sandbox of its own: %v", v)
	}
}

// meet has one command give and another one take.
func meet(t *testing.T, m *meeting, file string, from, to *agent, open bool) {
	t.Helper()
	kv := append([]string{"file=" + file}, m.kv...)
	if m.give == "give-mq" && from.do(t, m.give, kv...).word == wordBad {
		// Landlock has no rule for the file system of message queues, which is mounted nowhere:
		// no command makes one, in whatever sandbox.
		m.unavailable(t, kv)
		return
	}
	if m.give != "give-mq" {
		from.fact(t, m.give, kv...)
	}
	want := wordBreach
	if !open {
		want = wordDenied
		kv = append(kv, "now=1")
	}
	if v := to.do(t, m.take, kv...); v.word != want {
		t.Errorf("%s: %v, want %s", m.take, v, want)
	}
	if m.got != "" {
		if v := from.do(t, m.got, kv...); v.word != want {
			t.Errorf("%s: %v, want %s", m.got, v, want)
		}
	}
}

// TestMeeting: commands with equal policies reach each other; where their files differ, nothing passes by
// which descriptors go.
func TestMeeting(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, network := range []sandbox.Network{sandbox.NetworkNone, sandbox.NetworkProxy} {
		t.Run("equal/"+network.String(), func(t *testing.T) {
			a := newArena(t)
			p := a.policy().WithNetwork(network)
			s := a.open(t, p)
			first, second := a.agent(t, &job{in: s, policy: &p}), a.agent(t, &job{in: s, policy: &p})
			for _, m := range meetings() {
				t.Run(m.name, func(t *testing.T) { meet(t, &m, a.ws+"/file", first, second, true) })
			}
		})
	}
	t.Run("wide to narrow", func(t *testing.T) {
		n := neighborsFor(t, true)
		for _, m := range meetings() {
			t.Run(m.name, func(t *testing.T) { meet(t, &m, n.secret, n.wide, n.narrow, !m.apart) })
		}
	})
	t.Run("narrow to wide", func(t *testing.T) {
		n := neighborsFor(t, true)
		for _, m := range meetings() {
			t.Run(m.name, func(t *testing.T) { meet(t, &m, n.ws+"/file", n.narrow, n.wide, !m.apart) })
		}
	})
	t.Run("other sandbox", func(t *testing.T) {
		a := newArena(t)
		p := a.policy()
		first, second := a.agent(t, &job{in: a.open(t, p)}), a.agent(t, &job{in: a.open(t, p)})
		for _, m := range meetings() {
			if m.got != "" {
				continue // UDP to an unused port counts as sent
			}
			t.Run(m.name, func(t *testing.T) { meet(t, &m, a.ws+"/file", first, second, false) })
		}
	})
	t.Run("left behind", func(t *testing.T) {
		a := newArena(t)
		s := a.open(t, a.policy())
		mustRun(t, a, &job{in: s, args: sh(`mkdir /tmp/d && echo kept >/tmp/d/f && echo kept >/dev/shm/f`)})
		if res := mustRun(t, a, &job{in: s, args: sh(`cat /tmp/d/f /dev/shm/f`)}); res.out != "kept\nkept\n" {
			t.Errorf("%+v", res)
		}
		if left, err := filepath.Glob("/dev/shm/f"); err != nil || len(left) > 0 {
			t.Errorf("%q, %v", left, err)
		}
	})
}

// TestSharedPIDs: where processes are seen by other commands, these have equal rights, and what belongs to
// us is closed: the holder and the reapers.
func TestSharedPIDs(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	s, err := a.host.Open(t.Context(), &executor.SharedSpec{Policy: a.policy(), SharePIDs: true})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	all := []string{"ptrace"}
	first := a.agent(t, &job{in: s, allow: all})
	second := a.agent(t, &job{in: s, allow: all})
	own := "pid=" + first.fact(t, "own-pid")
	for _, attack := range []string{"see-process", "kill", "signal-thread", "pidfd"} {
		if v := second.do(t, attack, own); v.word != wordBreach {
			t.Errorf("a process of a command with equal rights: %s %v", attack, v)
		}
	}
	for _, attack := range []string{"ptrace", "read-memory-at"} { // it is in another domain of Landlock
		if v := second.do(t, attack, own, "addr=8"); v.word != wordDenied {
			t.Errorf("a process of another command: %s %v", attack, v)
		}
	}
	for name, pid := range map[string]string{"reaper": first.fact(t, "parent-pid"),
		"own reaper": second.fact(t, "parent-pid"), "holder": "1"} {
		t.Run(name, func(t *testing.T) {
			for _, attack := range []string{"ptrace", "read-memory", "read-memory-at", "proc-of-pid",
				"steal-file", "setns", "setns-pidfd"} {
				if v := second.do(t, attack, "pid="+pid, "addr=8", "listed=1"); v.word != wordDenied {
					t.Errorf("%s %v", attack, v)
				}
			}
		})
	}
	closed := a.policy().WithEntries(sandbox.PathEntry(a.out+"/other", sandbox.LevelDeny))
	for name, j := range map[string]job{
		"files":  {policy: &closed},
		"calls":  {},
		"links":  {allow: all, links: true},
		"/tmp":   {allow: all, tmp: "host"},
		"unseen": {allow: all, blind: true},
	} {
		t.Run("other "+name, func(t *testing.T) {
			j.args = sh(`:`)
			c, err := s.Start(t.Context(), a.request(&j), nulls(t))
			var apart *executor.ApartError
			if !errors.As(err, &apart) {
				t.Errorf("%v", err)
			}
			if err == nil {
				finish(t, c)
			}
		})
	}
	// Who kills a reaper ends the sandbox. Process 1 cannot be killed from inside.
	if e := mustExit(t, a, s, all, `kill -9 1; exit 3`); e.Code != 3 || e.Broken != nil {
		t.Errorf("%+v", e)
	}
	reaper := first.fact(t, "parent-pid")
	if e := mustExit(t, a, s, all, "kill -9 "+reaper+"; exit 3"); e.Code != 3 && e.Broken == nil {
		t.Errorf("%+v", e)
	}
	var ends sync.WaitGroup
	for _, g := range []*agent{first, second} {
		g.ended = true
		defer g.in.Close()
		defer g.out.Close()
		ends.Go(func() { // the holder ends when all are collected
			if e := finish(t, g.child); e.Signal != int(unix.SIGKILL) && e.Code != -1 ||
				!errors.Is(e.Broken, executor.ErrSharedEnded) {
				t.Errorf("%d, %d, %v", e.Code, e.Signal, e.Broken)
			}
		})
	}
	ends.Wait()
	<-s.Done()
}
