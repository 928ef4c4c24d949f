// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"context"
	"path"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/perform"
	"github.com/sallyport-dev/sallyport/internal/linux/seccomp"
	"github.com/sallyport-dev/sallyport/internal/names/protect"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A call that a wall denies, and that a grant could open, waits for an answer where there is an [Asking].
// This file alone decides which calls do. What is made of them after a yes was copied before the question:
// the memory of the task is not read again, and its names are not resolved again. See package perform.

// An Asking decides about accesses that a wall denies.
type Asking struct {
	// Opens reports whether a grant may open a path to be written to, with tree also all that is below
	// it, which is moved or removed. It is called by one goroutine at a time and must not block.
	Opens func(path string, tree bool) bool
	// Ask is [executor.Spec.AskAccess].
	Ask func(ctx context.Context, q executor.AccessQuestion) bool
}

// waiting is a call that waits for the answer to a question.
type waiting struct {
	question executor.AccessQuestion
	call     perform.Call
}

// waits has a call on one path wait that a wall denies with errno, and reports whether it does.
func (r *request) waits(p *place, at string, errno syscall.Errno) bool {
	if r.cfg.Asking == nil || r.settled || r.kind == kindRename || r.kind == kindLink {
		return false
	}
	wall := unix.EROFS
	if !r.hasMounts() {
		wall = unix.EACCES
	}
	if errno != wall || !r.opens(p, at, r.kind == kindRmdir) {
		return false
	}
	c := perform.Call{At: placed(p, at)}
	return r.copyTo(&c, p) && r.ready(&c, at)
}

// waitsForTwo is waits for a rename or a link. A directory is not moved between what the command may
// write to and what it may not: what is in it is judged by its names, which change with it.
func (r *request) waitsForTwo(old, next *place) bool {
	const flags = unix.RENAME_NOREPLACE | unix.RENAME_EXCHANGE
	if r.cfg.Asking == nil || r.settled {
		return false
	}
	defer func() { r.special, r.moves = false, false }()
	c := perform.Call{Op: perform.Link}
	oldWall, newWall := r.fileWall(old) != 0, r.directoryWall(next) != 0
	if r.kind == kindRename {
		c.Op, c.Flags = perform.Rename, int(r.flags)
		oldWall = r.directoryWall(old) != 0
	}
	trees := old.is(unix.S_IFDIR) || next.exists && next.is(unix.S_IFDIR)
	switch {
	case !oldWall && !newWall,
		c.Op == perform.Link && (next.exists || trees || r.oddFlags),
		c.Op == perform.Rename && (!old.named() || r.flags&^flags != 0 || r.exchange && !next.exists),
		r.flags&unix.RENAME_NOREPLACE != 0 && next.exists,
		trees && oldWall != newWall,
		mountPoint(old) != 0 || mountPoint(next) != 0:
		return false
	}
	from, to := r.pathOf(old), r.pathOf(next)
	unlinks := c.Op == perform.Rename
	r.moves = unlinks && !r.exchange
	if from == "" || to == "" || oldWall && r.failsAnyway(old, false, unlinks) ||
		newWall && r.failsAnyway(next, !next.exists || !unlinks, unlinks) ||
		!r.opens(old, from, trees) {
		return false
	}
	r.moves = false
	if r.special = old.special(); !r.opens(next, to, trees) {
		return false
	}
	var paths []string
	if oldWall {
		paths = append(paths, from)
	}
	if newWall {
		paths = append(paths, to)
	}
	c.At, c.To = placed(old, from), placed(next, to)
	return r.ready(&c, paths...)
}

// opens reports whether neither the judge nor the policy closes a path for good.
func (r *request) opens(p *place, at string, tree bool) bool {
	if r.cfg.Judge != nil {
		ruling := r.cfg.Judge.Rule(protect.Access{Op: sandbox.Write, Path: at, Creates: !p.exists,
			Special: r.special, Moves: r.moves, Removes: r.removes, Thread: int(r.n.PID)})
		if ruling.Ask != nil || ruling.Answer() != 0 {
			return false
		}
	}
	return r.cfg.Asking.Opens(at, tree)
}

// ready has a call wait where this process can make it.
func (r *request) ready(c *perform.Call, paths ...string) bool {
	if !c.Possible() || !r.valid() {
		return false
	}
	r.waiting = &waiting{r.question(sandbox.Access{Op: sandbox.Write, Path: paths[0]}, paths...), *c}
	return true
}

func (r *request) question(a sandbox.Access, paths ...string) executor.AccessQuestion {
	by := r.caller()
	return executor.AccessQuestion{Access: a, Call: seccomp.CallName(runtime.GOARCH, int(r.n.Nr)),
		Paths: paths, PID: by.PID, Program: path.Base(by.Program)}
}

// placed describes a place for the supervisor's own mounts.
func placed(p *place, at string) perform.Place {
	out := perform.Place{Path: at}
	if p.named() {
		out.Parent = identity(&p.parent)
	}
	if p.exists {
		out.File = identity(&p.facts)
	}
	return out
}

func identity(f *facts) perform.ID {
	return perform.ID{Dev: f.dev, Ino: f.ino, Type: f.mode & unix.S_IFMT, Born: f.born}
}

// await asks, and makes the call after a yes. After a no the call is judged again, for the denial.
func (r *request) await() syscall.Errno {
	ctx, cancel := r.untilEnd()
	defer cancel()
	if !r.cfg.Asking.Ask(ctx, r.waiting.question) || ctx.Err() != nil {
		return r.unanswered()
	}
	r.performing.Lock() // so no call that waited changes a name while another one acts on it
	defer r.performing.Unlock()
	if !r.valid() {
		return unix.EINTR // no task waits for it
	}
	errno := perform.WithoutRights(^uint32(0), func() (errno syscall.Errno) {
		r.fd, errno = r.waiting.call.Do()
		return errno
	})
	r.made = errno == 0
	return errno
}

// unanswered denies a call that waited, or could not wait.
func (r *request) unanswered() syscall.Errno {
	r.settled, r.waiting = true, nil
	errno := r.judgeAgain()
	if errno == later {
		return unix.EACCES
	}
	return errno
}

// closed denies a connect or a send to the socket of another program, unless an answer opens it.
func (c *connecting) closed(p *place, at string) syscall.Errno {
	a := protect.Access{Op: sandbox.Connect, Path: at, Thread: int(c.n.PID)}
	call := perform.Call{Op: perform.Chmod, At: placed(p, at)} // acts on the file
	switch {
	case c.cfg.Asking == nil || !c.opens(p, at, false) || !call.Possible():
	case slices.Contains(c.approved, a):
		return 0
	default:
		q := c.question(sandbox.Access{Op: sandbox.Connect, Addr: at, Net: "unix"}, at)
		c.asked, c.ask = a, func(ctx context.Context, _ protect.Caller) protect.Ruling {
			return protect.Ruling{Allow: c.cfg.Asking.Ask(ctx, q)}
		}
		return later
	}
	return c.refuse(at, unix.EACCES)
}
