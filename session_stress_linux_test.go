// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/internal/testenv"
)

// TestSessionCap: the sixty-fifth session is refused, and nothing is ended for it.
func TestSessionCap(t *testing.T) {
	r := sessionRunner(t)
	r.Spill = -1
	const first = 60 // of the sessions that make replies say that there are many
	var all []*Session
	for i := range 64 {
		s := piped(t, r, "cat")
		all = append(all, s)
		reply, err := s.Await(t.Context(), Until{For: time.Nanosecond})
		if err != nil || len(reply.Notices) > 0 != (i+1 >= first) {
			t.Errorf("session %d: %q, %v", i+1, reply.Notices, err)
		}
		if i+1 >= first && !strings.HasPrefix(strings.Join(reply.Notices, " "), fmt.Sprintf("%d of at most 64 sessions are alive", i+1)) {
			t.Errorf("session %d: %q", i+1, reply.Notices)
		}
	}
	// The order of idleness is that of the last use.
	order := slices.Concat(all[10:], all[:10])
	for i, s := range all[:10] {
		switch i % 3 {
		case 0:
			typed(t, s, "x")
		case 1:
			send(t, s, "", Until{For: time.Nanosecond}, ReasonDeadline)
		case 2:
			const sigcont = 18 // which does nothing to what goes on
			if err := s.Signal(sigcont); err != nil {
				t.Error(err)
			}
		}
	}
	var many *TooManySessionsError
	_, err := r.Start(t.Context(), &Cmd{Args: []string{"cat"}, Dir: t.TempDir()})
	if !errors.As(err, &many) || many.Max != DefaultMaxSessions || len(many.Candidates) != DefaultMaxSessions {
		t.Fatalf("%v", err)
	}
	for i, c := range many.Candidates {
		if c.ID != order[i].ID() || !c.Running {
			t.Fatalf("candidate %d is %s, want %s", i, c.ID, order[i].ID())
		}
	}
	for _, s := range order[:3] {
		if !strings.Contains(err.Error(), s.ID()+" (") {
			t.Errorf("%v", err)
		}
	}
	for range 3 { // one for one
		if alive, err := order[0].Terminate(t.Context()); !alive || err != nil {
			t.Fatalf("%v, %v", alive, err)
		}
		order = append(order[1:], piped(t, r, "cat"))
		if _, err := r.Start(t.Context(), &Cmd{Args: []string{"cat"}, Dir: t.TempDir()}); !errors.As(err, &many) {
			t.Errorf("%v", err)
		}
	}
	if n, err := r.TerminateAll(t.Context()); n != DefaultMaxSessions || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := r.TerminateAll(t.Context()); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// TestSessionPlaces: a start that fails gives its place back, however it fails.
func TestSessionPlaces(t *testing.T) {
	r := sessionRunner(t)
	r.MaxSessions = 1
	dir := t.TempDir()
	starts := map[string]*Cmd{
		"no program":   {Args: []string{"no-such-program"}, Dir: dir},
		"no directory": {Args: []string{"cat"}, Dir: dir + "/none"},
		"no arguments": {},
		"not allowed":  {Args: []string{"cat"}, Dir: dir, Unsandboxed: true},
		"two inputs":   {Args: []string{"cat"}, Dir: dir, OpenStdin: true, Stdin: strings.NewReader("")},
		"two commands": {Args: []string{"cat"}, Script: "cat", Dir: dir},
	}
	for range DefaultMaxSessions/len(starts) + 2 {
		for name, c := range starts {
			if s, err := r.Start(t.Context(), c); s != nil || err == nil || errors.As(err, new(*TooManySessionsError)) {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	if known := r.Sessions(); len(known) > 0 {
		t.Errorf("%+v", known)
	}
	over(t, piped(t, r, "exit 0"))
}

// TestSessionNumbers: no number is given twice, also when many are used up.
func TestSessionNumbers(t *testing.T) {
	for _, sequential := range []bool{false, true} {
		var table sessions
		seen := make(map[string]bool)
		longest := 0
		const draws = 60_000 // more than half of those of five digits
		for i := range draws {
			place, id, err := table.reserve(1, sequential)
			n, numErr := strconv.Atoi(id)
			if err != nil || numErr != nil || seen[id] || sequential && n != firstID+i || i < 3000 && (n < firstID || n > lastID) {
				t.Fatalf("draw %d: %q, %v, %v", i, id, err, numErr)
			}
			place.End(0)
			seen[id] = true
			longest = max(longest, len(id))
		}
		if want := 6; !sequential && longest != want {
			t.Errorf("the longest has %d digits", longest)
		}
	}
}

// TestSessionIdle: who was not used for longest is first, by the time of the last use.
func TestSessionIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s, p := scriptedSession(t, &Cmd{OpenStdin: true})
		for _, use := range []func(){
			func() { _, _ = s.Write([]byte("x")) },
			func() { _, _ = s.Await(t.Context(), Until{For: time.Second}) },
			func() { _ = s.Signal(1) },
			func() { _ = s.Resize(Size{}) },
			func() { _ = s.CloseInput() },
		} {
			<-time.After(time.Minute)
			use()
			if got := r.Sessions()[0].LastUsed; !got.Equal(time.Now()) {
				t.Errorf("last used at %v, now it is %v", got, time.Now())
			}
		}
		<-time.After(time.Minute)
		p.say("output is no use")
		s.Screen()
		s.Lines(0, 0)
		if got := time.Since(s.Info().LastUsed); got != time.Minute {
			t.Errorf("used %v ago", got)
		}
	})
}

// TestSessionStress: 64 sessions at once, 16 where tests are to be quick, each driven in every way,
// beside lists of them.
func TestSessionStress(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	bash := testenv.NeedProgram(t, "bash")
	fds, goroutines := openFDs(), runtime.NumGoroutine()
	r := sessionRunner(t)

	stop := make(chan struct{})
	var lists, drivers sync.WaitGroup
	lists.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, info := range r.Sessions() {
				if s, ok := r.Session(info.ID); ok {
					s.Info()
				}
			}
		}
	})
	sessions := DefaultMaxSessions
	if !testenv.IsLong() {
		sessions = 16
	}
	for i := range sessions {
		drivers.Go(func() {
			s, err := r.Start(t.Context(), stressed(t, bash, i))
			if err != nil {
				t.Error(err)
				return
			}
			drive(t, s, i)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	drivers.Wait()
	close(stop)
	lists.Wait()
	if n := len(r.Sessions()); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	// What goes behind the end that was told goes soon.
	late := time.After(enough)
	for runtime.NumGoroutine() > goroutines || openFDs() > fds {
		select {
		case <-late:
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines and %d descriptors, before %d and %d\n%s",
				runtime.NumGoroutine(), openFDs(), goroutines, fds, buf[:runtime.Stack(buf, true)])
		default:
			runtime.Gosched()
		}
	}
}

// stressed is what runs in a session: a shell on a terminal, or a script over pipes.
func stressed(t *testing.T, bash string, i int) *Cmd {
	c := &Cmd{Args: []string{"sh", "-c", `while read x; do echo "got $x"; done; exec sleep 1000`}, OpenStdin: true}
	if i%2 == 0 {
		c = &Cmd{Args: []string{bash, "--norc", "--noprofile", "-i"}, TTY: new(Size), Screen: i%4 == 0}
	}
	c.Dir, c.Grace = t.TempDir(), -1
	return c
}

// drive does everything to a session.
func drive(t *testing.T, s *Session, i int) {
	var readers sync.WaitGroup
	defer readers.Wait()
	const rounds = 4
	last := fmt.Sprintf("word%d-%d", i, rounds-1)
	for range 2 {
		readers.Go(func() {
			var got strings.Builder
			for d, err := range s.Deltas(t.Context(), 0) {
				got.Write(d.Data)
				if err != nil || strings.Contains(got.String(), "got "+last) {
					return
				}
			}
			t.Errorf("session %d: a reader came to the end with %q", i, got.String())
		})
	}
	for round := range rounds {
		text := fmt.Sprintf("word%d-%d\n", i, round)
		if s.Info().TTY {
			text = "echo \"got \"" + text
		}
		u := Until{For: enough, Match: regexp.MustCompile(fmt.Sprintf(`got word%d-%d\r?\n`, i, round))}
		reply, err := s.Send(t.Context(), []byte(text), u)
		if err != nil || reply.Reason != ReasonMatch {
			t.Errorf("session %d: %+v, %v", i, reply, err)
			return
		}
		for _, u := range []Until{
			{For: time.Millisecond, Input: true, Port: true, Quiet: time.Millisecond, Bytes: 1, FirstOutput: true},
			{For: enough, Input: true},
		} {
			if reply, err := s.Await(t.Context(), u); err != nil || reply.Reason == ReasonExited {
				t.Errorf("session %d: %+v, %v", i, reply, err)
			}
		}
		if s.Info().TTY {
			if err := errors.Join(s.Resize(Size{Cols: uint16(40 + round)}), s.Interrupt()); err != nil {
				t.Errorf("session %d: %v", i, err)
			}
			if _, err := s.Await(t.Context(), Until{For: enough, Input: true}); err != nil {
				t.Error(err)
			}
		}
		s.Screen()
		s.Lines(1, 0)
		s.Size()
	}
	if i%3 == 0 {
		if err := s.CloseInput(); err != nil {
			t.Errorf("session %d: %v", i, err)
		}
	}
	if found, err := s.Search(t.Context(), regexp.MustCompile("got "+last), 0); err != nil || len(found.Matches) == 0 {
		t.Errorf("session %d: %+v, %v", i, found, err)
	}
	if _, err := s.Write([]byte("x\n")); err != nil && !errors.Is(err, ErrInputClosed) && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("session %d: %v", i, err)
	}
}
