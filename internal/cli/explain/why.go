// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain explains runs and machines to people: how a run ended, what was denied, which command lines
// would allow it, once or from now on, and what a machine can enforce.
//
// The functions about runs turn a record into text, or into the words of a command line. They print
// nothing and look at nothing but the record: what others chose is escaped, and times are
// those of the local zone.
//
// [Record.Body] is what the audit log has of a run beside its events: the JSON object of its result
// without what the command printed, the start time and the flags that decide what the program may touch.
// Values of the environment are never recorded; arguments are, and what looks like a secret in them is
// masked.
//
// [Denials] and its like write what people are told about a run: one line for each thing that was
// denied, made, moved or ended, with what allows it. [Classify] puts errors into the form that
// people read, with the exit code of each. [ExplainCheck] answers what the rules say about a
// command.
//
// [Checks] tries each part of the sandbox by itself, and [Levels] runs a command at each sandbox level. What
// is missing comes with its cause and, where one is known, a fix. [Diagnose] says what follows for the
// default policy, [Cleaned] what was cleaned up. Checks and Levels start short-lived processes, block for
// some ten milliseconds and leave nothing behind. [ListCaches] and [ClearCaches] list and clear the private
// layers over toolchain caches in all state directories of a user.
package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// Explain reports a run for people whose home and current directory are given.
func Explain(r Record, home, here string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("Run %s, %s, in %s:\n  %s\n", text.Word(r.Run), r.Start.Local().Format(time.DateTime),
		text.Word(Tilde(r.Dir, home)), ShellWords(r.Args))
	line("%s", ending(r))
	for _, l := range r.Limits {
		if l.Hit {
			line("Limit reached: %s %s (by %s).", text.Word(l.Limit), LimitValue(l), text.Word(l.By))
		}
	}
	if len(r.Attempts) == 0 { // it did not run
		return b.String()
	}
	line("%s", sandboxOf(r))
	for _, w := range r.Sandbox.Weaker {
		line("Weaker: %s.", Sentence(w))
	}
	if len(r.Sandbox.Replaced) > 0 {
		line("Shown with dummies in the place of secrets: %s.",
			text.Line(strings.Join(r.Sandbox.Replaced, ", ")))
	}
	if len(r.Sandbox.Hidden) > 0 {
		line("Hidden, unless one of these is granted: %s.", text.Line(strings.Join(r.Sandbox.Hidden, ", ")))
	}
	for _, w := range r.Warnings {
		line("Warning: %s.", Sentence(w))
	}
	facts := []string{Withheld(r.Withheld)}
	for _, q := range r.Quarantined {
		facts = append(facts, Sentence(Quarantine(q)))
	}
	for _, text := range Said(append(facts, HardLinks(r.HardLinks, r.HardLinksOmitted, home),
		Ownership(r.OwnershipIgnored))...) {
		line("%s.", capital(text))
	}
	if r.Stage != nil {
		line("Stage: %s", stagedThen(r.Stage))
	}
	for _, g := range r.Granted {
		line("Granted while it ran: %s.", Granted(g))
	}
	if len(r.New) > 0 {
		line("New, and other programs may run or obey it: %s.",
			strings.Join(NewNamesOf(r.New, r.Dir, home), ", "))
	}
	if len(r.Survivors) > 0 {
		var names []string
		for _, s := range event.Listed(r.Survivors) {
			names = append(names, fmt.Sprintf("%s (%d)", text.Word(s.Name), s.PID))
		}
		line("Ended %s: %s.", Plural(len(r.Survivors), "leftover process", "leftover processes"),
			strings.Join(names, ", "))
	}
	line("")
	denials(&b, r, home, here)
	return b.String()
}

// Granted says what an answer opened while a command ran, and who gave it.
func Granted(g event.Granted) string {
	said := fmt.Sprintf("%s %s (%s, by %s)", g.Op, text.Word(g.Path), text.Word(g.Call),
		text.Word(string(g.By)))
	if g.More > 0 {
		said += fmt.Sprintf(" and %d more of these calls", g.More)
	}
	return said
}

