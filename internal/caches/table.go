// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package caches knows the caches of toolchains, and keeps the private layers
// that commands write to instead.
//
// [Detect] finds the toolchains of a workspace by the files that mark them, a
// [Cache] tells where its folder is for an environment and which variable moves
// it, and [Acquire] gives one run the folders that nobody else writes to at the
// same time. [List] and [Clear] are for people who look after them.
//
// The table is data and the same everywhere. The package mounts nothing and
// decides nothing: whether a cache is shown as an overlay, or not at all, is up
// to whoever builds the sandbox. What one workspace has left in a layer is never
// handed to another one.
package caches

import (
	"path/filepath"
	"strings"
)

// A Toolchain is one row of the table: a set of tools, the files that mark a
// folder as theirs, and what they keep between builds.
type Toolchain struct {
	Name    string
	Markers []string // file names; one of them is enough
	Caches  []Cache
}

// A Cache is a folder that tools fill and may lose at any time.
type Cache struct {
	// Name is unique in the table and names the folder of the private layer.
	Name string
	// Tool is the name of the one tool of the toolchain whose cache it is; empty
	// where the tools share it.
	Tool string
	// Moved are the variables that move the folder, the first one set counts.
	Moved []Variable
	// Default are where it is otherwise; the first whose base is set counts.
	Default []Variable
	// Points is the variable, and what stands before the path in its value, that
	// sends the tools to another folder. An empty name: there is none, and the
	// tools manage without.
	Points Variable
	// ReadOnlyIsFine says that the tools use what is in the folder when they
	// cannot write to it. A full folder that is read-only is better than an empty
	// one then.
	ReadOnlyIsFine bool
}

// A Variable is an environment variable that holds a path, or words with a path
// in them.
type Variable struct {
	Name string
	// Below is the path from the one in the variable to the folder.
	Below string
	// Option, when it is not empty, is the beginning of the word of the value
	// whose rest is the path, such as "-Dmaven.repo.local=".
	Option string
	// List says that the value is a list of paths, of which the first counts.
	List bool
}

// table has every toolchain. Sources are the tools' own manuals: go help
// environment and go help cache; npm, yarn and pnpm config; pip config and uv
// help cache; The Cargo Book, Cargo Home; Maven, Configuring; Gradle User Manual,
// Directories.
func table() []Toolchain {
	return []Toolchain{
		{Name: "go", Markers: []string{"go.mod", "go.work"}, Caches: []Cache{
			{Name: "go-build", Moved: plain("GOCACHE"), Default: inCache("go-build"), Points: Variable{Name: "GOCACHE"}},
			{
				Name: "go-mod", Moved: []Variable{{Name: "GOMODCACHE"}, {Name: "GOPATH", Below: "pkg/mod", List: true}},
				Default: inHome("go/pkg/mod"), Points: Variable{Name: "GOMODCACHE"}, ReadOnlyIsFine: true,
			},
		}},
		{Name: "npm", Markers: []string{"package.json"}, Caches: []Cache{
			{Name: "npm", Moved: plain("npm_config_cache", "NPM_CONFIG_CACHE"), Default: inHome(".npm"), Points: Variable{Name: "npm_config_cache"}},
		}},
		{Name: "yarn", Markers: []string{"yarn.lock"}, Caches: []Cache{
			{Name: "yarn", Moved: plain("YARN_CACHE_FOLDER"), Default: inCache("yarn"), Points: Variable{Name: "YARN_CACHE_FOLDER"}},
			{Name: "yarn-berry", Moved: plain("YARN_GLOBAL_FOLDER"), Default: inHome(".yarn/berry"), Points: Variable{Name: "YARN_GLOBAL_FOLDER"}},
		}},
		{Name: "pnpm", Markers: []string{"pnpm-lock.yaml"}, Caches: []Cache{
			{
				Name: "pnpm-store", Moved: []Variable{
					{Name: "npm_config_store_dir"}, {Name: "NPM_CONFIG_STORE_DIR"}, {Name: "PNPM_HOME", Below: "store"},
					{Name: "XDG_DATA_HOME", Below: "pnpm/store"},
				}, Default: inHome(".local/share/pnpm/store"), Points: Variable{Name: "npm_config_store_dir"},
			},
			{
				Name: "pnpm", Moved: plain("npm_config_cache_dir", "NPM_CONFIG_CACHE_DIR"), Default: inCache("pnpm"),
				Points: Variable{Name: "npm_config_cache_dir"},
			},
		}},
		{Name: "python", Markers: []string{"pyproject.toml", "requirements.txt", "setup.py", "uv.lock"}, Caches: []Cache{
			{Name: "pip", Tool: "pip", Moved: plain("PIP_CACHE_DIR"), Default: inCache("pip"), Points: Variable{Name: "PIP_CACHE_DIR"}},
			{Name: "uv", Tool: "uv", Moved: plain("UV_CACHE_DIR"), Default: inCache("uv"), Points: Variable{Name: "UV_CACHE_DIR"}},
		}},
		{Name: "cargo", Markers: []string{"Cargo.toml"}, Caches: []Cache{
			// Not the whole of CARGO_HOME: programs lie beside the caches, and a
			// command must not put one there that a later command starts.
			{
				Name: "cargo-registry", Moved: below("registry", "CARGO_HOME"), Default: inHome(".cargo/registry"),
				Points: Variable{Name: "CARGO_HOME"}, ReadOnlyIsFine: true,
			},
			{Name: "cargo-git", Moved: below("git", "CARGO_HOME"), Default: inHome(".cargo/git"), ReadOnlyIsFine: true},
		}},
		{Name: "maven", Markers: []string{"pom.xml"}, Caches: []Cache{
			{
				Name: "maven", Moved: []Variable{{Name: "MAVEN_ARGS", Option: mavenLocal}, {Name: "MAVEN_OPTS", Option: mavenLocal}},
				Default: inHome(".m2/repository"), Points: Variable{Name: "MAVEN_OPTS", Option: mavenLocal},
			},
		}},
		{Name: "gradle", Markers: []string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"}, Caches: []Cache{
			{Name: "gradle", Moved: plain("GRADLE_USER_HOME"), Default: inHome(".gradle"), Points: Variable{Name: "GRADLE_USER_HOME"}},
		}},
	}
}

