// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"fmt"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const namespaceMask = NewMount | NewCgroup | NewUTS | NewIPC | NewUser | NewPID | NewNet

// notBegun is the number of steps done where not even what comes before them is.
const notBegun = -1

// lower turns a script into the list of calls of one launch. The first steps, as many
// as done, have been performed by a preforked task, with what comes before them; without
// one, done is notBegun.
func lower(s *Script, f fds, oldKernel bool, done int) (*lowering, error) {
	if s.Namespaces&^namespaceMask != 0 {
		return nil, &ScriptError{Reason: fmt.Sprintf("unknown namespaces %#x", uint64(s.Namespaces&^namespaceMask))}
	}
	n := callsFor(s)
	l := &lowering{
		calls: make([]call, 0, n), origin: make([]int, 0, n), names: make([]string, 0, n),
		trees: make(map[int]slot), reopened: make(map[int]slot), opened: make(map[reopening]slot), fds: f, fork: -1,
	}
	l.words = make([]uint64, slotsFor(s))
	l.place = l.newSlot()
	if oldKernel {
		l.clearHandlers()
	}
	if done == notBegun {
		l.separate()
	}
	if f.enter > 0 {
		l.join(f.enter)
	}
	for i := max(done, 0); i < len(s.Steps); i++ {
		l.step = i
		if err := l.lowerStep(&s.Steps[i]); err != nil {
			return nil, err
		}
	}
	l.step = len(s.Steps) - 1
	last := slices.IndexFunc(s.Steps, func(st Step) bool { return st.Op == OpExec })
	if l.fork < 0 || last != len(s.Steps)-1 {
		return nil, &ScriptError{Step: l.step, Reason: "a script needs start-command, and one exec as its last step"}
	}
	l.calls[l.fork].want = uintptr(unsafe.Pointer(&l.calls[l.second]))
	return l, nil
}

// separate lays down what every first task begins with.
func (l *lowering) separate() {
	// An ignored SIGCHLD would make the kernel drop the command's status.
	l.defaultAction(unix.SIGCHLD)
	// The reaper sends signals on request, and the command can forge a request.
	// In a session of its own "my own process group" names nobody outside.
	l.call("setsid", unix.SYS_SETSID)
}

// callsFor guesses how many calls a script makes, so that the list seldom grows
// and a short script does not pay for a long one.
func callsFor(s *Script) int {
	const most = 320
	n := 24 // those that every script has
	for i := range s.Steps {
		n += 2
		if r := s.Steps[i].Ruleset; r != nil {
			n += 4 * len(r.Rules)
		}
		if s.Steps[i].Op == OpDropBounding {
			n += 41 // as many as current kernels know
		}
	}
	return min(n, most)
}

// slotsFor bounds how many slots a script can need.
func slotsFor(s *Script) int {
	n := 8
	for i := range s.Steps {
		n += 3
		if r := s.Steps[i].Ruleset; r != nil {
			n += 2 * len(r.Rules)
		}
		if s.Steps[i].Op == OpTerminal {
			n += 2
		}
	}
	return n
}

func (l *lowering) lowerStep(s *Step) error {
	switch s.Op {
	case OpOpen, OpClone, OpSetTree, OpSetMount, OpAttach, OpPin, OpReopen, OpTmpfs, OpProc, OpDevpts, OpOverlay,
		OpMkdir, OpMkfile, OpChmod, OpSymlink, OpPivot, OpRefuseWrite:
		return l.lowerMount(s)
	case OpDropBounding, OpSecureBits, OpClearAmbient, OpNoNewPrivs, OpCaps, OpSeccomp, OpLandlock, OpMapUser:
		return l.lowerCreds(s)
	default:
		return l.lowerTask(s)
	}
}

