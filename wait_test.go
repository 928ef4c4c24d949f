// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestSessionTimes is about what depends on time or on the order of two things, with a
// process that does what it is told.
func TestSessionTimes(t *testing.T) {
	for _, c := range []struct {
		name string
		cmd  Cmd
		test func(t *testing.T, s *Session, p *e2e.ScriptedProcess)
	}{
		{"the output wins a tie", Cmd{}, tieWithOutput},
		{"a pattern sees all that is retained", Cmd{}, seeAll},
		{"what follows a match is for the next wait", Cmd{}, matchNext},
		{"a match across two waits", Cmd{}, matchAcross},
		{"waits at once", Cmd{}, waitAtOnce},
		{"a wait with an offset of its own", Cmd{}, waitFrom},
		{"a pattern sees no control sequences", Cmd{}, matchColors},
		{"a terminal's input ends long after a write", Cmd{TTY: new(Size)}, endLate},
		{"a full terminal's input does not end", Cmd{TTY: new(Size)}, endFull},
		{"a write that is canceled disturbs no other", Cmd{OpenStdin: true}, cancelOneWrite},
		{"a write waits for another one", Cmd{OpenStdin: true}, writeBehind},
		{"writes to a slow command do not mix", Cmd{OpenStdin: true}, writeSlowly},
		{"a write of which a part is taken", Cmd{TTY: new(Size)}, writePart},
		{"quiet counts from the begin or the last output", Cmd{}, countQuiet},
		{"quiet after a text that prints nothing", Cmd{OpenStdin: true}, quietAfterSend},
		{"input that is closed during a write", Cmd{OpenStdin: true}, closeDuringWrite},
		{"a write to a command that is ending", Cmd{OpenStdin: true}, writeWhileEnding},
		{"a write to a command that closed its input", Cmd{OpenStdin: true}, writeToDeaf},
		{"a wait that is over is not canceled", Cmd{OpenStdin: true}, waitAfterEnd},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, s, p := scriptedSession(t, &c.cmd)
				c.test(t, s, p)
			})
		})
	}
}

func tieWithOutput(t *testing.T, s *Session, p *e2e.ScriptedProcess) {
	for i := range 20 { // which of two things is seen first is chance
		go func() {
			<-time.After(time.Second)
			p.Say("done")
		}()
		reply, err := s.Await(t.Context(), Until{For: time.Second,
			Match: regexp.MustCompile("done"), Input: true})
		synctest.Wait()
		if err != nil || reply.Reason == ReasonDeadline && reply.Output.Total > 0 {
			t.Fatalf("%d: %+v, %v", i, reply, err)
		}
		reply, err = s.Await(t.Context(), Until{For: time.Nanosecond})
		if err != nil || reply.Reason != ReasonDeadline {
			t.Fatalf("%d: %+v, %v", i, reply, err)
		}
	}
}

func seeAll(t *testing.T, s *Session, p *e2e.ScriptedProcess) {
	p.Say("^begin\nREADY in 5 ms\n" + strings.Repeat("y", 900<<10))
	reply, err := s.Await(t.Context(), Until{For: 1, Match: regexp.MustCompile(`(?m)^READY in \d+ ms$`)})
	if err != nil || reply.Reason != ReasonMatch || reply.Next != uint64(len("^begin\nREADY in 5 ms")) {
		t.Errorf("%s, next %d, %v", reply.Reason, reply.Next, err)
	}
	// What looks like a match of the whole text at the edge of a piece is none.
	if reply, err = s.Await(t.Context(), Until{For: 1, Match: regexp.MustCompile(`\Ayy|y\z`),
		From: new(uint64)}); err != nil || reply.Next != reply.Offset {
		t.Errorf("%s, next %d of %d, %v", reply.Reason, reply.Next, reply.Offset, err)
	}
}

// awaits waits for a pattern for a second.
func awaits(t *testing.T, s *Session, pattern string) Reply {
	t.Helper()
	reply, err := s.Await(t.Context(), Until{For: time.Second, Match: regexp.MustCompile(pattern)})
	if err != nil {
		t.Fatal(err)
	}
	return *reply
}

