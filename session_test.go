// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
)

// scriptedSession starts a session of a ScriptedProcess, for tests in synctest bubbles.
func scriptedSession(t *testing.T, c *Cmd) (*Runner, *Session, *e2e.ScriptedProcess) {
	t.Helper()
	p := e2e.NewScriptedProcess()
	r := &Runner{Executor: &e2e.Scripted{Process: p}, Spill: -1, sequentialIDs: true}
	if c.Args == nil {
		c.Args = []string{"fake"}
	}
	c.Dir, c.Env = "/", []string{}
	s, err := r.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r, s, p
}

// TestNoContext: a context that is nil is an error before anything begins.
func TestNoContext(t *testing.T) {
	var none context.Context
	r, _ := fakeRunner(nil, nil)
	_, s, _ := scriptedSession(t, &Cmd{OpenStdin: true})
	c := &Cmd{Args: []string{"true"}, Dir: "/"}
	for name, f := range map[string]func() error{
		"Run":          func() error { _, err := r.Run(none, c); return err },
		"Start":        func() error { _, err := r.Start(none, c); return err },
		"Open":         func() error { _, err := r.Open(none, SandboxOptions{}); return err },
		"TerminateAll": func() error { _, err := r.TerminateAll(none); return err },
		"Wait":         func() error { _, err := s.Wait(none); return err },
		"Terminate":    func() error { _, err := s.Terminate(none); return err },
		"Await":        func() error { _, err := s.Await(none, Until{}); return err },
		"Send":         func() error { _, err := s.Send(none, []byte("x"), Until{}); return err },
		"Yield":        func() error { _, err := s.Yield(none, 1); return err },
		"Search":       func() error { _, err := s.Search(none, nil, 0); return err },
		"Deltas": func() (last error) {
			for _, err := range s.Deltas(none, 0) {
				last = err
			}
			return last
		},
	} {
		if err := f(); !errors.Is(err, ErrNoContext) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s.over() {
		t.Error("the session was ended")
	}
	if err := closes(t, r); err != nil {
		t.Error(err)
	}
}

// TestSessionOverAnyOutput: a session reads through Process.Output, whatever retains the
// output: two readers with offsets of their own, one of them late, a counted gap, lines, a
// search, the reason for what is not retained, and Close.
func TestSessionOverAnyOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, p := scriptedSession(t, &Cmd{})
		if want := (executor.Retention{Memory: 1 << 20, File: -1}); p.Spec.Retain != want {
			t.Errorf("the session asks to retain %+v, want %+v", p.Spec.Retain, want)
		}
		p.Out.Retain = 10
		read := func(out *string) func() {
			return func() {
				for d, err := range s.Deltas(t.Context(), 0) {
					if err != nil {
						t.Error(err)
						return
					}
					*out += fmt.Sprintf("%d+%d:%s ", d.Offset, d.Missing, d.Data)
				}
			}
		}
		var early, late string
		var readers sync.WaitGroup
		readers.Go(read(&early))
		synctest.Wait()
		p.Say("one two\n")
		synctest.Wait()
		p.Say("three four\n")
		synctest.Wait()
		readers.Go(read(&late))
		synctest.Wait()
		p.Say("five")
		synctest.Wait()
		p.Out.Failure = errors.New("the disk is full")
		r, err := s.Await(t.Context(), Until{FirstOutput: true})
		if err != nil || r.Output.String() != "one two\nthree four\nfive" || r.Offset != 23 ||
			len(r.Notices) != 1 {
			t.Errorf("%+v, %v", r, err)
		}
		if err := s.SpillErr(); err == nil || !strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("SpillErr = %v", err)
		}
		if total, missing := s.Size(); total != 23 || missing != 13 || s.LineCount() != 3 {
			t.Errorf("%d bytes, %d missing, %d lines", total, missing, s.LineCount())
		}
		if lines, more := s.Lines(2, 3); more || len(lines) != 2 || string(lines[0].Data) != "three four" {
			t.Errorf("lines %+v", lines)
		}
		if found, err := s.Search(t.Context(), regexp.MustCompile("f"), 0); err != nil ||
			len(found.Matches) != 2 {
			t.Errorf("found %+v, %v", found, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for d, err := range s.Deltas(ctx, 23) {
			if !errors.Is(err, context.DeadlineExceeded) || d.Offset != 23 {
				t.Errorf("a reader at the end gets %+v, %v", d, err)
			}
		}
		p.Exit()
		readers.Wait()
		if want := "0+0:one two\n 9+1:hree four\n 19+0:five "; early != want {
			t.Errorf("the early reader got %q, want %q", early, want)
		}
		if want := "9+9:hree four\n 19+0:five "; late != want {
			t.Errorf("the late reader got %q, want %q", late, want)
		}
		if err := s.Close(); err != nil || !p.Out.Closed {
			t.Errorf("Close = %v, the output is closed: %v", err, p.Out.Closed)
		}
	})
}