func (l *lowering) lowerTask(s *Step) error {
	switch s.Op {
	case OpDieWithParent:
		l.call("prctl", unix.SYS_PRCTL, num(unix.PR_SET_PDEATHSIG), num(uintptr(s.Signal)))
		// The caller may have ended before the line above took effect.
		p := &unix.PollFd{Fd: int32(l.fds.self), Events: unix.POLLIN}
		zeroTime := new(unix.Timespec)
		l.call("ppoll", unix.SYS_PPOLL, pin(l, p), num(1), pin(l, zeroTime), zero()).expect(0)
	case OpSubreaper:
		l.call("prctl", unix.SYS_PRCTL, num(unix.PR_SET_CHILD_SUBREAPER), num(1))
	case OpLoopback:
		l.lowerLoopback()
	case OpStartCommand:
		return l.startCommand()
	case OpNewSession:
		l.call("setsid", unix.SYS_SETSID)
	case OpTerminal:
		return l.lowerTerminal(s)
	case OpStdio:
		for i, n := range l.fds.stdio {
			from := fd(n)
			if s, ok := l.reopened[i]; ok {
				from = s.arg()
			}
			l.call("dup3", unix.SYS_DUP3, from, num(uintptr(i)), zero())
		}
	case OpLimit:
		l.call("prlimit64", unix.SYS_PRLIMIT64, zero(), num(uintptr(s.Resource)),
			pin(l, &unix.Rlimit{Cur: s.Soft, Max: s.Hard}), zero())
	case OpChdir:
		p, err := l.cstring(s.Path)
		if err != nil {
			return err
		}
		l.call("chdir", unix.SYS_CHDIR, p)
	case OpResetSignals:
		l.call("rt_sigprocmask", unix.SYS_RT_SIGPROCMASK, num(2 /* SIG_SETMASK */), pin(l, new(uint64)), zero(), num(8))
	case OpCloseFiles:
		l.call("close_range", unix.SYS_CLOSE_RANGE, flag(max(s.Value, 3)), num(uintptr(^uint32(0))), zero())
	case OpPass, OpMemory:
		return l.lowerDescriptor(s)
	case OpObserve:
		return l.lowerObserve(s)
	case OpJoin, OpAffinity:
		return l.lowerResource(s)
	case OpExec:
		return l.lowerExec(s)
	default:
		return &ScriptError{Step: l.step, Reason: fmt.Sprintf("%s cannot be lowered", s.Op)}
	}
	return nil
}

func (l *lowering) lowerExec(s *Step) error {
	if l.fork < 0 {
		return &ScriptError{Step: l.step, Reason: "exec before start-command"}
	}
	path, err := l.cstring(s.Path)
	if err != nil {
		return err
	}
	argv, err := l.vector(s.Argv)
	if err != nil {
		return err
	}
	env, err := l.vector(s.Env)
	if err != nil {
		return err
	}
	l.call("execve", unix.SYS_EXECVE, path, argv, env)
	return nil
}

// startCommand clones the second task, and lays down what the first one does
// once that task has become the command: it becomes the reaper. Descriptor 0
// of the reaper is the status pipe, descriptor 1 tells it the process id.
func (l *lowering) startCommand() error {
	if l.fork >= 0 {
		return &ScriptError{Step: l.step, Reason: "start-command appears twice"}
	}
	child := l.newSlot()
	c := l.call("clone", unix.SYS_CLONE, num(unix.CLONE_VM|unix.CLONE_VFORK|uintptr(unix.SIGCHLD)))
	c.flags |= flagFork
	c.out = uintptr(child)
	l.fork = len(l.calls) - 1
	// All three numbers are taken before the counter is made, so that it cannot
	// get one of them.
	count := l.newSlot()
	l.call("dup3", unix.SYS_DUP3, fd(l.fds.status), num(0), zero())
	l.call("dup3", unix.SYS_DUP3, fd(l.fds.status), num(1), zero())
	l.call("dup3", unix.SYS_DUP3, fd(l.fds.reaper), num(2), num(unix.O_CLOEXEC))
	l.call("eventfd2", unix.SYS_EVENTFD2, child.arg(), zero()).store(count)
	l.call("dup3", unix.SYS_DUP3, count.arg(), num(1), zero())
	l.keepHold()
	argv, err := l.vector([]string{"sallyport-reaper"})
	if err != nil {
		return err
	}
	env, err := l.vector(nil)
	if err != nil {
		return err
	}
	l.call("execveat", unix.SYS_EXECVEAT, num(2), l.empty(), argv, env, num(unix.AT_EMPTY_PATH))
	l.second = len(l.calls)
	return nil
}

