// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// addShown adds what the directories of ours that cover the host's must have: the symbolic
// links on the way to the paths of the policy and, where only these are visible, the paths
// without which the command could not start.
func addShown(r *plan.Request, res *sandbox.Resolved, found *grants.FoundServices) {
	links := map[string]bool{}
	add := func(name string) {
		for _, l := range hostfacts.Links(name) {
			if !links[l.Path] && (r.Root == sandbox.LevelDeny || strings.HasPrefix(l.Path, "/run/") ||
				strings.HasPrefix(l.Path, "/sys/")) {
				links[l.Path] = true
				r.Links = append(r.Links, l)
			}
		}
	}
	for _, name := range hostfacts.RunShows {
		add(name)
	}
	for _, d := range found.Devices {
		for _, l := range d.Links {
			add(l)
		}
	}
	for _, p := range res.Paths {
		ruled := func(u plan.Rule) bool { return u.Path == p.Path } // no rule's path has a link
		if p.Level != sandbox.LevelDeny && !p.Auto && !slices.ContainsFunc(r.Rules, ruled) {
			add(p.Path)
		}
	}
	if r.Root != sandbox.LevelDeny {
		return
	}
	add("/tmp")
	r.Needs = append(r.Needs, needs("the working directory", r.Spec.Dir, true)...)
	if r.Program == "" {
		return // only the stage may have it
	}
	what, name := "the program", r.Program
	for range hostfacts.MaxInterpreters {
		r.Needs = append(r.Needs, needs(what, name, false)...)
		next := hostfacts.Interpreter(name)
		if !filepath.IsAbs(next) {
			break
		}
		what, name = "the interpreter of "+name+",", next
	}
}

// visibleDir returns where the working directory is, if a link on the way to it is not visible inside,
// and else "".
func visibleDir(r *plan.Request) string {
	for _, l := range hostfacts.Links(r.Spec.Dir) {
		if r.Hides(l.Path) {
			return hostfacts.RealPath(r.Spec.Dir)
		}
	}
	return ""
}

// needs lists what must be visible for a path to lead where it leads.
func needs(what, name string, dir bool) []plan.Need {
	var out []plan.Need
	for _, l := range hostfacts.Links(name) {
		out = append(out, plan.Need{What: what, Path: l.Path})
	}
	return append(out, plan.Need{What: what, Path: hostfacts.RealPath(name), Dir: dir})
}

// hidden gives an error about what the policy hides the type that names the part of the
// command that needs it.
func hidden(spec *executor.Spec, err error) error {
	var h *sandbox.HiddenError
	switch {
	case !errors.As(err, &h):
		return err
	case h.What == "the working directory":
		return &executor.DirError{Dir: spec.Dir, Err: h}
	case strings.HasPrefix(h.What, "standard "):
		return &executor.RootError{
			Path: h.Path, Why: "is " + strings.TrimSuffix(h.What, ", the directory") +
				", and a directory that the policy hides",
			Fix: "pass a file or a pipe, or make the directory readable",
		}
	}
	return &executor.StartError{Program: spec.Args[0],
		Err: fmt.Errorf("%s: cannot be run: %w", text.Word(spec.Args[0]), h)}
}

// narrowings returns the entries of a policy that take something away, as they are written.
// Paths get the form that rules have, as far as they exist.
func narrowings(res *sandbox.Resolved) []plan.Narrowing {
	var out []plan.Narrowing
	for _, p := range res.Paths {
		if !p.Auto && p.Level != sandbox.LevelWrite {
			out = append(out, plan.Narrowing{Path: hostfacts.Deepest(p.Path), Level: p.Level})
		}
	}
	for _, g := range res.Globs {
		out = append(out, plan.Narrowing{Path: g, Level: sandbox.LevelDeny})
	}
	return out
}
