// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"errors"
	"os"
	"path"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/perform"
	"github.com/sallyport-dev/sallyport/internal/names/protect"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// What a read-only mount denies, and when it is asked, differs from call to call: mkdir
// of a directory that exists fails with EEXIST on every mount, while unlink fails with
// EROFS first. The functions here follow the order of fs/namei.c, fs/open.c and
// fs/attr.c, so that the answer is the kernel's own. Where another error comes first, the
// call goes on and gets it.

// lasting reports whether what is known of the mount of a file can be remembered under its
// id. Where a command may make namespaces and mounts nothing is, and neither where the kernel
// uses the ids again.
func (s *Supervisor) lasting(f *facts) bool { return f.unique && !s.cfg.OwnRoots }

// A mounted is what is known of a mount.
type mounted struct {
	readOnly bool
	kernel   bool // what it shows is the kernel's, see ruleKernel
}

// shownBy asks about the mount of a file. The mounts of a command do not change, unless it may make
// some, so each is asked about once.
func (r *request) shownBy(f *facts, fd int) mounted {
	if m, known := r.knownMount(f); known {
		return m
	}
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return mounted{} // the kernel decides
	}
	m := mounted{readOnly: st.Flags&unix.ST_RDONLY != 0,
		kernel: st.Type == unix.PROC_SUPER_MAGIC || st.Type == unix.SYSFS_MAGIC}
	if !r.lasting(f) {
		return m
	}
	if r.shown == nil {
		r.shown = make(map[uint64]mounted)
	}
	r.shown[f.mount] = m
	return m
}

// knownMount returns what is known of the mount of a file already.
func (r *request) knownMount(f *facts) (m mounted, known bool) {
	if !r.lasting(f) {
		return mounted{}, false
	}
	m, known = r.shown[f.mount]
	return m, known
}

// mountAt is shownBy for a place that exists.
func (r *request) mountAt(p *place) mounted {
	fd := p.object
	if _, known := r.knownMount(&p.facts); !known && fd < 0 {
		opened, errno := openat2(p.dir, p.name, pathFlags, 0)
		if errno != 0 {
			return mounted{}
		}
		defer unix.Close(opened)
		fd = opened
	}
	return r.shownBy(&p.facts, fd)
}

// hasMounts reports whether the level has mounts of its own, so that they decide.
func (r *request) hasMounts() bool { return r.cfg.Writable == nil }

// directoryWall returns the error for changing the names in a place's directory.
func (r *request) directoryWall(p *place) syscall.Errno {
	switch {
	case !p.named():
		return 0
	case !r.hasMounts():
		return r.pathWall(r.pathOf(p))
	case r.shownBy(&p.parent, p.dir).readOnly:
		return unix.EROFS
	}
	return 0
}

// fileWall returns the error for changing the file at a place.
func (r *request) fileWall(p *place) syscall.Errno {
	if !r.hasMounts() {
		if !p.named() {
			return 0 // by a descriptor: it may be one that was handed in
		}
		return r.pathWall(r.pathOf(p))
	}
	if r.mountAt(p).readOnly {
		return unix.EROFS
	}
	return 0
}

// pathWall is the wall of a level without mounts: only the listed paths, and what lies
// below them, can be written to.
func (r *request) pathWall(path string) syscall.Errno {
	if path == "" || slices.ContainsFunc(r.cfg.Writable,
		func(at string) bool { return hostfacts.Below(path, at) }) {
		return 0
	}
	return unix.EACCES
}

// mountPoint returns the error for removing or moving a mount point, which is how
// protected names, and the directories above them, are held.
func mountPoint(p *place) syscall.Errno {
	if p.exists && p.root && p.named() && p.mount != p.parent.mount {
		return unix.EBUSY
	}
	return 0
}

// writableByMode reports whether the owner, group and mode of a file let the user write
// to it. The command runs as the same user, without capabilities.
func (s *Supervisor) writableByMode(f *facts) bool {
	const write = 2
	switch {
	case int(f.uid) == os.Getuid():
		return f.mode>>6&write != 0
	case int(f.gid) == os.Getgid() || slices.Contains(s.groups, int(f.gid)):
		return f.mode>>3&write != 0
	}
	return f.mode&write != 0
}

