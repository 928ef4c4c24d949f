// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"strings"
)

// Lines says f in words, one line per rule in the order in which they apply,
// after a line for foreign calling conventions and before one for the default.
// Rules for calls that f's architecture lacks are left out. The words of a rule
// are its Words or else its conditions. It never fails: what Compile would
// refuse is printed as it is.
func (f Filter) Lines() []string {
	lines := []string{"calls by another architecture or convention: ENOSYS"}
	a := archOf(f.Arch)
	for _, r := range f.Rules {
		if a != nil && r.Name != "" {
			if _, ok := a.number(r.Name); !ok && known(r.Name) {
				continue
			}
		}
		line := r.Name
		switch {
		case r.Words != "":
			line += " " + r.Words
		case len(r.When) > 0:
			conds := make([]string, len(r.When))
			for i, c := range r.When {
				conds[i] = c.String()
			}
			line += " with " + strings.Join(conds, " and ")
		}
		lines = append(lines, line+": "+r.Action.String())
	}
	return append(lines, "everything else: "+f.Default.String())
}

// String returns the action in a word: "allow", "EPERM", "errno 7", "kill".
func (a Action) String() string {
	switch a {
	case 0:
		return "none"
	case KillProcess:
		return "kill"
	case Trap:
		return "trap"
	case Notify:
		return "notify"
	case Log:
		return "log"
	case Allow:
		return "allow"
	}
	n, ok := a.Errno()
	if !ok {
		return fmt.Sprintf("action %#x", uint32(a))
	}
	switch n {
	case ePerm:
		return "EPERM"
	case errNoSys:
		return "ENOSYS"
	case eProtoNoSupport:
		return "EPROTONOSUPPORT"
	case eSockTNoSupport:
		return "ESOCKTNOSUPPORT"
	case eAFNoSupport:
		return "EAFNOSUPPORT"
	}
	return fmt.Sprintf("errno %d", n)
}

// String returns the comparison's sign, "==" for Eq and MaskedEq.
func (o CondOp) String() string {
	switch o {
	case Eq, MaskedEq:
		return "=="
	case Ne, MaskedNe:
		return "!="
	case Lt:
		return "<"
	case Le:
		return "<="
	case Gt:
		return ">"
	case Ge:
		return ">="
	}
	return fmt.Sprintf("comparison %d", uint8(o))
}

// String returns the condition as a comparison: "arg1 & 0xf == 0x3", with
// "int(arg1)" for an argument of 32 bits.
func (c Cond) String() string {
	s := fmt.Sprintf("arg%d", c.Arg)
	if c.Int {
		s = "int(" + s + ")"
	}
	if c.Op == MaskedEq || c.Op == MaskedNe {
		s += fmt.Sprintf(" & %#x", c.Mask)
	}
	return fmt.Sprintf("%s %s %#x", s, c.Op, c.Value)
}
