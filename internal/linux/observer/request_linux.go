// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/notify"
	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
	"github.com/sallyport-dev/sallyport/internal/names/protect"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A request is one call of the command that waits for its answer.
type request struct {
	*Supervisor
	l *notify.Listener
	n notify.Notification
	call
	*scratch

	asked    protect.Access // what ask is about
	ask      func(context.Context, protect.Caller) protect.Ruling
	approved []protect.Access // that an Ask has allowed

	waiting *waiting // what Config.Asking is asked about
	settled bool     // nothing is asked about any more

	made  bool // the supervisor has made the call itself,
	fd    int  // with this descriptor for the task; -1 is none
	again int  // how often it was judged again because a name had changed
}

// A scratch is the memory for judging a call. A supervisor of a tree that makes no calls
// has none: sessions may wait for input for days.
type scratch struct {
	first, second [pathMax]byte      // the names of the call
	link          [pathMax]byte      // the text of a symbolic link
	buf           [pathMax + 64]byte // a name for the kernel
	statx         unix.Statx_t
}

// later is the errno of a call that another goroutine answers. The kernel has no such
// number.
const later = syscall.Errno(1 << 20)

// maxAsks bounds how many calls of one tree wait for an [protect.Ruling.Ask]. Further ones are
// denied.
const maxAsks = 64

// valid reports whether the task still waits for its answer, so that what was read from
// it before was its own.
func (r *request) valid() bool {
	return r.l.Valid(r.n.ID)
}

// answer sends an errno; zero means "continue".
func (r *request) answer(errno syscall.Errno) error {
	switch {
	case errno == 0 && r.made:
		return r.deliver()
	case errno == 0:
		return r.l.Send(&notify.Response{ID: r.n.ID, Flags: notify.Continue})
	}
	return r.l.Send(&notify.Response{ID: r.n.ID, Errno: -int32(errno)})
}

// judge decides about the call. The result is zero to let it go on, the errno of a
// denial, or later. The caller holds judging.
func (r *request) judge() syscall.Errno {
	r.made, r.fd, r.again = false, -1, 0
	if errno := r.judgeRefused(); errno != 0 || r.made {
		return errno
	}
	r.call = decode(&r.n)
	if len(r.bindings) > 0 && r.kind != kindListen {
		r.keepBound(false)
	}
	switch r.kind {
	case kindNone:
		if layoutOf(r.n.Nr).kind == kindNone {
			return unix.ENOSYS // not one of those that go on
		}
		return 0
	case kindChdir:
		r.forget()
		return 0
	case kindConnect:
		return r.judgeConnect()
	case kindBind:
		return r.judgeBind()
	case kindListen:
		return r.judgeListen()
	case kindSendTo, kindSendMsg, kindSendMany:
		return r.judgeSend()
	case kindPeer:
		return r.judgePeer()
	case kindPass:
		r.asks()
		return 0
	case kindRename, kindLink:
		return r.judgeTwo()
	}
	judge := r.judgePath
	if r.kind == kindTouch {
		judge = r.judgeTouch
	}
	switch errno := judge(); {
	case errno != 0:
		return errno
	case r.chown:
		return r.judgeOwner()
	case r.chmod && r.changesModes():
		return r.changeMode()
	}
	return 0
}

// rule asks the judge about an access.
func (r *request) rule(op sandbox.Op, path string, creates bool) syscall.Errno {
	a := protect.Access{Op: op, Path: path, Creates: creates, Special: r.special, Removes: r.removes,
		Moves: r.moves, Thread: int(r.n.PID)}
	if len(r.approved) > 0 && slices.Contains(r.approved, a) {
		return 0
	}
	ruling := r.cfg.Judge.Rule(a)
	if ruling.Ask != nil {
		r.asked, r.ask = a, ruling.Ask
		return later
	}
	return ruling.Answer()
}

// deny notes a denial and returns its errno, or 0 when the task has ended, because then
// another task's memory may have been read. It does nothing about zero and later.
func (r *request) deny(d sandbox.Denial, errno syscall.Errno) syscall.Errno {
	switch {
	case errno == 0 || errno == later:
		return errno
	case !r.valid():
		return 0
	}
	d.Errno = unix.ErrnoName(errno)
	r.mu.Lock()
	added := r.report.Add(d)
	if added != nil {
		by := r.caller()
		added.PID, added.Program, added.Name = by.PID, by.Program, by.Name
		d = *added
	}
	r.mu.Unlock()
	if added != nil && r.cfg.OnDenied != nil {
		r.cfg.OnDenied(d)
	}
	return errno
}

