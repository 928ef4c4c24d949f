// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// listed adds what folders of ours that stand over the host's need to be of use:
// the symbolic links on the way to what the policy lists, and, where it lists all
// that is visible, the places without which the command could not start.
func listed(res *sandbox.Resolved, r *executor.Spec, pr *plan.Request) {
	links := map[string]bool{}
	add := func(name string) {
		if real, err := hostfacts.EvalSymlinks(name); err == nil && real == filepath.Clean(name) {
			return // no link is on the way
		}
		for _, l := range hostfacts.Links(name) {
			if !links[l.Path] && (pr.Root == sandbox.LevelDeny || strings.HasPrefix(l.Path, "/run/")) {
				links[l.Path] = true
				pr.Links = append(pr.Links, l)
			}
		}
	}
	for _, name := range hostfacts.RunShows {
		add(name)
	}
	for _, p := range res.Paths {
		if p.Level != sandbox.LevelDeny && !p.Auto {
			add(p.Path)
		}
	}
	if pr.Root != sandbox.LevelDeny {
		return
	}
	add("/tmp")
	pr.Needs = append(pr.Needs, needs("the working directory", r.Dir, true)...)
	what, name := "the program", pr.Program
	for range hostfacts.MaxInterpreters {
		pr.Needs = append(pr.Needs, needs(what, name, false)...)
		next := hostfacts.Interpreter(name)
		if !filepath.IsAbs(next) {
			break
		}
		what, name = "the interpreter of "+name+",", next
	}
}

// needs lists what must be visible for a path to lead where it leads.
func needs(what, name string, folder bool) []plan.Need {
	var out []plan.Need
	for _, l := range hostfacts.Links(name) {
		out = append(out, plan.Need{What: what, Path: l.Path})
	}
	return append(out, plan.Need{What: what, Path: hostfacts.RealPath(name), Dir: folder})
}

// hidden gives an error about what a command does not see the type that says
// which part of the request it is about.
func hidden(r *executor.Spec, err error) error {
	var h *sandbox.HiddenError
	switch {
	case !errors.As(err, &h):
		return err
	case h.What == "the working directory":
		return &executor.DirError{Dir: r.Dir, Err: h}
	case strings.HasPrefix(h.What, "standard "):
		return &executor.RootError{Path: h.Path, Why: "is " + strings.TrimSuffix(h.What, ", the folder") + ", and a folder that the command does not see", Fix: "pass a file or a pipe, or show it with --ro"}
	}
	return &executor.StartError{Program: r.Args[0], Err: fmt.Errorf("%s: cannot be run: %w", r.Args[0], h)}
}
