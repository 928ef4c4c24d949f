// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/confine"
	"github.com/sallyport-dev/sallyport/internal/protect"
	"github.com/sallyport-dev/sallyport/internal/seccomp"
)

func doctorUsage() string {
	return `Say what this machine can enforce: every part of the sandbox is tried, and for
what is missing there is the cause and what to do about it.

  sallyport doctor [--json]
  sallyport doctor --clean [--json]

Exits with 0 when the default sandbox can be had here, else with 1. At the end
stand the names that sallyport run takes after --grant and --allow.

With --clean nothing is tried. It removes what killed runs of this user have
left: empty folders that stood for protected names, private /tmp folders, and
what is too old or too much in quarantine. What living runs need stays. Exits
with 1 when something could not be removed.

      --json    print one JSON object
      --clean   clean up instead
`
}

// A diagnosis is what the doctor found. The member names of its JSON form stay.
type diagnosis struct {
	Type   string               `json:"type"` // always "doctor"
	OK     bool                 `json:"ok"`
	Level  string               `json:"level"` // the best level that is accepted by default, or "none"
	Checks []confine.Check      `json:"checks"`
	Levels []confine.LevelCheck `json:"levels"`
	Grants []protect.NamedGrant `json:"grants"`
	Allow  []openingLine        `json:"allow"`
}

// An openingLine is one name of --allow.
type openingLine struct {
	Name  string `json:"name"`
	Opens string `json:"opens"`
}

// openings are the names of --allow.
func openings() []seccomp.Opening { return seccomp.Openings() }

func doctorVerb(ctx context.Context, env *Env, args []string) error {
	var asJSON, clean, help bool
	rest, err := parse([]flag{
		{long: "json", set: on(&asJSON)},
		{long: "clean", set: on(&clean)},
		{long: "help", short: 'h', set: on(&help)},
	}, args)
	switch {
	case err != nil:
		return err
	case help:
		return env.put([]byte(doctorUsage()))
	case len(rest) > 0:
		return usage("doctor takes no words, such as %s", quote(rest[0]))
	case clean:
		return cleanState(env, asJSON)
	}
	var host confine.Host
	checks, levels := host.Doctor(ctx), host.Levels(ctx)
	if err := host.Close(); err != nil {
		return err
	}
	d := diagnose(checks, levels)
	out := []byte(d.String())
	if asJSON {
		if out, err = encode(d); err != nil {
			return err
		}
	}
	if err := env.put(out); err != nil {
		return err
	}
	if !d.OK {
		return exitCode(codeNo)
	}
	return nil
}

// diagnose draws the conclusion: the default policy can be enforced when one of
// the levels that are accepted by default can be had. What only a better level
// needs is then not needed. Without levels nothing is known to work, so nothing
// does.
func diagnose(checks []confine.Check, levels []confine.LevelCheck) diagnosis {
	d := diagnosis{Type: "doctor", Level: "none", Checks: checks, Levels: levels, Grants: protect.NamedGrants()}
	if checks == nil {
		d.Checks = []confine.Check{}
	}
	if levels == nil {
		d.Levels = []confine.LevelCheck{}
	}
	for _, l := range levels {
		if l.Available && !d.OK && l.Level != "landlock" { // that one must be asked for
			d.OK, d.Level = true, l.Level
		}
	}
	for i := range d.Checks {
		if c := &d.Checks[i]; d.OK && !c.OK {
			c.Needed = false
		}
	}
	for _, o := range openings() {
		d.Allow = append(d.Allow, openingLine{o.Name, o.Opens})
	}
	return d
}

// String returns the diagnosis for people.
func (d diagnosis) String() string {
	var b strings.Builder
	width := 0
	for _, c := range d.Checks {
		width = max(width, len(c.Name))
	}
	for _, c := range d.Checks {
		mark := "ok     "
		switch {
		case !c.OK && c.Needed:
			mark = "MISSING"
		case !c.OK:
			mark = "missing"
		}
		fmt.Fprintf(&b, "%s  %-*s  %s\n", mark, width, c.Name, c.Detail)
		if !c.OK && c.Fix != "" {
			fmt.Fprintf(&b, "%*s  mend: %s\n", len(mark)+2+width, "", c.Fix)
		}
	}
	d.levels(&b)
	if d.OK {
		fmt.Fprintf(&b, "The default sandbox can be had here, at the %s level.\n", d.Level)
	} else {
		b.WriteString("The default sandbox cannot be had here: nothing runs until what is MISSING is mended.\n")
	}
	d.grants(&b)
	b.WriteString("\nShut by default, opened with sallyport run --allow NAME:\n")
	for _, o := range d.Allow {
		fmt.Fprintf(&b, "  %-12s %s\n", o.Name, o.Opens)
	}
	return b.String()
}

// grants writes what the names of --grant open.
func (d diagnosis) grants(b *strings.Builder) {
	b.WriteString("\nOpened by name, with sallyport run --grant NAME:\n")
	for _, g := range d.Grants {
		lines := []string{"opens: " + g.Opens, "keeps shut: " + g.Keeps, "works: " + strings.Join(g.Commands, ", ")}
		if len(g.Commands) == 0 {
			lines = lines[:1] // one of many alike
		}
		for i, line := range append(lines, prefixed("refused: ", g.Refused)...) {
			name := g.Name
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(b, "  %-12s %s\n", name, line)
		}
	}
}

// prefixed returns the words with something in front of each.
func prefixed(front string, words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = front + w
	}
	return out
}

// levels writes what is known about each level.
func (d diagnosis) levels(b *strings.Builder) {
	b.WriteString("\nLevels, best first; sallyport run --level names the least one accepted:\n")
	for _, l := range d.Levels {
		switch {
		case !l.Available:
			fmt.Fprintf(b, "  %-9s not available: %s\n", l.Level, l.Why)
			if l.Fix != "" {
				fmt.Fprintf(b, "  %-9s mend: %s\n", "", l.Fix)
			}
			continue
		case len(l.Lacks) == 0:
			fmt.Fprintf(b, "  %-9s available, every wall holds\n", l.Level)
		default:
			fmt.Fprintf(b, "  %-9s available; weaker:\n", l.Level)
		}
		for _, w := range l.Lacks {
			fmt.Fprintf(b, "  %-9s - %s\n", "", w.Why)
		}
		for _, w := range l.Refuses {
			fmt.Fprintf(b, "  %-9s - policies are refused where %s\n", "", w.Why)
		}
	}
	b.WriteString("\n")
}
