// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audits is the command line of the audit log: the command audit with its subcommands.
//
// [Run] checks, prints or exports the log that settings name, or one that is given.
package audits

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// Help is the help text above the flags.
const Help = `Check, show and export the audit log.

  sallyport audit verify [FILE|DIR] [--key KEY|FILE] [--checkpoint FILE]
  sallyport audit show [FILE|DIR] [--since TIME] [--run ID] [--denied] ...
  sallyport audit export [FILE|DIR] --format ocsf [--since TIME] ...
  sallyport audit key
  sallyport audit checkpoint

The log has what was asked, decided, started, denied and changed, without output
and secrets; audit.path in the settings says where, required whether commands
run without it. verify checks each line, their order and the signatures; it
prints nothing if all hold, and exits with 1 and the line where one does not.
key prints the key that verifies checkpoints, checkpoint the latest one: kept on
another machine, they find what a process with the rights of this user rewrites.

TIME is 2026-11-29, "2026-11-29 15:04", with a zone as in RFC 3339, or a
duration before now: 2h.
`

// An Env is the environment of one invocation. All functions must be set: Print prints for people, Write text
// for programs as it is, PrintJSON one object, and Printing what it is passed.
type Env struct {
	*args.Env
	Print, Write func(text string) error
	PrintJSON    func(v any) error
	Printing     func(write func(io.Writer) error) error
}

// Options are the flags of audit.
type Options struct {
	json, verbose      bool
	keys               []string
	checkpoint, format string
	filter             audit.Filter
}

// Flags returns the flags of audit, bound to o.
func Flags(a *Options) []syntax.Flag {
	f := &a.filter
	when := func(to *time.Time) func(string) error {
		return func(v string) error { return parseTime(to, v, time.Now()) }
	}
	text := func(long, value string, to *string, help string) syntax.Flag {
		return syntax.Flag{Long: long, Value: value, Set: syntax.SetText(to), Help: help}
	}
	return []syntax.Flag{
		{Long: "key", Value: "KEY", Kind: syntax.Files, Set: syntax.SetList(&a.keys),
			Help: "verify: a key of the checkpoints, or a file with it\n" +
				"(default key.pub of the log; repeatable)"},
		{Long: "checkpoint", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&a.checkpoint),
			Help: "verify: the log must have what this checkpoint covers"},
		{Long: "since", Value: "TIME", Set: when(&f.Since), Help: "only from TIME on"},
		{Long: "until", Value: "TIME", Set: when(&f.Until), Help: "only before TIME"},
		text("run", "ID", &f.Run, "only of this run; ID may be shortened"),
		text("kind", "KIND", &f.Kind, "only of this kind: run, denied, network_decided, ..."),
		text("program", "NAME", &f.Program, "only about this program, by name or path"),
		text("host", "HOST", &f.Host, "only about this host"),
		text("path", "PATH", &f.Path, "only about this path and what is below it"),
		text("decision", "WORD", &f.Decision, "only this decision: allow, forbidden, approved, ..."),
		{Long: "denied", Set: syntax.SetOn(&f.Denied), Help: "only what was denied, forbidden or refused"},
		text("approved-by", "WHO", &f.ApprovedBy, "only what this source approved: user, config, ..."),
		{Long: "format", Value: "FORMAT", Words: []string{formatOCSF}, Set: syntax.SetText(&a.format),
			Help: "of export: ocsf, JSON lines of the Open Cybersecurity\nSchema Framework"},
		{Long: "verbose", Short: 'v', Set: syntax.SetOn(&a.verbose), Help: "verify: print what was checked"},
		{Long: "json", Set: syntax.SetOn(&a.json), Help: "print one JSON object"},
	}
}

const formatOCSF = "ocsf"

// verbs are the words after audit, each with what it does.
var verbs = [][2]string{{"verify", "check the log"}, {"show", "print records"},
	{"export", "print records for other tools"}, {"key", "print the key that verifies checkpoints"},
	{"checkpoint", "print the latest checkpoint"}}

