// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// A Toolchain is one row of the table: a set of tools, the files that mark a
// directory as theirs, and what they keep between builds.
type Toolchain struct {
	Name    string
	Markers []string // file names; one of them is enough
	Caches  []Cache
}

// A Cache is a directory that tools fill and can lose at any time.
type Cache struct {
	// Name is unique in the table and names the directory of the private layer.
	Name string
	// Tool names the one tool of the toolchain that uses the cache. It is empty if
	// the tools share it.
	Tool string
	// Moved lists the variables that move the directory. The first one set counts.
	Moved []Variable
	// Default lists where it is otherwise. The first one whose variable is set counts.
	Default []Variable
	// Redirect is the variable that sends the tools to another directory, with the
	// option before the path. Without a name, no variable does.
	Redirect Variable
	// ReadOnlyWorks says that the tools use the content of a directory that they
	// cannot write. They are better off with it than with an empty directory.
	ReadOnlyWorks bool
	// Made says that the directory is made where the host has none, because tools write its path into what
	// they make, no variable names it, or the variable names more than the cache. What is redirected has
	// another path than outside.
	Made bool
}

// A Variable is an environment variable that holds a path, or words with a path
// in them.
type Variable struct {
	Name string
	// Below is the path from the one in the variable to the directory.
	Below string
	// Option, if not empty, begins the word of the value whose rest is the path, such
	// as "-Dmaven.repo.local=".
	Option string
	// List says that the value is a list of paths, of which the first counts.
	List bool
}

// table returns every toolchain. The sources are the tools' own manuals: go help
// environment and go help cache; npm, yarn and pnpm config; pip config and uv
// help cache; The Cargo Book, Cargo Home; Maven, Configuring; Gradle User Manual,
// Directories.
func table() []Toolchain {
	return slices.Concat(languages(), []Toolchain{
		{Name: "maven", Markers: []string{"pom.xml"}, Caches: []Cache{
			{
				Name: "maven", Moved: []Variable{{Name: "MAVEN_ARGS", Option: mavenLocal},
					{Name: "MAVEN_OPTS", Option: mavenLocal}},
				Default: inHome(".m2/repository"), Redirect: Variable{Name: "MAVEN_OPTS", Option: mavenLocal},
			},
			{
				Name: "maven-wrapper", Moved: below("wrapper", "MAVEN_USER_HOME"), Default: inHome(".m2/wrapper"),
				Redirect: Variable{Name: "MAVEN_USER_HOME"},
			},
		}},
		{Name: "gradle", Markers: []string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"}, Caches: []Cache{
			{Name: "gradle", Moved: plain("GRADLE_USER_HOME"), Default: inHome(".gradle"),
				Redirect: Variable{Name: "GRADLE_USER_HOME"}},
		}},
		// No file says that a build calls its compiler by way of it, so it has no marker.
		{Name: "ccache", Caches: []Cache{
			{Name: "ccache", Moved: plain("CCACHE_DIR"), Default: inCache("ccache"),
				Redirect: Variable{Name: "CCACHE_DIR"}},
		}},
	})
}

