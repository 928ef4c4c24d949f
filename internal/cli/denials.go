// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/printable"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// maxDenialLines is how many lines about denials follow a program.
const maxDenialLines = 5

// protectsLinks ends the rules of denials by that flag.
const protectsLinks = "(--protect-hard-links)"

// ruleSockets is the rule about unix sockets, in the words of sandbox.Policy.Explain.
const ruleSockets = "unix sockets"

// A denialGroup is denials that one line reports.
type denialGroup struct {
	op       sandbox.Op
	evidence bool
	grant    string
	rule     string
	errno    string // of a single one
	times    int    // of a single one
	targets  []string
}

// groupDenials gathers denials: those that one grant opens belong together, and without
// one those that the same rule denies in one directory.
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
		case d.Op == sandbox.Read || d.Op == sandbox.Write || d.Op == sandbox.Exec:
			k.by = "rule " + d.Rule + " " + path.Dir(d.Path)
		default:
			k.by = "target " + d.Target()
		}
		g := at[k]
		if g == nil {
			g = &denialGroup{op: d.Op, evidence: k.evidence, grant: d.Grant, rule: d.Rule, errno: d.Errno}
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
	text := "blocked: " + g.operation(home)
	if !g.evidence {
		text = "probably " + text
	}
	switch {
	case g.grant != "":
		text += "; allow with " + shellGrant(g.grant)
	case deniesPath(g.rule):
		text += "; denied by " + printable.Word(g.rule)
	case strings.HasSuffix(g.rule, protectsLinks):
		text += ": " + printable.Line(g.rule)
	case g.rule == ruleSockets:
		text += "; allow all unix sockets with --allow unix"
	}
	return text
}

// deniesPath reports whether a rule is a deny entry, which no grant opens.
func deniesPath(rule string) bool {
	return strings.HasPrefix(rule, "deny ") || strings.HasSuffix(rule, "=deny")
}

// operation is what was denied: "write /etc/hosts (EROFS)".
func (g *denialGroup) operation(home string) string {
	target := g.targets[0]
	var details []string
	if n := len(g.targets); n > 1 {
		target = commonDir(g.targets)
		details = append(details, fmt.Sprintf("%d files", n))
	} else {
		if g.errno != "" {
			details = append(details, printable.Word(g.errno))
		}
		if g.times > 1 {
			details = append(details, fmt.Sprintf("%d times", g.times))
		}
	}
	text := operations[g.op].verb
	if target != "" {
		text += " " + printable.Word(tilde(target, home))
	}
	if len(details) > 0 {
		text += " (" + strings.Join(details, ", ") + ")"
	}
	return text
}

// operations are the words for operations: as in "write /x", and counted.
var operations = map[sandbox.Op]struct{ verb, one, many string }{
	sandbox.Read:    {"read", "read", "reads"},
	sandbox.Write:   {"write", "write", "writes"},
	sandbox.Exec:    {"execute", "execution", "executions"},
	sandbox.Connect: {"connect to", "connection", "connections"},
	sandbox.Bind:    {"listen on", "listener", "listeners"},
	sandbox.Signal:  {"signal a process outside the sandbox", "signal", "signals"},
	sandbox.Syscall: {"make the system call", "system call", "system calls"},
}

