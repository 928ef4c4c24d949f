// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestSessionCap: the sixty-fifth session is refused, and nothing is ended for it.
func TestSessionCap(t *testing.T) {
	r := sessionRunner(t)
	r.Spill = -1
	const first = 60 // of the sessions that make replies say that there are many
	var all []*sallyport.Session
	for i := range 64 {
		s := piped(t, r, "cat")
		all = append(all, s)
		reply, err := s.Await(t.Context(), sallyport.Until{For: time.Nanosecond})
		if err != nil || len(reply.Notices) > 0 != (i+1 >= first) {
			t.Errorf("session %d: %q, %v", i+1, reply.Notices, err)
		}
		if i+1 >= first && !strings.HasPrefix(strings.Join(reply.Notices, " "),
			fmt.Sprintf("%d of at most 64 sessions are alive", i+1)) {
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
			send(t, s, "", sallyport.Until{For: time.Nanosecond}, sallyport.ReasonDeadline)
		case 2:
			const sigcont = 18 // which does nothing to what goes on
			if err := s.Signal(sigcont); err != nil {
				t.Error(err)
			}
		}
	}
	var many *sallyport.TooManySessionsError
	_, err := r.Start(t.Context(), &sallyport.Cmd{Args: []string{"cat"}, Dir: t.TempDir()})
	if !errors.As(err, &many) || many.Max != sallyport.DefaultMaxSessions ||
		len(many.Candidates) != sallyport.DefaultMaxSessions {
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
		if _, err := r.Start(t.Context(), &sallyport.Cmd{Args: []string{"cat"},
			Dir: t.TempDir()}); !errors.As(err, &many) {
			t.Errorf("%v", err)
		}
	}
	if n, err := r.TerminateAll(t.Context()); n != sallyport.DefaultMaxSessions || err != nil {
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
	starts := map[string]*sallyport.Cmd{
		"no program":   {Args: []string{"no-such-program"}, Dir: dir},
		"no directory": {Args: []string{"cat"}, Dir: dir + "/none"},
		"no arguments": {},
		"not allowed":  {Args: []string{"cat"}, Dir: dir, Unsandboxed: true},
		"two inputs":   {Args: []string{"cat"}, Dir: dir, OpenStdin: true, Stdin: strings.NewReader("")},
		"two commands": {Args: []string{"cat"}, Script: "cat", Dir: dir},
	}
	for range sallyport.DefaultMaxSessions/len(starts) + 2 {
		for name, c := range starts {
			if s, err := r.Start(t.Context(), c); s != nil || err == nil ||
				errors.As(err, new(*sallyport.TooManySessionsError)) {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	if known := r.Sessions(); len(known) > 0 {
		t.Errorf("%+v", known)
	}
	over(t, piped(t, r, "exit 0"))
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
	sessions := sallyport.DefaultMaxSessions
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
func stressed(t *testing.T, bash string, i int) *sallyport.Cmd {
	c := &sallyport.Cmd{Args: []string{"sh", "-c", `while read x; do echo "got $x"; done; exec sleep 1000`},
		OpenStdin: true}
	if i%2 == 0 {
		c = &sallyport.Cmd{Args: []string{bash, "--norc", "--noprofile", "-i"}, TTY: new(sallyport.Size),
			Screen: i%4 == 0}
	}
	c.Dir, c.Grace = t.TempDir(), -1
	return c
}

// drive does everything to a session.
func drive(t *testing.T, s *sallyport.Session, i int) {
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
		u := sallyport.Until{For: enough,
			Match: regexp.MustCompile(fmt.Sprintf(`got word%d-%d\r?\n`, i, round))}
		reply, err := s.Send(t.Context(), []byte(text), u)
		if err != nil || reply.Reason != sallyport.ReasonMatch {
			t.Errorf("session %d: %+v, %v", i, reply, err)
			return
		}
		for _, u := range []sallyport.Until{
			{For: time.Millisecond, Input: true, Port: true, Quiet: time.Millisecond, Bytes: 1, FirstOutput: true},
			{For: enough, Input: true},
		} {
			if reply, err := s.Await(t.Context(), u); err != nil || reply.Reason == sallyport.ReasonExited {
				t.Errorf("session %d: %+v, %v", i, reply, err)
			}
		}
		if s.Info().TTY {
			if err := errors.Join(s.Resize(sallyport.Size{Cols: uint16(40 + round)}),
				s.Interrupt()); err != nil {
				t.Errorf("session %d: %v", i, err)
			}
			if _, err := s.Await(t.Context(), sallyport.Until{For: enough, Input: true}); err != nil {
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
	if found, err := s.Search(t.Context(), regexp.MustCompile("got "+last), 0); err != nil ||
		len(found.Matches) == 0 {
		t.Errorf("session %d: %+v, %v", i, found, err)
	}
	if _, err := s.Write([]byte("x\n")); err != nil && !errors.Is(err, sallyport.ErrInputClosed) &&
		!errors.Is(err, os.ErrProcessDone) {
		t.Errorf("session %d: %v", i, err)
	}
}

// How many short sessions there are one after another, which takes about six seconds.
// What leaks once for each of them is seen with ten; what leaks now and then needs many.
const (
	shortOnPipes    = 1000
	shortOnTerminal = 200
)

// TestSessionsLeakNothing: short sessions in a row leave no descriptor, no goroutine and
// no process behind, while their Runner lives: neither those that were closed nor those
// of which only the last are kept.
func TestSessionsLeakNothing(t *testing.T) {
	r := sessionRunner(t)
	program, dir := testenv.NeedProgram(t, "true"), t.TempDir()
	short := func(t *testing.T, terminal bool) *sallyport.Session {
		t.Helper()
		c := sallyport.Command(program)
		c.Dir, c.OpenStdin = dir, !terminal
		s := begin(t, r, c)
		res, err := s.Wait(t.Context())
		if err != nil || res.ExitCode != 0 {
			t.Fatalf("%+v, %v", res, err)
		}
		return s
	}
	for _, tt := range []struct {
		name     string
		count    int
		terminal bool
		forgets  bool // nobody closes them
	}{
		{name: "pipes", count: shortOnPipes, forgets: true},
		{name: "terminal", count: shortOnTerminal, terminal: true},
		{name: "terminal, not closed", count: keptEnded, terminal: true, forgets: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !testenv.IsLong() {
				tt.count = max(tt.count/5, keptEnded)
			}
			for range keptEnded { // what all share comes up, and the table fills
				short(t, tt.terminal)
			}
			var before remains
			settle(t, func() bool {
				again := before
				before = remaining(t)
				return before.children == 0 && again == before
			})
			for range tt.count {
				s := short(t, tt.terminal)
				if tt.forgets {
					continue
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			var after remains
			if !settle(t, func() bool {
				after = remaining(t)
				return after.descriptors <= before.descriptors && after.goroutines <= before.goroutines &&
					after.children == 0
			}) {
				t.Errorf("%d sessions later there are %v, %v before", tt.count, after, before)
			}
		})
	}
}

// remains is what this process holds of what sessions need.
type remains struct{ descriptors, goroutines, children int }

func (r remains) String() string {
	return fmt.Sprintf("%d descriptors, %d goroutines and %d children", r.descriptors,
		r.goroutines, r.children)
}

func remaining(t *testing.T) remains {
	t.Helper()
	r := remains{descriptors: openFDs(), goroutines: runtime.NumGoroutine()}
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lists {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		r.children += len(strings.Fields(string(text)))
	}
	return r
}

// settle asks until the answer is yes, for what is collected in the background, and
// reports whether it became so.
func settle(t *testing.T, ok func() bool) bool {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	deadline := time.NewTimer(enough)
	defer deadline.Stop()
	for !ok() {
		select {
		case <-again.C:
		case <-deadline.C:
			return false
		}
	}
	return true
}
