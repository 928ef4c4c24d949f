// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package grants

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func mustTool(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTable: the names of the issue are there once, and each has one grant that opens it.
func TestToolTable(t *testing.T) {
	want := map[string]string{
		".claude": GrantAgents, ".cursor": GrantAgents, ".gemini": GrantAgents, ".mcp.json": GrantAgents, ".kiro": GrantAgents, ".roo": GrantAgents,
		".qwen": GrantAgents, ".clinerules": GrantAgents, ".windsurf": GrantAgents, ".opencode": GrantAgents, "opencode.json": GrantAgents, "AGENTS.md": GrantAgents,
		".github/copilot-instructions.md": GrantAgents, "x.code-workspace": GrantEditors, "a b.code-workspace": GrantEditors,
		".vscode": GrantEditors, ".idea": GrantEditors, ".hg": GrantEditors, ".envrc": GrantEditors, ".husky": GrantEditors, ".helix": GrantEditors, ".zed": GrantEditors,
		".jj": GrantEditors, ".sl": GrantEditors, "_darcs": GrantEditors, ".lazygit.yml": GrantEditors, ".exrc": GrantEditors, ".nvim.lua": GrantEditors,
		".devcontainer": GrantEditors, ".direnv": GrantEditors, "mise.toml": GrantEditors, ".tool-versions": GrantEditors,
		".openhands": GrantAgents, ".amp": GrantAgents, ".github/skills": GrantAgents, ".config/mise": GrantEditors, ".mise.local.toml": GrantEditors, "x.sublime-project": GrantEditors, ".vim/coc-settings.json": GrantEditors,
		"lefthook.yaml": GrantEditors, ".irbrc": GrantEditors, ".shadowenv.d": GrantEditors, ".pijul": GrantEditors,
	}
	for name, grant := range want {
		if found, ok := FindTool(name); !ok || found.Name != name || found.Grant != grant {
			t.Errorf("%s: %+v", name, found)
		}
	}
	seen := map[string]bool{}
	for _, n := range names {
		if seen[n.Name] || !slices.Contains(ToolGrants(), n.Grant) ||
			!slices.Contains(Opened(n.Grant), n.Name) || strings.Count(n.Name, "/") > maxSlashes {
			t.Errorf("%+v", n)
		}
		seen[n.Name] = true
	}
	for _, name := range []string{".code-workspace", "d/x.code-workspace", "copilot-instructions.md",
		".github", "Makefile", "package.json", ".config", ".vim", "mise"} {
		if n, ok := FindTool(name); ok {
			t.Errorf("%s is %+v", name, n)
		}
	}
	if _, ok := FindTool(".git"); ok || Opened("git") != nil {
		t.Error(".git has another grant")
	}
}

func TestBelow(t *testing.T) {
	for _, test := range []struct{ root, path, at string }{
		{"/w", "/w/.vscode", "/w/.vscode"},
		{"/w", "/w/.claude/commands/x", "/w/.claude"},
		{"/", "/.envrc", "/.envrc"},
		{"/w", "/w/.github/hooks/x/y", "/w/.github/hooks"},
		{"/w", "/w/x.code-workspace", "/w/x.code-workspace"},
		{"/w", "/w/.github/workflows/x", ""},
		{"/w", "/w/.github", ""},
		{"/w", "/w/.vscodes", ""},
		{"/w", "/w/sub/.vscode", ""},
		{"/w", "/wx/.vscode", ""},
		{"/w", "/w", ""},
		{"/w", ".vscode", ""},
	} {
		n, at, ok := Below(test.root, test.path)
		if at != test.at || ok != (test.at != "") || ok && filepath.Join(test.root, n.Name) != at {
			t.Errorf("%s in %s: %+v, %q, %v", test.path, test.root, n, at, ok)
		}
	}
}

// TestNew: what appears is listed, within bounds and without following links.
func TestNew(t *testing.T) {
	for _, test := range []struct {
		name          string
		before, after func(dir string) error
		want          string
	}{
		{"nothing", nil, nil, ""},
		{"a file", nil, func(dir string) error { return os.WriteFile(dir+"/.envrc", nil, 0o600) }, ".envrc"},
		{"a directory with files", nil, func(dir string) error { return files(dir, ".vscode/tasks.json", ".vscode/a/b", ".vscode/z") }, ".vscode/tasks.json .vscode/z .vscode/a/b"},
		{"an empty directory", nil, func(dir string) error { return os.Mkdir(dir+"/.hg", 0o700) }, ".hg"},
		{"a link", nil, func(dir string) error { return os.Symlink("/etc", dir+"/.idea") }, ".idea"},
		{"links and pipes in a directory", nil, func(dir string) error {
			mustTool(t, os.Mkdir(dir+"/.idea", 0o700))
			mustTool(t, os.Symlink("/etc", dir+"/.idea/etc"))
			return syscall.Mkfifo(dir+"/.idea/pipe", 0o600)
		}, ".idea/etc .idea/pipe"},
		{"many files", nil, func(dir string) error { return files(dir, numbered(".husky/%03d", 9)...) },
			".husky/000 .husky/001 .husky/002 .husky/003 .husky/004 +4"},
		{"more than are read", nil, func(dir string) error { return files(dir, numbered(".husky/%03d", maxRead+40)...) }, "+251"},
		{"changed in its place", func(dir string) error { return os.WriteFile(dir+"/.envrc", nil, 0o600) },
			func(dir string) error { return os.WriteFile(dir+"/.envrc", []byte("x"), 0o600) }, ""},
		{"instructions that changed in their place", func(dir string) error { return os.WriteFile(dir+"/AGENTS.md", nil, 0o600) },
			func(dir string) error {
				return os.WriteFile(dir+"/AGENTS.md", []byte("x"),
					0o600)
			}, "AGENTS.md"},
		{"below a directory", nil, func(dir string) error { return files(dir, ".github/hooks/a/b", ".github/x") }, ".github/hooks/a/b"},
		{"of a pattern", func(dir string) error { return os.WriteFile(dir+"/a.code-workspace", nil, 0o600) },
			func(dir string) error { return os.WriteFile(dir+"/b.code-workspace", nil, 0o600) },
			"b.code-workspace"},
		{"added to a directory that was there", func(dir string) error { return os.Mkdir(dir+"/.idea", 0o700) }, func(dir string) error { return files(dir, ".idea/x") }, ""},
		{"replaced", func(dir string) error { return os.WriteFile(dir+"/.mcp.json", nil, 0o600) }, func(dir string) error {
			mustTool(t, os.WriteFile(dir+"/other", nil, 0o600))
			return os.Rename(dir+"/other", dir+"/.mcp.json")
		}, ".mcp.json"},
		{"removed", func(dir string) error { return os.Mkdir(dir+"/.idea", 0o700) }, func(dir string) error { return os.Remove(dir + "/.idea") }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			if test.before != nil {
				mustTool(t, test.before(dir))
			}
			seen, err := LookForTools(dir)
			mustTool(t, err)
			if test.after != nil {
				mustTool(t, test.after(dir))
			}
			var got []string
			seen = LookAgain(seen, []string{dir})
			for i := range seen {
				files, more := seen[i].New()
				for _, f := range files {
					got = append(got, strings.TrimPrefix(f, dir+"/"))
				}
				if more > 0 {
					got = append(got, fmt.Sprintf("+%d", more))
				}
			}
			if s := strings.Join(got, " "); s != test.want &&
				!(test.want == "+251" && strings.HasSuffix(s, " +251")) {
				t.Errorf("%q, want %q", s, test.want)
			}
		})
	}
	if _, err := LookForTools(strings.Repeat("x", 5000)); err == nil {
		t.Error("a name that cannot be looked at is no error")
	}
	if got := list(t.TempDir(), ".."); got != nil {
		t.Errorf("a directory outside is listed: %q", got)
	}
}

func numbered(format string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(format, i))
	}
	return out
}

func files(dir string, names ...string) error {
	for _, name := range names {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// TestLookListed: a name is found in whatever way a directory is looked at.
func TestLookListed(t *testing.T) {
	for _, extra := range []int{0, 600} { // few names are listed, of many each name is looked at
		dir := t.TempDir()
		for i := range extra {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%d", i)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Join(dir, ".github", "hooks"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, ".vscode"), 0o700); err != nil {
			t.Fatal(err)
		}
		seen, err := LookForTools(dir)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, s := range seen {
			if s.Stat != nil {
				found = append(found, s.Name)
			}
		}
		slices.Sort(found)
		if !slices.Equal(found, []string{".github/hooks", ".vscode"}) {
			t.Errorf("beside %d files: %q", extra, found)
		}
	}
}