// Run performs audit.
func Run(ctx context.Context, env *Env, o *Options, words []string) error {
	if len(words) == 0 {
		return explain.NewError(
			"audit needs a subcommand: verify, show, export, key or checkpoint; see sallyport help audit")
	}
	known := make([]string, len(verbs))
	for i, v := range verbs {
		known[i] = v[0]
	}
	if !slices.Contains(known, words[0]) {
		return explain.NewError("unknown subcommand %s%s", syntax.QuoteFlag(words[0]),
			syntax.NearestClause(words[0], known, "see sallyport help audit"))
	}
	var places []string
	if len(words) > 1 {
		places = []string{args.Absolute(words[1], env.Dir, env.Variable("HOME"))}
	} else if places = args.AuditDirs(env.Env); len(places) == 0 {
		return explain.ErrorWith(explain.CodeNo, sallyport.EndFailed, "there is no audit log yet", "")
	}
	var err error
	switch words[0] {
	case "verify":
		err = verifyAudit(ctx, env, o, words, places)
	case "show":
		err = showAudit(env, o, places)
	case "export":
		err = exportAudit(env, o, places)
	default:
		err = printAudit(env, words[0], places[0])
	}
	if errors.Is(err, fs.ErrNotExist) {
		return explain.ErrorWith(explain.CodeNo, sallyport.EndFailed, explain.OneLine(err), "")
	}
	return err
}

// A Check is the answer of audit verify. The member names of its JSON form stay.
type Check struct {
	Type string `json:"type"` // always "audit_verify"
	Path string `json:"path"`
	OK   bool   `json:"ok"`
	*audit.Report
	// Of the line that does not hold; Line counts in its file, N in the log. Line is 0 for the whole file.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	N    uint64 `json:"n,omitempty"`
	Why  string `json:"why,omitempty"`
}

// String is the answer for people.
func (c *Check) String() string {
	r := c.Report
	switch {
	case !c.OK && c.Line > 0:
		return fmt.Sprintf("%s:%d: %s\n", text.Word(c.File), c.Line, text.Line(c.Why))
	case !c.OK:
		return fmt.Sprintf("%s: %s\n", text.Word(c.File), text.Line(c.Why))
	case r == nil || r.Last == 0:
		return text.Word(c.Path) + ": no lines\n"
	}
	s := fmt.Sprintf("%s: lines %d to %d hold, in %s; signed up to line %d, at %s\n", text.Word(c.Path),
		r.First, r.Last, explain.Plural(r.Files, "file", "files"), r.Signed,
		r.SignedAt.Local().Format(time.DateTime))
	for _, n := range r.Notes {
		s += "  note: " + text.Line(n) + "\n"
	}
	return s
}

func verifyAudit(ctx context.Context, env *Env, o *Options, words, places []string) error {
	var set audit.VerifyOptions
	for _, word := range o.keys {
		key, err := keyOf(env, word)
		if err != nil {
			return err
		}
		set.Keys = append(set.Keys, key)
	}
	if said, err := args.AuditSettings(env.Env); len(words) == 1 && set.Keys == nil && err == nil &&
		said.KeyFile != "" {
		key, err := audit.PublicKey(places[0], config.Expand(said.KeyFile, env.Variable("HOME")))
		if err != nil {
			return err
		}
		set.Keys = []string{key}
	}
	if name := o.checkpoint; name != "" {
		note, err := readSmall(args.Absolute(name, env.Dir, env.Variable("HOME")))
		if err != nil {
			return err
		}
		set.Checkpoint = note
	}
	done := error(nil)
	for _, place := range places {
		report, err := audit.Verify(ctx, place, set)
		c := &Check{Type: "audit_verify", Path: place, OK: err == nil, Report: report}
		if broken := new(audit.BrokenError); errors.As(err, &broken) {
			c.File, c.Line, c.N, c.Why = broken.File, broken.Line, broken.N, broken.Why
			done = explain.ExitCode(explain.CodeNo)
		} else if err != nil {
			return err
		}
		if o.json || o.verbose || !c.OK {
			if err := env.answer(c, o.json); err != nil {
				return err
			}
		}
	}
	return done
}

// answer prints one object, or for people.
func (e *Env) answer(c *Check, asJSON bool) error {
	if asJSON {
		return e.PrintJSON(c)
	}
	return e.Print(c.String())
}