// ending is how a run ended.
func ending(r Record) string {
	why := Sentence(r.Error)
	detail := fmt.Sprintf("after %v (exit code %d)", r.Duration, r.ExitCode)
	killed, _ := Exceeded(string(r.End), r.Limits)
	switch {
	case r.End == sallyport.EndLost:
		return fmt.Sprintf("Lost %s: %s.", detail, cmp.Or(why, new(sallyport.LostError).Error()))
	case len(r.Attempts) == 0:
		return strings.TrimSuffix(fmt.Sprintf("Did not run (exit code %d): %s", r.ExitCode, why), ": ") + "."
	case killed != "":
		return capital(killed) + ", " + detail + "."
	}
	switch r.End {
	case sallyport.EndExited:
		return fmt.Sprintf("Exited with code %d after %v.", r.ExitCode, r.Duration)
	case sallyport.EndSignaled:
		return fmt.Sprintf("Killed by signal %d (%s) after %v.", r.Signal,
			syscall.Signal(r.Signal), r.Duration)
	case sallyport.EndTimedOut:
		return "Timed out " + detail + "."
	case sallyport.EndCanceled:
		return "Canceled " + detail + "."
	}
	return fmt.Sprintf("Ended (%s) %s: %s.", text.Word(string(r.End)), detail, cmp.Or(why, "unknown reason"))
}

// sandboxOf is the sandbox of a run.
func sandboxOf(r Record) string {
	s := r.Sandbox
	if s.Level == "none" {
		return fmt.Sprintf("No sandbox: %s, network %s.", text.Word(s.Mode), s.Network)
	}
	text := fmt.Sprintf("Sandbox: %s, network %s, level %s", text.Word(s.Mode), s.Network, text.Word(s.Level))
	if len(s.Mechanism) > 0 {
		text += " (" + Sentence(strings.Join(s.Mechanism, ", ")) + ")"
	}
	return text + "."
}

// capital begins a text with a capital letter.
func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// Said returns those lines that are not empty.
func Said(lines ...string) []string {
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}

// Needs are the lines about what needs the user, also after success: what is not where it was
// made, what other programs run later, what was ended. One line of each kind.
func Needs(res *sallyport.Result, home string) []string {
	lines := Said(Quarantines(res.Quarantined), HardLinks(res.HardLinks, res.HardLinksOmitted, home),
		NewNames(res.New, res.Dir, home))
	if len(res.Survivors) > 0 {
		lines = append(lines, Survivors(res.Survivors))
	}
	for _, w := range res.Sandbox.Warnings {
		lines = append(lines, "warning: "+w)
	}
	if res.First != nil {
		lines = append(lines, fmt.Sprintf("ran twice: the first time it exited with code %d, then it was approved", res.First.ExitCode))
	}
	return append(lines, res.Notices...)
}

// ListRuns lists recorded runs, one line each.
func ListRuns(log Log) string {
	const shortID = 12 // enough to tell runs apart
	var b strings.Builder
	for _, r := range log.Records {
		denials := "-"
		if n := len(r.Denials()) + r.DenialsOmitted; n > 0 {
			denials = Plural(n, "denial", "denials")
		}
		fmt.Fprintf(&b, "%s  %-12s  %-12s  %-14s  %s\n",
			r.Start.Local().Format(time.DateTime), text.Word(r.Run[:min(len(r.Run), shortID)]), shortEnd(r),
			denials, shortCommand(r))
	}
	return b.String() + Skipped(log)
}

// Summary is a run in a few words: how it ended, and the command.
func Summary(r Record) string { return shortEnd(r) + ": " + shortCommand(r) }

// shortEnd is how a run ended, in a word or two.
func shortEnd(r Record) string {
	if r.End == "exited" {
		return fmt.Sprintf("exit %d", r.ExitCode)
	}
	return text.Word(strings.ReplaceAll(string(r.End), "_", " "))
}

// shortCommand is the command line, shortened.
func shortCommand(r Record) string { return shortWords(r.Args) }

func shortWords(words []string) string {
	const most = 100
	line := []rune(ShellWords(words))
	if len(line) > most {
		return string(line[:most]) + "..."
	}
	return string(line)
}

// Skipped reports lines that could not be read; it is empty where there are none.
func Skipped(log Log) string {
	if log.Skipped == 0 {
		return ""
	}
	return "\nSkipped " + Plural(log.Skipped, "line", "lines") + " of the records that cannot be read.\n"
}
