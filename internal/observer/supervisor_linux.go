// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Supervisor answers the calls of one tree. It has one goroutine at a time,
// and one more for each socket that is being connected.
type Supervisor struct {
	cfg      Config
	naive    bool
	proc     int // /proc
	root     int // the tasks' root folder, once it is known; -1
	*scratch     // guarded by judging
	folders  map[folderID]known
	where    [4]whereabouts  // of the tasks that asked last
	lately   int             // the one that was used last
	moved    time.Time       // when one last changed
	mounts   map[uint64]bool // by id: read-only
	groups   []int

	done   chan struct{} // closed when the goroutine has ended
	failed chan struct{} // closed when it ended too early

	mu        sync.Mutex
	listener  *listener // nil before it came
	closed    bool
	report    denials
	calls     uint64
	err       error
	then      func()         // called with err; nil for nobody
	judging   sync.Mutex     // the judge and the scratch, of goroutines that connect
	connects  sync.WaitGroup // those goroutines
	connected chan struct{}  // holds a token for each of them that is in the kernel
	waiting   atomic.Int32   // how many there are
	over      chan struct{}  // closed by Close
}

// A scratch is what judging needs memory for. A supervisor of a tree that asks nothing
// has none: sessions may wait for input for days.
type scratch struct {
	// name and name2 hold the names of the call that is being judged, text what the
	// kernel says about links.
	name, name2, text [pathMax]byte
	way               [pathMax + 64]byte // a name for the kernel
	looked            unix.Statx_t
}

// beginJudging waits for the turn to judge, and sees to the memory for it.
func (s *Supervisor) beginJudging() {
	s.judging.Lock()
	if s.scratch == nil {
		s.scratch = new(scratch)
	}
}

// rest gives that memory up until the next call.
func (s *Supervisor) rest() {
	s.judging.Lock()
	defer s.judging.Unlock()
	s.scratch = nil
}

// maxConnects is how many sockets of one tree are connected at once; more wait. A
// socket whose peer does not accept holds a thread.
const maxConnects = 64

// maxWaiting bounds how many sockets of one tree wait for that: each of them is a
// descriptor of ours, which the command must not use up.
const maxWaiting = 256

// Serve begins to answer as soon as the launch has sent its listener. It returns at
// once, and closes the Inbox when it has been used.
func (in *Inbox) Serve(cfg Config) (*Supervisor, error) { return in.serve(cfg, false) }

// serve is Serve. Naive lets connects go on after they were judged, for tests that show
// why that would not do.
func (in *Inbox) serve(cfg Config, naive bool) (*Supervisor, error) {
	proc, err := unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		in.ours.Close()
		return nil, fmt.Errorf("observer: /proc: %w", err)
	}
	s := &Supervisor{
		cfg: cfg, naive: naive, proc: proc, root: -1, done: make(chan struct{}), failed: make(chan struct{}),
		connected: make(chan struct{}, maxConnects), over: make(chan struct{}),
	}
	if s.groups, err = os.Getgroups(); err != nil {
		s.groups = nil // fewer rights than there are: at worst EACCES is said for EROFS
	}
	go s.run(in)
	return s, nil
}

// run is the goroutine, to begin with.
func (s *Supervisor) run(in *Inbox) {
	fd, err := in.take()
	if err != nil {
		close(s.done)
		return // no launch: there is nothing to watch, and the launch has told why
	}
	l := newListener(fd)
	s.mu.Lock()
	s.listener = l
	closed := s.closed
	s.mu.Unlock()
	if closed {
		s.leave(l)
		return
	}
	s.attend(l)
}

// attend answers until nobody is left who could ask, or until nobody asks. Then another
// goroutine waits: the stack of this one has grown by judging and would never shrink
// again, and a session may wait for input for days.
func (s *Supervisor) attend(l *listener) {
	if !s.serve(l) {
		s.leave(l)
		return
	}
	s.rest()
	go func() {
		more, err := l.sleep()
		if err != nil || !more {
			s.fail(err)
			s.leave(l)
			return
		}
		s.attend(l)
	}()
}

// leave is the end of the goroutines.
func (s *Supervisor) leave(l *listener) {
	// Whoever still asks gets ENOSYS from here on, instead of waiting for ever.
	s.connects.Wait()
	unix.Close(l.fd)
	close(s.done)
}

// serve answers as long as somebody asks. It reports whether somebody may ask later.
func (s *Supervisor) serve(l *listener) (calm bool) {
	var n notification
	for {
		what, err := l.wait()
		if err != nil || what == turnOver {
			s.fail(err)
			return false
		}
		if what == turnCalm {
			return true
		}
		got, err := l.receive(&n)
		if err != nil {
			s.fail(err)
			return false
		}
		if !got {
			continue
		}
		s.calls++
		s.beginJudging()
		errno, pending := s.judge(l, &n)
		s.judging.Unlock()
		if pending {
			continue
		}
		if err := l.send(answer(&n, errno)); err != nil {
			s.fail(err)
			return false
		}
	}
}