// mayWrite reports whether owner, mode and, for an ordinary user, lists of access rights let the user write to the
// file at a name in a directory.
func (s *Supervisor) mayWrite(f *facts, dir int, name string) bool {
	return s.writableByMode(f) || !isRoot() &&
		!errors.Is(unix.Faccessat(dir, name, unix.W_OK, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW), unix.EACCES)
}

// The rules of what owners and modes deny, too. Their beginning is that of all denials which nothing opens.
const (
	ruleAnyway = "no grant opens it: this user may not do it outside of the sandbox either"
	ruleModes  = "no grant opens it: root in a sandbox cannot change owners and modes"
)

// failsAnyway reports whether owner and mode deny an operation that a wall denies, so that it would fail
// without this wall, too: for a user also outside of the sandbox, for root, who passes both there, in it.
func (r *request) failsAnyway(p *place, creates, unlinks bool) bool {
	foreign := func(f *facts) bool { return int(f.uid) != os.Getuid() }
	switch {
	case unlinks && p.named() && p.exists && p.parent.mode&unix.S_ISVTX != 0 && foreign(&p.parent) &&
		foreign(&p.facts):
		return true // others' names in a directory of all
	case creates || unlinks:
		return p.named() && !r.mayWrite(&p.parent, p.dir, ".")
	case !p.exists:
		return false
	case r.chmod || r.chown:
		return foreign(&p.facts)
	}
	if !p.named() {
		return !p.is(unix.S_IFLNK) && !r.writableByMode(&p.facts)
	}
	return !p.is(unix.S_IFLNK) && !r.mayWrite(&p.facts, p.dir, p.name)
}

// ruleOthers is the rule of files that root could change outside.
const ruleOthers = "belongs to another user, and root in a sandbox has no rights over its files"

// ofOthers reports whether the owner and mode of a file, or of the directory in which it is created,
// deny a write that root may make outside: inside it has no rights over files of other users.
func (r *request) ofOthers(p *place, creates bool) bool {
	f, name, dir := &p.facts, p.name, p.dir
	switch {
	case !r.chowns || !r.hasMounts() || os.Geteuid() != 0:
		return false
	case creates && !p.named() || !creates && (!p.exists || r.kind != kindOpen && r.kind != kindTruncate):
		return false // what is judged elsewhere
	case creates:
		f, name = &p.parent, ""
	case !p.named():
		dir, name = p.object, ""
	}
	if f.uid == 0 || r.writableByMode(f) {
		return false
	}
	// the kernel's own answer, which looks at lists of access rights, too
	return perform.AsCommand(func() syscall.Errno {
		return asErrno(unix.Faccessat(dir, name, unix.W_OK, unix.AT_EACCESS|unix.AT_EMPTY_PATH))
	}) == unix.EACCES
}

// ruled asks the judge about a place that the mounts allow. The path is that of a denial,
// else it may be empty.
func (r *request) ruled(op sandbox.Op, p *place, creates bool) (string, syscall.Errno) {
	if r.cfg.Judge == nil {
		return "", 0
	}
	// What is remembered of a directory may be that of one which was removed, and whose number
	// is used again. It is not enough for names that the judge remembers, and its path may be an
	// old one, where a directory was moved.
	if op == sandbox.Write && p.named() && !r.cfg.Judge.EveryDirectory(p.name) &&
		!r.directoryOf(p).everyName {
		return "", 0
	}
	path := r.pathOf(p) // as it is now
	if path == "" {
		return "", 0
	}
	return path, r.rule(op, path, creates)
}

// A directoryID names a directory for a while: the numbers of files are used again.
type directoryID struct{ mount, dev, ino uint64 }

// A directory is what is known of one for a while.
type directory struct {
	everyName bool // as [rulings.Judge.EveryName]
	since     time.Time
}

// directoryTime is how long a directory is believed to have the same path, where that does
// not matter. It saves most calls from asking the kernel.
const directoryTime = time.Second

// maxDirectories bounds how many directories are remembered.
const maxDirectories = 4096