func matchNext(t *testing.T, s *Session, p *e2e.ScriptedProcess) {
	p.Say("one\ntwo\nthree> ")
	if r := awaits(t, s, "one"); r.Reason != ReasonMatch || r.Next != 3 ||
		r.Output.String() != "one\ntwo\nthree> " {
		t.Errorf("%+v", r)
	}
	if r := awaits(t, s, "two"); r.Reason != ReasonMatch || r.Next != 7 || r.Output.Total != 0 {
		t.Errorf("what followed: %+v", r)
	}
	if r := awaits(t, s, "two"); r.Reason != ReasonDeadline || r.Next != 7 {
		t.Errorf("what was matched: %+v", r)
	}
	if r := awaits(t, s, "> $"); r.Reason != ReasonMatch || r.Next != r.Offset {
		t.Errorf("the end: %+v", r)
	}
	// What a wait without a pattern has passed was seen.
	p.Say("four\n")
	if _, err := s.Await(t.Context(), Until{For: 1}); err != nil {
		t.Fatal(err)
	}
	if r := awaits(t, s, "four"); r.Reason != ReasonDeadline {
		t.Errorf("what was passed: %+v", r)
	}
}

func matchAcross(t *testing.T, s *Session, p *e2e.ScriptedProcess) {
	for i, piece := range []string{"REA", "DY\n"} {
		p.Say(piece)
		if r := awaits(t, s, "READY"); (r.Reason == ReasonMatch) != (i == 1) {
			t.Errorf("after %q: %s", piece, r.Reason)
		}
	}
}

func waitAtOnce(t *testing.T, s *Session, p *e2e.ScriptedProcess) {
	begin := time.Now()
	var waits sync.WaitGroup
	for name, want := range map[string]struct {
		until  Until
		reason Reason
		after  time.Duration
	}{
		"match":    {Until{For: time.Minute, Match: regexp.MustCompile("READY")}, ReasonMatch, 5 * time.Second},
		"same":     {Until{For: time.Minute, Match: regexp.MustCompile("READY")}, ReasonMatch, 5 * time.Second},
		"output":   {Until{For: time.Minute, FirstOutput: true}, ReasonOutput, 5 * time.Second},
		"bytes":    {Until{For: time.Minute, Bytes: 6}, ReasonBytes, 5 * time.Second},
		"quiet":    {Until{For: time.Minute, Quiet: 3 * time.Second}, ReasonQuiet, 3 * time.Second},
		"deadline": {Until{For: 4 * time.Second, Match: regexp.MustCompile("never")}, ReasonDeadline, 4 * time.Second},
		"never":    {Until{For: 30 * time.Second, Match: regexp.MustCompile("never")}, ReasonDeadline, 30 * time.Second},
	} {
		waits.Go(func() {
			reply, err := s.Await(t.Context(), want.until)
			if took := time.Since(begin); err != nil || reply.Reason != want.reason || took != want.after {
				t.Errorf("%s: %+v after %v, %v; want %s after %v", name, reply, took, err,
					want.reason, want.after)
			}
		})
	}
	<-time.After(5 * time.Second)
	p.Say("READY\n")
	waits.Wait()
}

func waitFrom(t *testing.T, s *Session, p *e2e.ScriptedProcess) {
	p.Say("READY\nREADY again\n")
	for range 3 { // each has its own
		from := uint64(0)
		for _, want := range []uint64{5, 11} {
			reply, err := s.Await(t.Context(), Until{For: 1, Match: regexp.MustCompile("READY"), From: &from})
			if err != nil || reply.Reason != ReasonMatch || reply.Next != want || reply.Output.Total != 0 {
				t.Fatalf("from %d: %+v, %v", from, reply, err)
			}
			from = reply.Next
		}
		for until, want := range map[*Until]Reason{
			{Bytes: 7}: ReasonBytes, {Bytes: 8}: ReasonDeadline, {FirstOutput: true}: ReasonOutput,
		} {
			until.For, until.From = 1, &from
			if reply, err := s.Await(t.Context(), *until); err != nil || reply.Reason != want {
				t.Errorf("%+v: %+v, %v", until, reply, err)
			}
		}
	}
	if r := awaits(t, s, "READY"); r.Output.String() != "READY\nREADY again\n" || r.Next != 5 {
		t.Errorf("the output is there for others: %+v", r)
	}
}

