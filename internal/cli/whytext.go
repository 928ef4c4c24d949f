// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/runlog"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// ended is when a run ended.
func ended(r runlog.Record) time.Time {
	return r.Start.Add(r.Duration)
}

// explainRun tells about a run, for people.
func explainRun(r runlog.Record, home string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Run %s, %s, in %s:\n  %s\n\n", shown(r.Run), r.Start.Local().Format(timeForm), shown(tilde(r.Dir, home)), shellWords(r.Args))
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s", howEnded(r))
	for _, l := range r.Limits {
		if l.Hit {
			line("The limit of %s was met (%v, held by %s).", shown(l.Limit), l.Value, shown(l.By))
		}
	}
	if !began(r) {
		return b.String()
	}
	line("%s", whichSandbox(r))
	for _, w := range r.Sandbox.Weaker {
		line("Weaker than that level promises: %s.", printed(w))
	}
	for _, w := range r.Warnings {
		line("Warning: %s.", printed(w))
	}
	for _, q := range r.Quarantined {
		line("%s.", printed(quarantined(q)))
	}
	if len(r.Survivors) > 0 {
		line("%s", outlived(r))
	}
	b.WriteString("\n")
	refused(&b, r, home)
	return b.String()
}

// began reports whether the command ran.
func began(r runlog.Record) bool { return len(r.Attempts) > 0 }

// howEnded is one sentence.
func howEnded(r runlog.Record) string {
	took := r.Duration.String()
	code := fmt.Sprintf("exit code %d", r.ExitCode)
	why := strings.TrimSuffix(printed(r.Error), ".")
	switch {
	case !began(r) && why != "":
		return fmt.Sprintf("It did not run (%s): %s.", code, why)
	case !began(r):
		return fmt.Sprintf("It did not run (%s).", code)
	}
	switch r.End {
	case "exited":
		return fmt.Sprintf("It exited with code %d after %s.", r.ExitCode, took)
	case "signaled":
		return fmt.Sprintf("Signal %d (%s) ended it after %s.", r.Signal, syscall.Signal(r.Signal), took)
	case "timed_out":
		return fmt.Sprintf("Its time was up after %s, and it was ended (%s).", took, code)
	case "canceled":
		return fmt.Sprintf("It was canceled after %s (%s).", took, code)
	case "oom":
		return fmt.Sprintf("It wanted more memory than it may have, and was ended after %s (%s).", took, code)
	case "pids":
		return fmt.Sprintf("It wanted more processes than it may have, and was ended after %s (%s).", took, code)
	case "disk":
		return fmt.Sprintf("It wanted more disk than it may have, and was ended after %s (%s).", took, code)
	case "output":
		return fmt.Sprintf("It printed more than it may, and was ended after %s (%s).", took, code)
	}
	if why == "" {
		why = "nobody knows how"
	}
	return fmt.Sprintf("It ended after %s (%s, %s): %s.", took, shown(string(r.End)), code, why)
}

// whichSandbox is one sentence.
func whichSandbox(r runlog.Record) string {
	s := r.Sandbox
	if s.Level == "none" {
		return fmt.Sprintf("It ran without a sandbox: %s, network %s.", shown(s.Mode), s.Network)
	}
	words := fmt.Sprintf("Its sandbox was %s, network %s, at the %s level", shown(s.Mode), s.Network, shown(s.Level))
	if len(s.Mechanism) > 0 {
		words += " (" + printed(strings.Join(s.Mechanism, ", ")) + ")"
	}
	return words + "."
}

// outlived is one sentence about survivors.
func outlived(r runlog.Record) string {
	words := counted(len(r.Survivors), "process") + " outlived it and was ended"
	if len(r.Survivors) > 1 {
		words = fmt.Sprintf("%d processes outlived it and were ended", len(r.Survivors))
	}
	words = strings.ToUpper(words[:1]) + words[1:]
	var names []string
	for _, s := range event.Listed(r.Survivors) {
		names = append(names, fmt.Sprintf("%s (%d)", shown(s.Name), s.PID))
	}
	return words + ": " + strings.Join(names, ", ") + "."
}

// refused tells each denial, and what would allow them.
func refused(b *strings.Builder, r runlog.Record, home string) {
	if len(r.Denials()) == 0 {
		switch {
		case r.Sandbox.Level == "none":
			b.WriteString("Nothing was there to refuse it anything.\n")
		case r.Sandbox.Observed:
			b.WriteString("Nothing was refused.\n")
		default:
			b.WriteString("Nothing is known to have been refused. It was not observed, so that is no proof.\n")
		}
		return
	}
	word := "It was kept from:"
	if !slices.ContainsFunc(r.Denials(), func(d sandbox.Denial) bool { return d.Source.Evidence() }) {
		word = "It was not observed. By what it printed it was probably kept from:"
	}
	b.WriteString(word + "\n")
	for _, d := range r.Denials() {
		one(b, d, home)
	}
	if r.DenialsOmitted > 0 {
		fmt.Fprintf(b, "  and %s of which only the number is known\n", counted(r.DenialsOmitted, "thing"))
	}
	b.WriteString("\n")
	wayOut(b, r)
}

