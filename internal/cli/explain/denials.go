// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/command/environ"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// denials lists each denial, and what would allow them.
func denials(b *strings.Builder, r Record, home, here string) {
	var ds, harmless []sandbox.Denial
	for _, d := range r.Denials() {
		if d.Harmless != "" {
			harmless = append(harmless, d)
		} else {
			ds = append(ds, d)
		}
	}
	if len(r.NetworkFailures) > 0 {
		b.WriteString("Failed outside of the sandbox:\n")
	}
	for _, line := range Failures(r.NetworkFailures) {
		fmt.Fprintf(b, "  %s\n", line)
	}
	switch {
	case len(ds) > 0:
		blocked(b, r, ds, home, here)
	case r.DenialsOmitted > 0:
		fmt.Fprintf(b, "Blocked: %s, which were only counted.\n",
			Plural(r.DenialsOmitted, "operation", "operations"))
	case len(harmless) > 0:
	case r.Sandbox.Level == "none":
		b.WriteString("No sandbox was active, so nothing was denied.\n")
	case r.Sandbox.Observed && len(r.Sandbox.Hidden) > 0:
		b.WriteString("No denial is known; attempts to read what is hidden are not observed.\n")
	case r.Sandbox.Observed && slices.ContainsFunc(r.Limits, func(l executor.Enforced) bool { return l.Hit }):
		b.WriteString("Beyond what the limit denied, nothing was denied.\n")
	case r.Sandbox.Observed:
		b.WriteString("Nothing was denied.\n")
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
		fmt.Fprintf(b, "  %s: %s\n", Operation(d, home), text.Line(d.Harmless))
	}
}

// blocked lists the denials that may matter, the likeliest cause of a failure first.
func blocked(b *strings.Builder, r Record, ds []sandbox.Denial, home, here string) {
	switch {
	case slices.ContainsFunc(ds, func(d sandbox.Denial) bool { return d.Source.Evidence() }):
		b.WriteString("Blocked:\n")
	case r.Sandbox.Observed:
		b.WriteString("Probably blocked (inferred from command and output, because not all is observed):\n")
	default:
		b.WriteString("Probably blocked (inferred from the output, because the program was not observed):\n")
	}
	for _, d := range ds {
		denial(b, d, home)
	}
	if r.DenialsOmitted > 0 {
		fmt.Fprintf(b, "  and %d more, which were only counted\n", r.DenialsOmitted)
	}
	b.WriteString("\n")
	grantsOf(b, r, ds, home, here)
}

// sources are how denials are known.
var sources = map[sandbox.Source]string{
	sandbox.Notified: "observed", sandbox.Audited: "read from the kernel's log",
	sandbox.Proxied: "denied by the proxy",
}

// denial reports one denial.
func denial(b *strings.Builder, d sandbox.Denial, home string) {
	fmt.Fprintf(b, "  %s\n", Operation(d, home))
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
		fmt.Fprintf(b, "      rule: %s\n", text.Word(d.Rule))
	}
	g := groupDenials([]sandbox.Denial{d})[0]
	switch {
	case g.readOnlyHere():
		fmt.Fprintf(b, "      read-only by a flag or a setting, beside which %s does not count\n", shellGrant(g.flags))
	case d.Grant != "" || d.Wider != "":
		fmt.Fprintf(b, "      allow with: %s\n", Allow(cmp.Or(d.Grant, d.Wider), home))
		if g, ok := grants.GrantOfHost(d.Addr); ok && d.Source == sandbox.Proxied &&
			!strings.HasSuffix(d.Grant, g.Name) {
			fmt.Fprintf(b, "      part of: %s (%s)\n", sandbox.Grant{Name: g.Name}, g.Opens)
		}
	case DeniesPath(d.Rule):
		b.WriteString("      the policy denies it; no grant allows it\n")
	}
}

// programWords is the file of a program, with the name that it has chosen where that is another.
func programWords(d *sandbox.Denial) string {
	s := text.Word(d.Program)
	if base := path.Base(d.Program); d.Name != "" && !strings.HasPrefix(base, d.Name) {
		s += ", which calls itself " + text.Word(d.Name)
	}
	return s
}

// grantsOf prints one command line with all that is suggested, and one that keeps it.
func grantsOf(b *strings.Builder, r Record, ds []sandbox.Denial, home, here string) {
	words := AllowingCommand(r, here)
	if words != nil {
		intro := "Allow all of it:"
		if slices.ContainsFunc(ds, func(d sandbox.Denial) bool {
			return d.Grant == "" && d.Wider == "" ||
				d.Wider == outside
		}) || r.DenialsOmitted > 0 {
			intro = "Allow what flags can allow:"
		}
		fmt.Fprintf(b, "%s\n  %s\n", intro, ShellWords(words))
		if strings.Contains(strings.Join(words, " "), environ.Masked) {
			fmt.Fprintf(b, "%s replaces values that were not recorded.\n", environ.Masked)
		}
	}
	if keep := KeepingCommand(r, here); keep != nil {
		fmt.Fprintf(b, "Allow it in this project from now on:\n  %s\n", ShellWords(keep))
	}
	var warned []string
	for _, d := range ds {
		if text := reach.GrantWarning(d.Wider, home); text != "" && d.Wider != outside &&
			!slices.Contains(warned, d.Wider) {
			warned = append(warned, d.Wider)
			fmt.Fprintf(b, "Wider than what was denied: %s.\n", Allow(d.Wider, home))
		}
	}
	if slices.ContainsFunc(ds, func(d sandbox.Denial) bool { return d.Wider == outside }) {
		fmt.Fprintf(b, "The rest is allowed outside of the sandbox only: %s.\n", outside)
	}
}
