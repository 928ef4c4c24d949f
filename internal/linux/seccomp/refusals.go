// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Refusals tell a supervisor which of the calls that it gets are refused, and how: by the
// rules from which the filter was made, so the two cannot differ. The zero Refusals refuse
// every call, as of a foreign architecture.
type Refusals struct {
	arch  uint32
	x32   bool
	rules map[uint32][]Rule // of the calls that are refused, perhaps
	allow []string
}

// A Refusal is the answer to a call that is refused.
type Refusal struct {
	// Call is the name of the call, with the arguments that had it refused.
	Call string
	// Errno is the answer, never 0.
	Errno uint16
	// Openings are all names that have to be allowed for it; nil where none opens it.
	Openings []string
}

// NewRefusals returns the refusals of the filter that [Program] makes of o. The errors are
// those of Program.
func NewRefusals(o Options) (*Refusals, error) {
	rules, err := refuse(o)
	if err != nil {
		return nil, err
	}
	a := archOf(o.Arch)
	numbers, err := Filter{Arch: o.Arch, Rules: rules, Default: Allow}.rulesByNumber(a)
	if err != nil {
		return nil, err
	}
	return &Refusals{arch: a.audit, x32: a.x32, rules: numbers, allow: o.Allow}, nil
}

// Refused returns how a call is refused; false for one that is not. The arguments are those of
// struct seccomp_data, registers that no other task changes.
func (r *Refusals) Refused(arch, nr uint32, args [6]uint64) (Refusal, bool) {
	if arch != r.arch || r.x32 && nr >= x32First && nr != canceled {
		return Refusal{Call: "32-bit system calls", Errno: errNoSys}, true
	}
	for _, rule := range r.rules[nr] {
		switch {
		case slices.ContainsFunc(rule.When, func(c Cond) bool { return !c.holds(args) }):
		case rule.Action <= errnoBase || rule.Action > errnoBase+maxErrno:
			return Refusal{}, false
		default:
			return Refusal{Call: spell(rule.Name, args), Errno: uint16(rule.Action - errnoBase),
				Openings: r.openings(rule.Opening)}, true
		}
	}
	return Refusal{}, false
}

// openings returns an opening with those that must be named beside it.
func (r *Refusals) openings(name string) []string {
	if name == "" {
		return nil
	}
	var missing *MissingOpeningsError
	if err := Complete(append(slices.Clone(r.allow), name)); errors.As(err, &missing) {
		return append([]string{name}, missing.Missing...)
	}
	return []string{name}
}

// holds reports whether arguments meet a condition, as the program of a filter does.
func (c Cond) holds(args [6]uint64) bool {
	v := args[c.Arg]
	if c.Mask != 0 {
		v &= c.Mask
	}
	if c.Int {
		v &= 0xffffffff
	}
	return (v == c.Value) == (c.Op == Eq || c.Op == MaskedEq)
}

// words are names of numbers.
type words []struct {
	number uint64
	name   string
}

func (w words) of(v uint64) string {
	for _, n := range w {
		if n.number == v {
			return n.name
		}
	}
	return fmt.Sprint(v)
}

// The names of the numbers that calls are refused for, from the kernel's uapi headers.
var (
	families = words{
		{afUnix, "AF_UNIX"}, {afInet, "AF_INET"}, {afInet6, "AF_INET6"}, {afNetlink, "AF_NETLINK"}, {15, "AF_KEY"}, {17, "AF_PACKET"},
		{21, "AF_RDS"}, {29, "AF_CAN"}, {30, "AF_TIPC"}, {31, "AF_BLUETOOTH"}, {38, "AF_ALG"}, {40, "AF_VSOCK"}, {42, "AF_QIPCRTR"}, {44, "AF_XDP"},
	}
	socketTypes = words{{sockStream, "SOCK_STREAM"}, {sockDgram, "SOCK_DGRAM"}, {sockRaw, "SOCK_RAW"},
		{4, "SOCK_RDM"}, {sockSeqpk, "SOCK_SEQPACKET"}, {6, "SOCK_DCCP"}, {10, "SOCK_PACKET"}}
	ipProtocols = words{{protoICMP, "IPPROTO_ICMP"}, {protoICMP6, "IPPROTO_ICMPV6"}, {33, "IPPROTO_DCCP"},
		{132, "IPPROTO_SCTP"}, {136, "IPPROTO_UDPLITE"}, {255, "IPPROTO_RAW"}, {protoMPTCP, "IPPROTO_MPTCP"}}
	netlinks = words{{4, "NETLINK_SOCK_DIAG"}, {6, "NETLINK_XFRM"}, {9, "NETLINK_AUDIT"},
		{12, "NETLINK_NETFILTER"}, {15, "NETLINK_KOBJECT_UEVENT"}, {16, "NETLINK_GENERIC"}}
	terminalCtls = words{{tiocsti, "TIOCSTI"}, {tioclinux, "TIOCLINUX"}, {tiocsetd, "TIOCSETD"}}
	fileControls = words{{fSetLease, "F_SETLEASE"}, {fNotify, "F_NOTIFY"}, {fSetDeleg, "F_SETDELEG"}}
)

// namespaces are the bits of namespaces in the order in which they are spelled.
var namespaces = []struct {
	bit  uint64
	name string
}{
	{0x10000000, "CLONE_NEWUSER"}, {0x00020000, "CLONE_NEWNS"}, {0x20000000, "CLONE_NEWPID"}, {0x40000000, "CLONE_NEWNET"},
	{0x08000000, "CLONE_NEWIPC"}, {0x04000000, "CLONE_NEWUTS"}, {0x02000000, "CLONE_NEWCGROUP"},
}

// spell returns a refused call with the arguments that tell why.
func spell(name string, args [6]uint64) string {
	switch name {
	case "clone", "unshare":
		var bits []string
		for _, n := range namespaces {
			if args[0]&n.bit != 0 {
				bits = append(bits, n.name)
			}
		}
		if name == "unshare" && args[0]&cloneNewTime != 0 {
			bits = append(bits, "CLONE_NEWTIME")
		}
		return name + "(" + strings.Join(bits, "|") + ")"
	case "socket", "socketpair":
		return name + "(" + socketWords(args) + ")"
	case "ioctl":
		return "ioctl(" + terminalCtls.of(args[1]&0xffffffff) + ")"
	case "fcntl":
		return "fcntl(" + fileControls.of(args[1]&0xffffffff) + ")"
	case "personality":
		return fmt.Sprintf("personality(%#x)", args[0]&0xffffffff)
	case "chmod", "fchmod", "creat", "mknod":
		return fmt.Sprintf("%s(mode %#o)", name, args[1]&0xffff)
	case "fchmodat", "fchmodat2", "mknodat", "open":
		return fmt.Sprintf("%s(mode %#o)", name, args[2]&0xffff)
	case "openat":
		return fmt.Sprintf("openat(mode %#o)", args[3]&0xffff)
	}
	return name
}

// socketWords spells the arguments of a new socket, a protocol of 0 left out.
func socketWords(args [6]uint64) string {
	family, kind, protocol := args[0]&0xffffffff, args[1]&sockTypeMask, args[2]&0xffffffff
	text := families.of(family) + ", " + socketTypes.of(kind)
	switch {
	case family == afNetlink:
		text += ", " + netlinks.of(protocol)
	case protocol != 0 && (family == afInet || family == afInet6):
		text += ", " + ipProtocols.of(protocol)
	}
	return text
}
