// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package named shares a sandbox between runs of one user and workspace by its name.
//
// The first [Join] of a name starts a keeper, a process of the same program that calls [Keep]: it opens the
// shared sandbox, listens on a unix socket in the state directory, which no command in a sandbox sees, and
// hands on what another run needs to start its command there. A run keeps its connection for as long as it
// lasts. The keeper ends with its sandbox: when no run had a connection for the idle time, by [Stop], by
// SIGTERM, or when the sandbox has ended. A connection carries one line of JSON each way.
//
// The package starts no command. Who may join is decided by the keeper.
package named

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/sallyport-dev/sallyport/internal/printable"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// DefaultIdle is how long a sandbox stays open without a run.
const DefaultIdle = 10 * time.Minute

var validName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,63}$`) })

// CheckName returns what is wrong with a name.
func CheckName(name string) error {
	if !validName().MatchString(name) {
		return fmt.Errorf("invalid name %s; use 1 to 64 letters, digits, dots, hyphens and underscores, and no dot at the beginning", printable.Word(name))
	}
	return nil
}

// A Request says what a run needs of the sandbox that it joins.
type Request struct {
	Name      string
	Workspace string // without symbolic links
	Policy    sandbox.Policy
	// Openings are what the run opens beside its policy, each as on the command line.
	Openings []string
}

// A Starter says how a keeper is started.
type Starter struct {
	Program []string // the command line that calls Keep
	Environ []string
	Idle    time.Duration // how long it waits for a run before it ends
}

// A RefusedError reports that a run cannot join a sandbox.
type RefusedError struct {
	Name string `json:"name"`
	Why  string `json:"why"`
	Fix  string `json:"fix"`
}

// Error returns one sentence with the reason and the fix.
func (e *RefusedError) Error() string {
	return printable.Line("cannot join the sandbox " + printable.Word(e.Name) + ": " + e.Why + "; " + e.Fix)
}

// A StartError reports that the keeper of a sandbox did not start.
type StartError struct {
	Name, Reason string
	Err          error // may be nil
}

func (e *StartError) Error() string {
	return printable.Line("cannot start the sandbox " + printable.Word(e.Name) + ": " + e.Reason)
}

// Unwrap returns Err.
func (e *StartError) Unwrap() error { return e.Err }

// ErrUnknown says that there is no sandbox of a name.
var ErrUnknown = errors.New("there is no sandbox of this name")

// An Info describes a named sandbox. The member names of its JSON form stay.
type Info struct {
	Name      string          `json:"name"`
	Workspace string          `json:"workspace"`
	Network   sandbox.Network `json:"network"`
	Since     time.Time       `json:"since"`
	Running   int             `json:"running"` // runs that have joined it and have not ended
	PID       int             `json:"pid"`     // of its keeper
	Idle      int64           `json:"idle_ms"`
	IdleLeft  *int64          `json:"idle_left_ms"` // null while something runs
}

// Infos are several of them.
type Infos []Info

// String is the list for people; empty for none.
func (all Infos) String() string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tNETWORK\tSTARTED\tRUNNING\tIDLE LEFT\tWORKSPACE") // a builder has no errors
	for _, i := range all {
		left := "-"
		if i.IdleLeft != nil {
			left = rounded((time.Duration(*i.IdleLeft) * time.Millisecond).Round(time.Second))
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s ago\t%d\t%s\t%s\n", i.Name, i.Network, rounded(time.Since(i.Since)), i.Running, left, printable.Word(i.Workspace))
	}
	_ = w.Flush()
	return b.String()
}

// rounded is a duration in its largest unit.
func rounded(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(max(int(d/time.Second), 0)) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	}
	return strconv.Itoa(int(d/time.Hour)) + "h"
}

// refuse returns why a run may not join the sandbox that own has started; nil if it may.
func refuse(own, r *Request) *RefusedError {
	no := func(why, fix string) *RefusedError { return &RefusedError{Name: own.Name, Why: why, Fix: fix} }
	has, asks := own.Policy.Network(), r.Policy.Network()
	switch {
	case r.Policy.Mode() != sandbox.Managed:
		return no("this run builds no sandbox", "use -s workspace-write or read-only")
	case r.Workspace != own.Workspace:
		return no("its workspace is "+printable.Word(own.Workspace)+", and that of this run is "+printable.Word(r.Workspace), "use another name")
	case asks != has:
		return no(fmt.Sprintf("its network is %s, and that of this run is %s", has, asks), fmt.Sprintf("use --net %s, or another name", has))
	}
	const leave = "leave that out, or use another name"
	for _, o := range r.Openings {
		if !slices.Contains(own.Openings, o) {
			return no("this run has "+printable.Line(o)+", which the run that started the sandbox did not have", leave)
		}
	}
	if !own.Policy.Covers(r.Policy) {
		return no(wider(own.Policy, r.Policy), leave)
	}
	return nil
}

// wider names something that the policy q allows and p does not.
func wider(p, q sandbox.Policy) string {
	for _, n := range q.Named() {
		if !slices.Contains(p.Named(), n) {
			return "this run has --grant " + printable.Line(n) + ", which the run that started the sandbox did not have"
		}
	}
	for _, e := range slices.Concat(q.Entries(), p.Entries()) {
		if at, ok := e.Place.Absolute(); ok && q.LevelAt(at) > p.LevelAt(at) {
			return fmt.Sprintf("this run may %s %s, and the run that started the sandbox may not", q.LevelAt(at), printable.Word(at))
		}
	}
	return "this run denies less than the run that started the sandbox"
}
