// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package trust

import (
	_ "embed" // first.toml
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// ErrExists says that a project has a file of settings.
var ErrExists = errors.New(ProjectFile + " exists, and is not changed")

// InitProject writes the first file of settings of the project in dir, which must be absolute, and
// returns what it went by. The file must be trusted before it counts.
func InitProject(dir string) (FoundProject, error) {
	p, err := Read(dir)
	if err != nil {
		return FoundProject{}, err
	}
	if slices.ContainsFunc(p.Files, func(f File) bool { return f.Name == ProjectFile }) {
		return FoundProject{}, ErrExists
	}
	real, err := filepath.EvalSymlinks(p.Dir)
	if err != nil {
		return FoundProject{}, err
	}
	f := find(real)
	return f, writeSettings(real, nil, []byte(f.text()), func() error { return nil })
}

// first is the file, with names in braces for what a project is.
//
//go:embed first.toml
var first string

// text returns the file of a project.
func (f FoundProject) text() string {
	git := "# "
	if f.Git {
		git = ""
	}
	lists := map[string][]string{"{fetch}": f.Fetch, "{grants}": f.grants, "{write}": f.write, "{git}": {git}}
	if len(f.Fetch) == 0 {
		lists["{fetch}"] = []string{"net:npm -- PROGRAM"}
	}
	var b strings.Builder
	for line := range strings.Lines(first) {
		begin := strings.IndexByte(line, '{')
		end := strings.IndexByte(line, '}') + 1
		if begin < 0 {
			b.WriteString(line)
			continue
		}
		for _, text := range lists[line[begin:end]] {
			b.WriteString(line[:begin] + text + line[end:])
		}
	}
	return b.String()
}
