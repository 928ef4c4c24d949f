// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/environ"
	"github.com/sallyport-dev/sallyport/internal/notes"
	"github.com/sallyport-dev/sallyport/internal/printable"
	"github.com/sallyport-dev/sallyport/internal/suggest"
	"github.com/sallyport-dev/sallyport/sandbox"
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
	add(notes.Quarantines(res.Quarantined))
	add(notes.HardLinks(res.HardLinks, res.HardLinksOmitted, home))
	add(notes.New(res.New, res.Dir, home))
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
	if line := pidsLine(res, res.Output.Bytes()); line != "" {
		lines = append(lines, line)
	}
	if line := withheldLine(environ.Mentioned(res.Output.Bytes(), res.Withheld)); line != "" && !r.o.verbose {
		lines = append(lines, line)
	}
	if line := r.tmpLine(res); line != "" {
		lines = append(lines, line)
	}
	ds := slices.DeleteFunc(slices.Clone(res.Denials()), func(d sandbox.Denial) bool { return saidOffline && notes.IsNetwork(&d) })
	lines = append(lines, notes.Denials(ds, res.DenialsOmitted, home)...)
	if line := notes.Ownership(res.OwnershipIgnored); line != "" && !r.o.verbose {
		lines = append(lines, line)
	}
	if l := res.Sandbox.Level; l == "bwrap" && r.o.level == "" {
		lines = append(lines, "level native is not available here; this ran at level "+l+", which is weaker (run `sallyport doctor` for details)")
	}
	return lines
}

// tmpLine guesses that a program failed because a path that its words name is in the host's
// /tmp and was not there inside; empty when none is.
func (r *report) tmpLine(res *sallyport.Result) string {
	if r.o.tmp != "" && r.o.tmp != "private" || res.Sandbox.Level != "native" && res.Sandbox.Level != "bwrap" {
		return ""
	}
	policy, err := r.policy.Bind(sandbox.Places{Dir: res.Dir}).Resolve()
	if err != nil {
		return ""
	}
	for _, name := range suggest.TmpPaths(res.Args) {
		name = path.Clean(name)
		if _, err := os.Lstat(name); err == nil && suggest.InPrivateTmp(&policy, name) {
			return "probably missing inside: " + printable.Word(name) + ", because /tmp is private; use --tmp host"
		}
	}
	return ""
}

// offlineDelay is how long a program that tries the network is given to do without it: many
// look for a newer version of themselves, and succeed a moment later. The line still comes
// within a second.
const offlineDelay = 500 * time.Millisecond

// denied has a line printed that the network is off, soon after the first denial of it and while
// the program runs: some programs try again for minutes.
func (r *report) denied(d sandbox.Denial) {
	if !notes.IsNetwork(&d) || d.Op != sandbox.Connect {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.offline != nil {
		return
	}
	said := make(chan struct{})
	r.said, r.sayOffline = said, func() {
		defer close(said)
		// On a terminal that passes keys on as they are typed, a line feed alone begins no line.
		_, _ = io.WriteString(r.env.Stderr, "sallyport: "+printable.Line(notes.Offline(&d))+r.lineEnd)
	}
	r.offline = time.AfterFunc(offlineDelay, r.sayOffline)
}

// saidOffline reports whether the line about the network is printed. It is when the program has
// failed, and otherwise will not be later.
func (r *report) saidOffline(failed bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.offline == nil:
		return false
	case !r.offline.Stop():
		<-r.said
	case !failed:
		return false
	default:
		r.sayOffline()
	}
	return true
}