// languages are the rows before those of Java and C.
func languages() []Toolchain {
	return []Toolchain{
		{Name: "go", Markers: []string{"go.mod", "go.work"}, Caches: []Cache{
			{Name: "go-build", Moved: plain("GOCACHE"), Default: inCache("go-build"), Redirect: Variable{Name: "GOCACHE"}},
			{
				Name: "go-mod", Moved: []Variable{{Name: "GOMODCACHE"},
					{Name: "GOPATH", Below: "pkg/mod", List: true}},
				Default: inHome("go/pkg/mod"), Redirect: Variable{Name: "GOMODCACHE"}, ReadOnlyWorks: true,
				Made: true,
			},
			// What the checksum database has said, which go records there before it trusts a new module.
			{Name: "go-sumdb", Moved: []Variable{{Name: "GOPATH", Below: "pkg/sumdb", List: true}},
				Default: inHome("go/pkg/sumdb"), ReadOnlyWorks: true, Made: true},
		}},
		{Name: "npm", Markers: []string{"package.json"}, Caches: []Cache{
			{Name: "npm", Moved: plain("npm_config_cache", "NPM_CONFIG_CACHE"), Default: inHome(".npm"), Redirect: Variable{Name: "npm_config_cache"}},
		}},
		{Name: "yarn", Markers: []string{"yarn.lock"}, Caches: []Cache{
			{Name: "yarn", Moved: plain("YARN_CACHE_FOLDER"), Default: inCache("yarn"), Redirect: Variable{Name: "YARN_CACHE_FOLDER"}},
			{Name: "yarn-berry", Moved: plain("YARN_GLOBAL_FOLDER"), Default: inHome(".yarn/berry"),
				Redirect: Variable{Name: "YARN_GLOBAL_FOLDER"}, Made: true},
		}},
		{Name: "pnpm", Markers: []string{"pnpm-lock.yaml"}, Caches: []Cache{
			{
				Name: "pnpm-store", Moved: []Variable{
					{Name: "npm_config_store_dir"}, {Name: "NPM_CONFIG_STORE_DIR"}, {Name: "PNPM_HOME", Below: "store"},
					{Name: "XDG_DATA_HOME", Below: "pnpm/store"},
				}, Default: inHome(".local/share/pnpm/store"),
				Redirect: Variable{Name: "npm_config_store_dir"}, Made: true,
			},
			{
				Name: "pnpm", Moved: plain("npm_config_cache_dir", "NPM_CONFIG_CACHE_DIR"),
				Default:  inCache("pnpm"),
				Redirect: Variable{Name: "npm_config_cache_dir"}, Made: true,
			},
		}},
		{Name: "python", Markers: []string{"pyproject.toml", "requirements.txt", "setup.py", "uv.lock"}, Caches: []Cache{
			{Name: "pip", Tool: "pip", Moved: plain("PIP_CACHE_DIR"), Default: inCache("pip"), Redirect: Variable{Name: "PIP_CACHE_DIR"}},
			{Name: "uv", Tool: "uv", Moved: plain("UV_CACHE_DIR"), Default: inCache("uv"), Redirect: Variable{Name: "UV_CACHE_DIR"}},
		}},
		{Name: "cargo", Markers: []string{"Cargo.toml"}, Caches: []Cache{
			// CARGO_HOME as a whole also contains programs. A command must not put one
			// there that a later command starts.
			{
				Name: "cargo-registry", Moved: below("registry", "CARGO_HOME"),
				Default:  inHome(".cargo/registry"),
				Redirect: Variable{Name: "CARGO_HOME"}, ReadOnlyWorks: true, Made: true,
			},
			{
				Name: "cargo-git", Moved: below("git", "CARGO_HOME"), Default: inHome(".cargo/git"),
				ReadOnlyWorks: true, Made: true,
			},
		}},
	}
}

const mavenLocal = "-Dmaven.repo.local="

func plain(names ...string) []Variable { return below("", names...) }

func below(dir string, names ...string) []Variable {
	out := make([]Variable, 0, len(names))
	for _, n := range names {
		out = append(out, Variable{Name: n, Below: dir})
	}
	return out
}

func inHome(dir string) []Variable { return below(dir, "HOME") }

func inCache(dir string) []Variable {
	return []Variable{{Name: "XDG_CACHE_HOME", Below: dir},
		{Name: "HOME", Below: filepath.Join(".cache", dir)}}
}

// Dir returns the directory of the cache for tools that run with the environment env
// ("K=V"; of two entries for a name the last one counts). It is absolute and clean,
// or empty if the environment does not say where it is.
func (c *Cache) Dir(env []string) string {
	for _, v := range slices.Concat(c.Moved, c.Default) {
		value := lookup(env, v.Name)
		switch {
		case v.List:
			value, _, _ = strings.Cut(value, string(filepath.ListSeparator))
		case v.Option != "":
			value = lastWord(value, v.Option)
		}
		if filepath.IsAbs(value) {
			return filepath.Join(value, v.Below)
		}
	}
	return ""
}