func matchColors(t *testing.T, s *Session, p *e2e.ScriptedProcess) {
	p.Say("\x1b[?2004h\x1b[32mServer\x1b[39m listening: \x1b]8;;http://x\x1b\\\x1b[1mport\x1b[")
	p.Say("22m 4\x1b[7m2\x1b[m\r\n")
	const pattern = `(?m)^Server listening: port \d\d$`
	raw, err := s.Await(t.Context(), Until{For: 1, Match: regexp.MustCompile(pattern), Raw: true})
	if err != nil || raw.Reason != ReasonDeadline {
		t.Errorf("the bytes: %+v, %v", raw, err)
	}
	if r := awaits(t, s, pattern); r.Reason != ReasonMatch || r.Next != r.Offset-uint64(len("\x1b[m\r\n")) {
		t.Errorf("the text: %+v", r)
	}
	if raw, err = s.Await(t.Context(), Until{For: 1, Match: regexp.MustCompile(`\[32mServer\x1b`), Raw: true,
		From: new(uint64)}); err != nil || raw.Reason != ReasonMatch {
		t.Errorf("the bytes: %+v, %v", raw, err)
	}
}

func endLate(t *testing.T, s *Session, p *e2e.ScriptedProcess) {
	if _, err := s.Write([]byte("text\n")); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Minute)
	if err := s.CloseInput(); err != nil || string(p.Input) != "text\n\x04" {
		t.Errorf("%v, and it has %q", err, p.Input)
	}
}

func endFull(t *testing.T, s *Session, p *e2e.ScriptedProcess) {
	p.Set(func() { p.Full = true })
	begin := time.Now()
	if err := s.CloseInput(); !errors.Is(err, ErrInputFull) || time.Since(begin) != inputPatience {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}

func cancelOneWrite(t *testing.T, s *Session, p *e2e.ScriptedProcess) {
	p.Set(func() { p.Full = true })
	ctx, cancel := context.WithCancel(t.Context())
	var writes sync.WaitGroup
	writes.Go(func() {
		if _, err := s.Send(ctx, []byte("one"), Until{For: 1}); !errors.Is(err, context.Canceled) {
			t.Errorf("the one that was canceled: %v", err)
		}
	})
	synctest.Wait()
	writes.Go(func() {
		if n, err := s.Write([]byte("two")); n != 3 || err != nil {
			t.Errorf("the other one: %d, %v", n, err)
		}
	})
	synctest.Wait()
	cancel()
	synctest.Wait()
	p.Set(func() { p.Full = false })
	writes.Wait()
	// A cancellation behind the write leaves nothing that the next one could meet.
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		writes.Go(cancel)
		if _, err := s.Send(ctx, []byte("x"), Until{For: 1}); err != nil &&
			!errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if _, err := s.Write([]byte("y")); err != nil {
			t.Fatalf("behind one that was canceled: %v", err)
		}
		writes.Wait()
	}
}

func writeBehind(t *testing.T, s *Session, p *e2e.ScriptedProcess) {
	p.Set(func() { p.Full = true })
	var writes sync.WaitGroup
	writes.Go(func() {
		if _, err := s.Write([]byte("one")); !errors.Is(err, ErrInputFull) {
			t.Error(err)
		}
	})
	synctest.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begin := time.Now()
	if _, err := s.Send(ctx, []byte("two"), Until{}); !errors.Is(err, context.DeadlineExceeded) ||
		time.Since(begin) != time.Second {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
	writes.Wait()
}

// writeSlowly has two calls write to a command that reads a byte in nearly two seconds.
func writeSlowly(t *testing.T, s *Session, p *e2e.ScriptedProcess) {
	p.Set(func() { p.Step = 1 })
	reads := time.NewTicker(inputPatience - 1)
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-reads.C:
				p.Set(func() { p.Full = false })
			case <-done:
				return
			}
		}
	}()
	var writes sync.WaitGroup
	for _, text := range []string{"aaaa", "bbbb"} {
		writes.Go(func() {
			if n, err := s.Write([]byte(text)); n != len(text) || err != nil {
				t.Errorf("%q: %d, %v", text, n, err)
			}
		})
	}
	writes.Wait()
	if got := string(p.Input); got != "aaaabbbb" && got != "bbbbaaaa" {
		t.Errorf("the command read %q", got)
	}
}

