// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// protectsLinks ends the rules of denials by that flag.
const protectsLinks = "(--protect-hard-links)"

// A denialGroup is denials that one line reports.
type denialGroup struct {
	op       sandbox.Op
	evidence bool
	flags    string // the grant, or the wider flags
	rule     string
	errno    string // of a single one
	times    int    // of a single one
	targets  []string
}

// groupDenials gathers denials: those that one grant opens belong together, without one those
// that the same rule denies in one directory, and all that need the network.
func groupDenials(ds []sandbox.Denial) []*denialGroup {
	type key struct {
		op       sandbox.Op
		evidence bool
		by       string
	}
	at := map[key]*denialGroup{}
	var groups []*denialGroup
	for _, d := range ds {
		k := key{d.Op, d.Source.Evidence(), "grant " + d.Grant}
		switch {
		case d.Grant != "":
		case IsNetwork(&d):
			k.op, k.by = sandbox.Connect, "network"
		case d.Op == sandbox.Read || d.Op == sandbox.Write || d.Op == sandbox.Exec:
			k.by = "rule " + d.Rule + " " + path.Dir(d.Path)
		case d.Op == sandbox.Syscall && strings.HasPrefix(d.Rule, reach.NothingOpens):
			k.by = "rule " + d.Rule
		default:
			k.by = "target " + d.Target()
		}
		g := at[k]
		if g == nil {
			g = &denialGroup{op: d.Op, evidence: k.evidence, flags: cmp.Or(d.Grant, d.Wider), rule: d.Rule,
				errno: d.Errno}
			at[k], groups = g, append(groups, g)
		}
		g.targets = append(g.targets, d.Target())
		g.times += max(d.Count, 1)
	}
	return groups
}

// line reports the group, with paths below home shortened:
// "blocked: write ~/x (EROFS); allow with --rw /home/u/x".
func (g *denialGroup) line(home string) string {
	why, ok := strings.CutPrefix(g.rule, reach.NothingOpens)
	if ok && !g.evidence && g.op == sandbox.Syscall {
		return "probably not possible: " + text.Line(why) // the call is not what was seen
	}
	s := "blocked: " + g.operation(home)
	if !g.evidence {
		s = "probably " + s
	}
	if strings.Contains(g.rule, privateAddress) || strings.HasPrefix(g.rule, grants.ServiceRule) ||
		strings.HasPrefix(g.rule, grants.SilentRule) {
		s += ": " + text.Line(g.rule)
	}
	switch {
	case g.readOnlyHere():
		at, _ := strings.CutSuffix(g.rule, "=read")
		s += "; read-only by a flag or a setting for " + text.Word(Tilde(at, home))
	case g.flags != "":
		s += "; allow with " + Allow(g.flags, home)
		more := reach.OpensMore(g.flags, g.targets)
		if more != "" && reach.GrantWarning(g.flags, home) == "" {
			s += " (" + more + ")"
		}
	case strings.HasPrefix(g.rule, "credential "):
		s += ": the " + text.Line(g.rule) + " does not belong there"
	case DeniesPath(g.rule), strings.HasPrefix(g.rule, "rule "):
		s += "; denied by " + text.Word(g.rule)
	case g.op == sandbox.Syscall && !strings.HasPrefix(g.rule, reach.NothingOpens):
		s += ": no flag allows it in a sandbox"
	case strings.HasSuffix(g.rule, protectsLinks), strings.HasPrefix(g.rule, reach.NothingOpens):
		s += ": " + text.Line(g.rule)
	}
	return s
}

// privateAddress is in the rules of denials of names that a policy allows, and whose addresses it closes.
const privateAddress = " has a private address ("

// Failures are the lines about hosts that the policy allows and that were not reached.
func Failures(list []executor.NetworkFailure) []string {
	var lines []string
	for _, f := range list {
		what, host := "cannot connect to ", net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port)))
		if f.Name {
			what, host = "cannot resolve ", f.Host
		}
		lines = append(lines, what+text.Word(host)+": "+text.Line(f.Error)+" (the network policy allows it)")
	}
	return slices.Compact(lines)
}

