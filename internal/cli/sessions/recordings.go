// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/cli/recordings"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
)

const recordingsHelp = `List the recordings of terminal sessions in their directory, or remove some.

  sallyport recordings [--json]
  sallyport recordings rm NAME...

  sallyport run -t --record -- bash
  sallyport play NAME

recordings.dir of the settings is the directory, and recordings.retention how
long they are kept.
`

func (o *Options) recordingsFlags() []syntax.Flag {
	return []syntax.Flag{{Long: "json", Set: syntax.SetOn(&o.json), Help: "print a JSON array"}}
}

// store returns the directory of recordings that the settings of the current directory name.
func (o *Options) store(env *Env) *recordings.Store {
	var run args.Options
	_, _, _ = run.Settings(env.Env) // without settings it is the usual one
	return args.Recordings(&run.Recordings, env.Variable("HOME"))
}

// listRecordings lists or removes recordings.
func listRecordings(_ context.Context, env *Env, o *Options, words []string) error {
	store := o.store(env)
	switch {
	case len(words) == 0:
		list, err := store.List()
		switch {
		case err != nil:
			return err
		case o.json:
			return env.PrintJSON(list)
		case len(list) == 0:
			return env.Print("no recordings; sallyport run -t --record -- PROGRAM makes one\n")
		}
		return env.Print(describe(list))
	case words[0] != "rm":
		return explain.NewError("unknown argument %s%s", syntax.QuoteFlag(words[0]),
			syntax.NearestClause(words[0], []string{"rm"}, "see sallyport help recordings"))
	case o.json:
		return explain.NewError("--json is for the list: sallyport recordings --json")
	case len(words) == 1:
		return explain.NewError("the name of a recording is missing; sallyport recordings lists them")
	}
	for _, name := range words[1:] {
		err := store.Remove(name)
		if errors.Is(err, fs.ErrNotExist) {
			err = explain.NewError("no recording %s; sallyport recordings lists them", syntax.QuoteFlag(name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// describe is a list for people.
func describe(list []recordings.Entry) string {
	var b strings.Builder
	const form = "%-31s  %9s  %8s  %s\n"
	fmt.Fprintf(&b, form, "NAME", "BYTES", "LENGTH", "COMMAND")
	for _, e := range list {
		length := "-"
		if d := e.Ended.Sub(e.Started); !e.Started.IsZero() && d >= 0 {
			length = d.Round(time.Second).String()
		}
		fmt.Fprintf(&b, form, e.Name, fmt.Sprint(e.Bytes), length, text.Line(e.Command))
	}
	return b.String()
}

// recordingNames complete the arguments of recordings.
func recordingNames(env *Env, before []string) (syntax.FlagKind, [][2]string) {
	if len(before) == 0 || before[0] != "rm" {
		return syntax.Words, [][2]string{{"rm"}}
	}
	list, _ := new(Options).store(env).List() // what cannot be listed is not offered
	var all [][2]string
	for _, e := range list {
		all = append(all, [2]string{e.Name, e.Command})
	}
	return syntax.Words, all
}
