// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ModelReport is what a model is told about a command that has ended.
type ModelReport struct {
	// ExitCode is the exit code, as it is.
	ExitCode int
	// Wall is how long the command ran.
	Wall time.Duration
	// TimedOut says that its time was up; the output then begins by saying so.
	TimedOut bool
	// Output is the decoded output of both streams.
	Output string
	// Budget limits the output. The zero Budget leaves only a mark of it; see
	// DefaultBudget.
	Budget Budget
}

// body returns the output, after the sentence about the time-out if there was
// one.
func (r ModelReport) body() string {
	if !r.TimedOut {
		return r.Output
	}
	return fmt.Sprintf("command timed out after %d milliseconds\n%s", r.Wall.Milliseconds(), r.Output)
}

// ModelText returns the report as text, in the lines that models know from
// Codex: exit code, wall time, the number of lines when truncation changed it,
// and the output.
func ModelText(r ModelReport) string {
	body := r.body()
	cut := TruncateMiddle(body, r.Budget)
	if body == "" {
		cut = "" // nothing was cut, so nothing is marked
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Exit code: %d\nWall time: %s seconds\n", r.ExitCode, tenths(r.Wall))
	if lines := LineCount(body); lines != LineCount(cut) {
		fmt.Fprintf(&b, "Total output lines: %d\n", lines)
	}
	b.WriteString("Output:\n")
	b.WriteString(cut)
	return b.String()
}

// FormattedOutput returns the output of the report alone, cut to the budget
// under a warning: the form for events and hooks.
func FormattedOutput(r ModelReport) string { return FormatTruncated(r.body(), r.Budget) }

// tenths returns seconds rounded to one decimal, which is left out when it is
// zero.
func tenths(d time.Duration) string {
	return strconv.FormatFloat(math.Round(d.Seconds()*10)/10, 'f', -1, 64)
}

// AbortedText returns what a model is told about a command that its user
// stopped after wall; less than a tenth of a second is shown as one.
func AbortedText(wall time.Duration) string {
	return fmt.Sprintf("Wall time: %.1f seconds\naborted by user", atLeastTenth(wall))
}

// AbortedToolText is AbortedText for tools other than commands.
func AbortedToolText(wall time.Duration) string {
	return fmt.Sprintf("aborted by user after %.1fs", atLeastTenth(wall))
}

func atLeastTenth(d time.Duration) float64 { return max(0.1, d.Seconds()) }
