// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/cli/fleets"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

const fleetName = "fleet"

// fleetCommand is the command fleet without a subcommand. Its flags are those of all subcommands, for the
// help and the manual page.
func fleetCommand() command {
	help := fleets.Help + "\n"
	for _, v := range fleets.Verbs() {
		help += fmt.Sprintf("  %-16s%s\n", v.Name, v.Short)
	}
	help += "\nFor details: sallyport fleet SUBCOMMAND --help.\n"
	return command{name: fleetName, short: "run commands on many machines", help: help, words: 1,
		flags: func(o *options) []syntax.Flag {
			var all []syntax.Flag
			for _, v := range fleets.Verbs() {
				for _, f := range v.Flags(&o.fleet) {
					f.Group = "Flags of fleet " + v.Name
					all = append(all, f)
				}
			}
			return all
		},
		run: func(_ context.Context, _ *Env, _ *options, words []string) error {
			var known []string
			for _, v := range fleets.Verbs() {
				known = append(known, v.Name)
			}
			if len(words) == 0 {
				return explain.NewError("fleet needs a subcommand: %s; see sallyport help fleet",
					strings.Join(known, ", "))
			}
			return explain.NewError("unknown subcommand %s%s", syntax.QuoteFlag(words[0]),
				syntax.NearestClause(words[0], known, "see sallyport help fleet"))
		},
		offer: func([]string) (syntax.FlagKind, []candidate) {
			var all []candidate
			for _, v := range fleets.Verbs() {
				all = append(all, candidate{v.Name, v.Short})
			}
			return syntax.Words, all
		},
	}
}

// fleetVerb returns the command of a subcommand of fleet; nil if words are none.
func fleetVerb(words []string) *command {
	if len(words) < 2 || words[0] != fleetName {
		return nil
	}
	for _, v := range fleets.Verbs() {
		if v.Name != words[1] {
			continue
		}
		return &command{name: fleetName + " " + v.Name, short: v.Short, help: v.Help, words: v.Words,
			flags: func(o *options) []syntax.Flag { return v.Flags(&o.fleet) },
			run: func(ctx context.Context, env *Env, o *options, rest []string) error {
				return v.Run(ctx, env.fleets(), &o.fleet, rest)
			},
			offer: func([]string) (syntax.FlagKind, []candidate) { return syntax.Words, nil },
		}
	}
	return nil
}

// subcommand returns the command of two words that has flags of its own; nil if words do not begin with one.
func subcommand(words []string) *command {
	if c := installVerb(words); c != nil {
		return c
	}
	return fleetVerb(words)
}

// fleets returns the environment of subcommands of fleet.
func (e *Env) fleets() *fleets.Env {
	f := &fleets.Env{Env: &e.Env, Print: e.print, PrintJSON: e.printJSON, Say: e.say}
	if program, err := os.Executable(); err == nil { // without it, files in a sandbox are refused
		f.FileHelper = []string{program, fileHelperName}
	}
	return f
}