// lastWord returns the rest of the last word of value that begins with option.
func lastWord(value, option string) string {
	path := ""
	for w := range strings.FieldsSeq(value) {
		if rest, ok := strings.CutPrefix(w, option); ok {
			path = rest
		}
	}
	return path
}

// RedirectTo returns env with the variable of the cache set to dir, which is
// absolute. It reports false, and returns env, if no value can: the cache has no
// variable, or dir contains a space and the value is a list of words. It does not
// change env.
func (c *Cache) RedirectTo(env []string, dir string) ([]string, bool) {
	v := c.Redirect
	if v.Name == "" || v.Option != "" && strings.ContainsAny(dir, " \t\n\"'\\$`") {
		return env, false
	}
	value := dir
	if v.Option != "" {
		value = strings.TrimSpace(lookup(env, v.Name) + " " + v.Option + dir)
	}
	out := make([]string, 0, len(env)+1)
	for _, e := range env {
		if name, _, _ := strings.Cut(e, "="); !sameVariable(name, v.Name) {
			out = append(out, e)
		}
	}
	return append(out, v.Name+"="+value), true
}

// sameVariable reports whether a tool takes one name for the other: npm reads its
// own names in any case and prefers upper case.
func sameVariable(a, b string) bool {
	if strings.HasPrefix(strings.ToLower(b), "npm_config_") {
		return strings.EqualFold(a, b)
	}
	return a == b
}

// lookup returns the value of a variable, or "".
func lookup(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// maxDetected bounds how many directories Detect looks at.
const maxDetected = 6

// Detect returns the toolchains that have a marker in workspace, in dir, or in one
// of the directories between the two, in the order of the table, and that of the program
// args[0], which may be about to make the first such file. Both directories are absolute.
// A dir outside of workspace is looked at without those above it; if dir is deep,
// some directories in the middle are left out. No args are no program.
func Detect(workspace, dir string, args []string) []Toolchain {
	var dirs []listed
	for _, d := range between(workspace, dir) {
		dirs = append(dirs, list(d))
	}
	var found []Toolchain
	for _, t := range table() {
		if marked(dirs, t.Markers) || len(args) > 0 && t.has(filepath.Base(args[0])) {
			found = append(found, t)
		}
	}
	return found
}

// has reports whether a program, by its name, is a tool of the toolchain: not one that only may use it.
func (t *Toolchain) has(program string) bool {
	name := cmp.Or(alias[program], program)
	return program == t.Name || t.Markers != nil && (name == t.Name ||
		slices.ContainsFunc(t.Caches, func(c Cache) bool { return c.Tool == name }))
}

// A listed directory is one that is searched for markers.
type listed struct {
	path  string
	names []string // nil if there are too many, or it cannot be listed
}

// list lists a directory, which is faster than to look for each marker.
func list(dir string) listed {
	f, err := os.OpenFile(dir, os.O_RDONLY|safefile.NoWait, 0)
	if err != nil {
		return listed{path: dir}
	}
	defer f.Close()
	const most = 256
	names, err := f.Readdirnames(most)
	if len(names) == most || err != nil {
		names = nil
	}
	return listed{dir, names}
}

func (d *listed) has(name string) bool {
	if d.names == nil {
		return exists(filepath.Join(d.path, name))
	}
	return slices.Contains(d.names, name)
}

func marked(dirs []listed, markers []string) bool {
	return slices.ContainsFunc(dirs, func(d listed) bool { return slices.ContainsFunc(markers, d.has) })
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// between returns workspace, then dir and the directories above it up to workspace.
func between(workspace, dir string) []string {
	workspace, dir = filepath.Clean(workspace), filepath.Clean(dir)
	dirs := []string{workspace}
	for at := dir; at != workspace && len(dirs) < maxDetected; at = filepath.Dir(at) {
		dirs = append(dirs, at)
		if !inside(at, workspace) || at == filepath.Dir(at) {
			break
		}
	}
	return dirs
}

// inside reports whether a path is dir or lies below it.
func inside(path, dir string) bool { return safefile.Within(path, dir) }
