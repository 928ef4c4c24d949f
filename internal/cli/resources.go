// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/notes"
)

// limitOf are the limits that end a program.
var limitOf = map[sallyport.End]string{
	sallyport.EndOOM: executor.LimitMemory, sallyport.EndPIDs: executor.LimitPIDs,
	sallyport.EndDisk: executor.LimitDisk, sallyport.EndOutput: executor.LimitOutput,
}

// exceeded reports which limit ended a program, and the flag that sets it; both are
// empty when none did.
func exceeded(res *sallyport.Result) (text, flag string) {
	limit, ok := limitOf[res.End]
	if !ok {
		return "", ""
	}
	what := cmp.Or(map[string]string{executor.LimitPIDs: "process"}[limit], limit) + " limit exceeded"
	text = "killed: " + what
	for _, l := range res.Limits {
		if l.Limit != limit {
			continue
		}
		if limit == executor.LimitPIDs && l.By != executor.ByWatch { // the kernel denied it more; it ended by itself
			text = "failed: " + what
		}
		text += " (" + limitValue(l) + ")"
	}
	return text, "--" + limit
}

// forkErrors are what C libraries, shells, Python and Java print when no process or thread can
// be made.
var forkErrors = []string{"Resource temporarily unavailable", "Cannot fork", "can't fork", "can't start new thread", "unable to create native thread", "EAGAIN"}

// pidsLine guesses that a program has failed because of a limit on processes, where a resource
// limit holds it and the kernel tells the program alone: from what it said, or because as many
// processes as may run with it were left at its end. It is empty when there is no sign of it.
func pidsLine(res *sallyport.Result, said []byte) string {
	for _, l := range res.Limits {
		has := func(text string) bool { return bytes.Contains(said, []byte(text)) }
		full := float64(len(res.Survivors)+1) >= l.Value
		if l.Limit == executor.LimitPIDs && l.By == executor.ByRlimit && (full || slices.ContainsFunc(forkErrors, has)) {
			return "probably: process limit reached (" + limitValue(l) + "); raise --pids"
		}
	}
	return ""
}

// limitValue is the value of a limit: "512 MiB" or "1.5".
func limitValue(l executor.Enforced) string {
	if l.Limit == executor.LimitPIDs || l.Limit == executor.LimitCPUs {
		return fmt.Sprint(l.Value)
	}
	return bytesText(l.Value)
}

// usageLine reports what a program used, or "" when nothing is known.
func usageLine(u executor.Usage) string {
	var parts []string
	add := func(format string, a ...any) { parts = append(parts, fmt.Sprintf(format, a...)) }
	if u.CPU != nil {
		add("%v CPU", u.CPU.Round(time.Millisecond))
	}
	if u.PeakMemory != nil {
		add("%s peak memory (by %s)", bytesText(float64(*u.PeakMemory)), u.PeakMemoryBy)
	}
	if u.Read != nil && u.Written != nil {
		add("%s read and %s written", bytesText(float64(*u.Read)), bytesText(float64(*u.Written)))
	}
	if u.Processes != nil {
		add("%d processes and threads at once", *u.Processes)
	}
	if len(parts) == 0 {
		return ""
	}
	return "used: " + strings.Join(parts, ", ")
}

// limitsLine reports what enforced each limit, or "" without limits.
func limitsLine(limits []executor.Enforced) string {
	var parts []string
	for _, l := range limits {
		text := l.Limit + " by " + l.By
		if l.Hit {
			text += " (reached)"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return ""
	}
	return "limits: " + strings.Join(parts, ", ")
}

// survivorsLine names the processes that a program left running: the order in
// which they were found, and how many of each.
func survivorsLine(left []executor.Survivor) string {
	const most = 8
	var names []string
	count := make(map[string]int)
	for _, s := range left {
		name := processName(s.Name)
		if count[name]++; count[name] == 1 {
			names = append(names, name)
		}
	}
	for i, name := range names {
		if n := count[name]; n > 1 {
			names[i] += fmt.Sprintf(" (%d)", n)
		}
	}
	if len(names) > most {
		names = append(names[:most], "...")
	}
	return "ended " + notes.Plural(len(left), "leftover process", "leftover processes") + ": " + strings.Join(names, ", ")
}

// processName makes a name harmless for a terminal: processes choose their own.
func processName(name string) string {
	return cmp.Or(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return '?'
	}, name), "?")
}
