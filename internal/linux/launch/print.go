// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

var opNames = [opEnd]string{
	OpDieWithParent: "die-with-parent", OpSubreaper: "subreaper", OpMapUser: "map-user",
	OpOpen: "open", OpClone: "clone", OpSetTree: "set-tree", OpSetMount: "set-mount", OpAttach: "attach",
	OpPin: "pin", OpReopen: "reopen",
	OpTmpfs: "tmpfs", OpProc: "proc", OpDevpts: "devpts", OpOverlay: "overlay", OpMkdir: "mkdir",
	OpMkfile: "mkfile", OpChmod: "chmod",
	OpSymlink: "symlink", OpPivot: "pivot", OpLoopback: "loopback-up", OpListen: "listen",
	OpNetlink: "netlink", OpSetting: "setting",
	OpRefuseWrite: "refuse-write", OpDropBounding: "drop-bounding-set", OpSecureBits: "secure-bits",
	OpClearAmbient: "clear-ambient", OpNoNewPrivs: "no-new-privs", OpCaps: "capabilities",
	OpSeccomp: "seccomp", OpStartCommand: "start-command", OpNewGroup: "new-group", OpTerminal: "terminal",
	OpStdio:    "stdio",
	OpLandlock: "landlock", OpLimit: "limit", OpChdir: "chdir", OpResetSignals: "reset-signals",
	OpCloseFiles: "close-files", OpPass: "pass-descriptor", OpMemory: "memory-file", OpObserve: "observe",
	OpJoin: "join-cgroup", OpAffinity: "affinity", OpExec: "exec",
	OpShare: "share", OpPart: "part", OpTake: "take", OpExpectMount: "expect-mount", OpHold: "hold",
}