// denialNotes are the lines about denials after a program. When the program succeeded
// there is one line about all that was seen: programs try much that they do not need.
func denialNotes(ds []sandbox.Denial, omitted int, home string, succeeded bool) []string {
	var lines []string
	for _, g := range groupDenials(ds) {
		// One that is inferred from the output repeats what people have read, unless a
		// grant helps.
		if !g.evidence && g.grant != "" {
			lines = append(lines, g.line(home))
		}
	}
	seen := slices.DeleteFunc(slices.Clone(ds), func(d sandbox.Denial) bool { return !d.Source.Evidence() })
	if len(seen) == 0 {
		return lines
	}
	left := len(seen) + omitted
	if succeeded {
		op := operations[seen[0].Op]
		if slices.ContainsFunc(seen, func(d sandbox.Denial) bool { return d.Op != seen[0].Op }) {
			op.one, op.many = "operation", "operations"
		}
		return append(lines, "blocked "+plural(left, op.one, op.many)+" (run `sallyport why` for details)")
	}
	for i, g := range groupDenials(seen) {
		if i == maxDenialLines {
			break
		}
		lines = append(lines, g.line(home))
		left -= len(g.targets)
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("blocked: %d more (run `sallyport why` for details)", left))
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

// shellGrant writes a grant so that it can be pasted into a shell and moves no
// terminal.
func shellGrant(grant string) string {
	gs, ok := sandbox.ParseGrants(grant)
	if !ok {
		return printable.Word(grant)
	}
	var words []string
	for _, g := range gs {
		words = append(words, grantWords(g)...)
	}
	return shellWords(words)
}

// grantWords returns a grant as two words of a command line.
func grantWords(g sandbox.Grant) []string {
	flag, _, _ := strings.Cut(g.String(), " ")
	if flag == "" {
		return nil
	}
	return []string{flag, cmp.Or(g.Opening, g.Name, g.Addr, g.Path)}
}

// quarantineLine reports a protected name that was created.
func quarantineLine(q executor.Quarantined) string {
	text := printable.Word(q.Path) + " was created (" + q.Why + ") and is gone"
	if q.MovedTo != "" {
		text = "quarantined " + printable.Word(q.Path) + " (" + q.Why + "): moved to " + printable.Word(q.MovedTo)
	}
	if q.Grant != "" {
		text += "; allow with " + shellGrant(q.Grant)
	}
	return text
}

// maxLinksShown is how many files hardLinksLine names.
const maxLinksShown = 5

// hardLinksLine reports files that were changed in place although they have further names;
// it is empty where there are none.
func hardLinksLine(res *sallyport.Result, home string) string {
	if len(res.HardLinks) == 0 {
		return ""
	}
	var names []string
	for _, l := range res.HardLinks[:min(len(res.HardLinks), maxLinksShown)] {
		names = append(names, printable.Word(tilde(l.Path, home)))
	}
	text := "changed through hard links: " + strings.Join(names, ", ")
	if more := len(res.HardLinks) - len(names) + res.HardLinksOmitted; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + " (also reachable under other names; --protect-hard-links refuses this)"
}

// ownershipLine reports changes of owners that succeeded without effect; it is empty where there
// were none.
func ownershipLine(res *sallyport.Result) string {
	if res.OwnershipIgnored == 0 {
		return ""
	}
	return plural(res.OwnershipIgnored, "ownership change", "ownership changes") + " ignored (--ownership error has them fail)"
}

// maxNewShown is how many new files and repositories the line after a program names.
const maxNewShown = 10

// newLine reports what appeared that other programs run or obey later, and new repositories,
// with paths as from the directory of the run. What a grant has opened is left out; the line is
// empty if nothing is left.
func newLine(list []executor.New, dir, home string) string {
	list = slices.DeleteFunc(slices.Clone(list), func(n executor.New) bool { return n.Granted })
	if len(list) == 0 {
		return ""
	}
	line := "new: " + strings.Join(newNames(list[:min(len(list), maxNewShown)], dir, home), ", ")
	if more := len(list) - maxNewShown; more > 0 {
		line += fmt.Sprintf(" and %d more (run `sallyport why` for details)", more)
	}
	return line
}

func newNames(list []executor.New, dir, home string) []string {
	var out []string
	for _, n := range list {
		name, below := strings.CutPrefix(n.Path, strings.TrimSuffix(dir, "/")+"/")
		if !below {
			name = tilde(n.Path, home)
		}
		name = printable.Word(name)
		if n.More > 0 {
			name += fmt.Sprintf(" and %d more", n.More)
		}
		out = append(out, name)
	}
	return out
}
