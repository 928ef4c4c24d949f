// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
)

func (o *runOptions) limitFlags() []flag {
	const group = "What the command may use (default: no limits)"
	l := &o.resources
	return []flag{
		{long: "memory", value: "SIZE", group: group, set: limitSize(&l.Memory),
			help: "memory of it and all that it starts, such as 512MiB; more\nends it"},
		{long: "cpus", value: "N", group: group, set: o.cpus,
			help: "processors' worth of time, such as 1.5; it is slowed down\nto that"},
		{long: "pids", value: "N", group: group, set: o.pids,
			help: "processes and threads at once; what is beyond it is refused,\nand where it can only be watched, ends it"},
		{long: "disk", value: "SIZE", group: group, set: limitSize(&l.Disk),
			help: "how much its writable folders may grow, /tmp included; more\nends it soon after"},
		{long: "output", value: "SIZE", group: group, set: limitSize(&l.Output),
			help: "how much it may print on both streams together; more is not\nhanded on and ends it. It prints to pipes then"},
	}
}

// limitSize returns the function that takes a limit in bytes.
func limitSize(to *int64) func(string) error {
	return func(v string) error {
		n, err := parseSize(v)
		if err != nil {
			return err
		}
		if n == 0 {
			return errNoLimit
		}
		*to = int64(n)
		return nil
	}
}

var errNoLimit = errors.New("0 lets nothing run; leave the flag out for no limit")

// cpus takes a value of --cpus.
func (o *runOptions) cpus(v string) error {
	n, err := parseCPUs(v)
	o.resources.CPUs = n
	return err
}

// parseCPUs reads a number of processors such as "2" or "0.5".
func parseCPUs(s string) (float64, error) {
	n, err := strconv.ParseFloat(s, 64)
	// The form is narrower than that of the number: no exponents, signs or words.
	if err != nil || strings.Trim(s, "0123456789.") != "" || math.IsInf(n, 0) {
		return 0, fmt.Errorf("%s is no number of processors; write it like 2 or 0.5", quote(s))
	}
	if n == 0 {
		return 0, errNoLimit
	}
	return n, nil
}

// pids takes a value of --pids.
func (o *runOptions) pids(v string) error {
	n, err := parsePIDs(v)
	o.resources.PIDs = n
	return err
}

// parsePIDs reads a number of processes.
func parsePIDs(s string) (int, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || strings.Trim(s, "0123456789") != "" {
		return 0, fmt.Errorf("%s is no number of processes; write it like 200", quote(s))
	}
	if n == 0 {
		return 0, errNoLimit
	}
	return int(n), nil
}

// checkLimits returns what is wrong with the limits, in the words of the flags.
func (o *runOptions) checkLimits() error {
	var bad *executor.LimitError
	if errors.As(o.resources.Check(), &bad) {
		return usage("--%s: %s", bad.Limit, bad.Reason)
	}
	return nil
}

// limited says which limit ended a command.
func limited(res *sallyport.Result) string {
	held := func(name string) (e executor.Enforced) {
		for _, l := range res.Limits {
			if l.Limit == name {
				e = l
			}
		}
		return e
	}
	switch res.End {
	case sallyport.EndOOM:
		return "it wanted more memory than --memory " + bytesWord(held(executor.LimitMemory).Value) + " allows and was ended"
	case sallyport.EndPIDs:
		l := held(executor.LimitPIDs)
		if l.By == executor.ByWatch {
			return fmt.Sprintf("it had more processes than --pids %v allows and was ended", l.Value)
		}
		return fmt.Sprintf("it failed, and was refused processes, because --pids allows %v", l.Value)
	case sallyport.EndDisk:
		return "its writable folders grew by more than --disk " + bytesWord(held(executor.LimitDisk).Value) + " allows, and it was ended"
	case sallyport.EndOutput:
		return "it printed more than --output " + bytesWord(held(executor.LimitOutput).Value) + " allows; the rest was not handed on"
	}
	return ""
}

// bytesWord writes a size as the flags take it.
func bytesWord(n float64) string {
	for _, u := range []struct {
		size float64
		word string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.size {
			return strconv.FormatFloat(math.Round(n/u.size*10)/10, 'f', -1, 64) + u.word
		}
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// used says in one line what a command used, or "" when nothing is known.
func used(u executor.Usage) string {
	var parts []string
	add := func(format string, a ...any) { parts = append(parts, fmt.Sprintf(format, a...)) }
	if u.CPU != nil {
		add("%v of processor time", u.CPU.Round(time.Millisecond))
	}
	if u.PeakMemory != nil {
		add("%s of memory at most (by %s)", bytesWord(float64(*u.PeakMemory)), u.PeakMemoryBy)
	}
	if u.Read != nil && u.Written != nil {
		add("%s read from and %s written to storage", bytesWord(float64(*u.Read)), bytesWord(float64(*u.Written)))
	}
	if u.Processes != nil {
		add("%d processes and threads at once", *u.Processes)
	}
	if len(parts) == 0 {
		return ""
	}
	return "used: " + strings.Join(parts, ", ")
}

// heldBy says in one line by what each limit was held, or "" without limits.
func heldBy(limits []executor.Enforced) string {
	var parts []string
	for _, l := range limits {
		words := l.Limit + " by " + l.By
		if l.Hit {
			words += " (met)"
		}
		parts = append(parts, words)
	}
	if len(parts) == 0 {
		return ""
	}
	return "limits: " + strings.Join(parts, ", ")
}