func (l *lowering) lowerMount(s *Step) error {
	switch s.Op {
	case OpOpen:
		t, err := l.newTree(s.Tree)
		if err != nil {
			return err
		}
		return l.open(s.Path, s.ID, unix.O_PATH, t)
	case OpClone:
		return l.lowerClone(s)
	case OpSetTree:
		t, err := l.tree(s.Tree)
		if err != nil {
			return err
		}
		l.setAttr(t.arg(), l.empty(), s)
	case OpSetMount:
		p, err := l.cstring(s.Path)
		if err != nil {
			return err
		}
		l.setAttr(atCwd(), p, s)
	case OpAttach:
		return l.lowerAttach(s)
	case OpPin:
		return l.lowerPin(s)
	case OpReopen:
		return l.lowerReopen(s)
	case OpTmpfs, OpProc, OpDevpts:
		return l.lowerFilesystem(s)
	case OpOverlay:
		return l.lowerOverlay(s)
	case OpPivot:
		p, err := l.cstring(s.Path)
		if err != nil {
			return err
		}
		dot, err := l.cstring(".")
		if err != nil {
			return err
		}
		l.call("chdir", unix.SYS_CHDIR, p)
		l.call("pivot_root", unix.SYS_PIVOT_ROOT, dot, dot)
		l.call("umount2", unix.SYS_UMOUNT2, dot, num(unix.MNT_DETACH))
		slash, err := l.cstring("/")
		if err != nil {
			return err
		}
		l.call("chdir", unix.SYS_CHDIR, slash)
	case OpRefuseWrite:
		return l.refuseWrite(s.Path)
	default:
		return l.lowerNode(s)
	}
	return nil
}

func (l *lowering) lowerNode(s *Step) error {
	p, err := l.cstring(s.Path)
	if err != nil {
		return err
	}
	switch s.Op {
	case OpMkdir:
		l.call("mkdirat", unix.SYS_MKDIRAT, atCwd(), p, num(uintptr(s.Mode)))
	case OpMkfile:
		l.call("mknodat", unix.SYS_MKNODAT, atCwd(), p, num(unix.S_IFREG|uintptr(s.Mode)), zero())
	case OpChmod:
		l.call("fchmodat", unix.SYS_FCHMODAT, atCwd(), p, num(uintptr(s.Mode)))
	case OpSymlink:
		to, err := l.cstring(s.Dest)
		if err != nil {
			return err
		}
		l.call("symlinkat", unix.SYS_SYMLINKAT, to, atCwd(), p)
	}
	return nil
}

func (l *lowering) lowerClone(s *Step) error {
	t, err := l.newTree(s.Tree)
	if err != nil {
		return err
	}
	flags := uintptr(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH)
	if s.Recursive {
		flags |= unix.AT_RECURSIVE
	}
	if s.Path == "" {
		from, err := l.tree(s.From)
		if err != nil {
			return err
		}
		l.call("open_tree", unix.SYS_OPEN_TREE, from.arg(), l.empty(), num(flags)).store(t)
		return nil
	}
	if s.Own {
		p, err := l.cstring(s.Path)
		if err != nil {
			return err
		}
		l.call("open_tree", unix.SYS_OPEN_TREE, atCwd(), p, num(flags|unix.AT_SYMLINK_NOFOLLOW)).store(t)
		return nil
	}
	if err := l.open(s.Path, s.ID, unix.O_PATH, l.place); err != nil {
		return err
	}
	l.call("open_tree", unix.SYS_OPEN_TREE, l.place.arg(), l.empty(), num(flags)).store(t)
	l.close(l.place)
	return nil
}

