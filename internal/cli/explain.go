// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/environ"
	"github.com/sallyport-dev/sallyport/internal/notes"
	"github.com/sallyport-dev/sallyport/internal/printable"
	"github.com/sallyport-dev/sallyport/internal/runlog"
	"github.com/sallyport-dev/sallyport/internal/suggest"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// explainRun reports a run for people whose home and current directory are given.
func explainRun(r runlog.Record, home, here string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("Run %s, %s, in %s:\n  %s\n", printable.Word(r.Run), r.Start.Local().Format(time.DateTime), printable.Word(notes.Tilde(r.Dir, home)), notes.ShellWords(r.Args))
	line("%s", explainEnd(r))
	for _, l := range r.Limits {
		if l.Hit {
			line("Limit reached: %s %s (by %s).", printable.Word(l.Limit), limitValue(l), printable.Word(l.By))
		}
	}
	if len(r.Attempts) == 0 { // it did not run
		return b.String()
	}
	line("%s", explainSandbox(r))
	for _, w := range r.Sandbox.Weaker {
		line("Weaker: %s.", sentence(w))
	}
	if len(r.Sandbox.Hidden) > 0 {
		line("Hidden, unless one of these is granted: %s.", printable.Line(strings.Join(r.Sandbox.Hidden, ", ")))
	}
	for _, w := range r.Warnings {
		line("Warning: %s.", sentence(w))
	}
	if text := withheldLine(r.Withheld); text != "" {
		line("%s.", strings.ToUpper(text[:1])+text[1:])
	}
	for _, q := range r.Quarantined {
		text := sentence(notes.Quarantine(q))
		line("%s.", strings.ToUpper(text[:1])+text[1:])
	}
	if text := notes.HardLinks(r.HardLinks, r.HardLinksOmitted, home); text != "" {
		line("%s.", strings.ToUpper(text[:1])+text[1:])
	}
	if text := notes.Ownership(r.OwnershipIgnored); text != "" {
		line("%s.", text)
	}
	if len(r.New) > 0 {
		line("New, and other programs may run or obey it: %s.", strings.Join(notes.NewNames(r.New, r.Dir, home), ", "))
	}
	if len(r.Survivors) > 0 {
		var names []string
		for _, s := range event.Listed(r.Survivors) {
			names = append(names, fmt.Sprintf("%s (%d)", printable.Word(s.Name), s.PID))
		}
		line("Ended %s: %s.", notes.Plural(len(r.Survivors), "leftover process", "leftover processes"), strings.Join(names, ", "))
	}
	line("")
	explainDenials(&b, r, home, here)
	return b.String()
}

// explainEnd is how a run ended.
func explainEnd(r runlog.Record) string {
	why := sentence(r.Error)
	detail := fmt.Sprintf("after %v (exit code %d)", r.Duration, r.ExitCode)
	killed, _ := exceeded(&r.Result)
	switch {
	case len(r.Attempts) == 0:
		return strings.TrimSuffix(fmt.Sprintf("Did not run (exit code %d): %s", r.ExitCode, why), ": ") + "."
	case killed != "":
		return strings.ToUpper(killed[:1]) + killed[1:] + ", " + detail + "."
	}
	switch r.End {
	case sallyport.EndExited:
		return fmt.Sprintf("Exited with code %d after %v.", r.ExitCode, r.Duration)
	case sallyport.EndSignaled:
		return fmt.Sprintf("Killed by signal %d (%s) after %v.", r.Signal, syscall.Signal(r.Signal), r.Duration)
	case sallyport.EndTimedOut:
		return "Timed out " + detail + "."
	case sallyport.EndCanceled:
		return "Canceled " + detail + "."
	}
	return fmt.Sprintf("Ended (%s) %s: %s.", printable.Word(string(r.End)), detail, cmp.Or(why, "unknown reason"))
}

// explainSandbox is the sandbox of a run.
func explainSandbox(r runlog.Record) string {
	s := r.Sandbox
	if s.Level == "none" {
		return fmt.Sprintf("No sandbox: %s, network %s.", printable.Word(s.Mode), s.Network)
	}
	text := fmt.Sprintf("Sandbox: %s, network %s, level %s", printable.Word(s.Mode), s.Network, printable.Word(s.Level))
	if len(s.Mechanism) > 0 {
		text += " (" + sentence(strings.Join(s.Mechanism, ", ")) + ")"
	}
	return text + "."
}