// Allow are flags for people, with what they open beyond what was denied.
func Allow(flags, home string) string {
	text := shellGrant(flags)
	if warning := reach.GrantWarning(flags, home); warning != "" {
		text += " (" + warning + ")"
	}
	return text
}

// DeniesPath reports whether a rule is a deny entry, which no grant opens.
func DeniesPath(rule string) bool {
	return strings.HasPrefix(rule, "deny ") || strings.HasSuffix(rule, "=deny")
}

// readOnlyHere reports whether the only flag that would help is for a path that an entry makes read-only:
// beside such a flag or setting it does not count.
func (g *denialGroup) readOnlyHere() bool {
	list, ok := sandbox.ParseGrants(g.flags)
	return ok && len(list) == 1 && list[0].Path != "" && g.rule == list[0].Path+"=read"
}

// Operation is what was denied, with paths below home shortened: "write ~/x (EROFS)".
func Operation(d sandbox.Denial, home string) string {
	return groupDenials([]sandbox.Denial{d})[0].operation(home)
}

// operation is what was denied: "write /etc/hosts (EROFS)".
func (g *denialGroup) operation(home string) string {
	target := g.targets[0]
	var details []string
	if n := len(g.targets); n > 1 && (g.op == sandbox.Connect || g.op == sandbox.Bind ||
		g.op == sandbox.Syscall) {
		return verbs[g.op] + " " + text.Word(target) + fmt.Sprintf(" and %d more", n-1)
	} else if n > 1 {
		target = commonDir(g.targets)
		details = append(details, fmt.Sprintf("%d files", n))
	} else {
		if g.errno != "" {
			details = append(details, text.Word(g.errno))
		}
		if g.times > 1 {
			details = append(details, fmt.Sprintf("%d times", g.times))
		}
	}
	s := verbs[g.op]
	if target != "" {
		s += " " + text.Word(Tilde(target, home))
	}
	if len(details) > 0 {
		s += " (" + strings.Join(details, ", ") + ")"
	}
	return s
}

// verbs are the words for operations, as in "write /x".
var verbs = map[sandbox.Op]string{
	sandbox.Read:    "read",
	sandbox.Write:   "write",
	sandbox.Exec:    "execute",
	sandbox.Connect: "connect to",
	sandbox.Bind:    "listen on",
	sandbox.Signal:  "signal a process outside the sandbox",
	sandbox.Syscall: "make the system call",
}

// Denials are the lines about denials after a program that failed, in the order of the
// denials. Harmless ones have none. One that is inferred from the output repeats what people
// have read, unless something allows it.
func Denials(ds []sandbox.Denial, omitted int, home string) []string {
	var lines []string
	shown := slices.DeleteFunc(slices.Clone(ds), func(d sandbox.Denial) bool {
		return d.Harmless != "" || !d.Source.Evidence() && d.Grant == "" && d.Wider == "" &&
			!strings.HasPrefix(d.Rule, reach.NothingOpens)
	})
	for _, g := range groupDenials(shown) {
		lines = append(lines, g.line(home))
	}
	if omitted > 0 && len(lines) > 0 {
		lines = append(lines, Plural(omitted, "further denial", "further denials"))
	}
	return lines
}

// commonDir returns the deepest directory that all paths have in common; a path
// among them that is a directory of the others counts as one.
func commonDir(names []string) string {
	at := names[0]
	for _, n := range names[1:] {
		for at != "/" && at != "." && n != at && !strings.HasPrefix(n, at+"/") {
			at = path.Dir(at)
		}
	}
	return at
}

// shellGrant writes flags so that they can be pasted into a shell and move no terminal.
func shellGrant(flags string) string {
	pairs, ok := FlagPairs(flags)
	if !ok {
		return text.Word(flags)
	}
	return ShellWords(slices.Concat(pairs...))
}