func (l *lowering) setAttr(dir, path arg, s *Step) {
	attr := &unix.MountAttr{Attr_set: s.Set, Attr_clr: s.Clear}
	flags := uintptr(0)
	if s.Op == OpSetTree {
		flags = unix.AT_EMPTY_PATH
	}
	if s.Recursive {
		flags |= unix.AT_RECURSIVE
	}
	if s.Private {
		attr.Propagation = unix.MS_PRIVATE
	}
	l.call("mount_setattr", unix.SYS_MOUNT_SETATTR, dir, path, num(flags), pin(l, attr), num(unsafe.Sizeof(*attr)))
}

func (l *lowering) lowerAttach(s *Step) error {
	t, err := l.tree(s.Tree)
	if err != nil {
		return err
	}
	delete(l.trees, s.Tree)
	if s.Own {
		p, err := l.cstring(s.Path)
		if err != nil {
			return err
		}
		l.call("move_mount", unix.SYS_MOVE_MOUNT, t.arg(), l.empty(), atCwd(), p, num(unix.MOVE_MOUNT_F_EMPTY_PATH))
		return nil
	}
	if err := l.open(s.Path, s.ID, unix.O_PATH, l.place); err != nil {
		return err
	}
	l.call("move_mount", unix.SYS_MOVE_MOUNT, t.arg(), l.empty(), l.place.arg(), l.empty(),
		num(unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
	l.close(l.place)
	l.close(t)
	return nil
}

// lowerPin copies the mount of a folder and puts the copy over the folder, both by
// the one descriptor that was compared.
func (l *lowering) lowerPin(s *Step) error {
	if l.copied == 0 {
		l.copied = l.newSlot()
	}
	if err := l.open(s.Path, s.ID, unix.O_PATH|unix.O_DIRECTORY, l.place); err != nil {
		return err
	}
	const flags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH | unix.AT_RECURSIVE
	l.call("open_tree", unix.SYS_OPEN_TREE, l.place.arg(), l.empty(), num(flags)).store(l.copied)
	l.call("move_mount", unix.SYS_MOVE_MOUNT, l.copied.arg(), l.empty(), l.place.arg(), l.empty(),
		num(unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
	l.close(l.place)
	l.close(l.copied)
	return nil
}

// lowerReopen replaces a standard descriptor. The new one gets a number that
// OpStdio does not overwrite before it is used, also where the caller has
// closed 0 to 2.
func (l *lowering) lowerReopen(s *Step) error {
	if s.Stdio < 1 || s.Stdio > 3 {
		return &ScriptError{Step: l.step, Reason: "reopen names one of the three standard descriptors"}
	}
	key := reopening{s.Path, s.ID, s.Value, s.Offset}
	if into, ok := l.opened[key]; ok {
		l.reopened[s.Stdio-1] = into // as where one descriptor was duplicated
		return nil
	}
	into := l.newSlot()
	l.opened[key] = into
	if err := l.open(s.Path, s.ID, s.Value|unix.O_NOCTTY, l.place); err != nil {
		return err
	}
	l.call("fcntl", unix.SYS_FCNTL, l.place.arg(), num(unix.F_DUPFD_CLOEXEC), num(3)).store(into)
	l.close(l.place)
	if s.Offset > 0 {
		l.call("lseek", unix.SYS_LSEEK, into.arg(), flag(uint64(s.Offset)), num(unix.SEEK_SET))
	}
	l.reopened[s.Stdio-1] = into
	return nil
}

// lowerFilesystem makes a new file system and mounts it detached.
func (l *lowering) lowerFilesystem(s *Step) error {
	t, err := l.newTree(s.Tree)
	if err != nil {
		return err
	}
	kind, attrs := "tmpfs", AttrNoSuid|AttrNoDev
	var options [][2]string
	switch s.Op {
	case OpTmpfs:
		options = [][2]string{{"mode", fmt.Sprintf("%o", s.Mode)}}
	case OpProc:
		// Processes that one may not trace are hidden. Process 1 is one of them:
		// until it has executed the reaper, its command line is the caller's. The
		// older form, 2, shows everything to group 0. (proc(5); Linux 5.8)
		kind, attrs = "proc", AttrNoSuid|AttrNoDev|AttrNoExec
		options = [][2]string{{"hidepid", "ptraceable"}}
	case OpDevpts:
		// Device nodes on it must open, so no nodev.
		kind, attrs = "devpts", AttrNoSuid|AttrNoExec
		options = [][2]string{{"ptmxmode", "0666"}, {"mode", "0620"}}
	}
	name, err := l.cstring(kind)
	if err != nil {
		return err
	}
	l.call("fsopen", unix.SYS_FSOPEN, name, num(unix.FSOPEN_CLOEXEC)).store(l.place)
	for _, o := range options {
		k, err := l.cstring(o[0])
		if err != nil {
			return err
		}
		v, err := l.cstring(o[1])
		if err != nil {
			return err
		}
		l.call("fsconfig", unix.SYS_FSCONFIG, l.place.arg(), num(unix.FSCONFIG_SET_STRING), k, v, zero())
	}
	l.call("fsconfig", unix.SYS_FSCONFIG, l.place.arg(), num(unix.FSCONFIG_CMD_CREATE), zero(), zero(), zero())
	l.call("fsmount", unix.SYS_FSMOUNT, l.place.arg(), num(unix.FSMOUNT_CLOEXEC), flag(attrs|s.Set)).store(t)
	l.close(l.place)
	return nil
}

// refuseWrite opens a path for writing and goes on only when that fails, as it
// does when there is no such path. The list has no branches, so the result is
// compared: an open that succeeds returns a descriptor, which is never the
// number that the step wants.
func (l *lowering) refuseWrite(path string) error {
	p, err := l.cstring(path)
	if err != nil {
		return err
	}
	c := l.call("openat", unix.SYS_OPENAT, atCwd(), p, num(unix.O_WRONLY|unix.O_CLOEXEC), zero())
	c.flags |= flagIgnore | flagWant
	c.want = ^uintptr(0)
	return nil
}

func (l *lowering) lowerLoopback() {
	l.call("socket", unix.SYS_SOCKET, num(unix.AF_INET), num(unix.SOCK_DGRAM|unix.SOCK_CLOEXEC), zero()).store(l.place)
	req := new([40]byte) // struct ifreq
	copy(req[:], "lo")
	*(*uint16)(unsafe.Pointer(&req[16])) = unix.IFF_UP | unix.IFF_RUNNING
	l.call("ioctl", unix.SYS_IOCTL, l.place.arg(), num(unix.SIOCSIFFLAGS), pin(l, req))
	l.close(l.place)
}

// defaultAction restores the default action of a signal.
func (l *lowering) defaultAction(sig syscall.Signal) {
	act := new([4]uint64) // struct sigaction of the kernel, all zero: SIG_DFL
	l.call("rt_sigaction", unix.SYS_RT_SIGACTION, num(uintptr(sig)), pin(l, act), zero(), num(8))
}

// clearHandlers does what CLONE_CLEAR_SIGHAND does where clone3 is missing.
// Signals that the caller ignores stay ignored only there, so the difference
// is that here they become default.
func (l *lowering) clearHandlers() {
	act := pin(l, new([4]uint64))
	for sig := uintptr(1); sig <= 64; sig++ {
		if sig == uintptr(unix.SIGKILL) || sig == uintptr(unix.SIGSTOP) {
			continue
		}
		l.call("rt_sigaction", unix.SYS_RT_SIGACTION, num(sig), act, zero(), num(8))
	}
}
