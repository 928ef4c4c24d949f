// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stages is the command line of stages, which hold what commands of sallyport run --stage changed:
// the verbs stages, changes, apply and discard.
//
// Each verb finds a stage by its words and prints what it says or does. What a change is, and how it becomes
// real, is known to the executor only.
package stages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// Env is what a verb runs in. All members but Dir must be set.
type Env struct {
	Runner *sallyport.Runner // has the stages
	Dir    string            // the current directory, absolute; empty means that it no longer exists
	Home   string
	// Terminal says that standard output is one: nothing that is printed may move it.
	Terminal bool
	// Print prints an answer for people, PrintJSON one value for programs, Printing what it is passed;
	// Tell prints a message on standard error.
	Print     func(text string) error
	PrintJSON func(v any) error
	Printing  func(write func(io.Writer) error) error
	Tell      func(lines ...string)
	// Note keeps in the audit log what was done.
	Note func(kind string, body map[string]any) error
}

// Options are the flags of all verbs.
type Options struct{ json, diff, force, dryRun bool }

// A Verb is a command about stages. Run gets the words before "--", and those after it; nil means that there
// was none.
type Verb struct {
	Name, Short, Help string
	Words             int // how many it takes at most
	Flags             func(o *Options) []syntax.Flag
	Run               func(ctx context.Context, env *Env, o *Options, words, after []string) error
}

const manyPaths = 1 << 20 // more than one command line has

// Verbs returns the commands, in the order of the overview.
func Verbs() []Verb {
	return []Verb{
		{"stages", "list stages (of sallyport run --stage)", stagesHelp, 0, (*Options).listFlags, list},
		{"changes", "show what the commands of a stage changed", changesHelp, manyPaths,
			(*Options).changesFlags, changes},
		{"apply", "make the changes of a stage real", applyHelp, manyPaths, (*Options).applyFlags, apply},
		{"discard", "forget the changes of a stage", discardHelp, manyPaths, (*Options).discardFlags,
			discard},
	}
}

const (
	stagesHelp = `List the stages of this user, oldest first.

  sallyport stages [--json]

  sallyport run --stage -- make
  sallyport changes --diff
  sallyport apply

sallyport run --stage makes a stage: what the program writes goes to a copy, and
the files stay as they are until sallyport apply. Stages stay until they are
applied or discarded.
`
	selecting = `
ID is the ID of a stage, 4 or more characters of its beginning, or the name of a
stage of this workspace; without ID it is the newest stage of this workspace. A
first word that is none of these is a PATH, and -- ends the ID. A PATH names the
changes at and below it.
`
	changesHelp = `Show what the commands of a stage changed.

  sallyport changes [ID] [PATH...]
  sallyport changes --diff [ID] [PATH...]

Each line is a letter and a path: A added, M modified, D deleted, R renamed, T
another type of file. The diff is one that git apply and patch -p1 take.
` + selecting
	applyHelp = `Make the changes of a stage real.

  sallyport apply [ID] [PATH...]

If another program changed one of the files since the stage first saw it,
nothing is applied, each conflict is listed, and the exit code is 1. What is
not applied stays staged. Devices, sockets and pipes are never applied.
` + selecting
	discardHelp = `Forget the changes of a stage. The files stay as they are.

  sallyport discard [ID] [PATH...]

While a command of the stage runs this is refused, and the exit code is 1.
` + selecting
)

func (o *Options) listFlags() []syntax.Flag {
	return []syntax.Flag{{Long: "json", Set: syntax.SetOn(&o.json), Help: "print a JSON array"}}
}

func (o *Options) jsonFlag() syntax.Flag {
	return syntax.Flag{Long: "json", Set: syntax.SetOn(&o.json), Help: "print one JSON object"}
}

func (o *Options) changesFlags() []syntax.Flag {
	return []syntax.Flag{{Long: "diff", Set: syntax.SetOn(&o.diff), Help: "print a unified diff"},
		o.jsonFlag()}
}

func (o *Options) applyFlags() []syntax.Flag {
	return []syntax.Flag{
		{Long: "dry-run", Set: syntax.SetOn(&o.dryRun), Help: "only look for conflicts"},
		{Long: "force", Set: syntax.SetOn(&o.force),
			Help: "overwrite what others changed; while a command of the\nstage runs, apply what it holds now"},
		o.jsonFlag(),
	}
}

func (o *Options) discardFlags() []syntax.Flag {
	return []syntax.Flag{{Long: "force", Set: syntax.SetOn(&o.force),
		Help: "refused as well while a command of the stage runs:\nwhat is mounted cannot be discarded"}}
}

// list is the verb stages.
func list(ctx context.Context, env *Env, o *Options, _, _ []string) error {
	all, err := env.Runner.Stages(ctx)
	if err != nil && len(all) == 0 {
		return classified(err)
	}
	var said error
	if o.json {
		said = env.PrintJSON(slices.Grow(all, 1)) // an array also of none
	} else {
		said = env.Print(table(all, env.Home, time.Now()))
	}
	if said != nil {
		return said
	}
	return classified(err)
}

