// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/notify"
	"github.com/sallyport-dev/sallyport/internal/linux/perform"
	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
)

// A Supervisor answers the calls of one process tree. It has one goroutine at a time,
// and one more for each call that waits for a connection or a ruling.
type Supervisor struct {
	cfg    Config
	naive  func(*connecting) syscall.Errno // judges a connect that goes on then; for tests
	proc   int                             // /proc
	groups []int
	chowns bool            // this process may give files to other users
	ctx    context.Context // ends with the supervision
	cancel context.CancelFunc
	began  time.Time     // as fileTime
	done   chan struct{} // closed when the goroutines have ended

	answers    sync.WaitGroup // goroutines that answer calls
	asking     chan struct{}  // holds a token for each call that waits for a ruling
	foreign    chan struct{}  // holds a token for each duplicate of a socket of the command
	connecting chan struct{}  // holds a token for each socket that is being connected
	sender     *tasks.Sender
	voice      voice
	clients    tasks.Clients
	asked      atomic.Bool // a task wants to know who sends to one of its sockets

	performing  sync.Mutex // held while a call is made that was asked about
	judging     sync.Mutex // guards the judge and what follows
	diag        int        // asks the kernel about sockets of the command; -1 before it is known
	root        int        // the tasks' root directory; -1 before it is known
	directories map[directoryID]directory
	workdirs    [4]workdir         // of the tasks that called last
	lastWorkdir int                // the one that was used last
	moved       time.Time          // when a task last changed its working directory
	shown       map[uint64]mounted // by unique id
	listening   []listening
	bindings    []binding       // the latest
	pending     atomic.Int32    // how many they are
	ports       map[uint16]bool // that were told to Config.OnListen
	shared      map[uint64]bool // mounts of Config.Shared by id; nil before they are known
	own         map[fileID]bool // files without names that others gave them

	calls     atomic.Uint64
	ownership atomic.Int64 // changes that were ignored
	refused   atomic.Int32 // connections to the command's own loopback interface
	renamed   atomic.Bool  // a directory, perhaps

	mu       sync.Mutex       // guards what follows
	listener *notify.Listener // nil before it came
	report   notify.Denials
	linked   notify.HardLinks
	err      error
	onFailed func()
}

// maxConnects is how many sockets of one tree are connected at once; more wait. A socket
// whose peer does not accept holds a thread.
const maxConnects = 64

// maxForeign bounds how many sockets of one tree wait for that or are being closed: each of
// them is a descriptor of this process, which the command must not use up.
const maxForeign = 256

// closeTime is how long Close waits for the goroutines.
const closeTime = 100 * time.Millisecond

// Serve starts to answer as soon as the launch has sent its listener. It returns at once.
// The Inbox cannot be used again.
func Serve(in *notify.Inbox, cfg Config) (*Supervisor, error) {
	s, err := newSupervisor(cfg)
	if err != nil {
		in.Close()
		return nil, err
	}
	go s.run(in)
	return s, nil
}

func newSupervisor(cfg Config) (*Supervisor, error) {
	proc, err := unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("observer: /proc: %w", err)
	}
	s := &Supervisor{
		cfg: cfg, proc: proc, began: fileTime(), chowns: perform.HasRight(unix.CAP_CHOWN),
		sender: tasks.NewSender(), root: -1, diag: -1, done: make(chan struct{}),
		asking: make(chan struct{}, maxAsks), foreign: make(chan struct{}, maxForeign),
		connecting: make(chan struct{}, maxConnects),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.join()
	s.groups, _ = os.Getgroups() // with fewer rights than there are, at worst EACCES is reported for EROFS
	return s, nil
}

// run answers until no task is left. Calls are served in another goroutine, whose stack
// grows and would not shrink soon: a session may wait for input for days.
func (s *Supervisor) run(in *notify.Inbox) {
	defer close(s.done)
	defer s.closeFiles()
	l, err := in.Take()
	if err != nil {
		s.fail(err) // if the launch has failed, it reports why
		return
	}
	s.mu.Lock()
	s.listener = l
	s.mu.Unlock()
	idle := make(chan bool)
	for s.ctx.Err() == nil {
		go func() { idle <- s.serve(l) }()
		if !<-idle {
			break
		}
		s.fail(l.Wait())
	}
	s.cancel()
	s.answers.Wait()
	l.Close() // a task that still calls gets ENOSYS from here on, instead of waiting forever
}

// serve answers calls and returns true when there are none for a while, false when no
// more can come.
func (s *Supervisor) serve(l *notify.Listener) (idle bool) {
	r := request{Supervisor: s, l: l}
	for s.ctx.Err() == nil {
		events, err := l.Poll()
		if err == nil && events&unix.POLLIN == 0 {
			return events == 0
		}
		got := false
		if err == nil {
			got, err = l.Receive(&r.n)
		}
		if err == nil && got {
			s.calls.Add(1)
			err = r.handle()
		}
		if err != nil {
			s.fail(err)
			return false
		}
	}
	return false
}

// handle judges a call and answers it, or has it answered.
func (r *request) handle() error {
	if r.scratch == nil {
		r.scratch = new(scratch)
	}
	r.ask, r.waiting = nil, nil
	r.judging.Lock()
	errno := r.judge()
	r.judging.Unlock()
	if errno == later && (r.ask != nil || r.waiting != nil) {
		errno = r.answerLater()
	}
	if errno == later {
		return nil
	}
	return r.answer(errno)
}

// fail ends the supervision because of an error. The first one counts, and none after
// Close.
func (s *Supervisor) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil || s.err != nil || s.ctx.Err() != nil {
		return
	}
	s.err = err
	s.cancel()
	if s.onFailed != nil {
		go s.onFailed()
	}
}

// OnFailed has f called in a goroutine of its own when the supervision ends although the
// command has not: every judged call fails from then on. The f of an earlier call is not
// called any more.
func (s *Supervisor) OnFailed(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onFailed = f
	if s.err != nil {
		go f()
	}
}

// Close ends the supervision, whether or not the launch succeeded, and returns what was
// seen. Calls that wait for a ruling are denied; calls that come later fail with ENOSYS.
// It blocks until the goroutines have ended, for closeTime at most: the command may have
// made a call of theirs wait. They free what they hold when they end. Close may be called
// once.
func (s *Supervisor) Close() Report {
	s.cancel()
	s.mu.Lock()
	if s.listener != nil {
		s.listener.Stop()
	}
	s.mu.Unlock()
	late := time.NewTimer(closeTime)
	defer late.Stop()
	select {
	case <-s.done:
	case <-late.C:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return Report{Denials: slices.Clone(s.report.List), Omitted: s.report.Omitted,
		HardLinks: slices.Clone(s.linked.List), HardLinksOmitted: s.linked.Omitted,
		OwnershipIgnored: int(s.ownership.Load()),
		Renamed:          s.renamed.Load(), Calls: s.calls.Load(), Err: s.err}
}

func (s *Supervisor) closeFiles() {
	s.forget()
	s.leave()
	for _, l := range s.listening {
		s.forgetSocket(l)
	}
	for _, b := range s.bindings {
		unix.Close(b.pidfd)
	}
	unix.Close(s.proc)
	if s.diag >= 0 {
		unix.Close(s.diag)
	}
	if s.voice.how.Load() == speakInside {
		unix.Close(s.voice.user)
		unix.Close(s.voice.pid)
	}
	if s.root >= 0 {
		unix.Close(s.root)
	}
}
