// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// limitOf are the limits that end a program.
var limitOf = map[string]string{
	"oom": executor.LimitMemory, "pids": executor.LimitPIDs,
	"disk": executor.LimitDisk, "output": executor.LimitOutput,
}

// Exceeded reports which limit ended a program, and the flag that sets it; both are
// empty when none did.
func Exceeded(end string, limits []executor.Enforced) (text, flag string) {
	limit, ok := limitOf[end]
	if !ok {
		return "", ""
	}
	what := cmp.Or(map[string]string{executor.LimitPIDs: "process"}[limit], limit) + " limit exceeded"
	text = "killed: " + what
	for _, l := range limits {
		if l.Limit != limit {
			continue
		}
		if limit == executor.LimitPIDs && l.By != executor.ByWatch {
			// the kernel denied it more; it ended by itself
			text = "failed: " + what
		}
		text += " (" + LimitValue(l) + ")"
	}
	return text, "--" + limit
}

// faults are the signals that end a program for what it has done, and that which is for emergencies.
var faults = []string{"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGKILL", "SIGSEGV", "SIGSYS", "SIGTRAP",
	"SIGXCPU", "SIGXFSZ"}

// Killed says which signal ended a program that none of our limits ended; empty for a signal by which people
// end programs.
func Killed(end string, signal int) string {
	if end != string(sallyport.EndSignaled) || !slices.Contains(faults, process.SignalName(signal)) {
		return ""
	}
	return fmt.Sprintf("killed by signal %d (%s)", signal, syscall.Signal(signal))
}

// forkErrors are what C libraries, shells, Python and Java print when no process or thread can
// be made.
var forkErrors = []string{"Resource temporarily unavailable", "Cannot fork", "can't fork",
	"can't start new thread", "unable to create native thread", "EAGAIN"}

// ProcessLimit guesses that a program has failed because of a limit on processes, where a resource
// limit holds it and the kernel tells the program alone: from what it said, or because as many
// processes as may run with it were left at its end. It is empty when there is no sign of it.
func ProcessLimit(limits []executor.Enforced, survivors int, said []byte) string {
	for _, l := range limits {
		has := func(text string) bool { return bytes.Contains(said, []byte(text)) }
		full := float64(survivors+1) >= l.Value
		if l.Limit == executor.LimitPIDs && l.By == executor.ByRlimit &&
			(full || slices.ContainsFunc(forkErrors, has)) {
			return "probably: process limit reached (" + LimitValue(l) + "); raise --pids"
		}
	}
	return ""
}

// LimitValue is the value of a limit: "512 MiB" or "1.5".
func LimitValue(l executor.Enforced) string {
	if l.Limit == executor.LimitPIDs || l.Limit == executor.LimitCPUs {
		return fmt.Sprint(l.Value)
	}
	return Bytes(l.Value)
}

// Usage reports what a program used, or "" when nothing is known.
func Usage(u executor.Usage) string {
	var parts []string
	add := func(format string, a ...any) { parts = append(parts, fmt.Sprintf(format, a...)) }
	if u.CPU != nil {
		add("%v CPU", u.CPU.Round(time.Millisecond))
	}
	if u.PeakMemory != nil {
		add("%s peak memory (by %s)", Bytes(float64(*u.PeakMemory)), u.PeakMemoryBy)
	}
	if u.Read != nil && u.Written != nil {
		add("%s read and %s written", Bytes(float64(*u.Read)), Bytes(float64(*u.Written)))
	}
	if u.Processes != nil {
		add("%d processes and threads at once", *u.Processes)
	}
	if len(parts) == 0 {
		return ""
	}
	return "used: " + strings.Join(parts, ", ")
}

// Limits reports what enforced each limit, or "" without limits.
func Limits(limits []executor.Enforced) string {
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

// Survivors names the processes that a program left running: the order in
// which they were found, and how many of each.
func Survivors(left []executor.Survivor) string {
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
	return "ended " + Plural(len(left), "leftover process", "leftover processes") + ": " +
		strings.Join(names, ", ")
}

// processName makes a name harmless for a terminal: processes choose their own.
func processName(name string) string {
	return cmp.Or(strings.Map(func(r rune) rune {
		if text.Visible(r) && r != unicode.ReplacementChar {
			return r
		}
		return '?'
	}, name), "?")
}

// maxWithheld is how many variables are named in one line.
const maxWithheld = 20

// Withheld names variables that the program did not get; empty when there is none.
func Withheld(names []string) string {
	if len(names) == 0 {
		return ""
	}
	shown := strings.Join(names[:min(len(names), maxWithheld)], ", ")
	if more := len(names) - maxWithheld; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return "withheld from the environment: " + text.Line(shown) + "; pass one with -e " + text.Word(names[0])
}

// Sentence returns a text as one line, without a period.
func Sentence(s string) string {
	return strings.TrimSuffix(text.Line(strings.Join(strings.Fields(s), " ")), ".")
}

// Bytes writes a number of bytes for people: "512 MiB".
func Bytes(n float64) string {
	for i, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if size := math.Pow(1024, float64(4-i)); n >= size {
			return strconv.FormatFloat(math.Round(n/size*10)/10, 'f', -1, 64) + " " + unit
		}
	}
	return strconv.FormatFloat(n, 'f', -1, 64) + " B"
}
