// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audits

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

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

// Why performs why: with list it lists the runs, with asJSON for programs.
func Why(env *Env, list, asJSON bool, id string) error {
	if list && id != "" {
		return explain.NewError("--list and a run ID cannot be combined; use one of them")
	}
	log, err := ReadRuns(env.Env, id == "" && !list)
	switch {
	case err != nil:
		return err
	case list && asJSON:
		all := whyList{Type: "runs", Runs: []json.RawMessage{}, Skipped: log.Skipped}
		for _, r := range log.Records {
			all.Runs = append(all.Runs, r.Line)
		}
		return env.PrintJSON(all)
	case len(log.Records) == 0 && (list || id == ""):
		return noRuns(env, log, asJSON)
	case list:
		return env.Print(explain.ListRuns(log))
	}
	r, err := FindRun(log, id)
	if err != nil {
		return err
	}
	if asJSON {
		return env.PrintJSON(whyAnswer{Type: "why", Record: r.Line,
			Command: explain.AllowingCommand(r, env.Dir), Keep: explain.KeepingCommand(r, env.Dir),
			Skipped: log.Skipped})
	}
	home, _ := os.UserHomeDir() // empty when it is not known
	return env.Print(explain.Explain(r, home, env.Dir) + explain.Skipped(log))
}

// ReadRuns reads the records of this user's runs, oldest first, or with newest at least the last one. It
// returns no more than history.runs.
func ReadRuns(env *args.Env, newest bool) (explain.Log, error) {
	var all explain.Log
	for _, dir := range args.AuditDirs(env) {
		log, err := explain.ReadLog(dir, newest)
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
	all.Records = all.Records[max(0, len(all.Records)-args.ShownRuns(env)):]
	return all, nil
}

// noRuns reports that nothing is recorded.
func noRuns(env *Env, log explain.Log, asJSON bool) error {
	var err error
	if asJSON {
		err = env.PrintJSON(whyAnswer{Type: "why", Record: json.RawMessage("null"), Skipped: log.Skipped})
	} else {
		err = env.Print("No run is recorded.\n" + explain.Skipped(log))
	}
	return cmp.Or(err, error(explain.ExitCode(explain.CodeNo)))
}

// FindRun returns the run whose ID begins with id; the last one for "".
func FindRun(log explain.Log, id string) (explain.Record, error) {
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
