// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

// arch is what differs between machines.
type arch struct {
	// name is the GOARCH spelling.
	name string
	// audit is the AUDIT_ARCH_* value of linux/audit.h: the ELF machine number
	// with the 64-bit and little-endian flags.
	audit uint32
	// names are the system calls by number; "" is a gap.
	names []string
	// x32 says that numbers with bit 30 set are a second calling convention.
	x32 bool
}

// The audit architectures of the supported machines.
const (
	auditX8664   = 0xc000003e
	auditAArch64 = 0xc00000b7
)

// archOf returns the machine of that name, nil when it is unknown.
func archOf(name string) *arch {
	switch name {
	case "amd64":
		return &arch{name: name, audit: auditX8664, names: x8664Names[:], x32: true}
	case "arm64":
		return &arch{name: name, audit: auditAArch64, names: aarch64Names[:]}
	}
	return nil
}

// number finds a call by name; false when the machine lacks it.
func (a *arch) number(name string) (int, bool) {
	if name == "" { // the gaps of the table
		return 0, false
	}
	for nr, n := range a.names {
		if n == name {
			return nr, true
		}
	}
	return 0, false
}

// AuditArch returns the value by which the kernel tells a filter that a call
// came through the normal convention of arch ("amd64" or "arm64"; the
// AUDIT_ARCH_* values of linux/audit.h), and false for other names.
func AuditArch(arch string) (uint32, bool) {
	a := archOf(arch)
	if a == nil {
		return 0, false
	}
	return a.audit, true
}

// SyscallName returns the name of the system call nr on arch ("amd64" or
// "arm64"), and false when the number or the architecture is unknown.
func SyscallName(arch string, nr int) (string, bool) {
	a := archOf(arch)
	if a == nil || nr < 0 || nr >= len(a.names) || a.names[nr] == "" {
		return "", false
	}
	return a.names[nr], true
}

// SyscallNumber returns the number of the named system call on arch ("amd64"
// or "arm64"), and false when the architecture is unknown or lacks the call.
func SyscallNumber(arch, name string) (int, bool) {
	a := archOf(arch)
	if a == nil {
		return 0, false
	}
	return a.number(name)
}

// known reports whether any machine has the call.
func known(name string) bool {
	for _, m := range [...]string{"amd64", "arm64"} {
		if _, ok := SyscallNumber(m, name); ok {
			return true
		}
	}
	return false
}