// FlagPairs returns the flags of a suggestion as pairs of a flag and its value. It reports false
// for other text.
func FlagPairs(flags string) ([][]string, bool) {
	const letters = "abcdefghijklmnopqrstuvwxyz-"
	if flag, value, _ := strings.Cut(flags, " "); (flag == "--net" || flag == "-s") && value != "" &&
		strings.Trim(value, letters) == "" {
		return [][]string{{flag, value}}, true // it is no grant
	}
	grants, ok := sandbox.ParseGrants(flags)
	var pairs [][]string
	for _, g := range grants {
		pairs = append(pairs, GrantWords(g))
	}
	return pairs, ok
}

// GrantWords returns a grant that was parsed as two words of a command line.
func GrantWords(g sandbox.Grant) []string {
	flag, _, _ := strings.Cut(g.String(), " ")
	return []string{flag, cmp.Or(g.Opening, g.Name, g.Addr, g.Path)}
}

// Quarantines reports protected names that were created; it is empty where there are none.
func Quarantines(list []executor.Quarantined) string {
	if len(list) == 0 {
		return ""
	}
	text := Quarantine(list[0])
	if more := len(list) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more (run `sallyport why` for details)", more)
	}
	return text
}

// Quarantine reports a protected name that was created.
func Quarantine(q executor.Quarantined) string {
	s := text.Word(q.Path) + " was created (" + q.Why + ") and is gone"
	if q.MovedTo != "" {
		s = "quarantined " + text.Word(q.Path) + " (" + q.Why + "): moved to " + text.Word(q.MovedTo)
	}
	if q.Grant != "" {
		s += "; allow with " + shellGrant(q.Grant)
	}
	return s
}

// maxLinksShown is how many files HardLinks names.
const maxLinksShown = 5

// HardLinks reports files that were changed in place although they have further names;
// it is empty where there are none.
func HardLinks(links []executor.HardLink, omitted int, home string) string {
	if len(links) == 0 {
		return ""
	}
	var names []string
	for _, l := range links[:min(len(links), maxLinksShown)] {
		names = append(names, text.Word(Tilde(l.Path, home)))
	}
	text := "changed through hard links: " + strings.Join(names, ", ")
	if more := len(links) - len(names) + omitted; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + " (also reachable under other names; --protect-hard-links denies this)"
}

// Ownership reports changes of owners that succeeded without effect; it is empty where there
// were none.
func Ownership(ignored int) string {
	if ignored == 0 {
		return ""
	}
	return Plural(ignored, "ownership change", "ownership changes") +
		" ignored (--ownership error makes them fail)"
}

// maxNewShown is how many new files and repositories the line after a program names.
const maxNewShown = 10

// NewNames reports what appeared that other programs run or obey later, and new repositories,
// with paths as from the directory of the run. What a grant has opened is left out; the line is
// empty if nothing is left.
func NewNames(list []executor.New, dir, home string) string {
	list = slices.DeleteFunc(slices.Clone(list), func(n executor.New) bool { return n.Granted })
	if len(list) == 0 {
		return ""
	}
	line := "new: " + strings.Join(NewNamesOf(list[:min(len(list), maxNewShown)], dir, home), ", ")
	if more := len(list) - maxNewShown; more > 0 {
		line += fmt.Sprintf(" and %d more (run `sallyport why` for details)", more)
	}
	return line
}

// NewNamesOf returns what appeared by its names, as [NewNames] writes them.
func NewNamesOf(list []executor.New, dir, home string) []string {
	var out []string
	for _, n := range list {
		name, below := strings.CutPrefix(n.Path, strings.TrimSuffix(dir, "/")+"/")
		if !below {
			name = Tilde(n.Path, home)
		}
		name = text.Word(name)
		if n.More > 0 {
			name += fmt.Sprintf(" and %d more", n.More)
		}
		out = append(out, name)
	}
	return out
}
