// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

const whyHelp = `Explain how a run ended, what it was denied, and what would allow it.

  sallyport why [ID] [--json]
  sallyport why --list [--json]

Without ID it explains the last run; ID may be shortened. For each denial it
prints the rule and, if there is one, the smallest grant that allows it. At the
end it prints one command line that allows everything that can be allowed, and
one that adds this to the settings of the project.

Every run of this user is recorded in the audit log: the result without the
output, and the arguments except those that look like secrets by their names.
Values of variables are not recorded. See sallyport help audit.
`

func whyFlags(o *options) []syntax.Flag {
	return []syntax.Flag{{Long: "list", Set: syntax.SetOn(&o.list),
		Help: "list the recorded runs, the latest last"}, o.jsonFlag()}
}

// The answers of why. The member names of their JSON forms stay.
type (
	whyAnswer struct {
		Type    string          `json:"type"`   // always "why"
		Record  json.RawMessage `json:"record"` // null when nothing is recorded
		Command []string        `json:"command,omitempty"`
		Keep    []string        `json:"keep,omitempty"` // the command that allows it in the project
		Skipped int             `json:"skipped"`        // lines that are no records
	}
	whyList struct {
		Type    string            `json:"type"` // always "runs"
		Runs    []json.RawMessage `json:"runs"`
		Skipped int               `json:"skipped"`
	}
)

func whyCommand(_ context.Context, env *Env, o *options, words []string) error {
	id := strings.Join(words, "")
	if o.list && id != "" {
		return explain.NewError("--list and a run ID cannot be combined; use one of them")
	}
	log, err := readRuns(&env.Env)
	switch {
	case err != nil:
		return err
	case o.list && o.json:
		list := whyList{Type: "runs", Runs: []json.RawMessage{}, Skipped: log.Skipped}
		for _, r := range log.Records {
			list.Runs = append(list.Runs, r.Line)
		}
		return env.printJSON(list)
	case len(log.Records) == 0 && (o.list || id == ""):
		return noRuns(env, log, o.json)
	case o.list:
		return env.print(explain.ListRuns(log))
	}
	r, err := findRun(log, id)
	if err != nil {
		return err
	}
	if o.json {
		return env.printJSON(whyAnswer{Type: "why", Record: r.Line,
			Command: explain.AllowingCommand(r, env.Dir), Keep: explain.KeepingCommand(r, env.Dir),
			Skipped: log.Skipped})
	}
	home, _ := os.UserHomeDir() // empty when it is not known
	return env.print(explain.Explain(r, home, env.Dir) + explain.Skipped(log))
}

// readRuns reads the records of this user's runs, oldest first.
func readRuns(env *args.Env) (explain.Log, error) {
	var all explain.Log
	for _, dir := range args.AuditDirs(env) {
		log, err := explain.ReadLog(dir)
		if err != nil {
			return all, explain.NewError("cannot read the records of runs: %v", explain.SystemCause(err))
		}
		all.Records = append(all.Records, log.Records...)
		all.Skipped += log.Skipped
	}
	// Lines are written at the end of runs, and what people call the last run is the
	// one that ended last.
	ended := func(r explain.Record) time.Time { return r.Start.Add(r.Duration) }
	slices.SortStableFunc(all.Records, func(a, b explain.Record) int { return ended(a).Compare(ended(b)) })
	return all, nil
}

// noRuns reports that nothing is recorded.
func noRuns(env *Env, log explain.Log, asJSON bool) error {
	var err error
	if asJSON {
		err = env.printJSON(whyAnswer{Type: "why", Record: json.RawMessage("null"), Skipped: log.Skipped})
	} else {
		err = env.print("No run is recorded.\n" + explain.Skipped(log))
	}
	return cmp.Or(err, error(explain.ExitCode(explain.CodeNo)))
}

// findRun returns the run whose ID begins with id; the last one for "".
func findRun(log explain.Log, id string) (explain.Record, error) {
	if id == "" {
		return log.Records[len(log.Records)-1], nil
	}
	at, n := syntax.Shortened(id, len(log.Records), func(i int) string { return log.Records[i].Run })
	switch n {
	case 0:
		return explain.Record{},
			explain.NewError("unknown run %s; sallyport why --list prints the recorded ones",
				syntax.QuoteFlag(id))
	case 1:
		return log.Records[at], nil
	}
	return explain.Record{}, explain.NewError("run ID %s is ambiguous (%d runs); use more of it",
		syntax.QuoteFlag(id), n)
}
