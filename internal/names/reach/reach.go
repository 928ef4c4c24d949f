// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reach knows what commands can reach: which files they can change, whether they could change what an
// approval rests on, and which grant would allow what they were denied.
//
// Files can be changed by what the policy of a run makes writable, and by what other policies of the same
// user do. Whatever decides about runs, or is executed outside of the sandbox, must be out of reach.
//
// [New] makes a [Reach] for one run. [Reach.Of] looks at one path, [Reach.Program] at a program
// with its interpreters, [Reach.Command] at a command with the scripts that it names, and
// [Reach.Path] and [Reach.Environ] leave out of an environment what leads into reach.
//
// The package looks and reports. What follows is decided by its callers: settings are refused, and
// a command stays in its sandbox.
//
// [TakeLook] looks at the files that a command names, on this machine: each is opened once, and what the open
// file holds counts. Before it reads them it tells the other runs of this user, so that commands that start
// from then on in a sandbox get these files read-only. [Look.Start] looks whether one that started before
// could have changed them, and whether their names still lead to what was read.
//
// [DeniedRun.Complete] fills in the rule and the grant of each denial that an executor reported. Where
// nothing observed the command, [DeniedRun.Guess] first concludes from its exit code and output whether the
// sandbox denied something. [SuggestGrants] returns the fewest grants for a list of denials. It looks at
// files only to find out whether they exist, where symbolic links lead and which toolchains a workspace has,
// and only on the machine on which the command ran. It suggests no grant that is not enough, that is wider
// than a policy would be warned about, or that opens what a policy denies.
package reach

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// An Area says what commands can write to. The zero Area is nothing.
type Area struct {
	// Policy is that of the run, bound. One that restricts no file says nothing about files: a
	// command under it can do what its user can. Then only the rest counts.
	Policy sandbox.Policy
	// Workspace is the directory of the run, absolute; other runs write there even where this one
	// does not, except in what Policy has an entry for. Empty is none.
	Workspace string
	// HostTmp says that the /tmp of commands is that of this machine, and not a private one.
	HostTmp bool
	// Writable are absolute paths that other policies make writable: of settings, of profiles, of
	// what was approved for the session.
	Writable []string
}

// An Error says that a file is in reach of commands, or may be.
type Error struct {
	Path string
	Why  string // a clause
}

// Error returns a clause with the path and the reason; the caller adds what follows.
func (e *Error) Error() string {
	return "commands could change " + text.Word(e.Path) + ": " + text.Line(e.Why)
}

// Decides is [Reach.Of] for a file that decides about runs; by says what names it, such as a flag. The
// error wraps an [*Error] and has the fix.
func (r *Reach) Decides(by, path string) error {
	if err := r.Of(path); err != nil {
		return fmt.Errorf("%s: %w; move it to a directory where they cannot write", by, err)
	}
	return nil
}

// keptBy names the files of [Area.Keep].
const keptBy = "the flags of the server"

// Keep returns the policy of an area with read-only entries for files that decide who is let in by a
// server, where it makes them writable: their mounts are pinned. Files behind links that commands can
// change, and those with other names, are an error, see [Reach.Decides]. Policies that restrict no file
// stay as they are.
func (a Area) Keep(files []string) (sandbox.Policy, error) {
	for _, name := range files {
		if a.Policy.Mode() != sandbox.Managed || New(a).Of(name) == nil {
			continue
		}
		real, err := filepath.EvalSymlinks(name)
		if err != nil {
			return a.Policy, fmt.Errorf("%s: %w", keptBy, err)
		}
		a.Policy = a.Policy.WithEntries(sandbox.PathEntry(real, sandbox.LevelRead))
		if err := New(a).Decides(keptBy, name); err != nil {
			return a.Policy, err
		}
	}
	return a.Policy, nil
}

type key struct{}

// With returns a context that carries a Reach for who is asked about a command.
func With(ctx context.Context, r *Reach) context.Context { return context.WithValue(ctx, key{}, r) }

// From returns the Reach of a context; nil if there is none.
func From(ctx context.Context) *Reach {
	r, _ := ctx.Value(key{}).(*Reach)
	return r
}
