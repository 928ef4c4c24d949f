// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/linux/seccomp"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/names/protect"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A Diagnosis is what the doctor found. The member names of its JSON form stay.
type Diagnosis struct {
	Type   string               `json:"type"` // always "doctor"
	OK     bool                 `json:"ok"`
	Level  string               `json:"level"` // the best level that is accepted by default, or "none"
	Checks []Check              `json:"checks"`
	Levels []LevelCheck         `json:"levels"`
	Grants []protect.NamedGrant `json:"grants"`
	Allow  []seccomp.Opening    `json:"allow"`
	// Stages are those that are older than 7 days or larger than 1 GiB; never nil.
	Stages []executor.StageInfo `json:"stages"`

	all []executor.StageInfo // the others as well
}

// Diagnose draws the conclusion: the default policy can be enforced if one of
// the levels that are accepted by default is available. What only a better level
// needs is then not needed. Without levels nothing is known to work.
func Diagnose(checks []Check, levels []LevelCheck) Diagnosis {
	d := Diagnosis{
		Type: "doctor", Level: "none", Checks: append([]Check{}, checks...),
		Levels: append([]LevelCheck{}, levels...), Grants: protect.NamedGrants(), Allow: seccomp.Openings(),
		all: Stages(),
	}
	d.Stages = forgotten(d.all, time.Now())
	for _, l := range levels {
		if l.Available && !d.OK && l.Level != plan.LevelLandlock { // that one must be asked for
			d.OK, d.Level = true, l.Level
		}
	}
	for i := range d.Checks {
		d.Checks[i].Needed = d.Checks[i].Needed && (d.Checks[i].OK || !d.OK)
	}
	return d
}

// String returns the diagnosis for people.
func (d Diagnosis) String() string {
	var b strings.Builder
	b.WriteString(d.answer() + "\n\n")
	width := 0
	for _, c := range d.Checks {
		width = max(width, len(c.Name))
	}
	for _, c := range d.Checks {
		mark := "ok"
		switch {
		case !c.OK && c.Needed:
			mark = "MISSING"
		case !c.OK:
			mark = "missing"
		}
		fmt.Fprintf(&b, "%-7s  %-*s  %s\n", mark, width, c.Name, text.Line(c.Detail))
		if !c.OK && c.Fix != "" {
			fmt.Fprintf(&b, "%7s  %*s  fix: %s\n", "", width, "", text.Line(c.Fix))
		}
	}
	b.WriteString("\nLevels, strongest first (sallyport run --level sets the least one accepted):\n")
	for _, l := range d.Levels {
		printLevel(&b, l)
	}
	b.WriteString("\nNamed grants (sallyport run --grant NAME):\n")
	stores := protect.NamedGrant{Name: grants.CredentialPrefix + "NAME",
		Opens: "one kind of stores of secrets: "}
	for _, g := range d.Grants {
		kind, isStore := strings.CutPrefix(g.Name, grants.CredentialPrefix)
		if isStore && g.Name != grants.AllCredentials {
			stores.Opens += kind + " "
			continue
		}
		printGrant(&b, g)
	}
	printGrant(&b, stores)
	b.WriteString("\nClosed by default (sallyport run --allow NAME):\n")
	for _, o := range d.Allow {
		fmt.Fprintf(&b, "  %-12s %s\n", o.Name, o.Opens)
	}
	if len(d.Stages) > 0 {
		b.WriteString(
			"\nStages older than 7 days or larger than 1 GiB (sallyport apply ID, or discard ID):\n")
	}
	for _, s := range d.Stages {
		fmt.Fprintf(&b, "  %s  %s, %s, %s old, of %s\n", ShortStage(s.ID, d.all),
			Plural(s.Changes, "change", "changes"), Bytes(float64(s.Bytes)), Age(time.Since(s.Created)),
			text.Word(s.Workspace))
	}
	return b.String()
}

// answer is the first line: whether commands can run, and what helps.
func (d Diagnosis) answer() string {
	if d.OK {
		return fmt.Sprintf("The default sandbox is available (level: %s).", d.Level)
	}
	const no = "The default sandbox is not available. Fix what is MISSING"
	for _, l := range d.Levels {
		if l.Available {
			return no + ", or add --level " + l.Level + " to sallyport run, which has fewer walls (listed below)."
		}
	}
	return no + "."
}

// printLevel writes what is known about a level.
func printLevel(b *strings.Builder, l LevelCheck) {
	line := func(name, s string) { fmt.Fprintf(b, "  %-9s %s\n", name, text.Line(s)) }
	switch {
	case !l.Available:
		line(l.Level, "not available: "+l.Why)
		if l.Fix != "" {
			line("", "fix: "+l.Fix)
		}
		return
	case len(l.Lacks) == 0:
		line(l.Level, "available, full isolation")
	default:
		line(l.Level, "available; weaker:")
	}
	for _, w := range l.Lacks {
		line("", "- "+w.Why)
	}
	for _, w := range l.Refuses {
		line("", "- "+w.Why+": policies that need it are not supported")
	}
}

// printGrant writes what a name of --grant opens.
func printGrant(b *strings.Builder, g protect.NamedGrant) {
	lines := []string{"opens: " + g.Opens}
	if len(g.Commands) > 0 { // else it is one of many alike
		lines = append(lines, "stays closed: "+g.Keeps, "works: "+strings.Join(g.Commands, ", "))
	}
	if g.Warning != "" {
		lines = append(lines, "warning: "+g.Warning)
	}
	for _, r := range g.Refused {
		lines = append(lines, "blocked: "+r)
	}
	name := g.Name
	for _, l := range lines {
		fmt.Fprintf(b, "  %-12s %s\n", name, l)
		name = ""
	}
}
