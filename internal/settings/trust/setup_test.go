// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package trust_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/settings/trust"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

func mustSet(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// project makes a directory with empty files; a name with a slash at the end is a directory.
func project(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, n := range names {
		at := filepath.Join(dir, n)
		if strings.HasSuffix(n, "/") {
			mustSet(t, os.MkdirAll(at, 0o755))
			continue
		}
		mustSet(t, os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, nil, 0o644))
	}
	return dir
}

// kinds are projects with what they are.
var kinds = []struct{ name, files, tools, fetch string }{
	{"nothing", "README.md", "", ""},
	{"go", "go.mod main.go .git/", "Go (go.mod)", "net:go -- go mod download"},
	{"go workspace", "go.work .git", "Go (go.work)", "net:go -- go mod download"},
	{"npm", "package.json package-lock.json", "npm (package.json)", "net:npm -- npm install"},
	{"pnpm", "package.json pnpm-lock.yaml", "pnpm (pnpm-lock.yaml)", "net:npm -- pnpm install"},
	{"yarn", "package.json yarn.lock", "Yarn (yarn.lock)", "net:npm -- yarn install"},
	{"bun", "package.json bun.lockb", "Bun (bun.lockb)", "net:npm -- bun install"},
	{"requirements", "requirements.txt setup.py", "Python (requirements.txt)", "net:pypi -- pip install -r requirements.txt"},
	{"pyproject", "pyproject.toml", "Python (pyproject.toml)", "net:pypi -- pip install -e ."},
	{"uv", "pyproject.toml uv.lock", "uv (uv.lock)", "net:pypi -- uv sync"},
	{"poetry", "pyproject.toml poetry.lock requirements.txt", "Poetry (poetry.lock)", "net:pypi -- poetry install"},
	{"rust", "Cargo.toml src/main.rs", "Rust (Cargo.toml)", "net:crates -- cargo fetch"},
	{"maven", "pom.xml src/main/java/A.java", "Maven (pom.xml)", "net:maven -- mvn dependency:go-offline"},
	{"gradle", "build.gradle gradlew", "Gradle (build.gradle)", "net:maven -- gradle build"},
	{"gradle in Kotlin", "settings.gradle.kts", "Gradle (settings.gradle.kts)", "net:maven -- gradle build"},
	{"c", "Makefile src/a.c", "C (Makefile)", ""},
	{"c++", "CMakeLists.txt a.cpp", "C (CMakeLists.txt)", ""},
	{"makefile of something else", "Makefile a.go", "", ""},
	{"several", "go.mod package.json Cargo.toml .git/", "Go (go.mod), npm (package.json), Rust (Cargo.toml)", "net:go -- go mod download, net:npm -- npm install, net:crates -- cargo fetch"},
}

// TestInit: the file names what was found, loads as it is, and with each of its comments that
// is a setting, and all of them, uncommented.
func TestInit(t *testing.T) {
	testenv.Clean(t)
	comment := regexp.MustCompile(`(?m)^( *)# ([a-z.]+ = |")`)
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			dir := project(t, strings.Fields(kind.files)...)
			found, err := trust.InitProject(dir)
			mustSet(t, err)
			git := strings.Contains(kind.files, ".git")
			if got := strings.Join(found.Tools, ", "); got != kind.tools ||
				strings.Join(found.Fetch, ", ") != kind.fetch || found.Git != git {
				t.Errorf("%+v", found)
			}
			name := filepath.Join(dir, trust.ProjectFile)
			text, err := os.ReadFile(name)
			mustSet(t, err)
			texts := []string{string(text), comment.ReplaceAllString(string(text), "$1$2")}
			for _, at := range comment.FindAllStringSubmatchIndex(string(text), -1) {
				texts = append(texts, string(text[:at[3]])+string(text[at[4]:]))
			}
			if len(texts) < 7 {
				t.Errorf("%d texts of\n%s", len(texts), text)
			}
			for _, text := range texts {
				items, err := syntax.ParseTOML([]byte(text))
				if mustSet(t, err, config.Check(config.Project)(name, []byte(text))); len(items) == 0 {
					t.Errorf("nothing in\n%s", text)
				}
			}
			if strings.Contains(string(text), "\n  \"git\",") != git {
				t.Errorf("the grant git is there, or not:\n%s", text)
			}
			if _, err := trust.InitProject(dir); !errors.Is(err, trust.ErrExists) {
				t.Errorf("a second time: %v", err)
			}
			if again, err := os.ReadFile(name); err != nil || string(again) != string(text) {
				t.Errorf("changed: %v", err)
			}
			for name, mode := range map[string]fs.FileMode{trust.ProjectFile: 0o644,
				".sallyport": fs.ModeDir | 0o755} {
				if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode() != mode {
					t.Errorf("%s: %v, %v", name, info.Mode(), err)
				}
			}
		})
	}
}