const mavenLocal = "-Dmaven.repo.local="

func plain(names ...string) []Variable { return below("", names...) }

func below(folder string, names ...string) []Variable {
	out := make([]Variable, 0, len(names))
	for _, n := range names {
		out = append(out, Variable{Name: n, Below: folder})
	}
	return out
}

func inHome(folder string) []Variable { return below(folder, "HOME") }

func inCache(folder string) []Variable {
	return []Variable{{Name: "XDG_CACHE_HOME", Below: folder}, {Name: "HOME", Below: filepath.Join(".cache", folder)}}
}

// Folder returns where the cache is for tools that run with the environment env
// ("K=V"; of two entries for a name the last one counts). It is absolute and
// clean, or empty where nobody can tell, as without a HOME.
func (c *Cache) Folder(env []string) string {
	for _, vars := range [][]Variable{c.Moved, c.Default} {
		for _, v := range vars {
			value, ok := lookup(env, v.Name)
			if ok && v.Option == "" && v.List {
				value, _, _ = strings.Cut(value, string(filepath.ListSeparator))
			}
			if ok && v.Option != "" {
				value = v.option(value)
			}
			if value != "" && filepath.IsAbs(value) {
				return filepath.Join(value, v.Below)
			}
		}
	}
	return ""
}

// option finds the word of a value that begins with the option.
func (v *Variable) option(value string) string {
	path := ""
	for w := range strings.FieldsSeq(value) {
		if rest, ok := strings.CutPrefix(w, v.Option); ok {
			path = rest
		}
	}
	return path
}

// Point returns env with the variable of the cache set to folder, which is
// absolute. It reports false, and leaves env as it is, where no value can say so:
// the cache has no variable, or the folder has a space in it and the value is a
// list of words. The result shares nothing with env.
func (c *Cache) Point(env []string, folder string) ([]string, bool) {
	v := c.Points
	if v.Name == "" || v.Option != "" && strings.ContainsAny(folder, " \t\n\"'\\$`") {
		return env, false
	}
	value := folder
	if v.Option != "" {
		old, _ := lookup(env, v.Name)
		value = strings.TrimSpace(old + " " + v.Option + folder)
	}
	out := make([]string, 0, len(env)+1)
	for _, e := range env {
		if name, _, _ := strings.Cut(e, "="); !sameVariable(name, v.Name) {
			out = append(out, e)
		}
	}
	return append(out, v.Name+"="+value), true
}

// sameVariable reports whether a tool would take one name for the other: npm
// reads its own in any case, and the upper one would win.
func sameVariable(a, b string) bool {
	if strings.HasPrefix(strings.ToLower(b), "npm_config_") {
		return strings.EqualFold(a, b)
	}
	return a == b
}

func lookup(env []string, name string) (string, bool) {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// maxFolders bounds how many folders Detect looks into.
const maxFolders = 6

// Detect returns the toolchains that have a marker at the top of workspace, in
// dir, or in one of the folders between the two, in the order of the table. Both
// are absolute; a dir outside of workspace is looked into alone, beside the
// workspace. It reads no folder: it asks for the few names it knows, and where
// dir is deep it leaves out folders in the middle.
func Detect(workspace, dir string) []Toolchain {
	folders := between(workspace, dir)
	var found []Toolchain
	for _, t := range table() {
		if marked(folders, t.Markers) {
			found = append(found, t)
		}
	}
	return found
}

func marked(folders, markers []string) bool {
	for _, d := range folders {
		for _, m := range markers {
			if exists(d + string(filepath.Separator) + m) {
				return true
			}
		}
	}
	return false
}

// between lists workspace, dir and the folders between, deepest first but for the
// workspace, which comes at the begin.
func between(workspace, dir string) []string {
	workspace, dir = filepath.Clean(workspace), filepath.Clean(dir)
	folders := []string{workspace}
	for at := dir; at != workspace && len(folders) < maxFolders; at = filepath.Dir(at) {
		folders = append(folders, at)
		if !strings.HasPrefix(at, strings.TrimSuffix(workspace, "/")+"/") || at == filepath.Dir(at) {
			break
		}
	}
	return folders
}