// keyOf returns the text of a key, which a word or a file has.
func keyOf(env *Env, word string) (string, error) {
	if strings.Count(word, "+") >= 2 && !strings.HasPrefix(word, "/") {
		return word, nil
	}
	key, err := readSmall(args.Absolute(word, env.Dir, env.Variable("HOME")))
	return strings.TrimSpace(key), err
}

// readSmall reads a file of a few lines.
func readSmall(name string) (string, error) {
	b, more, err := safefile.Read(name, 1<<16)
	switch {
	case err != nil:
		return "", explain.NewError("cannot read %s: %v", text.Word(name), explain.SystemCause(err))
	case more:
		return "", explain.NewError("%s is too long for a key or a checkpoint", text.Word(name))
	}
	return string(b), nil
}

// A shownRecord is a record as audit show --json prints it. The member names stay.
type shownRecord struct {
	N    uint64          `json:"n"`
	Time time.Time       `json:"time"`
	Kind string          `json:"kind"`
	Body json.RawMessage `json:"body,omitempty"`
	File string          `json:"file"`
	Line int             `json:"line"`
	Bad  string          `json:"bad,omitempty"` // why the line does not hold
}

func showAudit(env *Env, o *Options, places []string) error {
	home, _ := os.UserHomeDir() // empty when it is not known
	return env.records(o, places, func(w io.Writer, r audit.Record) error {
		if o.json {
			enc := json.NewEncoder(w)
			enc.SetEscapeHTML(false)
			return enc.Encode(shownRecord{r.N, r.Time, r.Kind, r.Body, r.File, r.Line, r.Bad})
		}
		_, err := io.WriteString(w, text.Lines(explain.AuditLine(r, home)))
		return err
	})
}

func exportAudit(env *Env, o *Options, places []string) error {
	if o.format == "" {
		return explain.NewError("audit export needs --format ocsf")
	}
	return env.records(o, places, func(w io.Writer, r audit.Record) error {
		form, ok, err := audit.OCSF(r)
		if ok && err == nil {
			_, err = w.Write(append(slices.Clip([]byte(form)), '\n'))
		}
		return err
	})
}

// records prints the records that flags choose, in the order of the logs.
func (e *Env) records(o *Options, places []string, write func(io.Writer, audit.Record) error) error {
	var failed error
	err := e.Printing(func(out io.Writer) error {
		w := bufio.NewWriterSize(out, 64<<10)
		for _, place := range places {
			var unwritten error
			failed = cmp.Or(failed, audit.Read(place, o.filter, func(r audit.Record) error {
				unwritten = write(w, r)
				return unwritten
			}))
			if unwritten != nil {
				return unwritten
			}
		}
		return w.Flush()
	})
	return cmp.Or(err, failed)
}

// printAudit prints the key or the latest checkpoint of a log.
func printAudit(env *Env, what, place string) error {
	if what == "checkpoint" {
		note, err := audit.Checkpoint(place)
		if err != nil {
			return err
		}
		return env.Write(string(note))
	}
	set, err := args.AuditSettings(env.Env)
	if err != nil {
		return err
	}
	key, err := audit.PublicKey(place, config.Expand(set.KeyFile, env.Variable("HOME")))
	if err != nil {
		return err
	}
	return env.Print(key + "\n")
}

// parseTime reads a time: a date, one with a time of the day, one of RFC 3339, or a duration before now.
func parseTime(to *time.Time, v string, now time.Time) error {
	for _, form := range []string{time.RFC3339Nano, time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(form, v, time.Local); err == nil {
			*to = t
			return nil
		}
	}
	d, err := config.ParseDuration(v)
	if err != nil {
		return fmt.Errorf("invalid time %s; use 2026-11-29, \"2026-11-29 15:04\", 2026-11-29T15:04:00Z or 2h",
			syntax.QuoteFlag(v))
	}
	*to = now.Add(-d)
	return nil
}

// Words completes the words of audit.
func Words(before []string) (syntax.FlagKind, [][2]string) {
	if len(before) == 0 {
		return syntax.Words, verbs
	}
	if slices.Contains([]string{"key", "checkpoint"}, before[0]) {
		return syntax.Words, nil
	}
	return syntax.Files, nil
}
