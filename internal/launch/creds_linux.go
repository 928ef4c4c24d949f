// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lowerCreds lowers the steps that take rights away.
func (l *lowering) lowerCreds(s *Step) error {
	switch s.Op {
	case OpMapUser:
		return l.lowerMapUser(s)
	case OpDropBounding:
		if s.Value > 63 {
			return &ScriptError{Step: l.step, Reason: "no capability above 63 exists"}
		}
		for c := uint64(0); c <= s.Value; c++ {
			l.call("prctl", unix.SYS_PRCTL, num(unix.PR_CAPBSET_DROP), flag(c))
		}
	case OpSecureBits:
		l.call("prctl", unix.SYS_PRCTL, num(unix.PR_SET_SECUREBITS), flag(s.Value))
	case OpClearAmbient:
		l.call("prctl", unix.SYS_PRCTL, num(unix.PR_CAP_AMBIENT), num(unix.PR_CAP_AMBIENT_CLEAR_ALL))
	case OpNoNewPrivs:
		l.call("prctl", unix.SYS_PRCTL, num(unix.PR_SET_NO_NEW_PRIVS), num(1))
	case OpCaps:
		head := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		data := &[2]unix.CapUserData{
			{Effective: uint32(s.Value), Permitted: uint32(s.Value)},
			{Effective: uint32(s.Value >> 32), Permitted: uint32(s.Value >> 32)},
		}
		l.call("capset", unix.SYS_CAPSET, pin(l, head), pin(l, data))
	case OpSeccomp:
		return l.lowerSeccomp(s)
	case OpLandlock:
		return l.lowerLandlock(s)
	}
	return nil
}

// lowerMapUser writes the maps of the new user namespace. The child may do
// that itself because each map has one line and maps its own id.
func (l *lowering) lowerMapUser(s *Step) error {
	for _, w := range []struct{ path, text string }{
		{"/proc/self/setgroups", "deny"},
		{"/proc/self/uid_map", fmt.Sprintf("%d %d 1\n", s.UID, s.UID)},
		{"/proc/self/gid_map", fmt.Sprintf("%d %d 1\n", s.GID, s.GID)},
	} {
		p, err := l.cstring(w.path)
		if err != nil {
			return err
		}
		text, err := l.cstring(w.text)
		if err != nil {
			return err
		}
		l.call("openat", unix.SYS_OPENAT, atCwd(), p, num(unix.O_WRONLY|unix.O_CLOEXEC), zero()).store(l.place)
		l.call("write", unix.SYS_WRITE, l.place.arg(), text, num(uintptr(len(w.text)))).expect(uintptr(len(w.text)))
		l.close(l.place)
	}
	return nil
}

func (l *lowering) lowerSeccomp(s *Step) error {
	prog, err := l.program(s)
	if err != nil {
		return err
	}
	l.call("seccomp", unix.SYS_SECCOMP, num(unix.SECCOMP_SET_MODE_FILTER), zero(), prog)
	return nil
}

// program is the filter of a step as the kernel takes it.
func (l *lowering) program(s *Step) (arg, error) {
	if len(s.Filter) == 0 || len(s.Filter) > 4096 {
		return arg{}, &ScriptError{Step: l.step, Reason: fmt.Sprintf("a seccomp filter has 1 to 4096 instructions, not %d", len(s.Filter))}
	}
	prog := &unix.SockFprog{
		Len:    uint16(len(s.Filter)),
		Filter: (*unix.SockFilter)(unsafe.Pointer(&s.Filter[0])),
	}
	l.keep = append(l.keep, s.Filter)
	return pin(l, prog), nil
}

// Landlock's rule type and the two attribute structures (linux/landlock.h).
const landlockRulePathBeneath = 1

type landlockRulesetAttr struct{ fs, net, scoped uint64 }

func (l *lowering) lowerLandlock(s *Step) error {
	r := s.Ruleset
	if r == nil || r.Handled == 0 {
		return &ScriptError{Step: l.step, Reason: "landlock needs a ruleset that handles something"}
	}
	size := uintptr(8)
	switch {
	case r.Scoped != 0:
		size = 24
	case r.HandledNet != 0:
		size = 16
	}
	set := l.newSlot()
	attr := &landlockRulesetAttr{fs: r.Handled, net: r.HandledNet, scoped: r.Scoped}
	l.call("landlock_create_ruleset", unix.SYS_LANDLOCK_CREATE_RULESET, pin(l, attr), num(size), zero()).store(set)
	for _, u := range r.Rules {
		if u.Stdio < 0 || u.Stdio > 3 || (u.Stdio == 0) == (u.Path == "") {
			return &ScriptError{Step: l.step, Reason: "a landlock rule names a path or a standard descriptor"}
		}
		// struct landlock_path_beneath_attr: 8 bytes of rights, then 4 of
		// descriptor. It lies in two slots, so that the open fills it in.
		access, parent := l.newSlot(), l.newSlot()
		l.words[access] = u.Access & r.Handled
		if u.Stdio != 0 {
			l.words[parent] = uint64(l.fds.stdio[u.Stdio-1])
			if own, ok := l.reopened[u.Stdio-1]; ok && l.terminal {
				// The command's terminal came into being after the caller chose its files.
				l.call("fcntl", unix.SYS_FCNTL, own.arg(), num(unix.F_DUPFD_CLOEXEC), num(3)).store(parent)
				l.addRule(set, access)
				l.close(parent)
				continue
			}
			// EBADFD: Landlock does not watch such a file (one in memory).
			l.addRule(set, access).ignoreErrno(unix.EBADFD)
			continue
		}
		if err := l.open(u.Path, u.ID, unix.O_PATH, parent); err != nil {
			return err
		}
		l.addRule(set, access)
		l.close(parent)
	}
	l.call("landlock_restrict_self", unix.SYS_LANDLOCK_RESTRICT_SELF, set.arg(), zero())
	l.close(set)
	return nil
}

func (l *lowering) addRule(set, rule slot) *call {
	return l.call("landlock_add_rule", unix.SYS_LANDLOCK_ADD_RULE, set.arg(), num(landlockRulePathBeneath), l.slotAddr(rule), zero())
}
