// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
)

// fakePump is a pump whose bytes come when the test says so.
type fakePump struct {
	delivery
	mu       sync.Mutex
	at       time.Time
	end      chan struct{}
	finished bool
}

func newFakePump() *fakePump { return &fakePump{end: make(chan struct{})} }

func (f *fakePump) start()                {}
func (f *fakePump) eof() <-chan struct{}  { return f.end }
func (f *fakePump) close()                {}
func (f *fakePump) next() <-chan struct{} { return nil }
func (f *fakePump) commandEnded()         {}

func (f *fakePump) closeStream(executor.Stream) {}
func (f *fakePump) delivered() bool             { return true }

func (f *fakePump) last() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at
}

func (f *fakePump) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.finished = true
}

// beat reads a byte every step, times times.
func (f *fakePump) beat(step time.Duration, times int) {
	for range times {
		<-time.After(step)
		f.mu.Lock()
		f.at = time.Now()
		f.mu.Unlock()
	}
}

func TestDrain(t *testing.T) {
	stopped := make(chan struct{})
	close(stopped)
	tests := []struct {
		name  string
		do    func(f *fakePump)
		want  time.Duration
		eof   bool
		hurry chan struct{}
		late  time.Duration // when it is stopped
	}{
		{name: "ended already", do: func(f *fakePump) { close(f.end) }, want: 0, eof: true},
		{name: "row17 row35 held and silent", do: func(*fakePump) {}, want: 250 * time.Millisecond},
		{name: "ends soon", do: func(f *fakePump) { go func() { <-time.After(100 * time.Millisecond); close(f.end) }() },
			want: 100 * time.Millisecond, eof: true},
		{name: "ends after a few bytes", do: func(f *fakePump) { go func() { f.beat(200*time.Millisecond, 3); close(f.end) }() },
			want: 600 * time.Millisecond, eof: true},
		{name: "silent after a few bytes", do: func(f *fakePump) { go f.beat(200*time.Millisecond, 3) },
			want: 850 * time.Millisecond},
		{name: "never silent", do: func(f *fakePump) { go f.beat(100*time.Millisecond, 30) }, want: 2 * time.Second},
		{name: "never silent, and stopped", do: func(f *fakePump) { go f.beat(100*time.Millisecond, 30) }, want: 500 * time.Millisecond, hurry: stopped},
		{name: "its reader is slow", do: func(f *fakePump) {
			f.begin()
			time.AfterFunc(10*time.Second+time.Millisecond, f.over)
		}, want: 10*time.Second + 251*time.Millisecond},
		{name: "its reader is slow, and there is more", do: func(f *fakePump) {
			f.begin()
			time.AfterFunc(10*time.Second, func() { f.over(); f.beat(100*time.Millisecond, 3) })
		}, want: 10*time.Second + 550*time.Millisecond},
		{name: "its reader is slow, and the streams end", do: func(f *fakePump) {
			f.begin()
			time.AfterFunc(10*time.Second, func() { close(f.end) })
		}, want: 10 * time.Second, eof: true},
		{name: "its reader never returns, and it is stopped", do: func(f *fakePump) { f.begin() }, want: 250 * time.Millisecond, hurry: stopped},
		{name: "its reader never returns, and it is stopped late", do: func(f *fakePump) { f.begin() }, want: 10*time.Second + 250*time.Millisecond, late: 10 * time.Second},
		{name: "the last byte was long ago", do: func(f *fakePump) { f.at = time.Now().Add(-time.Hour) }, want: 250 * time.Millisecond},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakePump()
				test.do(f)
				start := time.Now()
				if test.late > 0 {
					test.hurry = make(chan struct{})
					time.AfterFunc(test.late, func() { close(test.hurry) })
				}
				eof := drain(f, test.hurry)
				if took := time.Since(start); took != test.want || eof != test.eof {
					t.Errorf("drain took %v and gave %v, want %v and %v", took, eof, test.want, test.eof)
				}
				<-time.After(time.Hour) // let the beats end
			})
		})
	}
}

// fakeChild is a command that ends when the test says so.
type fakeChild struct {
	mu       sync.Mutex
	log      []string
	begin    time.Time
	termEnds bool // ends on SIGTERM as a stopped command does: when it is continued
	termed   bool // got SIGTERM
	code     int
	unknown  bool // its end is not known
	left     []executor.Survivor
	gone     chan struct{}
	once     sync.Once
	signal   int
	stuck    chan struct{} // its tree ends when this is closed; nil for at once
}

func (c *fakeChild) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, what+" at "+time.Since(c.begin).String())
}

func (c *fakeChild) end(signal int) {
	c.once.Do(func() { c.signal = signal; close(c.gone) })
}

func (c *fakeChild) Wait() (code, signal int, err error) {
	<-c.gone
	if c.unknown {
		return -1, 0, nil
	}
	if c.signal != 0 {
		return 128 + c.signal, c.signal, nil
	}
	return c.code, 0, nil
}

func (c *fakeChild) WaitAll() error {
	if c.stuck != nil {
		<-c.stuck
	}
	return nil
}

func (c *fakeChild) Signal(sig syscall.Signal, tree bool) error {
	where := " group"
	if tree {
		where = " tree"
	}
	c.note(sig.String() + where)
	// Were it to end on SIGTERM at once, what is left would be killed while it is continued,
	// in no order.
	if c.termed && c.termEnds { // this is SIGCONT, which not every system has
		c.end(int(syscall.SIGTERM))
	}
	c.termed = c.termed || sig == syscall.SIGTERM
	return nil
}

func (c *fakeChild) Kill() error {
	c.note("kill")
	c.end(int(syscall.SIGKILL))
	return nil
}

