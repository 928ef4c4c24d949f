// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"strings"
)

// Lines prints f, one line per rule in the order in which they apply, after a line for
// foreign calling conventions and before one for the default. Rules for calls that f's
// architecture lacks are left out. It prints invalid rules as they are.
func (f Filter) Lines() []string {
	lines := []string{"calls by another architecture or convention: ENOSYS"}
	for _, r := range f.Rules {
		if _, ok := SyscallNumber(f.Arch, r.Name); !ok && known(r.Name) {
			continue
		}
		line := r.Name
		for i, c := range r.When {
			line += []string{" with ", " and "}[min(i, 1)] + c.String()
		}
		lines = append(lines, line+": "+r.Action.String())
	}
	return append(lines, "everything else: "+f.Default.String())
}

// String returns the action in a word: "allow", "EPERM", "errno 7".
func (a Action) String() string {
	words := map[Action]string{
		0: "none", Notify: "notify", Allow: "allow", Errno(ePerm): "EPERM", Errno(errNoSys): "ENOSYS",
		Errno(eAcces):          "EACCES",
		Errno(eProtoNoSupport): "EPROTONOSUPPORT", Errno(eSockTNoSupport): "ESOCKTNOSUPPORT",
		Errno(eAFNoSupport): "EAFNOSUPPORT",
	}
	if w, ok := words[a]; ok {
		return w
	}
	if a.valid() {
		return fmt.Sprintf("errno %d", a-errnoBase)
	}
	return fmt.Sprintf("action %#x", uint32(a))
}

// String returns the condition as a comparison: "arg1 & 0xf == 0x3", with "int(arg1)"
// for an argument of 32 bits.
func (c Cond) String() string {
	s := fmt.Sprintf("arg%d", c.Arg)
	if c.Int {
		s = "int(" + s + ")"
	}
	if c.Op == MaskedEq || c.Op == MaskedNe {
		s += fmt.Sprintf(" & %#x", c.Mask)
	}
	op := map[CondOp]string{Eq: "==", MaskedEq: "==", Ne: "!=", MaskedNe: "!="}[c.Op]
	if op == "" {
		op = fmt.Sprintf("comparison %d", c.Op)
	}
	return strings.Join([]string{s, op, fmt.Sprintf("%#x", c.Value)}, " ")
}
