// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// asks runs a part of [askedParts] with an approver, and returns what it printed.
func (a *arena) asks(t *testing.T, p *approver, part, at string, change func(*job)) (string, executor.Exit) {
	t.Helper()
	var after executor.Exit
	j := &job{after: &after, ask: p.ask, args: []string{os.Getenv(programVar), partAsked, part, "ws=" + a.ws,
		"at=" + at}}
	if change != nil {
		change(j)
	}
	res, err := a.run(t, j)
	must(t, err)
	return strings.TrimSpace(res.out + res.err), after
}

// TestAskingNever: what no grant opens is denied at once, although the approver would say yes.
func TestAskingNever(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	home := a.base + "/home"
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	for _, dir := range []string{home + "/.ssh", home + "/.config/sallyport", a.out + "/repo/.git/hooks",
		a.out + "/bare/objects", a.out + "/bare/refs", a.out + "/holds/deep", a.out + "/plain"} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	for name, text := range map[string]string{home + "/.ssh/id_rsa": "-----BEGIN OPENSSH PRIVATE KEY-----\n",
		home + "/.config/sallyport/config.toml": "", a.out + "/bare/HEAD": "ref: refs/heads/main\n",
		a.out + "/denied": "no", a.out + "/holds/deep/denied": "no"} {
		write(t, name, text)
	}
	policy := a.policy().WithEntries(sandbox.PathEntry(a.out+"/denied", sandbox.LevelDeny),
		sandbox.PathEntry(a.out+"/holds/deep/denied", sandbox.LevelDeny), sandbox.GlobEntry(a.out+"/*.env"))
	for _, tt := range []struct{ name, part, at string }{
		{"denied path", "put", a.out + "/denied"},
		{"denied pattern", "put", a.out + "/new.env"},
		{"made a denied pattern", "make", a.out + "/new.env"},
		{"holds a denied path", "replace", a.out + "/holds"},
		{"moves a denied path in", "take", a.out + "/holds"},
		{"directory out", "give", a.out + "/taken"},
		{"directory in", "take", a.out + "/plain"},
		{"git settings", "put", a.ws + "/.git/config"},
		{"git hook", "put", a.ws + "/.git/hooks/pre-commit"},
		{"git hook elsewhere", "put", a.out + "/repo/.git/hooks/pre-commit"},
		{"repository elsewhere", "make", a.out + "/dir/.git"},
		{"bare repository", "put", a.out + "/bare/config"},
		{"protected name", "make", a.ws + "/.codex"},
		{"protected name elsewhere", "put", a.out + "/.sallyport"},
		{"secret", "put", home + "/.ssh/id_rsa"},
		{"new in a store", "put", home + "/.ssh/authorized_keys"},
		{"settings", "put", home + "/.config/sallyport/config.toml"},
		{"state", "put", a.base + "/state/sallyport/x"},
		{"kernel", "put", "/proc/sys/kernel/hostname"},
		{"device", "put", "/dev/new"},
		{"pipe", "put", a.out + "/pipe"},
		{"temporary file", "temporary", a.out},
		{"restricted way", "resolve", a.out + "/other"},
		{"another owner", "foreign", a.out + "/other"},
		{"mount point", "remove", a.ws},
		{"missing", "remove", a.out + "/missing"},
		{"protected link", "join", a.ws + "/.git/config"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := snapshot(t, a.out) + snapshot(t, home)
			p := says(true)
			got, _ := a.asks(t, p, tt.part, tt.at, func(j *job) { j.policy = &policy })
			if got == "done" || len(p.asked) > 0 || snapshot(t, a.out)+snapshot(t, home) != before {
				t.Errorf("%s, asked %+v", got, p.asked)
			}
		})
	}
}

// TestAskingOthers: files that this user may not change outside of the sandbox either are not asked about.
func TestAskingOthers(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	at := a.out + "/closed"
	must(t, os.Mkdir(at, 0o555))
	write(t, a.out+"/read", "x")
	must(t, os.Chmod(a.out+"/read", 0o444))
	for _, name := range []string{at + "/new", a.out + "/read"} {
		p := says(true)
		if got, _ := a.asks(t, p, "put", name, nil); got == "done" || len(p.asked) > 0 {
			t.Errorf("%s: %s, asked %+v", name, got, p.asked)
		}
	}
}

// TestAskingReadEntry: an entry for reading alone is no hard denial, as for a grant before the run.
func TestAskingReadEntry(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	policy := a.policy().WithEntries(sandbox.PathEntry(a.ws+"/dir", sandbox.LevelRead))
	p := says(true)
	got, _ := a.asks(t, p, "put", a.ws+"/dir/new", func(j *job) { j.policy = &policy })
	b, err := os.ReadFile(a.ws + "/dir/new")
	if got != "done" || len(p.asked) != 1 || err != nil || string(b) != "x" {
		t.Errorf("%s, asked %+v, %q, %v", got, p.asked, b, err)
	}
}