// explainDenials lists each denial, and what would allow them.
func explainDenials(b *strings.Builder, r runlog.Record, home, here string) {
	var ds, harmless []sandbox.Denial
	for _, d := range r.Denials() {
		if d.Harmless != "" {
			harmless = append(harmless, d)
		} else {
			ds = append(ds, d)
		}
	}
	switch {
	case len(ds) > 0:
		explainBlocked(b, r, ds, home, here)
	case r.DenialsOmitted > 0:
		fmt.Fprintf(b, "Blocked: %s, which were only counted.\n", notes.Plural(r.DenialsOmitted, "operation", "operations"))
	case len(harmless) > 0:
	case r.Sandbox.Level == "none":
		b.WriteString("No sandbox was active, so nothing was refused.\n")
	case r.Sandbox.Observed && len(r.Sandbox.Hidden) > 0:
		b.WriteString("No denial is known; attempts to read what is hidden are not observed.\n")
	case r.Sandbox.Observed && slices.ContainsFunc(r.Limits, func(l executor.Enforced) bool { return l.Hit }):
		b.WriteString("Beside what the limit refused, nothing was refused.\n")
	case r.Sandbox.Observed:
		b.WriteString("Nothing was refused.\n")
	default:
		b.WriteString("No denial is known, but the program was not observed.\n")
	}
	if len(harmless) == 0 {
		return
	}
	if len(ds) > 0 {
		b.WriteString("\n")
	}
	b.WriteString("Blocked, and known to be harmless:\n")
	for _, d := range harmless {
		fmt.Fprintf(b, "  %s: %s\n", notes.Operation(d, home), printable.Line(d.Harmless))
	}
}

// explainBlocked lists the denials that may matter, the likeliest cause of a failure first.
func explainBlocked(b *strings.Builder, r runlog.Record, ds []sandbox.Denial, home, here string) {
	switch {
	case slices.ContainsFunc(ds, func(d sandbox.Denial) bool { return d.Source.Evidence() }):
		b.WriteString("Blocked:\n")
	case r.Sandbox.Observed:
		b.WriteString("Probably blocked (inferred from the output, because attempts to read what is hidden are not observed):\n")
	default:
		b.WriteString("Probably blocked (inferred from the output, because the program was not observed):\n")
	}
	for _, d := range ds {
		explainDenial(b, d, home)
	}
	if r.DenialsOmitted > 0 {
		fmt.Fprintf(b, "  and %d more, which were only counted\n", r.DenialsOmitted)
	}
	b.WriteString("\n")
	explainGrants(b, r, ds, home, here)
}

// sources are how denials are known.
var sources = map[sandbox.Source]string{
	sandbox.Notified: "observed", sandbox.Audited: "read from the kernel's log", sandbox.Proxied: "denied by the proxy",
}

// explainDenial reports one denial.
func explainDenial(b *strings.Builder, d sandbox.Denial, home string) {
	fmt.Fprintf(b, "  %s\n", notes.Operation(d, home))
	process := ""
	switch {
	case d.Program != "" && d.PID > 0:
		process = fmt.Sprintf("by %s (process %d), ", programWords(&d), d.PID)
	case d.Program != "":
		process = fmt.Sprintf("by %s, ", programWords(&d))
	case d.PID > 0:
		process = fmt.Sprintf("by process %d, ", d.PID)
	}
	fmt.Fprintf(b, "      %s%s\n", process, cmp.Or(sources[d.Source], "inferred from exit code and output"))
	if d.Rule != "" {
		fmt.Fprintf(b, "      rule: %s\n", printable.Word(d.Rule))
	}
	switch {
	case d.Grant != "" || d.Wider != "":
		fmt.Fprintf(b, "      allow with: %s\n", notes.Allow(cmp.Or(d.Grant, d.Wider), home))
	case notes.DeniesPath(d.Rule):
		b.WriteString("      the policy denies it; no grant allows it\n")
	}
}

// programWords is the file of a program, with the name that it has chosen where that is another.
func programWords(d *sandbox.Denial) string {
	text := printable.Word(d.Program)
	if base := path.Base(d.Program); d.Name != "" && !strings.HasPrefix(base, d.Name) {
		text += ", which calls itself " + printable.Word(d.Name)
	}
	return text
}

