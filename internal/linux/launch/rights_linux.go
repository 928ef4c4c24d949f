// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lowerRights lowers a step that takes rights away or sets up namespaces, and reports
// whether it is one.
func (l *lowering) lowerRights(s *Step) bool {
	switch s.Op {
	case OpMapUser:
		l.mapUser(s)
	case OpLoopback:
		l.call("socket", unix.SYS_SOCKET, num(unix.AF_INET), num(unix.SOCK_DGRAM|unix.SOCK_CLOEXEC),
			num(0)).store(l.place)
		req := new([40]byte) // struct ifreq
		copy(req[:], "lo")
		*(*uint16)(unsafe.Pointer(&req[16])) = unix.IFF_UP | unix.IFF_RUNNING
		l.call("ioctl", unix.SYS_IOCTL, held(l.place), num(unix.SIOCSIFFLAGS), pin(l, req))
		l.close(l.place)
	case OpNetlink:
		l.lowerNetlink(s)
	case OpSetting:
		l.call("openat", unix.SYS_OPENAT, held(l.tree(s.Tree)), l.text(s.Path),
			num(unix.O_WRONLY|unix.O_CLOEXEC), num(0)).store(l.place)
		l.write(held(l.place), string(s.Data))
		l.close(l.place)
	case OpDropBounding:
		const most = 63
		if s.Value > most {
			l.fail("no capability above %d exists", most)
		}
		for c := range min(s.Value, most) + 1 {
			l.call("prctl", unix.SYS_PRCTL, num(unix.PR_CAPBSET_DROP), num(c))
		}
	case OpSecureBits:
		l.call("prctl", unix.SYS_PRCTL, num(unix.PR_SET_SECUREBITS), num(s.Value))
	case OpClearAmbient:
		l.call("prctl", unix.SYS_PRCTL, num(unix.PR_CAP_AMBIENT), num(unix.PR_CAP_AMBIENT_CLEAR_ALL))
	case OpNoNewPrivs:
		l.call("prctl", unix.SYS_PRCTL, num(unix.PR_SET_NO_NEW_PRIVS), num(1))
	case OpCaps:
		header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		low, high := uint32(s.Value), uint32(s.Value>>32)
		data := &[2]unix.CapUserData{{Effective: low, Permitted: low}, {Effective: high, Permitted: high}}
		l.call("capset", unix.SYS_CAPSET, pin(l, header), pin(l, data))
	case OpSeccomp:
		l.call("seccomp", unix.SYS_SECCOMP, num(unix.SECCOMP_SET_MODE_FILTER), num(0), l.program(s))
	case OpObserve:
		l.observe(s)
	case OpLandlock:
		l.landlock(s.Ruleset)
	default:
		return false
	}
	return true
}

// mapUser writes the maps of the new user namespace. The child may do
// that itself because each map has one line and maps its own id.
func (l *lowering) mapUser(s *Step) {
	for _, w := range [][2]string{
		{"setgroups", "deny"},
		{"uid_map", fmt.Sprintf("%d %d 1\n", s.UID, s.UID)},
		{"gid_map", fmt.Sprintf("%d %d 1\n", s.GID, s.GID)},
	} {
		path := l.text("/proc/self/" + w[0])
		l.call("openat", unix.SYS_OPENAT, num(unix.AT_FDCWD), path, num(unix.O_WRONLY|unix.O_CLOEXEC),
			num(0)).store(l.place)
		l.write(held(l.place), w[1])
		l.close(l.place)
	}
}

// program is the filter of a step as the kernel takes it.
func (l *lowering) program(s *Step) arg {
	if len(s.Filter) == 0 || len(s.Filter) > 4096 {
		l.fail("a seccomp filter has 1 to 4096 instructions, not %d", len(s.Filter))
		return num(0)
	}
	return pin(l, &unix.SockFprog{ // points to the filter
		Len: uint16(len(s.Filter)), Filter: (*unix.SockFilter)(unsafe.Pointer(&s.Filter[0])),
	})
}

// observe installs a filter with a listener and sends the listener out. From
// the one call to the other no process could answer, so nothing that the filter asks
// about may come between them, and the filter lets the sending itself through.
func (l *lowering) observe(s *Step) {
	switch {
	case l.fds.observer == 0:
		l.fail("observe needs Files.Observer")
	case !l.inCommand:
		l.fail("observe before start-command: process 1 would wait for an answer to its own calls")
	}
	listener, msg := l.message()
	l.call("seccomp", unix.SYS_SECCOMP, num(unix.SECCOMP_SET_MODE_FILTER),
		// A call that waits for its answer is interrupted by nothing but its own end:
		// otherwise every signal would make the supervisor judge it once more.
		num(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV),
		l.program(s)).store(listener)
	l.call("sendmsg", unix.SYS_SENDMSG, num(l.fds.observer), msg, num(s.Value)).expect(1)
}

// landlock restricts the task by a ruleset. The structures are those of linux/landlock.h.
func (l *lowering) landlock(r *Ruleset) {
	if r == nil || r.Handled == 0 {
		l.fail("landlock needs a ruleset that handles something")
		return
	}
	size := 8
	switch {
	case r.Scoped != 0:
		size = 24
	case r.HandledNet != 0:
		size = 16
	}
	set := l.newSlot()
	attr := &struct{ fs, net, scoped uint64 }{r.Handled, r.HandledNet, r.Scoped}
	l.call("landlock_create_ruleset", unix.SYS_LANDLOCK_CREATE_RULESET, pin(l, attr), num(size),
		num(0)).store(set)
	for i := range r.Rules {
		l.landlockRule(set, r.Handled, &r.Rules[i])
	}
	l.call("landlock_restrict_self", unix.SYS_LANDLOCK_RESTRICT_SELF, held(set), num(0))
	l.leave(set)
}

func (l *lowering) landlockRule(set slot, handled uint64, u *Rule) {
	if u.Stdio < 0 || u.Stdio > 3 || (u.Stdio == 0) == (u.Path == "") {
		l.fail("a landlock rule names a path or a standard descriptor")
		return
	}
	// struct landlock_path_beneath_attr: 8 bytes of rights, then 4 of descriptor.
	const pathBeneath = 1
	attr := l.words(2)
	attr[0] = u.Access & handled
	file, opened := slot(&attr[1]), true
	switch {
	case u.Stdio == 0:
		l.open(u.Path, u.ID, unix.O_PATH, file)
	case l.terminal && l.reopened[u.Stdio-1] != nil:
		// The command's terminal was made after the caller chose its files.
		l.call("fcntl", unix.SYS_FCNTL, held(l.reopened[u.Stdio-1]), num(unix.F_DUPFD_CLOEXEC),
			num(3)).store(file)
	default:
		*file, opened = uint64(l.fds.stdio[u.Stdio-1]), false
	}
	at := arg{v: uintptr(unsafe.Pointer(&attr[0]))}
	add := l.call("landlock_add_rule", unix.SYS_LANDLOCK_ADD_RULE, held(set), num(pathBeneath), at, num(0))
	if opened {
		l.leave(file)
		return
	}
	// Landlock does not watch such a file (one in memory).
	add.flags |= flagIgnoreOne
	add.want = uintptr(unix.EBADFD)
}
