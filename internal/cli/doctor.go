// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/confine"
	"github.com/sallyport-dev/sallyport/internal/seccomp"
)

func doctorUsage() string {
	return `Say what this machine can enforce: every part of the sandbox is tried, and for
what is missing there is the cause and what to do about it.

  sallyport doctor [--json]

Exits with 0 when the default sandbox can be had here, else with 1. At the end
stand the names that sallyport run --allow takes.
`
}

// A diagnosis is what the doctor found. The member names of its JSON form stay.
type diagnosis struct {
	Type   string          `json:"type"` // always "doctor"
	OK     bool            `json:"ok"`
	Level  string          `json:"level"` // "native", "seatbelt" or "none"
	Checks []confine.Check `json:"checks"`
	Allow  []openingLine   `json:"allow"`
}

// An openingLine is one name of --allow.
type openingLine struct {
	Name  string `json:"name"`
	Opens string `json:"opens"`
}

// openings are the names of --allow.
func openings() []seccomp.Opening { return seccomp.Openings() }

func doctorVerb(ctx context.Context, env *Env, args []string) error {
	var asJSON, help bool
	rest, err := parse([]flag{
		{long: "json", set: on(&asJSON)},
		{long: "help", short: 'h', set: on(&help)},
	}, args)
	switch {
	case err != nil:
		return err
	case help:
		return env.put([]byte(doctorUsage()))
	case len(rest) > 0:
		return usage("doctor takes no words, such as %s", quote(rest[0]))
	}
	var host confine.Host
	checks := host.Doctor(ctx)
	if err := host.Close(); err != nil {
		return err
	}
	d := diagnose(checks)
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

// diagnose draws the conclusion from the checks. Without any nothing is known to
// work, so nothing does.
func diagnose(checks []confine.Check) diagnosis {
	d := diagnosis{Type: "doctor", OK: len(checks) > 0, Level: "native", Checks: checks}
	if checks == nil {
		d.Checks = []confine.Check{}
	}
	for _, c := range checks {
		if c.Needed && !c.OK {
			d.OK = false
		}
		if c.Level != "" {
			d.Level = c.Level
		}
	}
	if !d.OK {
		d.Level = "none"
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
		if !c.OK && c.Mend != "" {
			fmt.Fprintf(&b, "%*s  mend: %s\n", len(mark)+2+width, "", c.Mend)
		}
	}
	b.WriteString("\n")
	if d.OK {
		fmt.Fprintf(&b, "The default sandbox can be had here, at the %s level.\n", d.Level)
	} else {
		b.WriteString("The default sandbox cannot be had here: nothing runs until what is MISSING is mended.\n")
	}
	b.WriteString("\nShut by default, opened with sallyport run --allow NAME:\n")
	for _, o := range d.Allow {
		fmt.Fprintf(&b, "  %-12s %s\n", o.Name, o.Opens)
	}
	return b.String()
}
