// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package sigpipe

import (
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if os.Getenv("SIGPIPE_TEST_DEAF") != "" {
		os.Exit(deaf())
	}
	goleak.VerifyTestMain(m)
}

// next waits for a signal.
func next(t *testing.T, c <-chan os.Signal) os.Signal {
	t.Helper()
	select {
	case s := <-c:
		return s
	case <-time.After(30 * time.Second):
		t.Fatal("no signal arrives")
	}
	return nil
}

func raise(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), s); err != nil {
		t.Fatal(err)
	}
}

// TestNotify sends every signal that can be caught and means nothing to the runtime.
func TestNotify(t *testing.T) {
	all := []syscall.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT, syscall.Signal(64),
	}
	c := make(chan os.Signal, len(all))
	var wanted []os.Signal
	for _, s := range all {
		wanted = append(wanted, s)
	}
	stop, err := Notify(c, wanted...)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, s := range all {
		raise(t, s)
		if got := next(t, c); got != s {
			t.Errorf("%v, want %v", got, s)
		}
	}
	stop() // twice
}

// TestOrder: what comes one after the other is heard in that order, and a channel
// that is full loses the rest.
func TestOrder(t *testing.T) {
	c := make(chan os.Signal, 3)
	stop, err := Notify(c, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	other := make(chan os.Signal, 16)
	stopOther, err := Notify(other, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2)
	if err != nil {
		t.Fatal(err)
	}
	want := []syscall.Signal{syscall.SIGUSR2, syscall.SIGUSR1, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGTERM}
	for _, s := range want {
		raise(t, s)
		if got := next(t, other); got != s { // two that wait may come in wanted order
			t.Errorf("the second listener hears %v, want %v", got, s)
		}
	}
	stopOther() // the first one goes on
	for _, s := range want[:3] {
		if got := next(t, c); got != s {
			t.Errorf("%v, want %v", got, s)
		}
	}
	if len(c) != 0 {
		t.Errorf("%d more", len(c))
	}
	raise(t, syscall.SIGUSR1)
	next(t, c)
}

// TestStop: afterwards os/signal hears as before, and so in turns.
func TestStop(t *testing.T) {
	for range 3 {
		c := make(chan os.Signal, 1)
		stop, err := Notify(c, syscall.SIGUSR1)
		if err != nil {
			t.Fatal(err)
		}
		raise(t, syscall.SIGUSR1)
		next(t, c)
		stop()
		signal.Notify(c, syscall.SIGUSR1)
		raise(t, syscall.SIGUSR1)
		next(t, c)
		signal.Stop(c)
	}
}

// TestBusy sends signals to threads at work, which collect garbage and grow their stacks.
func TestBusy(t *testing.T) {
	c := make(chan os.Signal, 1)
	stop, err := Notify(c, syscall.SIGUSR1)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	over := make(chan struct{})
	var work sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) {
		work.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					deep(200)
				}
			}
		})
	}
	work.Go(func() {
		for range 50 {
			runtime.GC()
		}
	})
	for range 2000 {
		raise(t, syscall.SIGUSR1)
		next(t, c)
	}
	close(over)
	work.Wait()
}

//go:noinline
func deep(n int) []byte {
	b := make([]byte, 300)
	if n > 0 {
		b = append(b[:8], deep(n - 1)[:8]...)
	}
	return b
}

// TestIgnored: what is ignored, as under nohup(1), stays so.
func TestIgnored(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", `trap '' HUP; exec "$0"`, os.Args[0])
	cmd.Env = append(os.Environ(), "SIGPIPE_TEST_DEAF=1")
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "user defined signal 1\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// deaf listens for a signal that it was told to ignore and for another one, without
// standard files 0 to 2, and says which it hears first.
func deaf() int {
	say := os.NewFile(9, "say")
	for n := range 3 {
		if n == 1 {
			if unix.Dup3(1, 9, unix.O_CLOEXEC) != nil {
				return 3
			}
		}
		_ = unix.Close(n)
	}
	c := make(chan os.Signal, 2)
	stop, err := Notify(c, syscall.SIGHUP, syscall.SIGUSR1)
	if err != nil {
		return 2
	}
	defer stop()
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGUSR1} {
		_ = syscall.Kill(os.Getpid(), s)
	}
	_, _ = say.WriteString((<-c).String() + "\n")
	if hub.read.Fd() <= 2 || end <= 2 {
		return 4
	}
	return 0
}
