// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// Addresses that tests listen at, in a network namespace of their own.
const (
	listen4 = "127.0.0.1:3128"
	other4  = "127.0.0.2:15001"
)

// listening is a script with a network namespace of its own that listens at addresses before
// its command starts.
func listening(last Step, addresses ...string) *Script {
	s := script(own, last)
	s.Namespaces |= NewNet
	steps := []Step{{Op: OpLoopback}}
	for _, at := range addresses {
		steps = append(steps, Step{Op: OpListen, Path: at})
	}
	return before(s, steps...)
}

// helperDial reads to the end of a connection to each address, and prints it. Then it prints
// which sockets it has open.
func helperDial(args []string) int {
	for _, at := range args {
		c, err := net.Dial("tcp", at)
		if err != nil {
			fmt.Println(err)
			return 2
		}
		b, err := io.ReadAll(c)
		c.Close()
		fmt.Printf("%s: %q %v\n", at, b, err)
	}
	for n := range 256 {
		if link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", n)); err == nil &&
			strings.HasPrefix(link, "socket:") {
			fmt.Println("a socket is open:", n)
		}
	}
	return 0
}

// handover returns a Handover that is closed at the end of the test.
func handover(t testing.TB) *Handover {
	t.Helper()
	h, err := NewHandover("listen")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// received returns the next listening socket that a launch has sent.
func received(t testing.TB, from *Handover) net.Listener {
	t.Helper()
	f, err := from.Take()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// answer answers each connection with a word until the listener is closed.
func answer(t testing.TB, serving *sync.WaitGroup, l net.Listener, word string) {
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(c, word)
			c.Close()
		}
	})
}

// TestListen: the sockets that a launch sends are ready before the command's first instruction,
// serve it from this process, and are not among its descriptors.
func TestListen(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, c := range []struct {
		name      string
		preforks  bool
		addresses []string
	}{
		{"one", false, []string{listen4}},
		{"two", false, []string{listen4, other4}},
		{"preforked", true, []string{listen4}},
		{"every address of its network", true, []string{"0.0.0.0:443"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := launcher(t)
			l.preforks = c.preforks
			sent := handover(t)
			r, w := pipe(t)
			p, err := l.StartWith(listening(helperStep(t, "dial", c.addresses...), c.addresses...),
				Files{Stdin: null(t), Stdout: w, Stderr: w, Listen: sent.Theirs()})
			if err != nil {
				t.Fatal(err)
			}
			w.Close()
			var serving sync.WaitGroup
			want := ""
			var listeners []net.Listener
			for _, at := range c.addresses {
				got := received(t, sent)
				listeners = append(listeners, got)
				if got.Addr().String() != at {
					t.Errorf("it listens at %s, want %s", got.Addr(), at)
				}
				want += fmt.Sprintf("%s: %q <nil>\n", at, "at "+at)
				answer(t, &serving, got, "at "+at)
			}
			b, err := io.ReadAll(r)
			if string(b) != want || err != nil {
				t.Errorf("the command printed %q, %v; want %q", b, err, want)
			}
			if st := finishAll(t, p); st.ExitStatus() != 0 {
				t.Errorf("exit code %d", st.ExitStatus())
			}
			for _, one := range listeners {
				one.Close()
			}
			serving.Wait()
		})
	}
}