// explainGrants prints one command line with all that is suggested.
func explainGrants(b *strings.Builder, r runlog.Record, ds []sandbox.Denial, home, here string) {
	words := commandWithGrants(r, here)
	if words != nil {
		intro := "Allow all of it:"
		if slices.ContainsFunc(ds, func(d sandbox.Denial) bool { return d.Grant == "" && d.Wider == "" || d.Wider == outside }) || r.DenialsOmitted > 0 {
			intro = "Allow what flags can allow:"
		}
		fmt.Fprintf(b, "%s\n  %s\n", intro, notes.ShellWords(words))
		if strings.Contains(strings.Join(words, " "), environ.Masked) {
			fmt.Fprintf(b, "%s replaces values that were not recorded.\n", environ.Masked)
		}
	}
	var warned []string
	for _, d := range ds {
		if text := suggest.Warning(d.Wider, home); text != "" && d.Wider != outside && !slices.Contains(warned, d.Wider) {
			warned = append(warned, d.Wider)
			fmt.Fprintf(b, "Wider than what was denied: %s.\n", notes.Allow(d.Wider, home))
		}
	}
	if slices.ContainsFunc(ds, func(d sandbox.Denial) bool { return d.Wider == outside }) {
		fmt.Fprintf(b, "The rest is allowed outside of the sandbox only: %s.\n", outside)
	}
}

// outside is the suggestion that is no flag of a sandbox. No command line is printed with it.
const outside = "-s full-access"

// commandWithGrants returns the command line of a run with the least flags that allow what can
// be allowed; nil when none would change anything. It works in the current directory.
func commandWithGrants(r runlog.Record, here string) []string {
	added := suggestions(r.Denials())
	if len(added) == 0 || len(r.Args) == 0 {
		return nil
	}
	words := []string{"sallyport", "run"}
	table := runFlags(new(runOptions))
	placed := false
	for i := 0; i < len(r.Flags); i++ {
		f, inline := flagOf(table, r.Flags[i])
		if f == nil || f.value == "" || inline || i+1 == len(r.Flags) {
			words = append(words, r.Flags[i])
			continue
		}
		flag, value := r.Flags[i], r.Flags[i+1]
		i++
		if f.long == "cd" {
			placed = true
			if !path.IsAbs(value) {
				value = r.Dir // as from where it was run
			}
		}
		replaced := func(pair []string) bool { // of two entries the stricter one would hold
			return slices.Equal(pair, []string{flag, value}) || flag == "--ro" && slices.Equal(pair, []string{"--rw", value}) || f.long == "net" && pair[0] == flag
		}
		if !slices.ContainsFunc(added, replaced) {
			words = append(words, flag, value)
		}
	}
	if !placed && path.IsAbs(r.Dir) && r.Dir != here {
		words = slices.Insert(words, 2, "-C", r.Dir)
	}
	return append(append(append(words, slices.Concat(added...)...), "--"), r.Args...)
}

// suggestions returns what would allow denials, as pairs of a flag and its value, in the order
// in which they first appear.
func suggestions(ds []sandbox.Denial) [][]string {
	ds = slices.DeleteFunc(slices.Clone(ds), func(d sandbox.Denial) bool { return d.Harmless != "" || d.Wider == outside })
	for i := range ds {
		ds[i].Grant = cmp.Or(ds[i].Grant, ds[i].Wider)
	}
	var pairs [][]string
	for _, g := range leastGrants(ds) {
		pairs = append(pairs, notes.GrantWords(g))
	}
	for _, d := range ds {
		all, ok := notes.FlagPairs(d.Grant)
		if _, grants := sandbox.ParseGrants(d.Grant); ok && !grants && !slices.ContainsFunc(pairs, func(p []string) bool { return slices.Equal(p, all[0]) }) {
			pairs = append(pairs, all...)
		}
	}
	return pairs
}

// leastGrants returns the grants of all denials, in the order in which they first
// appear, without those that others include.
func leastGrants(ds []sandbox.Denial) []sandbox.Grant {
	var all []sandbox.Grant
	for _, d := range ds {
		gs, ok := sandbox.ParseGrants(d.Grant)
		for _, g := range gs {
			if ok && !slices.Contains(all, g) {
				all = append(all, g)
			}
		}
	}
	var least []sandbox.Grant
	for _, g := range all {
		if !slices.ContainsFunc(all, func(o sandbox.Grant) bool { return o != g && includes(o, g) }) {
			least = append(least, g)
		}
	}
	return least
}

// includes reports whether a path grant opens what another one does. A directory's grant
// does not open the protected names in it.
func includes(o, g sandbox.Grant) bool {
	if o.Path == "" || g.Path == "" || o.Level < g.Level {
		return false
	}
	for at := g.Path; at != o.Path; at = path.Dir(at) {
		if at == "/" || at == "." || slices.Contains(sandbox.ProtectedNames(), path.Base(at)) && g.Level == sandbox.LevelWrite {
			return false
		}
	}
	return true
}