// directoryOf returns what is known of the directory of a named place.
func (r *request) directoryOf(p *place) directory {
	key := directoryID{p.parent.mount, p.parent.dev, p.parent.ino}
	now := time.Now()
	if d, ok := r.directories[key]; ok && now.Sub(d.since) < directoryTime {
		return d
	}
	d := directory{everyName: r.cfg.Judge.EveryName(r.nameOf(p.dir)), since: now}
	if !r.lasting(&p.parent) {
		return d
	}
	if r.directories == nil || len(r.directories) >= maxDirectories {
		r.directories = make(map[directoryID]directory)
	}
	r.directories[key] = d
	return d
}

// write denies a write with errno, or asks the judge where that is zero.
func (r *request) write(p *place, errno syscall.Errno, creates bool) syscall.Errno {
	if errno == 0 {
		path, errno := r.ruled(sandbox.Write, p, creates)
		if errno == 0 && r.ofOthers(p, creates) {
			return r.deny(sandbox.Denial{Access: sandbox.Access{Op: sandbox.Write, Path: r.pathOf(p)},
				Rule: ruleOthers, NoGrant: true}, unix.EACCES)
		}
		return r.denyFile(sandbox.Write, path, errno)
	}
	path := r.pathOf(p)
	if path == "" {
		return 0 // it has no name any more, and the wall denies it
	}
	unlinks := r.kind == kindUnlink || r.kind == kindRmdir || r.kind == kindRename
	d := sandbox.Denial{Access: sandbox.Access{Op: sandbox.Write, Path: path}, Unlinks: unlinks}
	if r.failsAnyway(p, creates, unlinks) {
		if d.Rule, d.NoGrant = ruleAnyway, true; isRoot() {
			d.Rule = ruleModes
		}
	} else if r.waits(p, path, errno) {
		return later
	}
	return r.deny(d, errno)
}

// notFound is for names that lead to no file. Where that is because the policy hides the
// file, the kernel's own answer is noted as a denial.
func (r *request) notFound(op sandbox.Op, lerr *lookupError) syscall.Errno {
	if lerr.path == "" || r.cfg.Judge == nil || lerr.errno != unix.EACCES && lerr.errno != unix.ENOENT ||
		!r.cfg.Judge.Hidden(op, lerr.path) {
		return 0
	}
	errno := lerr.errno
	// The look of this process may have come further than the command can: a directory
	// that covers a denied one is closed for the command.
	if ruling := r.cfg.Judge.Rule(protect.Access{Op: sandbox.Read, Path: path.Dir(lerr.path),
		Thread: int(r.n.PID)}); ruling.Answer() != 0 {
		errno = unix.EACCES
	}
	return r.denyFile(op, lerr.path, errno)
}

// judgePath decides about a call that names one file.
func (r *request) judgePath() syscall.Errno {
	name, errno := r.name(r.path, &r.first)
	switch {
	case errno != 0:
		return 0 // the kernel finds the same
	case len(name) == 0 && r.bare:
		return r.judgeTouch()
	case len(name) == 0:
		return 0
	}
	op := r.op()
	if op == sandbox.OpUnknown {
		return 0
	}
	p, lerr := r.find(r.dir, name, r.follow)
	if lerr != nil {
		return r.notFound(op, lerr)
	}
	defer p.close()
	if op != sandbox.Write {
		return r.judgeRead(op, &p)
	}
	switch r.kind {
	case kindOpen:
		if errno := r.judgeOpen(&p); errno != 0 {
			return errno
		}
		return r.judgeLinks(&p, name[len(name)-1] == '/')
	case kindMake:
		if p.exists {
			return 0 // EEXIST
		}
		return r.write(&p, r.directoryWall(&p), true)
	case kindUnlink, kindRmdir:
		return r.judgeRemove(&p)
	case kindTruncate:
		if errno := r.judgeChange(&p); errno != 0 {
			return errno
		}
		return r.judgeLinks(&p, false)
	}
	return r.judgeChange(&p)
}