// TestRunnerClosesOutputs: an Executor that the caller set keeps its files no longer than
// the Runner.
func TestRunnerClosesOutputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, p := scriptedSession(t, &Cmd{})
		p.Exit()
		if err := r.Close(); err != nil || !p.Out.Closed {
			t.Errorf("Close = %v, the output is closed: %v", err, p.Out.Closed)
		}
	})
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
			if err != nil || numErr != nil || seen[id] || sequential && n != firstID+i || i < 3000 &&
				(n < firstID || n > lastID) {
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
		p.Say("output is no use")
		s.Screen()
		s.Lines(0, 0)
		if got := time.Since(s.Info().LastUsed); got != time.Minute {
			t.Errorf("used %v ago", got)
		}
	})
}

// A waitModel is what a session is, as far as waits can tell.
type waitModel struct {
	pending string
	text    string // all output
	matched uint64 // where the next match is looked for
	found   uint64 // the end of the match of this wait
	total   uint64
	last    time.Time // of the last byte
	exited  bool
	waits   executor.InputKind // empty: it does not wait for input
	port    int

	// Of the wait under way.
	u     Until
	begin time.Time
}

// output is the reason that the output decides, if any.
func (m *waitModel) output() Reason {
	n := uint64(len(m.pending))
	if m.u.Match != nil && m.found == 0 {
		if at := m.u.Match.FindStringIndex(m.text[m.matched:]); at != nil {
			m.found = m.matched + uint64(at[1])
		}
	}
	switch {
	case m.exited:
		return ReasonExited
	case m.found > 0:
		return ReasonMatch
	case m.u.Bytes > 0 && n >= m.u.Bytes:
		return ReasonBytes
	case m.u.FirstOutput && n > 0:
		return ReasonOutput
	case m.u.Quiet > 0 && time.Since(m.silent()) >= m.u.Quiet:
		return ReasonQuiet
	}
	return ""
}

// silent is since when there is no output.
func (m *waitModel) silent() time.Time {
	if m.last.Before(m.begin) {
		return m.begin
	}
	return m.last
}

// now is the reason that holds now; empty if the wait goes on.
func (m *waitModel) now() Reason {
	if r := m.output(); r != "" {
		return r
	}
	switch {
	case m.u.Input && m.waits == executor.InputPassword:
		return ReasonPassword
	case m.u.Input && m.waits != "":
		return ReasonInput
	case m.u.Port && m.port != 0:
		return ReasonPort
	}
	if end, ok := m.deadline(); ok && !time.Now().Before(end) {
		return ReasonDeadline
	}
	return ""
}

func (m *waitModel) deadline() (time.Time, bool) {
	length := m.u.For
	if length == 0 {
		length = 10 * time.Second
	}
	return m.begin.Add(length), length > 0
}

// due is how long it takes until time alone ends the wait, and false if it never does.
func (m *waitModel) due() (time.Duration, bool) {
	end, ok := m.deadline()
	if m.u.Quiet > 0 {
		if quiet := m.silent().Add(m.u.Quiet); !ok || quiet.Before(end) {
			end, ok = quiet, true
		}
	}
	return time.Until(end), ok
}

// A script is a fuzzer's choice, byte by byte.
type choices struct{ rest []byte }

