// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/roff"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// manual returns the manual page of a command, or of the whole program when c is nil. It
// is made of what --help prints: the same texts and the same table of flags.
func manual(c *command) string {
	if c == nil {
		return programManual()
	}
	p := new(roff.Page)
	p.Title("sallyport-"+c.name, "sallyport "+hostfacts.ReadBuild().Version)
	p.Section("NAME")
	p.Text("sallyport-" + c.name + " - " + c.short)
	help, flags := c.help, c.flags
	if flags == nil {
		help, flags = runHelpText, func(*options) []syntax.Flag { return new(args.Options).Flags() }
	}
	purpose, rest, _ := strings.Cut(help, "\n\n")
	synopsis, rest, _ := strings.Cut(rest, "\n\n")
	p.Section("SYNOPSIS")
	p.Body(synopsis)
	p.Section("DESCRIPTION")
	p.Body(purpose + "\n\n" + rest)
	p.Section("OPTIONS")
	group := ""
	for _, f := range flags(new(options)) {
		if f.Group != group {
			group = f.Group
			p.Subsection(group)
		}
		names := []string{f.Name()}
		if f.Short != 0 {
			names = []string{f.Shortest(), f.Name()}
		}
		if f.Optional != "" {
			names[len(names)-1] += "[=" + f.Optional + "]"
		}
		p.Entry(names, f.Value, f.Help)
	}
	if c.flags == nil {
		p.Section("EXIT STATUS")
		p.Body(exitCodesHelp)
	}
	p.Section("SEE ALSO")
	p.See("sallyport")
	return p.String()
}

func programManual() string {
	p := new(roff.Page)
	p.Title("sallyport", "sallyport "+hostfacts.ReadBuild().Version)
	p.Section("NAME")
	p.Text("sallyport - run a program in the narrowest sandbox and report what happened")
	p.Section("SYNOPSIS")
	p.Body("  sallyport COMMAND [FLAGS] [ARG...]\n\n" + overviewExamples)
	p.Section("COMMANDS")
	for _, c := range shownCommands() {
		p.Entry([]string{"sallyport-" + c.name + "(1)"}, "", c.short)
	}
	p.Section("EXIT STATUS")
	p.Body(exitCodesHelp)
	return p.String()
}
