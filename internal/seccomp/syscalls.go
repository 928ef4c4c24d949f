// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

import "slices"

//go:generate go test . -run TestTables -update

// An arch holds what differs between machines.
type arch struct {
	// audit is the AUDIT_ARCH value of linux/audit.h: the ELF machine number with the
	// 64-bit and little-endian flags.
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

// archOf returns the machine of a GOARCH name, or nil.
func archOf(name string) *arch {
	switch name {
	case "amd64":
		return &arch{audit: auditX8664, names: x8664Names[:], x32: true}
	case "arm64":
		return &arch{audit: auditAArch64, names: aarch64Names[:]}
	}
	return nil
}

// known reports whether any machine has a call.
func known(name string) bool {
	return name != "" && (slices.Contains(x8664Names[:], name) || slices.Contains(aarch64Names[:], name))
}
