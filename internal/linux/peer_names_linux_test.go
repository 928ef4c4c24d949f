// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// nameActions are what commands do with the names of their sockets, beside giving and taking.
func nameActions() map[string]attack {
	return map[string]attack{
		"give-auto":     giveAuto,
		"link":          func(kv map[string]string) outcome { return okIf(os.Symlink(kv["file"], kv["name"])) },
		"claim":         claimName,
		"hand-listener": handListener,
		"take-listener": takeListener,
		"race-abstract": raceAbstract,
		"race-path":     racePath,
		"bind-remove":   bindRemove,
		"bind-until":    bindUntil,
	}
}

// serveText sends the text to each client of a listening socket.
func serveText(s int) {
	for {
		c, _, err := unix.Accept(s)
		if err != nil {
			return
		}
		_, _ = unix.Write(c, []byte(peerText))
		unix.Close(c)
	}
}

// giveAuto listens at a name that the kernel chooses (unix(7), "Autobind feature").
func giveAuto(map[string]string) outcome {
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(s, &unix.SockaddrUnix{})
	}
	if err == nil {
		err = unix.Listen(s, 8)
	}
	if err != nil {
		return bad("%v", err)
	}
	at, err := unix.Getsockname(s)
	if err != nil {
		return bad("%v", err)
	}
	name, ok := at.(*unix.SockaddrUnix)
	if !ok {
		return bad("%T", at)
	}
	go serveText(s)
	return fine("%s", name.Name)
}

// claimName tries to bind an abstract name, and gives it up.
func claimName(kv map[string]string) outcome {
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return bad("%v", err)
	}
	defer unix.Close(s)
	return fine("%v", unix.Bind(s, &unix.SockaddrUnix{Name: kv["name"]}))
}

// handListener listens at "name" and gives that socket to who comes to "via".
func handListener(kv map[string]string) outcome {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: kv["name"]})
	if err != nil {
		return bad("%v", err)
	}
	f, err := l.File()
	if err != nil {
		return bad("%v", err)
	}
	keptFiles = append(keptFiles, f)
	return giveDescriptor(kv["via"], f)
}

func giveDescriptor(via string, f *os.File) outcome {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: via})
	if err != nil {
		return bad("%v", err)
	}
	go func() {
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			_, _, _ = c.WriteMsgUnix([]byte("x"), unix.UnixRights(int(f.Fd())), nil)
			c.Close()
		}
	}()
	return fine("listens")
}

// takeListener takes such a socket, and serves it.
func takeListener(kv map[string]string) outcome {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: kv["via"]})
	if err != nil {
		return bad("%v", err)
	}
	defer c.Close()
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := c.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return bad("%v", err)
	}
	m, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(m) != 1 {
		return bad("%d messages, %v", len(m), err)
	}
	fds, err := unix.ParseUnixRights(&m[0])
	if err != nil {
		return bad("%v", err)
	}
	_ = unix.SetNonblock(fds[0], false)
	go serveText(fds[0])
	return fine("serves")
}

