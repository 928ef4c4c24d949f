// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package userdirs

import (
	"path/filepath"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/credentials"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/plan"
)

// InReach returns a [*ReachError] if a directory or file of settings, which the environment
// names, is in the workspace or reached through a symbolic link there: a command, or a tool of
// the project, could choose what later runs may do. Nil is returned for what is in the usual
// directory of the user database, which every run protects. Both paths are absolute; links in
// them are resolved, and neither must exist.
func InReach(path, workspace string) error {
	path = filepath.Clean(path)
	home := usual()
	if home != "" && hostfacts.Below(path, home) {
		return nil
	}
	root := hostfacts.Deepest(workspace)
	real, links, err := hostfacts.Walk(path, nil)
	if err != nil {
		real = path // it cannot be read either
	}
	within := hostfacts.Below(real, root) && (home == "" || !hostfacts.Below(real, hostfacts.Deepest(home)))
	if within || slices.ContainsFunc(links, func(l plan.Link) bool { return hostfacts.Below(l.Path, root) }) {
		return &ReachError{Path: path, Workspace: workspace}
	}
	return nil
}

// usual returns the directory of settings that later runs read unless the environment says
// otherwise; "" for a user without a home. Every run protects it.
func usual() string {
	if home := credentials.DatabaseHome(); filepath.IsAbs(home) && home != "/" {
		return inHome(home)
	}
	return ""
}