func (s *choices) next(n int) int {
	if len(s.rest) == 0 {
		return 0
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return int(b) % n
}

var (
	fuzzTexts    = []string{"a", "b\n", "c", "$ ", strings.Repeat("x", 5000), strings.Repeat("y", 64<<10-1)}
	fuzzPatterns = []string{"", "b", `a\nb|ab`, `(?m)^c`, `\$ $`, "xy", `\Ax`}
	fuzzTimes    = []time.Duration{time.Nanosecond, time.Millisecond, 70 * time.Millisecond, time.Second,
		11 * time.Second}
)

func (s *choices) until() Until {
	u := Until{
		For: []time.Duration{0, -1, 1, 50 * time.Millisecond, time.Second}[s.next(5)],
		// Of these as many as bits are set.
		Input: s.next(2) == 1, FirstOutput: s.next(5) == 1, Port: s.next(3) == 1,
		Bytes: []uint64{0, 0, 1, 3, 70_000}[s.next(5)],
		Quiet: []time.Duration{0, 0, 1, 60 * time.Millisecond, 2 * time.Second}[s.next(5)],
	}
	u.Port = u.Port && !u.Input // when both hold at the beginning, either may be told
	if p := fuzzPatterns[s.next(len(fuzzPatterns))]; p != "" {
		u.Match = regexp.MustCompile(p)
	}
	return u
}

// event lets one thing happen, to the process and to the model.
func (m *waitModel) event(s *choices, p *e2e.ScriptedProcess) {
	switch s.next(8) {
	default:
		text := fuzzTexts[s.next(len(fuzzTexts))]
		if m.exited {
			return
		}
		p.Say(text)
		m.pending, m.text, m.total, m.last, m.waits = m.pending+text, m.text+text, m.total+uint64(len(text)),
			time.Now(), ""
	case 0:
		if s.next(4) != 1 { // seldom, or else there is nothing else
			return
		}
		p.Exit()
		m.exited = true
	case 1, 2:
		kind := []executor.InputKind{executor.InputLine, executor.InputKey, executor.InputPassword,
			executor.InputData}[s.next(4)]
		p.Set(func() { p.Waits = &executor.InputWait{Kind: kind} })
		m.waits = kind
	case 3:
		p.Set(func() { p.Port = 4567 })
		m.port = 4567
	case 4:
		d := fuzzTimes[s.next(len(fuzzTimes))]
		if left, ok := m.due(); ok && left > 0 {
			d = min(d, left)
		}
		<-time.After(d)
	}
	synctest.Wait()
}

// FuzzUntil lets a process do anything while it is waited for, and compares what ends
// each wait, when, and with what output, with what the conditions say.
func FuzzUntil(f *testing.F) {
	for _, seed := range []string{
		"", "\x00\x01\x00\x00\x00\x00\x00\x01\x02\x07\x00\x01\x00",
		"\x03\x00\x00\x00\x00\x03\x00\x03\x05\x00\x04\x02\x04\x02\x05\x01\x04\x04",
		"\x01\x01\x00\x00\x00\x00\x00\x03\x05\x02\x05\x03\x01\x00\x02\x01\x01\x01\x01\x01\x00\x00\x03\x03\x00\x00",
		"\x04\x00\x01\x00\x02\x02\x02\x05\x06\x05\x07\x05\x04\x04\x00\x01\x04\x04\x04\x04\x04\x04",
		"\x01\x01\x01\x01\x04\x04\x05\x09\x05\x05\x05\x05\x05\x05\x05\x04\x04\x04\x04",
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
		"the quick brown fox jumps over the lazy dog, and over it again, and again, until it wakes",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 200 {
			return
		}
		synctest.Test(t, func(t *testing.T) { fuzzUntil(t, &choices{data}) })
	})
}

func fuzzUntil(t *testing.T, s *choices) {
	_, session, p := scriptedSession(t, &Cmd{OpenStdin: true})
	m := &waitModel{}
	for len(s.rest) > 0 {
		m.u, m.begin = Until{}, time.Now()
		for range s.next(3) {
			m.event(s, p) // while nobody waits
		}
		m.u, m.begin, m.found = s.until(), time.Now(), 0
		wait(t, s, session, p, m)
		if t.Failed() {
			return
		}
	}
}

// wait is one wait, which ends by itself or is canceled when the script has no more.
func wait(t *testing.T, s *choices, session *Session, p *e2e.ScriptedProcess, m *waitModel) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var reply *Reply
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		reply, err = session.Await(ctx, m.u)
	}()
	synctest.Wait()
	if left, ok := m.due(); ok && m.now() == "" && left <= time.Nanosecond {
		<-time.After(left)
		synctest.Wait()
	}
	want := m.now()
	for want == "" && len(s.rest) > 0 {
		select {
		case <-done:
			t.Fatalf("it ended with %+v, %v; want nothing yet of %+v with %d bytes", reply, err, m.u,
				len(m.pending))
		default:
		}
		m.event(s, p)
		want = m.now()
	}
	took := time.Since(m.begin)
	if want == "" {
		cancel()
	}
	synctest.Wait()
	select {
	case <-done:
	default:
		t.Fatalf("it goes on; want %q of %+v with %d bytes", want, m.u, len(m.pending))
	}
	if want == "" {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%+v, %v", reply, err)
		}
		return // what came stays
	}
	if err != nil || reply.Reason != want || reply.Elapsed != took || reply.Offset != m.total ||
		string(reply.Output.Bytes()) != m.pending {
		t.Fatalf("got %s, %d bytes up to %d after %v, %v; want %s, %d bytes up to %d after %v",
			reply.Reason, reply.Output.Total, reply.Offset, reply.Elapsed, err, want, len(m.pending),
			m.total, took)
	}
	if in := want == ReasonInput || want == ReasonPassword; in != (reply.Input != nil) || in &&
		reply.Input.Kind != m.waits {
		t.Errorf("%s: %+v", want, reply.Input)
	}
	if (want == ReasonPort) != (reply.Port != 0) || (want == ReasonExited) != (reply.Result != nil) {
		t.Errorf("%s: %+v", want, reply)
	}
	switch {
	case want == ReasonMatch || m.found > 0: // it may have ended in the same moment
		m.matched = m.found
	case m.u.Match == nil || want == ReasonOutput || want == ReasonBytes:
		m.matched = m.total
	}
	if want == ReasonExited {
		m.matched = reply.Next
	}
	if reply.Next != m.matched {
		t.Errorf("%s: the next wait begins at %d, want %d", want, reply.Next, m.matched)
	}
	m.pending = ""
}
