// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package toolfiles knows the names at the top of a workspace that other programs run or obey
// later: settings of agents and editors, scripts of a directory's shell, hooks.
//
// It looks at what exists and refuses to decide who may change it.
package toolfiles

import (
	"path/filepath"
	"slices"
	"strings"
)

// The grants that open the names.
const (
	GrantAgents  = "agent-config"
	GrantEditors = "editor-config"
)

// A Name is one name at the top of a workspace.
type Name struct {
	Name  string
	Grant string // the one grant that opens it
}

// names is the table, sorted by grant and name. A name that two kinds of programs use has the
// grant of the kind that runs more of it without a question.
var names = []Name{
	{".claude", GrantAgents},   // Claude Code: hooks, permissions, instructions
	{".cursor", GrantAgents},   // Cursor: servers, hooks, rules
	{".gemini", GrantAgents},   // Gemini CLI: servers, hooks, settings
	{".mcp.json", GrantAgents}, // programs that agents start as MCP servers
	{".envrc", GrantEditors},   // the script that direnv runs in a shell
	{".hg", GrantEditors},      // Mercurial: hooks and extensions in hgrc, history
	{".husky", GrantEditors},   // scripts that git runs as hooks
	{".idea", GrantEditors},    // JetBrains: run configurations, watchers, settings
	{".vscode", GrantEditors},  // VS Code: tasks, launches, settings
}

// Find returns the line of a name, and false for a name that is not in the table.
func Find(name string) (Name, bool) {
	i := slices.IndexFunc(names, func(n Name) bool { return n.Name == name })
	if i < 0 {
		return Name{}, false
	}
	return names[i], true
}

// Below returns the line of the name in root that a path is or lies in, and where that is;
// false for every other path. Both paths are absolute and clean.
func Below(root, path string) (n Name, at string, ok bool) {
	rest, inside := strings.CutPrefix(path, strings.TrimSuffix(root, "/")+"/")
	first, _, _ := strings.Cut(rest, "/")
	if n, ok = Find(first); !ok || !inside {
		return Name{}, "", false
	}
	return n, filepath.Join(root, first), true
}

// Grants returns the names of the grants, sorted.
func Grants() []string { return []string{GrantAgents, GrantEditors} }

// Opened returns the names that a grant opens; nil for a name that is not one of [Grants].
func Opened(grant string) []string {
	var list []string
	for _, n := range names {
		if n.Grant == grant {
			list = append(list, n.Name)
		}
	}
	return list
}