// String returns the name of the step as scripts print it.
func (o Op) String() string {
	if o > OpNone && o < opEnd {
		return opNames[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// String prints the step as one line: its name, what it acts on, and, behind
// "#", what it is for.
func (s Step) String() string {
	var b strings.Builder
	s.appendTo(&b)
	return b.String()
}

// appendTo is String. Every run whose events are kept prints its script, so the usual parts need no fmt.
func (s *Step) appendTo(b *strings.Builder) {
	b.WriteString(s.Op.String())
	if s.Tree != 0 {
		b.WriteByte(' ')
		b.WriteString(strconv.Itoa(s.Tree))
	}
	if s.From != 0 {
		b.WriteString(" from ")
		b.WriteString(strconv.Itoa(s.From))
	}
	if s.Path != "" {
		b.WriteByte(' ')
		b.WriteString(quote(s.Path))
	}
	if s.Dest != "" {
		b.WriteString(" -> ")
		b.WriteString(quote(s.Dest))
	}
	if s.Recursive {
		b.WriteString(" recursive")
	}
	if s.Private {
		b.WriteString(" private")
	}
	if s.Set != 0 {
		b.WriteString(" +")
		b.WriteString(attributes.names(s.Set, ","))
	}
	if s.Clear != 0 {
		b.WriteString(" -")
		b.WriteString(attributes.names(s.Clear, ","))
	}
	b.WriteString(s.details())
	if s.ID != (ID{}) {
		b.WriteString(" checked")
	}
	if s.Label != "" {
		b.WriteString("  # ")
		b.WriteString(strings.Map(printable, s.Label))
	}
}

// details prints the fields that belong to single operations.
func (s *Step) details() string {
	switch s.Op {
	case OpMapUser:
		return fmt.Sprintf(" uid %d gid %d", s.UID, s.GID)
	case OpNetlink:
		return fmt.Sprintf(" %d: %d bytes", s.Value, len(s.Data))
	case OpSetting:
		return " = " + quote(string(s.Data))
	case OpMkdir, OpMkfile, OpChmod, OpTmpfs:
		return fmt.Sprintf(" mode %04o", s.Mode)
	case OpProc:
		if s.Value != 0 {
			return " with all processes"
		}
	case OpReopen:
		return fmt.Sprintf(" as %d", s.Stdio-1)
	case OpOverlay:
		return " " + s.Layers.String()
	case OpTerminal:
		return fmt.Sprintf(" %dx%d as 0-%d", s.Cols, s.Rows, s.Stdio-1)
	case OpDropBounding:
		return fmt.Sprintf(" 0-%d", s.Value)
	case OpSecureBits, OpCaps:
		return fmt.Sprintf(" %#x", s.Value)
	case OpSeccomp, OpObserve:
		return fmt.Sprintf(" %d instructions", len(s.Filter))
	case OpLimit:
		return fmt.Sprintf(" %s %s %s", resourceName(s.Resource), limit(s.Soft), limit(s.Hard))
	case OpCloseFiles:
		if s.Value != 0 {
			return fmt.Sprintf(" from %d", s.Value)
		}
		if len(s.Keep) > 0 {
			return fmt.Sprintf(" but %v", s.Keep)
		}
	case OpPass:
		return fmt.Sprintf(" as %d", s.Value)
	case OpAffinity:
		return fmt.Sprintf(" %x", s.Data)
	case OpMemory:
		return fmt.Sprintf(" as %d, %d bytes", s.Value, len(s.Data))
	case OpLandlock:
		return " " + s.Ruleset.String()
	case OpExec:
		var argv strings.Builder
		for _, a := range s.Argv {
			argv.WriteString(" " + quote(a))
		}
		return argv.String()
	}
	return ""
}

// String prints both directories.
func (l *Layers) String() string {
	if l == nil {
		return "no layers"
	}
	text := fmt.Sprintf("upper %s work %s", quote(l.Upper.Path), quote(l.Work.Path))
	for _, layer := range l.Lower {
		if layer != (Layer{}) {
			text += " over " + quote(layer.Path)
		}
	}
	return text
}

// String prints the rules in order.
func (r *Ruleset) String() string {
	if r == nil {
		return "no ruleset"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "handles %#x", r.Handled)
	if r.HandledNet != 0 {
		fmt.Fprintf(&b, " net %#x", r.HandledNet)
	}
	if r.Scoped != 0 {
		fmt.Fprintf(&b, " scope %#x", r.Scoped)
	}
	for _, u := range r.Rules {
		if u.Stdio != 0 {
			fmt.Fprintf(&b, "; descriptor %d %#x", u.Stdio-1, u.Access)
			continue
		}
		b.WriteString("; ")
		b.WriteString(quote(u.Path))
		b.WriteString(" 0x")
		b.WriteString(strconv.FormatUint(u.Access, 16))
	}
	return b.String()
}

// String prints the whole script, a line per step, numbered as error reports
// number them. The steps of the second task are indented.
func (s *Script) String() string {
	const usual = 96 // bytes of a step
	var b strings.Builder
	b.Grow(usual * len(s.Steps))
	if s.Enter {
		b.WriteString("in a shared sandbox, ")
	}
	fmt.Fprintf(&b, "namespaces %s\n", s.Namespaces)
	indent := ""
	for i := range s.Steps {
		for below := 100; below > i+1 && below > 1; below /= 10 { // three columns
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(i + 1))
		b.WriteByte(' ')
		b.WriteString(indent)
		s.Steps[i].appendTo(&b)
		b.WriteByte('\n')
		if s.Steps[i].Op == OpStartCommand {
			indent = "  "
		}
	}
	return b.String()
}

// A bit is one bit of a number, with the name that it is printed by.
type bit struct {
	value uint64
	name  string
}

type bits []bit

var attributes = bits{{AttrReadOnly, "ro"}, {AttrNoSuid, "nosuid"}, {AttrNoDev, "nodev"},
	{AttrNoExec, "noexec"}}

var namespaces = bits{
	{uint64(NewUser), "user"}, {uint64(NewMount), "mount"}, {uint64(NewPID), "pid"}, {uint64(NewNet), "net"},
	{uint64(NewIPC), "ipc"}, {uint64(NewUTS), "uts"}, {uint64(NewCgroup), "cgroup"},
}

// names lists the bits of v by name, and the rest as a number.
func (b bits) names(v uint64, separator string) string {
	var out []string
	for _, one := range b {
		if v&one.value != 0 {
			out = append(out, one.name)
			v &^= one.value
		}
	}
	if v != 0 {
		out = append(out, fmt.Sprintf("%#x", v))
	}
	return strings.Join(out, separator)
}

// String names the namespaces, or says "none".
func (n Namespaces) String() string {
	if n == 0 {
		return "none"
	}
	return namespaces.names(uint64(n), " ")
}

// printable keeps a label on its line.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}

// quote leaves plain words alone, so that scripts read well, and quotes
// everything that could be mistaken for another line or word.
func quote(s string) string {
	if s == "" {
		return `""`
	}
	for _, r := range s {
		if r <= ' ' || r == '"' || r == '#' || r == '\'' || r == '\\' || r >= 0x7f {
			return fmt.Sprintf("%q", s)
		}
	}
	return s
}

func limit(v uint64) string {
	if v == ^uint64(0) {
		return "unlimited"
	}
	return fmt.Sprint(v)
}

// resourceName names the RLIMIT_ numbers that amd64 and arm64 share.
func resourceName(r int) string {
	names := []string{
		"cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile",
		"memlock", "as", "locks", "sigpending", "msgqueue", "nice", "rtprio", "rttime",
	}
	if r >= 0 && r < len(names) {
		return names[r]
	}
	return fmt.Sprint(r)
}
