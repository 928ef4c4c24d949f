// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/command/environ"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/run/tty"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// causes are the lines about why a program failed, likeliest first: an end of ours is certain;
// the order of denials is that of the result. What was said while it ran is not said again.
func (r *report) causes(res *sallyport.Result, home string, saidOffline bool) []string {
	var lines []string
	add := func(wanted bool, line string) {
		if wanted && line != "" {
			lines = append(lines, line)
		}
	}
	add(res.TimedOut, fmt.Sprintf("timed out after %v", r.o.Cmd.Timeout))
	text, flag := explain.Exceeded(string(res.End), res.Limits)
	add(flag != "", text+"; raise "+flag)
	add(!r.shellSays(), explain.Killed(string(res.End), res.Signal))
	add(true, explain.ProcessLimit(res.Limits, len(res.Survivors), res.Output.Bytes()))
	add(!r.o.Verbose, explain.Withheld(environ.Mentioned(res.Output.Bytes(), res.Withheld)))
	add(true, r.tmpLine(res))
	lines = append(lines, explain.Failures(res.NetworkFailures)...)
	ds := slices.DeleteFunc(slices.Clone(res.Denials()), func(d sandbox.Denial) bool {
		return saidOffline &&
			explain.IsNetwork(&d)
	})
	lines = append(lines, explain.Denials(ds, res.DenialsOmitted, home)...)
	add(true, r.repositoryLine(res.Dir, ds))
	add(!r.o.Verbose, explain.Ownership(res.OwnershipIgnored))
	level := res.Sandbox.Level
	add(level == "bwrap" && r.o.Cmd.Level == "", "level native is not available here; this ran at level "+
		level+", which is weaker (run `sallyport doctor` for details)")
	return lines
}

// tmpLine guesses that a program failed because a path that its words name is in the host's
// /tmp and was not there inside; empty when none is.
func (r *report) tmpLine(res *sallyport.Result) string {
	if r.o.Cmd.Tmp != "" && r.o.Cmd.Tmp != "private" || res.Sandbox.Level != "native" &&
		res.Sandbox.Level != "bwrap" {
		return ""
	}
	policy, err := r.policy.Bind(sandbox.Places{Dir: res.Dir}).Resolve()
	if err != nil {
		return ""
	}
	for _, name := range reach.TmpPaths(res.Args) {
		name = path.Clean(name)
		if _, err := os.Lstat(name); err == nil && reach.InPrivateTmp(&policy, res.Dir, name) {
			return "probably missing inside: " + text.Word(name) + ", because /tmp is private; use --tmp host"
		}
	}
	return ""
}

// repositoryLine says that the workspace is a part of a repository, if a write to another part of it was
// denied; empty when none was.
func (r *report) repositoryLine(dir string, ds []sandbox.Denial) string {
	dir = hostfacts.RealPath(dir)
	top := hostfacts.Repository(dir)
	if top == "" || top == dir {
		return ""
	}
	beside := func(d sandbox.Denial) bool {
		return d.Op == sandbox.Write && d.Source.Evidence() && strings.HasPrefix(d.Grant, "--rw ") &&
			safefile.Within(d.Path, top) && !safefile.Within(d.Path, top+"/.git")
	}
	if !slices.ContainsFunc(ds, beside) {
		return ""
	}
	return "the workspace is only " + text.Word(strings.TrimPrefix(dir, top+"/")) + " of the repository; --rw " +
		explain.ShellWord(top) + " opens all of it (always: workspace = \"repository\" in config.toml)"
}

// offlineDelay is how long a program that tries the network is given to do without it: many
// look for a newer version of themselves, and succeed a moment later. The line still comes
// within a second.
const offlineDelay = 500 * time.Millisecond

// denied has a line printed that the network is off, soon after the first denial of it and while
// the program runs: some programs try again for minutes.
func (r *report) denied(d sandbox.Denial) {
	run := reach.DeniedRun{Args: r.o.Cmd.Args, Env: r.o.Cmd.Env}
	if !explain.IsNetwork(&d) || d.Op != sandbox.Connect || r.policy.Network() != sandbox.NetworkNone ||
		run.Habit(&d, 0) != "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.offline != nil {
		return
	}
	said := make(chan bool, 1)
	r.said, r.sayOffline = said, func() {
		// A question that is open asks about that, or about more.
		said <- r.unless(func() {
			// On a terminal that passes keys on as they are typed, a line feed alone begins no line.
			_, _ = io.WriteString(r.env.Stderr, "sallyport: "+text.Line(explain.Offline(&d))+r.lineEnd)
		})
	}
	r.offline = time.AfterFunc(offlineDelay, r.sayOffline)
}

// firstChosen is the first of the ports that kernels choose themselves (ip_local_port_range): no person looks
// for a server there.
const firstChosen = 32768

// listening has a person told that the program listens at a port, which is one of its own network. It is said
// once, of a program that goes on: a test that listens for a moment is of no interest.
func (r *report) listening(port uint16) {
	if port >= firstChosen || !tty.Is(r.env.Stderr) || slices.ContainsFunc(r.o.Cmd.Publish,
		func(p network.Publish) bool { return p.Port == port }) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told {
		return
	}
	r.told = true
	r.ports = time.AfterFunc(offlineDelay, func() {
		r.console.Beside(func() {
			_, _ = io.WriteString(r.env.Stderr, "sallyport: "+explain.Listens(port)+r.lineEnd)
		})
	})
}

// saidOffline reports whether the line about the network is printed. It is when the program has
// failed, and otherwise will not be later.
func (r *report) saidOffline(failed bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.offline == nil:
		return false
	case r.offline.Stop():
		if !failed {
			return false
		}
		r.sayOffline()
	}
	return <-r.said
}