// op returns what a call does to the file that it names; OpUnknown where that is not
// judged.
func (r *request) op() sandbox.Op {
	const changes = unix.O_ACCMODE | unix.O_CREAT | unix.O_TRUNC
	op := sandbox.Write
	switch {
	case r.kind == kindExec:
		op = sandbox.Exec
	case r.kind == kindOpen && r.flags&unix.O_PATH != 0:
		return sandbox.OpUnknown
	case r.kind == kindOpen && r.flags&changes == 0:
		op = sandbox.Read
	}
	if op != sandbox.Write && !r.cfg.Reads {
		return sandbox.OpUnknown
	}
	return op
}

// judgeOpen is for opening a file to change it.
func (r *request) judgeOpen(p *place) syscall.Errno {
	if !p.exists {
		if r.flags&unix.O_CREAT == 0 {
			return r.absent(sandbox.Write, p)
		}
		return r.write(p, r.directoryWall(p), true)
	}
	temporary := r.flags&unix.O_TMPFILE == unix.O_TMPFILE
	switch {
	case r.flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL && !temporary, p.is(unix.S_IFLNK):
		return 0 // EEXIST, ELOOP
	case p.is(unix.S_IFDIR):
		if !temporary {
			return 0 // EISDIR
		}
		return r.write(p, r.fileWall(p), false)
	case r.flags&unix.O_DIRECTORY != 0:
		return 0 // ENOTDIR
	case r.flags&(unix.O_ACCMODE|unix.O_TRUNC) == 0: // O_CREAT of a file that exists
		return r.judgeRead(sandbox.Read, p)
	case !p.is(unix.S_IFREG):
		return r.write(p, r.specialWall(p), false)
	}
	errno := r.fileWall(p)
	if errno == unix.EROFS && r.flags&unix.O_TRUNC == 0 && !r.writableByMode(&p.facts) {
		errno = unix.EACCES // asked before the mount is
	}
	return r.write(p, errno, false)
}

// specialWall is for pipes, sockets and devices. A read-only mount lets them be opened
// for writing; Landlock does not, except below /dev, and mounts that are not for devices
// have none.
func (r *request) specialWall(p *place) syscall.Errno {
	if p.is(unix.S_IFSOCK) || !p.named() && p.is(unix.S_IFCHR) {
		return 0 // ENXIO; a terminal or another standard descriptor
	}
	if r.fileWall(p) == 0 {
		return 0
	}
	path := r.pathOf(p)
	if path == "" || hostfacts.Below(path, "/dev") || hostfacts.Below(path, "/proc") {
		return 0
	}
	return unix.EACCES
}

// judgeRead is for reading or running a file.
func (r *request) judgeRead(op sandbox.Op, p *place) syscall.Errno {
	if !r.cfg.Reads {
		return 0
	}
	if !p.exists {
		return r.absent(op, p)
	}
	path, errno := r.ruled(op, p, false)
	return r.denyFile(op, path, errno)
}

// absent is for a name that does not exist and that the call does not create.
func (r *request) absent(op sandbox.Op, p *place) syscall.Errno {
	if !r.cfg.Reads {
		return 0
	}
	return r.notFound(op, &lookupError{errno: unix.ENOENT, path: r.pathOf(p)})
}

func (r *request) judgeRemove(p *place) syscall.Errno {
	switch {
	case !p.named():
		return 0
	case !p.exists && r.cfg.Asking != nil && r.directoryWall(p) != 0:
		return unix.ENOENT // as outside: there is nothing to ask about, and mv(1) goes on then
	case !p.exists && !r.crossed(p):
		return 0 // noted would be what fails outside of the sandbox, too
	}
	errno := r.directoryWall(p)
	if errno == 0 {
		if p.is(unix.S_IFDIR) != (r.kind == kindRmdir) {
			return 0 // EISDIR, ENOTDIR
		}
		errno = mountPoint(p)
	}
	r.removes = true
	return r.write(p, errno, false)
}

