// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/server/stages"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// apply is the verb apply.
func apply(ctx context.Context, env *Env, o *Options, words, after []string) error {
	c, err := choose(ctx, env, words, after)
	if err != nil {
		return err
	}
	what := executor.ApplyOptions{Paths: c.paths, DryRun: o.dryRun, Force: o.force}
	done, err := c.Stage.Stage.Apply(ctx, what)
	conflict := new(executor.ConflictError)
	isConflict := errors.As(err, &conflict)
	if err != nil && !isConflict {
		err = c.explained(ctx, env, err)
		if len(done.Applied) == 0 {
			return err
		}
	}
	if len(done.Applied) > 0 && !o.dryRun {
		err = errors.Join(err, c.note(env, "applied"))
	}
	if isConflict && len(done.Conflicts) == 0 {
		done.Conflicts = conflict.Conflicts
	}
	said := applied(env, o, done, err == nil)
	switch {
	case said != nil:
		return said
	case isConflict:
		return explain.ErrorWith(explain.CodeNo, sallyport.EndFailed, explain.OneLine(err), "")
	case err == nil && c.refused(ctx, done):
		return explain.ExitCode(explain.CodeNo)
	}
	return err
}

// refused reports whether something was not applied besides special files, which never are.
func (c *chosen) refused(ctx context.Context, done *executor.Applied) bool {
	if len(done.Refused) == 0 {
		return false
	}
	left, err := c.Changes(ctx, c.paths...)
	return err != nil || slices.ContainsFunc(done.Refused, func(x executor.Conflict) bool {
		return !slices.ContainsFunc(left, func(l executor.Change) bool {
			full := filepath.Join(l.Root, l.Path)
			return l.File == "special" &&
				(x.Path == full || filepath.Join(c.Info().Workspace, x.Path) == full)
		})
	})
}

// maxRefused is how many changes that cannot be applied are named; --json has all.
const maxRefused = 20

// applied prints what is asked for, and tells what was not applied. Success says nothing.
func applied(env *Env, o *Options, done *executor.Applied, complete bool) error {
	if o.json {
		out := *done
		out.Applied = append([]string{}, done.Applied...)
		out.Conflicts = append([]executor.Conflict{}, done.Conflicts...)
		return env.PrintJSON(out)
	}
	word := "conflict: "
	if complete {
		word = "overwritten: "
	}
	for _, x := range done.Conflicts {
		env.Tell(word + text.Word(x.Path) + ": " + reason(x.Reason))
	}
	for i, x := range done.Refused {
		if i == maxRefused {
			env.Tell(explain.Plural(len(done.Refused)-i, "more change was", "more changes were") +
				" not applied")
			break
		}
		env.Tell("not applied: " + text.Word(x.Path) + ": " + x.Reason)
	}
	switch {
	case len(done.Conflicts) > 0 && !complete:
		return nil
	case o.dryRun:
		var b strings.Builder
		for _, p := range done.Applied {
			b.WriteString(text.Word(p) + "\n")
		}
		return env.Print(b.String())
	}
	return nil
}

// reason says what others did to the file of a conflict.
func reason(word string) string {
	switch word {
	case "content":
		return "its content was changed outside of the stage meanwhile"
	case "mode":
		return "its mode was changed outside of the stage meanwhile"
	case "kind":
		return "it is another kind of file outside of the stage meanwhile"
	case "deleted":
		return "it was deleted outside of the stage meanwhile"
	}
	return word
}

// note keeps what was done with a stage.
func (c *chosen) note(env *Env, action string) error {
	return env.Note(stages.NoteKind, stages.NoteOf(action, c.Info(), c.paths))
}

// discard is the verb discard.
func discard(ctx context.Context, env *Env, o *Options, words, after []string) error {
	c, err := choose(ctx, env, words, after)
	if err != nil {
		return err
	}
	err = c.Stage.Stage.Discard(ctx, o.force, c.paths...)
	if errors.Is(err, executor.ErrStageInUse) {
		return inUse(err, "wait until it has ended: what it has mounted cannot be discarded, also not with --force")
	}
	if err != nil {
		return c.explained(ctx, env, err)
	}
	return c.note(env, "discarded")
}