// TestInitRefused: nothing is written through a link, and a name with marks of a pattern is
// one.
func TestInitRefused(t *testing.T) {
	testenv.Clean(t)
	dir, outside := project(t, "go.mod"), t.TempDir()
	mustSet(t, os.Symlink(outside, filepath.Join(dir, ".sallyport")))
	if _, err := trust.InitProject(dir); err == nil || !strings.Contains(err.Error(), "it is a symbolic link") {
		t.Errorf("%v", err)
	}
	if err := trust.WriteSettings(dir, []byte("#\n")); err == nil ||
		!strings.Contains(err.Error(), "it is no directory") {
		t.Errorf("a link that came later: %v", err)
	}
	inside := filepath.Join(dir, "inside")
	mustSet(t, os.Remove(filepath.Join(dir, ".sallyport")), os.Mkdir(inside, 0o755),
		os.Symlink("inside", filepath.Join(dir, ".sallyport")))
	if err := trust.WriteSettings(dir, []byte("#\n")); err == nil ||
		!strings.Contains(err.Error(), "it is no directory") {
		t.Errorf("a link in the project that came later: %v", err)
	}
	for _, d := range []string{outside, inside} {
		if names, err := os.ReadDir(d); err != nil || len(names) > 0 {
			t.Errorf("%v, %v", names, err)
		}
	}
	odd := project(t, "[a]/go.mod", "a/Cargo.toml")
	if found, err := trust.InitProject(filepath.Join(odd, "[a]")); err != nil ||
		strings.Join(found.Tools, " ") != "Go (go.mod)" {
		t.Errorf("%+v, %v", found, err)
	}
}

func ask(name string) []trust.Setting {
	return []trust.Setting{{Path: []string{"grants"}, Value: name, List: true}}
}

var loads = config.Check(config.User)

// TestUser: the user's file is made for the user alone, keeps its mode, its links and what it
// said, and is whole at any time.
func TestUser(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "new/sallyport/config.toml")
	mustSet(t, trust.SetForUser(name, ask("git"), loads))
	for name, mode := range map[string]fs.FileMode{name: 0o600, filepath.Dir(name): fs.ModeDir | 0o700} {
		if info, err := os.Lstat(name); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	kept := filepath.Join(dir, "dotfiles")
	mustSet(t, os.Rename(name, kept), os.Chmod(kept, 0o640), os.Symlink(kept, name))
	mustSet(t, trust.SetForUser(name, ask("gpu"), loads), trust.SetForUser(name, ask("gpu"), loads))
	text, err := os.ReadFile(kept)
	info, failed := os.Lstat(kept)
	mustSet(t, err, failed)
	if string(text) != "grants = [\"git\", \"gpu\"]\n" || info.Mode() != 0o640 {
		t.Errorf("%q, %v", text, info.Mode())
	}
	if link, err := os.Readlink(name); err != nil || link != kept {
		t.Errorf("%q, %v", link, err)
	}
}

// TestUserRefused: a file that does not load, before or afterwards, and one that another
// program writes, are not changed.
func TestUserRefused(t *testing.T) {
	const text = "grants = [\"git\"]\n"
	for _, test := range []struct {
		name, text string
		settings   []trust.Setting
		err        string
	}{
		{"broken", "grants = \n", ask("gpu"), "/config.toml:1:"},
		{"unknown key", "granted = []\n", ask("gpu"), "/config.toml:1:1: unknown key"},
		{"another kind", "grants = 1\n", ask("gpu"), "/config.toml:1:10: grants is an array of strings, not a number"},
		{"unknown name", text, ask("gti"), "unknown name"},
	} {
		t.Run(test.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "config.toml")
			mustSet(t, os.WriteFile(name, []byte(test.text), 0o600))
			if err := trust.SetForUser(name, test.settings, loads); err == nil ||
				!strings.Contains(err.Error(), test.err) {
				t.Errorf("%v", err)
			}
			unchanged(t, name, test.text)
		})
	}
	t.Run("being changed", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "config.toml")
		mustSet(t, os.WriteFile(name, []byte(text), 0o600), os.Mkdir(name+".sallyport-new", 0o700))
		if err := trust.SetForUser(name, ask("gpu"), loads); err == nil ||
			!strings.Contains(err.Error(), "config.toml.sallyport-new exists") {
			t.Errorf("%v", err)
		}
		mustSet(t, os.Remove(name+".sallyport-new"))
		unchanged(t, name, text)
	})
	t.Run("changed meanwhile", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "config.toml")
		mustSet(t, os.WriteFile(name, []byte(text), 0o600))
		err := trust.SetForUser(name, ask("gpu"),
			func(name string, _ []byte) error { return os.WriteFile(name, []byte("quiet = true\n"), 0o600) })
		if !errors.Is(err, trust.ErrChanged) {
			t.Errorf("%v", err)
		}
		unchanged(t, name, "quiet = true\n")
	})
	t.Run("made meanwhile", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "config.toml")
		err := trust.SetForUser(name, ask("gpu"),
			func(name string, _ []byte) error { return os.WriteFile(name, nil, 0o600) })
		if !errors.Is(err, trust.ErrChanged) {
			t.Errorf("%v", err)
		}
		unchanged(t, name, "")
	})
}

// unchanged checks that a file holds a text, and that there is nothing beside it.
func unchanged(t *testing.T, name, want string) {
	t.Helper()
	text, err := os.ReadFile(name)
	names, failed := os.ReadDir(filepath.Dir(name))
	if err != nil || failed != nil || string(text) != want || len(names) != 1 {
		t.Errorf("%q, %v; %v, %v", text, err, names, failed)
	}
}