// answer is "continue" for zero.
func answer(n *notification, errno syscall.Errno) *response {
	if errno == 0 {
		return &response{id: n.id, flags: flagContinue}
	}
	return &response{id: n.id, errno: -int32(errno)}
}

func (s *Supervisor) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil || s.err != nil || s.closed {
		return
	}
	s.err = err
	close(s.failed)
	if s.then != nil {
		go s.then()
	}
}

// OnFailed has f called in a goroutine of its own when [Supervisor.Failed] is closed,
// at once when it is already. The f of an earlier call is not called any more.
func (s *Supervisor) OnFailed(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.then = f
	if s.err != nil {
		go f()
	}
}

// Failed is closed when the supervision has ended although the command has not: every
// call that is judged fails from then on. [Report].Err says why.
func (s *Supervisor) Failed() <-chan struct{} { return s.failed }

// Close ends the supervision, whether or not the launch went well, and returns what
// was seen. The tree must be dead: calls that still come fail with ENOSYS. It blocks
// until the goroutines have ended, and may be called once.
func (s *Supervisor) Close() Report {
	s.mu.Lock()
	s.closed = true
	l := s.listener
	s.mu.Unlock()
	close(s.over)
	if l != nil {
		l.stop()
	}
	<-s.done
	s.forget()
	unix.Close(s.proc)
	if s.root >= 0 {
		unix.Close(s.root)
	}
	return Report{Denials: s.report.list, Omitted: s.report.omitted, Calls: s.calls, Err: s.err}
}

// judge decides about one call: zero lets it go on. Pending says that the answer
// comes from elsewhere, later.
func (s *Supervisor) judge(l *listener, n *notification) (errno syscall.Errno, pending bool) {
	c, known := s.decode(n)
	if !known {
		return 0, false
	}
	switch c.kind {
	case kindChdir:
		s.forget()
		return 0, false
	case kindConnect:
		return s.judgeConnect(l, n)
	case kindBind:
		return s.judgeBind(l, n), false
	case kindSendTo, kindSendMsg, kindSendMany:
		return s.judgeSend(l, n, c.kind), false
	case kindSocket:
		return s.judgeSocket(l, n), false
	case kindRename, kindLink:
		return s.judgeTwo(l, n, &c), false
	case kindTouch:
		return s.judgeTouch(l, n, &c), false
	}
	name, err := s.path(n.pid, c.path, &s.name)
	if err != 0 {
		return 0, false // the kernel says so, too
	}
	if len(name) == 0 {
		if c.bare {
			return s.judgeTouch(l, n, &c), false
		}
		return 0, false
	}
	switch c.kind {
	case kindOpen:
		return s.judgeOpen(l, n, &c, name), false
	case kindExec:
		return s.judgeRead(l, n, &c, name, sandbox.Exec), false
	case kindMake:
		return s.judgeMake(l, n, &c, name), false
	case kindUnlink, kindRmdir:
		return s.judgeRemove(l, n, &c, name), false
	case kindChange:
		return s.judgeChange(l, n, &c, name), false
	}
	return 0, false
}

// deny notes a refusal and returns its errno, or 0 when the task is gone, because
// then what was read may have been somebody else's.
func (s *Supervisor) deny(l *listener, n *notification, a sandbox.Access, errno syscall.Errno) syscall.Errno {
	return s.denyAs(l, n, sandbox.Denial{Access: a}, errno)
}

func (s *Supervisor) denyAs(l *listener, n *notification, d sandbox.Denial, errno syscall.Errno) syscall.Errno {
	if !l.valid(n.id) {
		return 0
	}
	s.note(n, d, errno)
	return errno
}

// note writes a refusal down.
func (s *Supervisor) note(n *notification, d sandbox.Denial, errno syscall.Errno) {
	d.Errno = unix.ErrnoName(errno)
	s.mu.Lock()
	counted := s.report.count(d.Access, d.Errno)
	s.mu.Unlock()
	if counted {
		return
	}
	if pid, err := strconv.Atoi(field(s.status(n.pid), "Tgid:")); err == nil {
		d.PID = pid
	}
	d.Program = s.programOf(n.pid)
	s.mu.Lock()
	s.report.add(d)
	s.mu.Unlock()
}

// programOf names the file that a task runs.
func (s *Supervisor) programOf(tid uint32) string {
	var buf [pathMax]byte
	m, err := unix.Readlinkat(s.proc, strconv.FormatUint(uint64(tid), 10)+"/exe", buf[:])
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(buf[:m]), " (deleted)")
}

// file is an access to a path.
func file(op sandbox.Op, path string) sandbox.Access { return sandbox.Access{Op: op, Path: path} }

func uint64At(b []byte, i int) uint64 { return binary.NativeEndian.Uint64(b[i:]) }
