// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/cli/stages"
	"github.com/sallyport-dev/sallyport/internal/run/tty"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// stageCommands are the verbs about stages.
func stageCommands() []command {
	var all []command
	for _, v := range stages.Verbs() {
		c := command{name: v.Name, short: v.Short, help: v.Help, words: v.Words}
		c.flags = func(o *options) []syntax.Flag { return v.Flags(&o.stages) }
		c.run = func(ctx context.Context, env *Env, o *options, words []string) error {
			r := new(sallyport.Runner)
			defer r.Close() //nolint:errcheck // it has run nothing
			before := words[:len(words)-len(o.after)]
			return v.Run(ctx, env.stages(r), &o.stages, before, o.after)
		}
		if v.Words > 0 {
			c.offer = stageWords
		}
		all = append(all, c)
	}
	return all
}

// stages returns the environment of verbs about stages.
func (e *Env) stages(r *sallyport.Runner) *stages.Env {
	return &stages.Env{Runner: r, Dir: e.Dir, Home: e.Variable("HOME"), Terminal: tty.Is(e.Stdout),
		Print: e.print, PrintJSON: e.printJSON, Printing: e.printing, Tell: e.say, Note: e.note}
}

// stageWords complete an ID, and then paths.
func stageWords(before []string) (syntax.FlagKind, []candidate) {
	all := explain.Stages()
	if len(before) > 0 || len(all) == 0 {
		return syntax.Files, nil
	}
	var ids []candidate
	for _, s := range all {
		ids = append(ids, candidate{explain.ShortStage(s.ID, all),
			explain.Plural(s.Changes, "change", "changes") + " of " + s.Workspace})
	}
	return syntax.Words, ids
}