// writePart has a command take a part, and then nothing: the write is over 2 seconds after the
// last byte that was taken, and the rest can be written later.
func writePart(t *testing.T, s *Session, p *e2e.ScriptedProcess) {
	p.Set(func() { p.Step = 3 })
	begin := time.Now()
	n, err := s.Write([]byte("abcdefghij"))
	if n != 3 || !errors.Is(err, ErrInputFull) || time.Since(begin) != inputPatience {
		t.Errorf("%d, %v after %v", n, err, time.Since(begin))
	}
	go func() {
		<-time.After(time.Second)
		p.Set(func() { p.Full = false }) // for 3 more
	}()
	begin = time.Now()
	_, err = s.Send(t.Context(), []byte("defghij"), Until{})
	if !errors.Is(err, ErrInputFull) || !strings.Contains(err.Error(), "(3 of 7 bytes were taken)") ||
		time.Since(begin) != time.Second+inputPatience {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
	p.Set(func() { p.Step, p.Full = 0, false })
	if n, err := s.Write([]byte("ghij")); n != 4 || err != nil || string(p.Input) != "abcdefghij" {
		t.Errorf("%d, %v, and the command got %q", n, err, p.Input)
	}
}

// countQuiet waits for 5 seconds without output. Those before the wait do not count.
func countQuiet(t *testing.T, s *Session, p *e2e.ScriptedProcess) {
	quiet := func(want time.Duration) {
		t.Helper()
		reply, err := s.Await(t.Context(), Until{For: time.Minute, Quiet: 5 * time.Second})
		if err != nil || reply.Reason != ReasonQuiet || reply.Elapsed != want {
			t.Errorf("%s after %v, %v; want it after %v", reply.Reason, reply.Elapsed, err, want)
		}
	}
	quiet(5 * time.Second) // there was no output at all
	quiet(5 * time.Second)
	p.Say("a while ago")
	<-time.After(3 * time.Second)
	quiet(5 * time.Second)
	go func() {
		<-time.After(4 * time.Second)
		p.Say("first")
		<-time.After(4 * time.Second)
		p.Say("second")
	}()
	quiet(13 * time.Second)
}

// quietAfterSend: text that prints nothing is followed by silence.
func quietAfterSend(t *testing.T, s *Session, _ *e2e.ScriptedProcess) {
	for range 2 {
		reply, err := s.Send(t.Context(), []byte("prints nothing\n"),
			Until{For: time.Minute, Quiet: 5 * time.Second})
		if err != nil || reply.Reason != ReasonQuiet || reply.Elapsed != 5*time.Second {
			t.Errorf("%+v, %v", reply, err)
		}
	}
}

func closeDuringWrite(t *testing.T, s *Session, p *e2e.ScriptedProcess) {
	p.Set(func() { p.Full = true })
	var writes sync.WaitGroup
	writes.Go(func() {
		if _, err := s.Write([]byte("text")); !errors.Is(err, ErrInputClosed) {
			t.Errorf("the write: %v", err)
		}
	})
	synctest.Wait()
	if err := s.CloseInput(); err != nil {
		t.Error(err)
	}
	writes.Wait()
	if s.over() {
		t.Error("the session is over")
	}
}

// writeWhileEnding: nobody reads the pipe any more, and a moment later the end is known.
func writeWhileEnding(t *testing.T, s *Session, p *e2e.ScriptedProcess) {
	p.Say("last words")
	p.Set(func() { p.Broken = fmt.Errorf("%w: pipe", io.ErrClosedPipe) })
	go func() {
		<-time.After(time.Second)
		p.Exit()
	}()
	reply, err := s.Send(t.Context(), []byte("text"), Until{})
	if err != nil || reply.Reason != ReasonExited || reply.Output.String() != "last words" {
		t.Errorf("%+v, %v", reply, err)
	}
	if _, err := s.Write([]byte("more")); !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
}

func writeToDeaf(t *testing.T, s *Session, p *e2e.ScriptedProcess) {
	p.Set(func() { p.Broken = fmt.Errorf("%w: pipe", io.ErrClosedPipe) })
	begin := time.Now()
	if _, err := s.Send(t.Context(), []byte("text"), Until{}); !errors.Is(err, ErrInputClosed) ||
		time.Since(begin) > inputPatience {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
	p.Say("still there")
	if reply, err := s.Await(t.Context(), Until{FirstOutput: true}); err != nil ||
		reply.Output.String() != "still there" {
		t.Errorf("%+v, %v", reply, err)
	}
}

func waitAfterEnd(t *testing.T, s *Session, p *e2e.ScriptedProcess) {
	p.Exit()
	synctest.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // which of two things is seen first is chance
		if res, err := s.Wait(ctx); res == nil || err != nil {
			t.Fatalf("%+v, %v", res, err)
		}
	}
}

// TestSessionCmd: what the caller does to the Cmd after Start is nothing to the session.
func TestSessionCmd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Cmd{Args: []string{"fake", "argument"}, TTY: &Size{Cols: 30, Rows: 5}, Screen: true}
		_, s, p := scriptedSession(t, c)
		c.Args[1], c.TTY, c.Screen = "other", nil, false
		p.Say("text")
		info := s.Info()
		info.Args[0] = "other"
		if info := s.Info(); !info.TTY || strings.Join(info.Args, " ") != "fake argument" {
			t.Errorf("%+v", info)
		}
		if err := s.Resize(Size{Cols: 40, Rows: 6}); err != nil {
			t.Error(err)
		}
		if screen, ok := s.Screen(); !ok || screen.Cols != 40 || screen.Lines[0] != "text" {
			t.Errorf("%+v, %v", screen, ok)
		}
	})
}

