// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"slices"
	"sync"
)

//go:generate go test . -run TestTables -update

// An arch holds what differs between machines.
type arch struct {
	// audit is the AUDIT_ARCH value of linux/audit.h: the ELF machine number with the
	// 64-bit and little-endian flags.
	audit uint32
	// names are the system calls by number; "" is a gap. Numbers returns the number of each.
	names   []string
	numbers func() map[string]uint32
	// x32 says that numbers with bit 30 set are a second calling convention.
	x32 bool
}

// The audit architectures of the supported machines.
const (
	auditX8664   = 0xc000003e
	auditAArch64 = 0xc00000b7
)

// A run makes three filters, so the numbers are kept.
var (
	x8664Numbers   = sync.OnceValue(func() map[string]uint32 { return numbersOf(x8664Names[:]) })
	aarch64Numbers = sync.OnceValue(func() map[string]uint32 { return numbersOf(aarch64Names[:]) })
)

func numbersOf(names []string) map[string]uint32 {
	numbers := make(map[string]uint32, len(names))
	for nr, name := range names {
		if name != "" {
			numbers[name] = uint32(nr)
		}
	}
	return numbers
}

// archOf returns the machine of a GOARCH name, or nil.
func archOf(name string) *arch {
	switch name {
	case "amd64":
		return &arch{audit: auditX8664, names: x8664Names[:], numbers: x8664Numbers, x32: true}
	case "arm64":
		return &arch{audit: auditAArch64, names: aarch64Names[:], numbers: aarch64Numbers}
	}
	return nil
}

// known reports whether any machine has a call.
func known(name string) bool {
	return name != "" && (slices.Contains(x8664Names[:], name) || slices.Contains(aarch64Names[:], name))
}

// CallName returns the name of a system call of a machine, given as GOARCH; empty for an unknown one.
func CallName(machine string, nr int) string {
	a := archOf(machine)
	if a == nil || nr < 0 || nr >= len(a.names) {
		return ""
	}
	return a.names[nr]
}