func (c *fakeChild) Survivors() []executor.Survivor { return c.left }
func (c *fakeChild) Terminal() *os.File             { return nil }
func (c *fakeChild) Close(*executor.Exit) error     { c.note("close"); return nil }

// A stopCase is a command, what is done to it after a minute, and what its Child is told.
type stopCase struct {
	name  string
	child fakeChild
	grace time.Duration
	stop  bool
	held  bool // a process holds the streams
	want  []string
	exit  executor.Exit
}

func stopCases() []stopCase {
	return []stopCase{
		{
			name: "exits", child: fakeChild{code: 3},
			want: []string{"kill at 1m0s", "close at 1m0s"}, exit: executor.Exit{Code: 3},
		},
		{
			name: "ends on SIGTERM", child: fakeChild{termEnds: true}, stop: true, grace: defaultGrace,
			want: []string{"terminated tree at 1m0s", "continued tree at 1m0s", "kill at 1m0s",
				"close at 1m0s"},
			exit: executor.Exit{Code: 143, Signal: 15, Stopped: true, LastSignal: 15},
		},
		{
			name: "ignores SIGTERM", stop: true, grace: defaultGrace,
			want: []string{"terminated tree at 1m0s", "continued tree at 1m0s", "kill at 1m2s",
				"kill at 1m2s", "close at 1m2s"},
			exit: executor.Exit{Code: 137, Signal: 9, Stopped: true, LastSignal: 9},
		},
		{
			name: "no grace", child: fakeChild{termEnds: true}, stop: true, grace: -1,
			want: []string{"kill at 1m0s", "kill at 1m0s", "close at 1m0s"},
			exit: executor.Exit{Code: 137, Signal: 9, Stopped: true, LastSignal: 9},
		},
		{
			name: "an end that is not known", child: fakeChild{unknown: true}, stop: true, grace: time.Second,
			want: []string{"terminated tree at 1m0s", "continued tree at 1m0s", "kill at 1m1s",
				"kill at 1m1s", "close at 1m1s"},
			exit: executor.Exit{Code: -1, Stopped: true, LastSignal: 9},
		},
		{
			name: "a survivor", child: fakeChild{left: []executor.Survivor{{PID: 7,
				Name: "sleep"}}}, held: true,
			want: []string{"kill at 1m0.25s", "close at 1m0.25s"},
			exit: executor.Exit{StreamsLeftOpen: true,
				Survivors: []executor.Survivor{{PID: 7, Name: "sleep"}}},
		},
		{
			name: "row38 a signal 64 of its own", child: fakeChild{signal: 64},
			want: []string{"kill at 1m0s", "close at 1m0s"}, exit: executor.Exit{Code: 192, Signal: 64},
		},
	}
}

func TestStop(t *testing.T) {
	tests := stopCases()
	for i := range tests {
		test := &tests[i]
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f := &test.child, newFakePump()
				c.begin, c.gone = time.Now(), make(chan struct{})
				if !test.held {
					close(f.end)
				}
				p := newProcess(Config{Grace: test.grace}, c, f, nil)
				go p.follow()
				<-time.After(time.Minute)
				if test.stop {
					p.Stop()
					p.Stop() // counts once
				} else {
					c.end(c.signal)
				}
				x, err := p.Wait()
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(c.log, test.want) {
					t.Errorf("the child was told %q, want %q", c.log, test.want)
				}
				if x.Code != test.exit.Code || x.Signal != test.exit.Signal ||
					x.Stopped != test.exit.Stopped ||
					x.LastSignal != test.exit.LastSignal || x.StreamsLeftOpen != test.exit.StreamsLeftOpen ||
					!slices.Equal(x.Survivors, test.exit.Survivors) {
					t.Errorf("exit %+v, want %+v", x, test.exit)
				}
				if !f.finished {
					t.Error("the pump was not finished")
				}
				told := len(c.log)
				p.Stop()
				if err := p.Signal(int(syscall.SIGINT)); !errors.Is(err, os.ErrProcessDone) {
					t.Errorf("a signal after the end gave %v, want os.ErrProcessDone", err)
				}
				if len(c.log) != told {
					t.Errorf("after its end the child was told %q", c.log[told:])
				}
			})
		})
	}
}

// TestEndBounded: a command that was stopped is over soon after the grace, also when its
// output never ends and its tree does not.
func TestEndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakePump()
		go f.beat(100*time.Millisecond, 100) // a descendant prints on
		c := &fakeChild{begin: time.Now(), gone: make(chan struct{}), stuck: make(chan struct{})}
		p := newProcess(Config{Grace: time.Second}, c, f, nil)
		go p.follow()
		p.Stop()
		<-time.After(500 * time.Millisecond)
		c.end(0)
		_, err := p.Wait()
		if took := time.Since(c.begin); took > 2*time.Second {
			t.Errorf("it is over after %v", took)
		}
		if !errors.Is(err, ErrStillEnding) {
			t.Errorf("error %v, want that the tree has not ended", err)
		}
		close(c.stuck)
		<-time.After(time.Hour) // let the beats end
	})
}

// TestEndWaits: the end of a tree that nothing has stopped is waited for, until something
// does.
func TestEndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakePump()
		close(f.end)
		c := &fakeChild{begin: time.Now(), gone: make(chan struct{}), stuck: make(chan struct{})}
		p := newProcess(Config{}, c, f, nil)
		go p.follow()
		c.end(0)
		<-time.After(time.Hour)
		p.Stop()
		_, err := p.Wait()
		if took := time.Since(c.begin); took < time.Hour || took > time.Hour+2*time.Second {
			t.Errorf("it is over after %v", took)
		}
		if !errors.Is(err, ErrStillEnding) || p.exit.Stopped {
			t.Errorf("error %v, stopped %v", err, p.exit.Stopped)
		}
		close(c.stuck)
	})
}
