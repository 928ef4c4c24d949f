// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A tool is something that a project is built with, by the files at its top.
type tool struct {
	name  string
	files []string // patterns; one that matches is enough
	// needs is a second list of which one must match, too; empty for none.
	needs []string
	// unless are names of tools that go before it.
	unless []string
	// fetch is what needs the network, once, and hosts the grant of the hosts that it reaches; empty for
	// nothing.
	hosts, fetch string
	// grants and write are elements that a project of this kind may want in these lists, each
	// with its reason.
	grants, write []string
}

// tools is the table of what is known. What works without a setting has no line: the caches of
// toolchains are layered, /tmp is private, the workspace is writable.
var tools = []tool{
	{name: "Go", files: []string{"go.mod", "go.work"}, hosts: "net:go", fetch: "go mod download"},
	{name: "pnpm", files: []string{"pnpm-lock.yaml"}, hosts: "net:npm", fetch: "pnpm install"},
	{name: "Yarn", files: []string{"yarn.lock"}, hosts: "net:npm", fetch: "yarn install"},
	{
		name: "Bun", files: []string{"bun.lock", "bun.lockb"}, hosts: "net:npm", fetch: "bun install",
		write: []string{`"~/.bun/install/cache", # what Bun fetches, which has no layer`},
	},
	{name: "npm", files: []string{"package.json"}, unless: []string{"pnpm", "Yarn", "Bun"}, hosts: "net:npm", fetch: "npm install"},
	{name: "uv", files: []string{"uv.lock"}, hosts: "net:pypi", fetch: "uv sync"},
	{name: "Poetry", files: []string{"poetry.lock"}, hosts: "net:pypi", fetch: "poetry install"},
	{name: "Python", files: []string{"requirements.txt"}, unless: []string{"uv", "Poetry"}, hosts: "net:pypi", fetch: "pip install -r requirements.txt"},
	{name: "Python", files: []string{"pyproject.toml", "setup.py"}, unless: []string{"uv", "Poetry", "Python"}, hosts: "net:pypi", fetch: "pip install -e ."},
	{name: "Rust", files: []string{"Cargo.toml"}, hosts: "net:crates", fetch: "cargo fetch"},
	{name: "Maven", files: []string{"pom.xml"}, hosts: "net:maven", fetch: "mvn dependency:go-offline"},
	{
		name: "Gradle", hosts: "net:maven", fetch: "gradle build",
		files: []string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"},
	},
	{
		name: "C",
		files: []string{"CMakeLists.txt", "meson.build", "configure.ac", "configure", "Makefile",
			"GNUmakefile", "makefile"},
		needs:  []string{"*.[ch]", "*.cc", "*.cpp", "*.cxx", "*/*.[ch]", "*/*.cc", "*/*.cpp", "*/*.cxx"},
		grants: []string{`"cache:ccache", # a layer over the cache of ccache, for this project alone`},
		write:  []string{`"~/.local", # make install, with this prefix`},
	},
}

// FoundProject is what a project is, as far as the files at its top say.
type FoundProject struct {
	Tools []string // with the file that told, such as "Go (go.mod)"
	Fetch []string // commands that need the network, once, behind the grant of their hosts and "--"
	Git   bool

	grants, write []string
}

// find looks at the files at the top of dir.
func find(dir string) FoundProject {
	var f FoundProject
	var names []string
	for _, t := range tools {
		sign := firstOf(dir, t.files)
		if sign == "" || len(t.needs) > 0 && firstOf(dir, t.needs) == "" ||
			slices.ContainsFunc(t.unless, func(other string) bool { return slices.Contains(names, other) }) {
			continue
		}
		names = append(names, t.name)
		f.Tools = append(f.Tools, t.name+" ("+sign+")")
		if t.fetch != "" {
			f.Fetch = append(f.Fetch, t.hosts+" -- "+t.fetch)
		}
		f.grants, f.write = append(f.grants, t.grants...), append(f.write, t.write...)
	}
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	f.Git = err == nil
	return f
}

// firstOf returns the first pattern that a name matches; empty if none does.
func firstOf(dir string, patterns []string) string {
	for _, p := range patterns {
		// A directory that cannot be read has no such file.
		if names, err := filepath.Glob(filepath.Join(quoted.Replace(dir), p)); err == nil && len(names) > 0 {
			return p
		}
	}
	return ""
}

// quoted makes a directory one that a pattern takes as it is.
var quoted = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)
