// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/runlog"
	"github.com/sallyport-dev/sallyport/internal/state"
)

func whyUsage() string {
	return `Say how the last run ended, what it was kept from, and what would allow it.

  sallyport why [ID] [--json]
  sallyport why --list [--json]

ID is that of another run, or the beginning of it. For each thing there is the
rule that refused it and, where there is one, the smallest grant that lets it
through; at the end stands one command line with all of them.

      --list   list the runs that are recorded, the last one at the end
      --json   print one JSON object

Every sallyport run of this user is recorded, in runs.jsonl in the state folder:
the result without what the command printed. Arguments are part of it, without
what looks like a secret by its name; values of variables are not. The oldest
records go when there is more than a MiB or two of them.
`
}

// The answers of why. The member names of their JSON forms stay.
type (
	whyAnswer struct {
		Type    string          `json:"type"`   // always "why"
		Record  json.RawMessage `json:"record"` // null when nothing is recorded
		Command []string        `json:"command,omitempty"`
		Skipped int             `json:"skipped"` // lines that are no records
	}
	whyList struct {
		Type    string            `json:"type"` // always "runs"
		Runs    []json.RawMessage `json:"runs"`
		Skipped int               `json:"skipped"`
	}
)

func whyVerb(_ context.Context, env *Env, args []string) error {
	var asJSON, list, help bool
	flags := []flag{
		{long: "json", set: on(&asJSON)},
		{long: "list", set: on(&list)},
		{long: "help", short: 'h', set: on(&help)},
	}
	words, err := parse(flags, args)
	id := ""
	if err == nil && len(words) > 0 {
		id = words[0]
		words, err = parse(flags, words[1:]) // flags may follow
	}
	switch {
	case err != nil:
		return err
	case help:
		return env.put([]byte(whyUsage()))
	case len(words) > 0:
		return usage("why takes one run, so %s is too much", quote(words[0]))
	case list && id != "":
		return usage("--list and %s do not go together", quote(id))
	}
	log, err := readRuns()
	if err != nil {
		return err
	}
	if list {
		return listRuns(env, log, asJSON)
	}
	if id == "" && len(log.Records) == 0 {
		return noRuns(env, log, asJSON)
	}
	r, err := findRun(log, id)
	if err != nil {
		return err
	}
	home, _ := os.UserHomeDir() // empty: nobody knows it
	if asJSON {
		return putJSON(env, whyAnswer{Type: "why", Record: r.Line, Command: cureCommand(r), Skipped: log.Skipped})
	}
	return env.put([]byte(explainRun(r, home) + skippedNote(log)))
}

// readRuns reads what this user's runs have left, oldest first.
func readRuns() (runlog.Log, error) {
	var all runlog.Log
	for _, state := range state.Existing() {
		log, err := runlog.Read(state)
		if err != nil {
			return all, sentence("the records of runs cannot be read: %v", cause(err))
		}
		all.Records = append(all.Records, log.Records...)
		all.Skipped += log.Skipped
	}
	// Lines are written at the end of runs, and what people call the last run is the
	// one that ended last.
	slices.SortStableFunc(all.Records, func(a, b runlog.Record) int { return ended(a).Compare(ended(b)) })
	return all, nil
}

// noRuns says that nothing is recorded.
func noRuns(env *Env, log runlog.Log, asJSON bool) error {
	var err error
	if asJSON {
		err = putJSON(env, whyAnswer{Type: "why", Record: json.RawMessage("null"), Skipped: log.Skipped})
	} else {
		err = env.put([]byte("No run is recorded.\n" + skippedNote(log)))
	}
	if err != nil {
		return err
	}
	return exitCode(codeNo)
}

// findRun returns the run whose identity begins with id; the last one for "".
func findRun(log runlog.Log, id string) (runlog.Record, error) {
	if id == "" {
		return log.Records[len(log.Records)-1], nil
	}
	var found []runlog.Record
	for _, r := range log.Records {
		if r.Run == id {
			return r, nil
		}
		if strings.HasPrefix(r.Run, id) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return runlog.Record{}, usage("no run whose identity begins with %s is recorded; sallyport why --list lists them", quote(id))
	case 1:
		return found[0], nil
	}
	return runlog.Record{}, usage("%s is the beginning of %d runs; write more of it", quote(id), len(found))
}

// listRuns prints all runs.
func listRuns(env *Env, log runlog.Log, asJSON bool) error {
	if asJSON {
		list := whyList{Type: "runs", Runs: []json.RawMessage{}, Skipped: log.Skipped}
		for _, r := range log.Records {
			list.Runs = append(list.Runs, r.Line)
		}
		return putJSON(env, list)
	}
	if len(log.Records) == 0 {
		return noRuns(env, log, false)
	}
	var b strings.Builder
	for _, r := range log.Records {
		fmt.Fprintf(&b, "%s  %-12s  %-12s  %-14s  %s\n",
			r.Start.Local().Format(timeForm), shown(r.Run[:min(len(r.Run), shortID)]), shortEnd(r), refusals(r), shortCommand(r))
	}
	return env.put([]byte(b.String() + skippedNote(log)))
}

// shortID is how much of an identity tells runs apart.
const shortID = 12

// timeForm is how times are written for people.
const timeForm = "2006-01-02 15:04:05"

// refusals counts denials for the list.
func refusals(r runlog.Record) string {
	switch n := len(r.Denials()) + r.DenialsOmitted; n {
	case 0:
		return "-"
	case 1:
		return "1 denial"
	default:
		return fmt.Sprintf("%d denials", n)
	}
}

// shortEnd says in a word or two how a run ended.
func shortEnd(r runlog.Record) string {
	if r.End == "exited" {
		return fmt.Sprintf("exit %d", r.ExitCode)
	}
	return shown(strings.ReplaceAll(string(r.End), "_", " "))
}

// shortCommand is the command in one line of the list.
func shortCommand(r runlog.Record) string {
	const most = 100
	line := []rune(shellWords(r.Args))
	if len(line) > most {
		return string(line[:most]) + "..."
	}
	return string(line)
}

// skippedNote says that lines could not be read.
func skippedNote(log runlog.Log) string {
	switch log.Skipped {
	case 0:
		return ""
	case 1:
		return "\nOne line among the records cannot be read and was skipped.\n"
	}
	return fmt.Sprintf("\n%d lines among the records cannot be read and were skipped.\n", log.Skipped)
}

// putJSON prints one object.
func putJSON(env *Env, v any) error {
	line, err := encode(v)
	if err != nil {
		return fmt.Errorf("the answer has no JSON form: %w", err)
	}
	return env.put(line)
}