// one tells one denial.
func one(b *strings.Builder, d sandbox.Denial, home string) {
	g := kept([]sandbox.Denial{d})[0]
	fmt.Fprintf(b, "  %s\n", g.doing(home))
	who := known(d.Source)
	switch {
	case d.Program != "" && d.PID > 0:
		who = fmt.Sprintf("by %s (process %d), %s", shown(d.Program), d.PID, who)
	case d.Program != "":
		who = fmt.Sprintf("by %s, %s", shown(d.Program), who)
	case d.PID > 0:
		who = fmt.Sprintf("by process %d, %s", d.PID, who)
	}
	fmt.Fprintf(b, "      %s\n", who)
	if d.Rule != "" {
		fmt.Fprintf(b, "      rule: %s\n", shown(d.Rule))
	}
	switch {
	case d.Grant != "":
		fmt.Fprintf(b, "      allow with: %s\n", shellGrant(d.Grant))
	case forbids(d.Rule):
		b.WriteString("      no grant opens what is denied\n")
	}
}

// known says how a denial is known.
func known(s sandbox.Source) string {
	switch s {
	case sandbox.Notified:
		return "seen while it happened"
	case sandbox.Audited:
		return "read from the kernel's log"
	case sandbox.Proxied:
		return "refused by the proxy"
	}
	return "a guess from exit code and output"
}

// wayOut prints the command line that lets everything through that can be.
func wayOut(b *strings.Builder, r runlog.Record) {
	if command := cureCommand(r); command != nil {
		whole := "To let all of that through:"
		if slices.ContainsFunc(r.Denials(), func(d sandbox.Denial) bool { return d.Grant == "" }) || r.DenialsOmitted > 0 {
			whole = "To let through what can be:"
		}
		fmt.Fprintf(b, "%s\n  %s\n", whole, shellWords(command))
		if strings.Contains(strings.Join(command, " "), runlog.Masked) {
			fmt.Fprintf(b, "In place of %s stands what was not recorded.\n", runlog.Masked)
		}
	} else {
		b.WriteString("No grant would allow it.\n")
	}
	refusedBy := func(rule string, op sandbox.Op) bool {
		return slices.ContainsFunc(r.Denials(), func(d sandbox.Denial) bool { return d.Rule == rule && d.Op == op && d.Grant == "" })
	}
	if refusedBy("network=none", sandbox.Connect) {
		b.WriteString("Only --net host opens the network, the whole of it.\n")
	}
	if refusedBy(ruleSockets, sandbox.Connect) {
		b.WriteString("Only --allow unix opens unix sockets, all of them.\n")
	}
}

// cureCommand returns the command line of a run with the least grants that let
// through what can be; nil when no grant would change anything.
func cureCommand(r runlog.Record) []string {
	grants := leastGrants(r.Denials())
	if len(grants) == 0 || len(r.Args) == 0 {
		return nil
	}
	words := []string{"sallyport", "run"}
	for i := 0; i < len(r.Flags); i++ {
		if i+1 == len(r.Flags) || slices.Contains([]string{"--no-caches", "--no-observer", "-t", "-t=false"}, r.Flags[i]) {
			words = append(words, r.Flags[i])
			continue
		}
		flag, value := r.Flags[i], r.Flags[i+1]
		i++
		same := func(g sandbox.Grant) bool {
			return slices.Equal(grantWords(g), []string{flag, value}) || flag == "--ro" && g.Path == value && g.Level == sandbox.LevelWrite
		}
		if !slices.ContainsFunc(grants, same) { // the stricter one of two would hold
			words = append(words, flag, value)
		}
	}
	for _, g := range grants {
		words = append(words, grantWords(g)...)
	}
	return append(append(words, "--"), r.Args...)
}

// leastGrants returns the grants of all denials, in the order in which they first
// stand there, without those that others give.
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
	given := func(g sandbox.Grant) bool {
		return slices.ContainsFunc(all, func(o sandbox.Grant) bool { return o != g && gives(o, g) })
	}
	var least []sandbox.Grant
	for _, g := range all {
		if !given(g) {
			least = append(least, g)
		}
	}
	return least
}

// gives reports whether a path grant opens what another one does. A folder's grant
// does not open the protected names in it.
func gives(o, g sandbox.Grant) bool {
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

// printed returns a text as one line that moves no terminal.
func printed(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return ""
	}
	return shown(text)
}