// TestTooManyText: also while all places are those of starts under way there is a sentence.
func TestTooManyText(t *testing.T) {
	var table sessions
	if _, _, err := table.reserve(1, true); err != nil {
		t.Fatal(err)
	}
	_, _, err := table.reserve(1, true)
	if want := "sallyport: session limit (1) reached by sessions that are starting; try again when one has ended"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestAwaitUnsupported: a wait for what the executor cannot tell is an error at once, before anything
// is typed; waits that did not ask for it wait for their time, and a session that has ended says so.
func TestAwaitUnsupported(t *testing.T) {
	for _, test := range []struct {
		name  string
		until Until
		field string // of the error; empty for none
	}{
		{"input", Until{Input: true}, "Input"},
		{"input without a limit", Until{Input: true, For: -1}, "Input"},
		{"input or a match", Until{Input: true, Match: regexp.MustCompile("x")}, "Input"},
		{"port", Until{Port: true}, "Port"},
		{"port or output", Until{Port: true, FirstOutput: true}, "Port"},
		{"a time on a terminal", Until{For: time.Second}, ""},
		{"nothing", Until{}, ""},
		{"output", Until{FirstOutput: true}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &e2e.Fake{Play: func(_ *executor.Spec,
					p *e2e.FakeProcess) {
					<-p.Stopped
					p.Exit.Stopped = true
				}}
				r := &Runner{Policy: sandbox.FullAccess(), Executor: e}
				s, err := r.Start(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/", TTY: &Size{}})
				if err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				reply, err := s.Send(t.Context(), []byte("typed"), test.until)
				var refused *UntilError
				switch {
				case test.field == "" && (err != nil || reply.Reason != ReasonDeadline):
					t.Errorf("%+v, %v", reply, err)
				case test.field == "":
				case !errors.As(err, &refused) || refused.Field != test.field ||
					!errors.Is(err, errors.ErrUnsupported) || time.Since(begin) != 0:
					t.Errorf("%v after %v", err, time.Since(begin))
				}
				if _, err := s.Yield(t.Context(), time.Second); err != nil {
					t.Errorf("Yield: %v", err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if reply, err := s.Await(t.Context(), test.until); err != nil ||
					reply.Reason != ReasonExited {
					t.Errorf("after the end: %+v, %v", reply, err)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// unsignaled is a process whose executor cannot pass signals on.
type unsignaled struct{ *e2e.FakeProcess }

func (unsignaled) Signal(int) error { return errors.ErrUnsupported }

// TestSignalUnsupported: a signal of Cmd.Signals that asks for the end ends a command also where the
// executor cannot pass it on.
func TestSignalUnsupported(t *testing.T) {
	signals := make(chan int)
	p := e2e.NewFakeProcess()
	a := &attempt{process: unsignaled{p}, stopped: make(chan struct{})}
	release := a.watch(t.Context(), &Cmd{Signals: signals})
	const winch = 28 // it asks for nothing
	for range 2 {
		signals <- winch // the second one is taken when the first one has been passed on
	}
	if why := a.asked(); why != "" {
		t.Errorf("stopped because of %q by a signal that asks for nothing", why)
	}
	signals <- 15
	<-p.Stopped
	release()
	if a.asked() != EndCanceled {
		t.Errorf("stopped because of %q", a.asked())
	}
}