// TestListenApart: commands that listen at the same address at the same time have each their own
// socket, and nothing outside reaches one of them.
func TestListenApart(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	const commands = 4
	l := launcher(t)
	var serving sync.WaitGroup
	type one struct {
		process *Process
		socket  net.Listener
		out     *os.File
		hold    *os.File
	}
	all := make([]one, commands)
	for i := range all {
		sent := handover(t)
		r, w := pipe(t)
		in, hold := pipe(t)
		in.Fd() // a shell reads it, which must block
		s := helperStep(t, "dial", listen4)
		wait := shStep("")
		wait.Argv = append([]string{"sh", "-c", `read -r x; exec "$0" "$@"`, s.Path}, s.Argv...)
		p, err := l.StartWith(listening(wait, listen4),
			Files{Stdin: in, Stdout: w, Stderr: w, Listen: sent.Theirs()})
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		in.Close()
		all[i] = one{p, received(t, sent), r, hold}
		answer(t, &serving, all[i].socket, fmt.Sprint("command ", i))
	}
	// This process is in another network namespace: here nothing of it listens.
	if c, err := net.DialTimeout("tcp", listen4, time.Minute); err == nil {
		if b, _ := io.ReadAll(c); strings.HasPrefix(string(b), "command ") {
			t.Errorf("the socket of a command was reached from outside: %q", b)
		}
		c.Close()
	}
	for i := range all {
		if _, err := io.WriteString(all[i].hold, "go\n"); err != nil {
			t.Fatal(err)
		}
	}
	for i := range all {
		b, err := io.ReadAll(all[i].out)
		if want := fmt.Sprintf("%s: %q <nil>\n", listen4,
			fmt.Sprint("command ", i)); string(b) != want || err != nil {
			t.Errorf("command %d printed %q, %v; want %q", i, b, err, want)
		}
		finishAll(t, all[i].process)
		all[i].socket.Close()
	}
	serving.Wait()
}

// TestListenErrors: what cannot be performed exactly does not start.
func TestListenErrors(t *testing.T) {
	sent := handover(t)
	files := Files{Stdin: null(t), Stdout: null(t), Stderr: null(t), Listen: sent.Theirs()}
	late := script(own, shStep(":"), Step{Op: OpListen, Path: listen4})
	without := files
	without.Listen = nil
	for _, c := range []struct {
		name   string
		script *Script
		files  Files
		want   string
	}{
		{"no socket to send to", listening(shStep(":"), listen4), without, "needs Files.Listen"},
		{"behind start-command", late, files, "behind start-command"},
		{"no address", listening(shStep(":"), ""), files, "takes an address of the loopback interface"},
		{"a name", listening(shStep(":"), "localhost:3128"), files, "takes an address of the loopback interface"},
		{"no port", listening(shStep(":"), "127.0.0.1:0"), files, "takes an address of the loopback interface"},
		{"another address", listening(shStep(":"), "192.0.2.1:3128"), files, "takes an address of the loopback interface"},
		{"every address of this machine", before(script(own, shStep(":")), Step{Op: OpListen, Path: "0.0.0.0:3128"}), files, "takes an address of the loopback interface"},
		{"the same of IPv6", before(script(own, shStep(":")), Step{Op: OpListen, Path: "[::]:3128"}), files, "takes an address of the loopback interface"},
		{"datagrams to every address", before(listening(shStep(":")), Step{Op: OpListen, Path: "0.0.0.0:53", Value: unix.SOCK_DGRAM}), files, "takes an address of the loopback interface"},
		{"a type", before(listening(shStep(":")), Step{Op: OpListen, Path: listen4, Value: unix.SOCK_RAW}), files, "no sockets of type 3"},
		{"IPv4 in IPv6", listening(shStep(":"), "[::ffff:127.0.0.1]:3128"), files, "takes an address of the loopback interface"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := launcher(t).StartWith(c.script, c.files)
			var mistake *ScriptError
			if !errors.As(err, &mistake) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a *ScriptError with %q", err, c.want)
			}
		})
	}
}

// TestListenTwice: an address that is in use stops the launch at the step.
func TestListenTwice(t *testing.T) {
	testenv.NeedUserNS(t)
	l := launcher(t)
	sent := handover(t)
	s := listening(shStep(":"), listen4, listen4)
	at := 0
	for i := range s.Steps {
		if s.Steps[i].Op == OpListen {
			at = i
		}
	}
	n := null(t)
	_, err := l.StartWith(s, Files{Stdin: n, Stdout: n, Stderr: n, Listen: sent.Theirs()})
	wantStepError(t, err, at, "bind", unix.EADDRINUSE)
}