// crossed reports whether a move or link to a place failed because it is on another mount. Programs such as
// mv(1) remove a file there before they copy, and give up where that says that the mount is read-only.
func (r *request) crossed(p *place) bool {
	if !r.hasMounts() || r.directoryWall(p) == 0 {
		return false
	}
	path := r.pathOf(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report.Crossed(path)
}

func (r *request) judgeChange(p *place) syscall.Errno {
	truncates := r.kind == kindTruncate
	switch {
	case !p.exists:
		return r.absent(sandbox.Write, p)
	case truncates && !p.is(unix.S_IFREG):
		return 0 // EISDIR, EINVAL
	case !truncates && r.kernels(p):
		return r.denyKernel(p)
	case !truncates && !r.hasMounts():
		return 0 // Landlock does not deny changes of modes, owners and times
	}
	return r.write(p, r.fileWall(p), false)
}

// judgeTouch is for calls on a descriptor.
func (r *request) judgeTouch() syscall.Errno {
	if !r.hasMounts() && !isRoot() || r.dir < 0 && r.dir != atCwd {
		return 0
	}
	p, lerr := r.descriptor(r.dir)
	if lerr != nil {
		return 0
	}
	defer p.close()
	switch {
	case r.kernels(&p):
		return r.denyKernel(&p)
	case !r.hasMounts():
		return 0
	}
	errno := r.fileWall(&p)
	if errno == 0 && !r.chmod {
		return 0
	}
	return r.write(&p, errno, false)
}

// judgeTwo is for rename and link. The denial is of the new name, unless only the old one
// lies behind a wall.
func (r *request) judgeTwo() syscall.Errno {
	from, errno := r.name(r.path, &r.first)
	if errno != 0 {
		return 0
	}
	to, errno := r.name(r.path2, &r.second)
	if errno != 0 || len(to) == 0 {
		return 0
	}
	old, lerr := r.find(r.dir, from, r.follow)
	if lerr != nil {
		return r.notFound(sandbox.Write, lerr)
	}
	defer old.close()
	next, lerr := r.find(r.dir2, to, false)
	if lerr != nil {
		return r.notFound(sandbox.Write, lerr)
	}
	defer next.close()
	switch {
	case !old.exists || !next.named():
		return 0
	case r.waitsForTwo(&old, &next):
		return later
	case r.kind == kindLink:
		return r.judgeLink(&old, &next)
	case !old.named():
		return 0
	}
	return r.judgeRename(&old, &next)
}

func (r *request) judgeLink(old, next *place) syscall.Errno {
	if next.exists {
		return 0 // EEXIST
	}
	errno := r.directoryWall(next)
	if errno == 0 && r.hasMounts() && old.mount != next.parent.mount {
		if old.dev == next.parent.dev && r.fileWall(old) != 0 {
			return r.write(old, unix.EXDEV, false)
		}
		return 0
	}
	r.special = old.special()
	if errno = r.write(next, errno, true); errno == 0 {
		if errno = r.write(old, 0, false); errno == 0 { // by the new name it could be changed
			r.rememberLink(old)
		}
	}
	return errno
}

func (r *request) judgeRename(old, next *place) syscall.Errno {
	newWall, oldWall := r.directoryWall(next), r.directoryWall(old)
	sameMount := old.parent.mount == next.parent.mount
	if r.hasMounts() && !sameMount && (newWall != 0 || oldWall != 0) {
		// EXDEV comes before the mounts are asked. Programs copy then, and meet the wall
		// itself.
		if old.parent.dev != next.parent.dev {
			return 0 // the same outside of the sandbox
		}
		if newWall != 0 {
			newWall = unix.EXDEV
		}
		oldWall = unix.EXDEV
	}
	switch {
	case newWall != 0:
		if oldWall == unix.EROFS {
			_ = r.write(old, oldWall, false) // that it is the next to be met
		}
		return r.write(next, newWall, !next.exists)
	case oldWall != 0:
		return r.write(old, oldWall, false)
	case !sameMount:
		return 0 // EXDEV
	case mountPoint(next) != 0:
		return r.write(next, unix.EBUSY, false)
	case mountPoint(old) != 0:
		return r.write(old, unix.EBUSY, false)
	}
	r.special = old.special()
	if errno := r.write(next, 0, !next.exists); errno != 0 {
		return errno
	}
	if old.is(unix.S_IFDIR) || r.exchange {
		r.renamed.Store(true)
	}
	r.special = r.exchange && next.special()
	r.moves = !r.exchange
	return r.write(old, 0, false)
}