// TestAskingTogether: several calls wait at once, and other processes of the command go on.
func TestAskingTogether(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	last, waiting := make(chan struct{}), make(chan struct{})
	var n atomic.Int32
	p := &approver{answer: func(ctx context.Context, q executor.AccessQuestion) bool {
		if strings.HasSuffix(q.Paths[0], "last") {
			close(last)
			return true
		}
		if n.Add(1) == 3 {
			close(waiting)
		}
		select {
		case <-last:
			return true
		case <-ctx.Done():
			return false
		}
	}}
	must(t, unix.Mkfifo(a.ws+"/go", 0o600))
	var after executor.Exit
	res, err := a.run(t, &job{after: &after, ask: p.ask, args: sh(`for i in 1 2 3; do echo $i >"$1/n$i" & done
read x <go; mkdir free; echo x >free/file; mkdir "$1/last"; wait`, a.out), during: func(*Child) {
		<-waiting
		f, err := os.OpenFile(a.ws+"/go", os.O_WRONLY, 0)
		must(t, err)
		_, err = f.WriteString("x\n")
		must(t, errors.Join(err, f.Close()))
	}})
	must(t, err)
	for i, name := range []string{"n1", "n2", "n3"} {
		if b, err := os.ReadFile(a.out + "/" + name); err != nil || string(b) != string(rune('1'+i))+"\n" {
			t.Errorf("%s: %q, %v, %+v", name, b, err, res)
		}
	}
	if len(p.asked) != 4 || len(after.Denials) > 0 {
		t.Errorf("asked %+v, %v", p.asked, after.Denials)
	}
}

// TestAskingSameFile: of two calls that wait to create the same file, the second opens what the first made.
func TestAskingSameFile(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	both := make(chan struct{})
	var n atomic.Int32
	p := &approver{answer: func(ctx context.Context, _ executor.AccessQuestion) bool {
		if n.Add(1) == 2 {
			close(both)
		}
		select {
		case <-both:
			return true
		case <-ctx.Done():
			return false
		}
	}}
	res, err := a.run(t, &job{ask: p.ask, args: sh(`echo 1 >>"$1" & echo 2 >>"$1"; wait`, a.out+"/log")})
	must(t, err)
	b, err := os.ReadFile(a.out + "/log")
	if lines := strings.Fields(string(b)); err != nil || len(lines) != 2 {
		t.Errorf("%q, %v, %+v", b, err, res)
	}
}

// TestAskingKilled: a question ends with its process, or with the run, and a yes that comes later does
// nothing.
func TestAskingKilled(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, tt := range []struct {
		name  string
		whole bool
		code  string
	}{{"process", false, "137"}, {"run", true, ""}} {
		t.Run(tt.name, func(t *testing.T) {
			a := newArena(t)
			started := make(chan *Child, 1)
			p := &approver{answer: func(ctx context.Context, q executor.AccessQuestion) bool {
				var err error
				if tt.whole {
					err = (<-started).Kill()
				} else {
					err = unix.Kill(q.PID, unix.SIGKILL)
				}
				if err != nil {
					t.Error(err)
				}
				<-ctx.Done()
				return true
			}}
			res, err := a.run(t, &job{ask: p.ask, during: func(c *Child) { started <- c },
				args: sh(`sh -c 'exec mkdir "$0"' "$1"; echo $?`, a.out+"/new")})
			must(t, err)
			_, err = os.Lstat(a.out + "/new")
			if err == nil || strings.TrimSpace(res.out) != tt.code || len(p.asked) != 1 {
				t.Errorf("%+v, %v, asked %+v", res, err, p.asked)
			}
		})
	}
}

// TestAskingSignaled: a signal that the program handles neither ends the question nor asks it again.
func TestAskingSignaled(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	p := &approver{answer: func(_ context.Context, q executor.AccessQuestion) bool {
		if err := unix.Kill(q.PID, unix.SIGUSR1); err != nil {
			t.Error(err)
		}
		return true
	}}
	if got, _ := a.asks(t, p, "signaled", a.out+"/new", nil); got != "done" || len(p.asked) != 1 {
		t.Errorf("%s, asked %+v", got, p.asked)
	}
}

// TestAskingSockets: connects and sends to the sockets of programs outside.
func TestAskingSockets(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	words := make(chan string, 4)
	l, err := net.Listen("unix", a.out+"/stream")
	must(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 16)
			n, _ := c.Read(b)
			words <- string(b[:n])
			c.Close()
		}
	}()
	d, err := net.ListenPacket("unixgram", a.out+"/datagrams")
	must(t, err)
	defer d.Close()
	go func() {
		for b := make([]byte, 16); ; {
			n, _, err := d.ReadFrom(b)
			if err != nil {
				return
			}
			words <- string(b[:n])
		}
	}()
	for _, tt := range []struct {
		part, at, call string
		words          []string
	}{
		{"connect", a.out + "/stream", "connect", []string{"word"}},
		{"datagram", a.out + "/datagrams", "sendto", []string{"addressed", "word"}},
		{"connected", a.out + "/datagrams", "connect", []string{"word"}},
	} {
		t.Run(tt.part, func(t *testing.T) {
			for _, yes := range []bool{true, false} {
				p := says(yes)
				got, after := a.asks(t, p, tt.part, tt.at, nil)
				if len(p.asked) == 0 || got != map[bool]string{true: "done", false: "EACCES"}[yes] ||
					(len(after.Denials) == 0) != yes {
					t.Fatalf("%v: %s, asked %+v, %v", yes, got, p.asked, after.Denials)
				}
				q := p.asked[0]
				if q.Access != (sandbox.Access{Op: sandbox.Connect, Addr: tt.at, Net: "unix"}) ||
					q.Call != tt.call ||
					!slices.Equal(q.Paths, []string{tt.at}) {
					t.Errorf("asked %+v", q)
				}
				for _, want := range tt.words {
					if yes {
						if got := <-words; got != want {
							t.Errorf("%q, want %q", got, want)
						}
					}
				}
			}
		})
	}
}
