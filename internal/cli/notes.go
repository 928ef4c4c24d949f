// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"net"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/environ"
	"github.com/sallyport-dev/sallyport/internal/printable"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// maxLines is how many lines of ours follow a program that failed, and maxCauses how many of
// them are about what was denied: more are not read, and `sallyport why` has all of it.
const (
	maxLines  = 3
	maxCauses = 2
)

// needs are the lines about what needs the user, also after success: what is not where it was
// made, what other programs run later, what was ended. One line of each kind.
func needs(res *sallyport.Result, home string) []string {
	var lines []string
	add := func(line string) {
		if line != "" {
			lines = append(lines, line)
		}
	}
	add(quarantineLines(res.Quarantined))
	add(hardLinksLine(res, home))
	add(newLine(res.New, res.Dir, home))
	if len(res.Survivors) > 0 {
		add(survivorsLine(res.Survivors))
	}
	for _, w := range res.Sandbox.Warnings {
		add("warning: " + w)
	}
	return lines
}

// causes are the lines about why a program failed, likeliest first: an end of ours is certain;
// the order of denials is that of the result. What was said while it ran is not said again.
func (r *report) causes(res *sallyport.Result, home string, saidOffline bool) []string {
	var lines []string
	if res.TimedOut {
		lines = append(lines, fmt.Sprintf("timed out after %v", r.o.timeout))
	}
	if text, flag := exceeded(res); flag != "" {
		lines = append(lines, text+"; raise "+flag)
	}
	if line := withheldLine(environ.Mentioned(res.Output.Bytes(), res.Withheld)); line != "" && !r.o.verbose {
		lines = append(lines, line)
	}
	ds := slices.DeleteFunc(slices.Clone(res.Denials()), func(d sandbox.Denial) bool { return saidOffline && isNetwork(&d) })
	lines = append(lines, denialNotes(ds, res.DenialsOmitted, home)...)
	if line := ownershipLine(res); line != "" && !r.o.verbose {
		lines = append(lines, line)
	}
	if l := res.Sandbox.Level; l == "bwrap" && r.o.level == "" {
		lines = append(lines, "level native is not available here; this ran at level "+l+", which is weaker (run `sallyport doctor` for details)")
	}
	return lines
}

// shortlist puts the likeliest cause before what needs the user, and other causes after it, and
// says how many lines were left out.
func shortlist(causes, needs []string) []string {
	first := min(len(causes), 1)
	lines := slices.Concat(causes[:first], needs, causes[first:min(len(causes), maxCauses)])
	shown := min(len(lines), maxLines)
	left := len(causes) + len(needs) - shown
	lines = lines[:shown]
	if left > 0 {
		lines[shown-1] += fmt.Sprintf(" (%d more: run `sallyport why`)", left)
	}
	return lines
}

// isNetwork reports whether a denial is one of a network that is off.
func isNetwork(d *sandbox.Denial) bool {
	return (d.Op == sandbox.Connect || d.Op == sandbox.Bind) && d.Net != "unix" && !strings.HasPrefix(d.Addr, "/") && !strings.HasPrefix(d.Addr, "@")
}

// denied prints that the network is off, at the first denial of it and while the program
// runs: some programs try again for minutes. The program waits meanwhile, so the line is
// printed by a goroutine.
func (r *report) denied(d sandbox.Denial) {
	if !isNetwork(&d) || d.Op != sandbox.Connect {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.offline != nil {
		return
	}
	done := make(chan struct{})
	r.offline = done
	go func() {
		defer close(done)
		// On a terminal that passes keys on as they are typed, a line feed alone begins no line.
		_, _ = io.WriteString(r.env.Stderr, "sallyport: "+printable.Line(offlineLine(&d))+r.lineEnd)
	}()
}

// saidOffline waits until a line about the network is printed, and reports whether there is one.
func (r *report) saidOffline() bool {
	r.mu.Lock()
	done := r.offline
	r.mu.Unlock()
	if done == nil {
		return false
	}
	<-done
	return true
}

// offlineLine names what was tried and by what: "network is off (DNS lookup, npm); ...".
func offlineLine(d *sandbox.Denial) string {
	var about []string
	const dns = "53"
	if _, port, err := net.SplitHostPort(d.Addr); err == nil && port == dns {
		about = append(about, "DNS lookup")
	} else if d.Addr != "" {
		about = append(about, printable.Word(d.Addr))
	}
	// What a process calls itself says more than the interpreter, and may have its arguments
	// behind it.
	name, _, _ := strings.Cut(d.Name, " ")
	if name == "" && d.Program != "" {
		name = path.Base(d.Program)
	}
	if name != "" {
		about = append(about, printable.Word(name))
	}
	text := "network is off"
	if len(about) > 0 {
		text += " (" + strings.Join(about, ", ") + ")"
	}
	return text + "; allow with --net host"
}