// raceAbstract connects to its own name while another thread changes that to "name" in memory.
func raceAbstract(kv map[string]string) outcome {
	own := "@own-" + strings.Repeat("x", len(kv["name"])-5)
	l, err := net.Listen("unix", own)
	if err != nil {
		return bad("%v", err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	raw := new(unix.RawSockaddrUnix)
	raw.Family = unix.AF_UNIX
	put := func(name string) {
		for i := 1; i < len(name); i++ {
			raw.Path[i] = int8(name[i])
		}
	}
	put(own)
	var stop atomic.Bool
	go func() {
		runtime.LockOSThread()
		for !stop.Load() {
			put(kv["name"])
			put(own)
		}
	}()
	defer stop.Store(true)
	reached := 0
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
		if rawConnect(raw, 2+len(own)) {
			return breach("reached %s", kv["name"])
		}
		reached++
	}
	return denied(fmt.Sprintf("%d times", reached))
}

// racePath connects to a path while another thread exchanges its own socket there and that at "name".
func racePath(kv map[string]string) outcome {
	own := "/tmp/own-" + fmt.Sprint(os.Getpid())
	l, err := net.Listen("unix", own)
	if err != nil {
		return bad("%v", err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	var stop atomic.Bool
	link := own + "-link"
	_ = os.Symlink(own, link)
	go func() {
		runtime.LockOSThread()
		for i := 0; !stop.Load(); i++ {
			_ = unix.Renameat2(unix.AT_FDCWD, own, unix.AT_FDCWD, kv["name"], unix.RENAME_EXCHANGE)
			_ = os.Symlink([]string{own, kv["name"]}[i%2], link+"2")
			_ = os.Rename(link+"2", link)
		}
	}()
	defer stop.Store(true)
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
		for _, at := range []string{own, link} {
			c, err := net.Dial("unix", at)
			if err != nil {
				continue
			}
			b := make([]byte, 1)
			n, _ := c.Read(b)
			c.Close()
			if n > 0 {
				return breach("reached it by %s", at)
			}
		}
	}
	return denied("its own ones only")
}

func rawConnect(raw *unix.RawSockaddrUnix, size int) (got bool) {
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(s)
	if _, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(s), uintptr(unsafe.Pointer(raw)),
		uintptr(size)); errno != 0 {
		return false
	}
	n, _ := unix.Read(s, make([]byte, 1))
	return n > 0
}

// bindRemove binds a socket to a path, listens, removes it and says which number its file had.
func bindRemove(kv map[string]string) outcome {
	l, err := net.Listen("unix", kv["name"])
	if err != nil {
		return bad("%v", err)
	}
	var st unix.Stat_t
	if err := unix.Stat(kv["name"], &st); err != nil {
		return bad("%v", err)
	}
	l.Close()
	return fine("%d", st.Ino)
}

// bindUntil listens at a path whose file has a number, and sends the text to each client.
func bindUntil(kv map[string]string) outcome {
	for i := range 300 {
		name := fmt.Sprintf("%s-%d", kv["name"], i)
		l, err := net.Listen("unix", name)
		if err != nil {
			return bad("%v", err)
		}
		var st unix.Stat_t
		if err := unix.Stat(name, &st); err != nil {
			return bad("%v", err)
		}
		if fmt.Sprint(st.Ino) == kv["number"] {
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = c.Write([]byte(peerText))
					c.Close()
				}
			}()
			return fine("%s", name)
		}
		l.Close()
	}
	return denied("the number is not used again")
}

// A nameTry is how a command with narrower rights tries to reach a socket of one with wider ones.
type nameTry struct {
	name string
	try  func(t *testing.T, n *neighbors) outcome
}

// take connects to a socket, and takes what it is given.
func (n *neighbors) take(t *testing.T, name string) outcome {
	return n.narrow.do(t, "take-stream", "net=unix", "name="+name)
}

// triesOfClaims are by names that a command has asked for itself.
func triesOfClaims() []nameTry {
	return []nameTry{
		{"a name that the kernel has chosen", func(t *testing.T, n *neighbors) outcome {
			return n.take(t, n.wide.fact(t, "give-auto"))
		}},
		{"the same, which it has tried to bind", func(t *testing.T, n *neighbors) outcome {
			name := n.wide.fact(t, "give-auto")
			n.narrow.fact(t, "claim", "name="+name)
			return n.take(t, name)
		}},
		{"a name that it has tried to bind", func(t *testing.T, n *neighbors) outcome {
			n.wide.fact(t, "give-stream", "net=unix", "name=@met")
			n.narrow.fact(t, "claim", "name=@met")
			return n.take(t, "@met")
		}},
		{"a name that it had before", func(t *testing.T, n *neighbors) outcome {
			n.narrow.fact(t, "claim", "name=@met")
			n.wide.fact(t, "give-stream", "net=unix", "name=@met")
			return n.take(t, "@met")
		}},
		{"a socket whose first owner has ended", func(t *testing.T, n *neighbors) outcome {
			first := n.agent(t, &job{in: n.shared, policy: &n.widePolicy})
			first.fact(t, "hand-listener", "name=@held", "via=@pass")
			n.wide.fact(t, "take-listener", "via=@pass")
			first.end(t)
			return n.take(t, "@held")
		}},
		{"the same, whose name it has tried to bind", func(t *testing.T, n *neighbors) outcome {
			first := n.agent(t, &job{in: n.shared, policy: &n.widePolicy})
			first.fact(t, "hand-listener", "name=@held", "via=@pass")
			n.wide.fact(t, "take-listener", "via=@pass")
			first.end(t)
			n.narrow.fact(t, "claim", "name=@held")
			return n.take(t, "@held")
		}},
	}
}