// table is the list for people; empty for no stages.
func table(all []executor.StageInfo, home string, now time.Time) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "ID\tNAME\tCHANGES\tSIZE\tAGE\tCOMMANDS\tWORKSPACE") // a builder has no errors
	for _, s := range all {
		name := "-"
		if s.Name != "" {
			name = text.Word(s.Name)
		}
		count, where := strconv.Itoa(s.Changes), text.Word(explain.Tilde(s.Workspace, home))
		if s.Moved {
			count, where = "?", where+" (moved or deleted)"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", explain.ShortStage(s.ID, all), name, count,
			explain.Bytes(float64(s.Bytes)), explain.Age(now.Sub(s.Created)), s.Commands, where)
	}
	_ = w.Flush()
	return b.String()
}

// A chosen is a stage that words name, with the paths that they name.
type chosen struct {
	*sallyport.Stage
	paths []string // as they are asked for; nil for all changes
	words []string // as they were given
	maybe string   // the first of them, which is no stage; empty if it was not looked for
}

// choose finds the stage that words name, and makes the paths behind it absolute.
func choose(ctx context.Context, env *Env, before, after []string) (*chosen, error) {
	c := &chosen{words: slices.Concat(before, after)}
	switch {
	case slices.Contains(c.words, ""):
		return nil, explain.NewError("an argument is empty; use an ID of a stage, or a path")
	case len(before) > 0:
		var err error
		c.Stage, err = env.Runner.Stage(ctx, cmp.Or(env.Dir, "/"), before[0])
		switch {
		case err == nil:
			c.words = c.words[1:]
		case !errors.Is(err, executor.ErrNoStage):
			return nil, classified(err)
		case after != nil:
			return nil, explain.NewError("there is no stage %s; sallyport stages lists them",
				syntax.QuoteFlag(before[0]))
		default:
			c.maybe = before[0]
		}
	}
	if c.Stage == nil {
		if err := c.newest(ctx, env); err != nil {
			return nil, err
		}
	}
	for _, p := range c.words {
		if env.Dir == "" && !filepath.IsAbs(p) {
			return nil, explain.NewError("the current directory no longer exists; use absolute paths")
		}
		c.paths = append(c.paths, absolute(p, env.Dir))
	}
	return c, nil
}

// newest finds the newest stage of the workspace.
func (c *chosen) newest(ctx context.Context, env *Env) (err error) {
	if env.Dir == "" {
		return explain.NewError("the current directory no longer exists; name the stage by its ID")
	}
	c.Stage, err = env.Runner.Stage(ctx, env.Dir, "")
	switch {
	case !errors.Is(err, executor.ErrNoStage):
		return classified(err)
	case c.maybe != "":
		return explain.NewError(
			"there is no stage %s, and this workspace has none; sallyport stages lists all",
			syntax.QuoteFlag(c.maybe))
	}
	return explain.NewError("this workspace has no stage; sallyport run --stage makes one, " +
		"sallyport stages lists all")
}

// absolute returns the name that a change has: without links on the way to it, but not that of a link itself.
func absolute(name, dir string) string {
	if !filepath.IsAbs(name) {
		return filepath.Join(hostfacts.RealPath(dir), name)
	}
	if name = filepath.Clean(name); name == "/" {
		return name
	}
	return filepath.Join(hostfacts.Deepest(filepath.Dir(name)), filepath.Base(name))
}

// short is the ID of the stage as people write it.
func (c *chosen) short(ctx context.Context, env *Env) string {
	all, _ := env.Runner.Stages(ctx) // what cannot be read has an ID that is another one, most likely
	return explain.ShortStage(c.Info().ID, all)
}

// explained gives an error of a stage its exit code, and says which words name no change.
func (c *chosen) explained(ctx context.Context, env *Env, err error) error {
	if !errors.Is(err, executor.ErrNoChange) {
		return classified(err)
	}
	id := c.short(ctx, env)
	if c.maybe != "" {
		return explain.NewError("there is no stage %s, and the stage %s has no change at such a path; "+
			"sallyport changes %s lists its changes", syntax.QuoteFlag(c.maybe), id, id)
	}
	return explain.NewError("%s; sallyport changes %s lists its changes", withoutFix(err), id)
}

// classified gives an error of a stage its exit code.
func classified(err error) error {
	if e := new(executor.StageError); errors.Is(err, executor.ErrNotSynced) && errors.As(err, &e) {
		return explain.ErrorWith(explain.CodeNo, sallyport.EndFailed, text.Line(e.Why), text.Line(e.Fix))
	}
	if !errors.Is(err, executor.ErrStageInUse) {
		return err
	}
	return inUse(err, "wait until it has ended, or add --force to use what the stage holds now")
}

// inUse is the error for a stage that a command uses.
func inUse(err error, fix string) error {
	return explain.ErrorWith(explain.CodeNo, sallyport.EndFailed, withoutFix(err), fix)
}

// withoutFix is what an error says, without its fix, which is for a run or for the library.
func withoutFix(err error) string {
	if e := new(executor.StageError); errors.As(err, &e) {
		return text.Line(e.Why)
	}
	return explain.OneLine(err)
}