// judgeRefused answers a call that the filter refuses; zero for others, and for the set-gid bit of
// a directory. Nothing else that a task can change is looked at.
func (r *request) judgeRefused() syscall.Errno {
	if r.cfg.Refusals == nil {
		return 0
	}
	refused, ok := r.cfg.Refusals.Refused(r.n.Arch, uint32(r.n.Nr), r.n.Args)
	if !ok {
		return 0
	}
	if r.call = decode(&r.n); r.chmod && r.mode&setIDs == unix.S_ISGID {
		if errno, is := r.judgeMode(true); is {
			return errno
		}
	}
	errno := syscall.Errno(refused.Errno)
	d := sandbox.Denial{Access: sandbox.Access{Op: sandbox.Syscall, Call: refused.Call}, Rule: ruleFilter,
		NoGrant: refused.Openings == nil}
	if r.n.Nr == unix.SYS_SOCKET && r.cfg.NoSockets && r.inetSocket(&d.Access) {
		d.Rule, d.NoGrant = "", false
	}
	var grants []string
	for _, name := range refused.Openings {
		grants = append(grants, sandbox.Grant{Opening: name}.String())
	}
	d.Grant = strings.Join(grants, " ")
	_ = r.deny(d, errno) // refused also when the task has ended
	return errno
}

// ruleFilter is the rule of calls that the filter refuses, in the words of
// [sandbox.Policy.Explain].
const ruleFilter = "system call filter"

// denyFile is deny for an access to a path.
func (r *request) denyFile(op sandbox.Op, path string, errno syscall.Errno) syscall.Errno {
	return r.deny(sandbox.Denial{Access: sandbox.Access{Op: op, Path: path}}, errno)
}

// answerLater has a goroutine get the ruling of r.ask, judge again, and answer, while
// other calls go on. Where too many wait it returns EACCES.
func (r *request) answerLater() syscall.Errno {
	select {
	case r.asking <- struct{}{}:
	default:
		if r.waiting != nil {
			return r.unanswered()
		}
		return r.denyFile(r.asked.Op, r.asked.Path, unix.EACCES)
	}
	own := *r
	own.scratch = new(scratch)
	r.answers.Go(func() {
		defer func() { <-own.asking }()
		var errno syscall.Errno
		if own.waiting != nil {
			errno = own.await()
		} else {
			errno = own.settle(own.judgeAgain)
		}
		if err := own.answer(errno); err != nil {
			own.fail(err)
		}
	})
	return later
}

// settle calls r.ask and judges again until each access of the call has a ruling. The
// context of the calls ends with the task or the supervisor, which denies.
func (r *request) settle(judge func() syscall.Errno) syscall.Errno {
	ctx, cancel := r.untilEnd()
	defer cancel()
	for range maxAccesses {
		ruling := r.ask(ctx, r.caller())
		if ctx.Err() != nil {
			ruling = protect.Ruling{}
		}
		if errno := ruling.Answer(); errno != 0 {
			return r.denyAsked(errno)
		}
		r.approved = append(r.approved, r.asked)
		if errno := judge(); errno != later {
			return errno
		}
	}
	return r.denyAsked(unix.EACCES)
}

// untilEnd returns a context that ends with the call of the task.
func (r *request) untilEnd() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.ctx)
	r.answers.Go(func() {
		t := time.NewTicker(tasks.Interval)
		defer t.Stop()
		for r.valid() {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
		}
		cancel()
	})
	return ctx, cancel
}

// judgeAgain is judge in a goroutine of its own.
func (r *request) judgeAgain() syscall.Errno {
	r.judging.Lock()
	defer r.judging.Unlock()
	return r.judge()
}

// denyAsked notes the denial of what r.ask was about.
func (r *request) denyAsked(errno syscall.Errno) syscall.Errno {
	if r.asked.Op == sandbox.Connect {
		return r.denySocket(sandbox.Connect, r.asked.Path, "unix", errno)
	}
	return r.denyFile(r.asked.Op, r.asked.Path, errno)
}

// maxAccesses bounds how many rulings one call waits for: a rename needs two, and a task
// can change its arguments meanwhile.
const maxAccesses = 8
