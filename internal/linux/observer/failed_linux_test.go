// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/sallyport-dev/sallyport/internal/linux/notify"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"golang.org/x/sys/unix"
)

// TestOnFailed: who asked before is told when the supervision fails, who asks later at
// once, and nobody when it ends as it should.
func TestOnFailed(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name   string
		err    error
		closed bool
		want   int
	}{
		{name: "it fails", err: broken, want: 2},
		{name: "it ends"},
		{name: "it fails after Close", err: broken, closed: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := newSupervisor(Config{})
				must(t, err)
				defer s.closeFiles()
				if tt.closed {
					s.cancel()
				}
				calls := make(chan struct{}, 9)
				s.OnFailed(func() { t.Error("the function of an earlier call was called") })
				s.OnFailed(func() { calls <- struct{}{} })
				s.fail(tt.err)
				s.fail(tt.err) // only the first one counts
				synctest.Wait()
				s.OnFailed(func() { calls <- struct{}{} })
				synctest.Wait()
				if n := len(calls); n != tt.want {
					t.Errorf("%d calls, want %d", n, tt.want)
				}
			})
		})
	}
}

// TestCalm: a tree that asks nothing for a while, so that its supervisor rests, is judged
// afterwards as before, and its end is noticed.
func TestCalm(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedSeccomp(t)
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	if err := os.Mkdir(in, 0o755); err != nil {
		t.Fatal(err)
	}
	const script = `for i in 1 2 3; do sleep 0.03; mkdir "$0/in/d$i" || echo "failed $i"; mkdir "$0/no$i" 2>/dev/null && echo "made $i"; done; sleep 0.03; echo done`
	got, report := observedRun(t, Config{Writable: []string{in}}, nil, "/bin/sh", "-c", script, dir)
	if got != "done" || len(report.Denials) != 3 {
		t.Errorf("%q, %v", got, report.Denials)
	}
}

// TestListenerUnusable checks that the supervision fails when the launch has sent a
// descriptor that cannot be waited for, as when this process has too many.
func TestListenerUnusable(t *testing.T) {
	f, err := os.Open(os.Args[0]) // a regular file cannot be in an epoll set
	must(t, err)
	defer f.Close()
	in, err := notify.Listen()
	must(t, err)
	s, err := Serve(in, Config{})
	must(t, err)
	failed := make(chan struct{})
	s.OnFailed(func() { close(failed) })
	must(t, unix.Sendmsg(int(in.Theirs().Fd()), []byte{0}, unix.UnixRights(int(f.Fd())), nil, 0))
	in.Started()
	<-s.done
	if report := s.Close(); report.Err == nil {
		t.Error("no error is reported")
		return
	}
	<-failed
}