// triesOfOthers are by names of commands of other kinds, and by names that change.
func triesOfOthers() []nameTry {
	return []nameTry{
		{"an unobserved command", func(t *testing.T, n *neighbors) outcome {
			blind := n.agent(t, &job{in: n.shared, policy: &n.widePolicy, blind: true,
				allow: []string{"unix"}})
			blind.fact(t, "give-stream", "net=unix", "name=@blind")
			return n.take(t, "@blind")
		}},
		{"the same, alone with it", func(t *testing.T, n *neighbors) outcome {
			n.wide.end(t)
			blind := n.agent(t, &job{in: n.shared, policy: &n.widePolicy, blind: true,
				allow: []string{"unix"}})
			blind.fact(t, "give-stream", "net=unix", "name=@blind")
			return n.take(t, "@blind")
		}},
		{"a path of an unobserved command", func(t *testing.T, n *neighbors) outcome {
			blind := n.agent(t, &job{in: n.shared, policy: &n.widePolicy, blind: true,
				allow: []string{"unix"}})
			blind.fact(t, "give-stream", "net=unix", "name=/tmp/blind")
			return n.take(t, "/tmp/blind")
		}},
		{"a command to which unix sockets are open", func(t *testing.T, n *neighbors) outcome {
			open := n.agent(t, &job{in: n.shared, policy: &n.widePolicy, allow: []string{"unix"}})
			open.fact(t, "give-stream", "net=unix", "name=@open")
			n.narrow.fact(t, "claim", "name=@open")
			return n.take(t, "@open")
		}},
		{"a path in the workspace", func(t *testing.T, n *neighbors) outcome {
			n.wide.fact(t, "give-stream", "net=unix", "name="+n.ws+"/sock")
			return n.take(t, n.ws+"/sock")
		}},
		{"a path by a link", func(t *testing.T, n *neighbors) outcome {
			n.wide.fact(t, "give-stream", "net=unix", "name=/tmp/sock")
			n.narrow.fact(t, "link", "name=/tmp/link", "file=/tmp/sock")
			return n.take(t, "/tmp/link")
		}},
		{"a name that changes", func(t *testing.T, n *neighbors) outcome {
			n.wide.fact(t, "give-stream", "net=unix", "name=@theirs-abc")
			return n.narrow.do(t, "race-abstract", "name=@theirs-abc")
		}},
		{"a path that changes", func(t *testing.T, n *neighbors) outcome {
			n.wide.fact(t, "give-stream", "net=unix", "name=/tmp/theirs")
			return n.narrow.do(t, "race-path", "name=/tmp/theirs")
		}},
		{"the number of a file that it had", func(t *testing.T, n *neighbors) outcome {
			number := n.narrow.fact(t, "bind-remove", "name=/tmp/mine")
			v := n.wide.do(t, "bind-until", "name=/tmp/theirs", "number="+number)
			if v.word != wordOK {
				return v
			}
			return n.take(t, v.detail)
		}},
	}
}

// TestNamesOfSockets: between commands with different rights no name leads to a socket.
func TestNamesOfSockets(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, test := range append(triesOfClaims(), triesOfOthers()...) {
		t.Run(test.name, func(t *testing.T) {
			if v := test.try(t, neighborsFor(t, true)); v.word != wordDenied {
				t.Errorf("%v", v)
			} else {
				t.Log(v)
			}
		})
	}
}

// TestRightsBesidePolicies: commands with one policy that differ in what else they may have do not pass
// descriptors.
func TestRightsBesidePolicies(t *testing.T) {
	testenv.RunAsOrdinary(t)
	dir, err := os.MkdirTemp("/tmp", "sallyport-host-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.WriteFile(dir+"/file", []byte("of the host"), 0o644))
	for name, wide := range map[string]job{
		"/tmp of the host": {tmp: "host"}, "calls": {allow: []string{"ptrace"}}, "links": {links: true}, "nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			a := newArena(t)
			s := a.open(t, a.policy())
			wide.in = s
			first, second := a.agent(t, &wide), a.agent(t, &job{in: s})
			want, file := wordDenied, a.ws+"/file"
			switch name {
			case "nothing":
				want = wordBreach
			case "/tmp of the host":
				file = dir + "/file"
			}
			for _, at := range []string{"@pass", a.ws + "/pass"} {
				first.fact(t, "give-descriptor", "net=unix", "name="+at, "file="+file)
				if v := second.do(t, "take-descriptor", "net=unix", "name="+at); v.word != want {
					t.Errorf("by %s: %v, want %s", at, v, want)
				}
			}
		})
	}
}

// TestPoliciesInAnyOrder: the order of entries makes no difference to rights.
func TestPoliciesInAnyOrder(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	s := a.open(t, a.policy())
	one, two := sandbox.PathEntry(a.out+"/other", sandbox.LevelDeny),
		sandbox.PathEntry(a.out+"/dir", sandbox.LevelDeny)
	p, q := a.policy().WithEntries(one, two), a.policy().WithEntries(two, one)
	first, second := a.agent(t, &job{in: s, policy: &p}), a.agent(t, &job{in: s, policy: &q})
	first.fact(t, "give-stream", "net=unix", "name=@met")
	if v := second.do(t, "take-stream", "net=unix", "name=@met"); v.word != wordBreach {
		t.Errorf("%v", v)
	}
	if err := errors.Join(first.end(t).Broken, second.end(t).Broken); err != nil {
		t.Error(err)
	}
}
