// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// projectFiles are the files in the current directory that programs read without being told. Those
// with a directory take it as the value of an option.
var projectFiles = sync.OnceValue(func() map[string][]string {
	make := []string{"GNUmakefile", "makefile", "Makefile"}
	npm := []string{"package.json"}
	compose := []string{"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"}
	return map[string][]string{
		"cargo": {"build.rs"}, "docker": {"Dockerfile"}, "podman": {"Containerfile", "Dockerfile"}, "pytest": {"conftest.py"},
		"pip": {"setup.py", "pyproject.toml"}, "pip3": {"setup.py", "pyproject.toml"}, "pre-commit": {".pre-commit-config.yaml"},
		"make": make, "gmake": make, "bmake": make, "remake": make,
		"npm": npm, "pnpm": npm, "yarn": npm, "bun": npm, "turbo": {"turbo.json"}, "nx": {"nx.json"}, "gulp": {"gulpfile.js"}, "grunt": {"Gruntfile.js"},
		"just": {"justfile", "Justfile", ".justfile"}, "task": {"Taskfile.yml", "Taskfile.yaml"}, "mage": {"magefile.go"}, "rake": {"Rakefile"},
		"invoke": {"tasks.py"}, "inv": {"tasks.py"}, "fab": {"fabfile.py"}, "nox": {"noxfile.py"}, "tox": {"tox.ini", "tox.toml", "pyproject.toml"}, "doit": {"dodo.py"},
		"scons": {"SConstruct"}, "waf": {"wscript"}, "meson": {"meson.build"}, "ant": {"build.xml"}, "mvn": {"pom.xml"}, "gradle": {"build.gradle", "build.gradle.kts"},
		"docker-compose": compose, "vagrant": {"Vagrantfile"}, "cmake": {"CMakeLists.txt"}, "ctest": {"CTestTestfile.cmake"}, "ninja": {"build.ninja"}, "b2": {"Jamroot"},
		"lerna": npm, "npm-run-all": npm, "run-s": npm, "run-p": npm, "earthly": {"Earthfile"}, "foreman": {"Procfile"}, "honcho": {"Procfile"}, "overmind": {"Procfile"},
	}
})

// RunsFiles reports whether files among the words of a program are code that it runs.
func RunsFiles(name string) bool {
	return slices.Contains([]string{"go", "uv", "uvx", "pipx", "pytest", "py.test", "crontab", "bc", "jshell",
		"php", "ghci", "runghc"}, name)
}

// quietProjects are commands of such programs that run nothing of the project.
const quietProjects = " --version --help -v -h help ls list view info audit outdated why config root bin whoami search fund docs repo bugs ping star "

// ProjectFiles returns the files that a program reads as code without being told its operands: those
// that its options name, and else the names of which it reads the first that exists, in the
// directory that its options name.
func ProjectFiles(name string, args []string) (named, found []string) {
	names, ok := projectFiles()[name]
	if !ok {
		return nil, nil
	}
	dir := ""
	for i := 1; i < len(args); i++ {
		w := args[i]
		value := ""
		switch {
		case i == 1 && strings.Contains(quietProjects, " "+w+" "):
			return nil, nil
		case slices.Contains([]string{"-C", "--directory", "-f", "--file", "--makefile", "--justfile", "-P",
			"--prefix", "--cwd", "-S"}, w) && i+1 < len(args):
			i++
			value = args[i]
		case strings.HasPrefix(w, "--"):
			_, value, _ = strings.Cut(w, "=")
			w, _, _ = strings.Cut(w, "=")
		case len(w) > 2 && (strings.HasPrefix(w, "-C") || strings.HasPrefix(w, "-f")):
			w, value = w[:2], w[2:]
		}
		switch {
		case value == "":
		case w == "-f" || w == "--file" || w == "--makefile" || w == "--justfile" || w == "-P" &&
			name == "cmake":
			named = append(named, path.Join(dir, value))
		case w == "-C" || w == "--directory" || w == "--prefix" || w == "--cwd" || w == "-S":
			if path.IsAbs(value) {
				dir = value
			} else {
				dir = path.Join(dir, value)
			}
		}
	}
	if len(named) > 0 {
		return named, nil
	}
	for _, n := range names {
		found = append(found, path.Join(dir, n))
	}
	return nil, found
}
