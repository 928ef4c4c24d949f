// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestRefusedText has texts that are not what they seem.
func TestRefusedText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, agent, txt, why string }{
		{"not JSON", Claude, "{\n  \"a\": 1,\n  b\n}\n", ":3:3 is"},
		{"column in characters", Claude, "{\n  \"ä\": é\n}\n", ":2:8 is"},
		{"mark and column", Claude, bom + "{ x }", ":1:3 is"},
		{"no end", Claude, "{\n  \"a\": [1\n", "unexpected end"},
		{"two values", Claude, "{}\n{}\n", ":2:1 is"},
		{"two commas", Claude, "{\"a\": 1,,}\n", ":1:9 is"},
		{"only a comma", Claude, "{,}\n", ":1:2 is"},
		{"no value before a comma", Claude, "{\"a\":,}\n", ":1:6 is"},
		{"comment without an end", Claude, "{}\n /* x\n", ":2:2 is"},
		{"line in a string", Claude, "{\"a\": \"b\nc\"}", ":1:9 is"},
		{"an array", Claude, " [1]\n", ":1:2 is not changed: the file is an array, not an object"},
		{"a string", Claude, "\"x\"", "the file is a string"},
		{"servers of another type", Claude, "{\n  \"mcpServers\": []\n}\n",
			`:2:17 is not changed: "mcpServers" is an array, not an object`},
		{"servers are null", VSCode, "{\"servers\": null}", "null, not an object"},
		{"servers are a number", Gemini, "{\"mcpServers\": 12}", "a number, not an object"},
		{"twice", Cursor, "{\"mcpServers\": {}, \"mcpServers\": {}}", "twice"},
		{"not UTF-8", Claude, "{\n\"a\": \"\xff\"}\n", ":2:7 is not changed: it is not UTF-8"},
		{"too deep", Claude, strings.Repeat("[", 20_000), "depth"},
		{"not TOML", Codex, "a = 1\nb = \n", ":2:5 is"},
		{"a table twice", Codex, "[a]\n[a]\n", ":2:"},
		{"servers are a number in TOML", Codex, "a = 1\nmcp_servers = 1\n",
			":2:1 is not changed: mcp_servers is not a table"},
		{"servers in one line", Codex, "a = 1\nmcp_servers = { x = { command = \"x\" } }\n", ":2:1 is"},
		{"not UTF-8 in TOML", Codex, "a = \"\xff\"\n", ":1:6 is"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, test.agent)
			h.write(h.file(MCP), test.txt)
			h.refused(test.why)
		})
	}
	for _, test := range []struct{ name, agent, txt, why string }{
		{"hooks of another type", Claude, `{"hooks": []}`, `"hooks" is an array, not an object`},
		{"events of another type", Claude, `{"hooks": {"PreToolUse": {}}}`,
			`"PreToolUse" is an object, not an array`},
		{"version of another type", Cursor, `{"version": "1"}`, `"version" is not a number`},
	} {
		h := newHome(t, test.agent)
		h.write(h.file(Hook), test.txt)
		if _, err := Prepare(&h.Options, false, Hook); err == nil || !strings.Contains(err.Error(),
			test.why) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// TestRefusedFile has files that are not what they seem.
func TestRefusedFile(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		make func(h *home, path string) error
		why  string
	}{
		{"link", func(h *home, path string) error { return os.Symlink("elsewhere", path) }, "symbolic link"},
		{"link to a file", func(h *home, path string) error {
			h.write(h.dir+"/real", "{}")
			return os.Symlink(h.dir+"/real", path)
		}, "symbolic link"},
		{"directory", func(h *home, path string) error { return os.Mkdir(path, 0o755) },
			"not a regular file"},
		{"too large", func(h *home, path string) error {
			h.write(path, "{}")
			return os.Truncate(path, maxFile+1)
		}, "larger than 16 MiB"},
		{"read-only file", func(h *home, path string) error {
			h.write(path, "{}")
			return os.Chmod(path, 0o444)
		}, "read-only"},
		{"read-only directory", func(h *home, path string) error {
			h.Cleanup(func() { _ = os.Chmod(filepath.Dir(path), 0o755) })
			return os.Chmod(filepath.Dir(path), 0o555)
		}, "read-only"},
		{"another sallyport works", func(h *home, path string) error {
			return os.Mkdir(path+".sallyport-new", 0o755)
		}, "another sallyport"},
	}
	for _, test := range tests {
		for _, project := range []bool{false, true} {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				h := newHome(t, Cursor)
				h.Project = project
				path := h.file(MCP)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := test.make(h, path); err != nil {
					t.Fatal(err)
				}
				h.refused(test.why)
			})
		}
	}
}

// TestParentLinks: a project leads nowhere by a link, the directories of a user may be links.
func TestParentLinks(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"..", "inside", "missing"} {
		h := newHome(t, Cursor)
		h.Project = true
		for _, dir := range []string{h.Dir + "/inside", h.dir + "/.cursor"} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(target, h.Dir+"/.cursor"); err != nil {
			t.Fatal(err)
		}
		h.refused("symbolic link")
	}
	h := newHome(t, Cursor)
	if err := os.Mkdir(h.dir+"/dotfiles", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(h.dir+"/dotfiles", h.dir+"/.cursor"); err != nil {
		t.Fatal(err)
	}
	h.change(false, MCP)
	if h.read(h.dir+"/dotfiles/mcp.json") == "(none)" {
		t.Error("the directory of the user was not followed")
	}
	h.change(true, MCP)
	if got := h.tree(); !slices.Equal(got, []string{".cursor", "dotfiles"}) {
		t.Errorf("it is %v", got)
	}
}

// TestSwapped: a directory of a project becomes a link while we work, and nothing outside changes.
func TestSwapped(t *testing.T) {
	t.Parallel()
	h := newHome(t, Cursor)
	h.Project = true
	outside := h.dir + "/.cursor/mcp.json"
	h.write(outside, "{}")
	h.write(h.file(MCP), "{}")
	changes, err := Prepare(&h.Options, false, MCP)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(h.Dir+"/.cursor", h.Dir+"/old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../.cursor", h.Dir+"/.cursor"); err != nil {
		t.Fatal(err)
	}
	var refused *RefusedError
	if err := changes[0].Apply(); !asRefused(err, &refused) {
		t.Errorf("it is not refused: %v", err)
	}
	if err := changes[0].write(); err == nil { // had the link come later
		t.Error("it was written")
	}
	if h.read(outside) != "{}" {
		t.Error("a file outside was changed")
	}
}

// TestChangedMeanwhile: what another program writes between reading and writing is not lost.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"{}\n", "(none)"} {
		for _, remove := range []bool{false, true} {
			h := newHome(t, Claude)
			path := h.file(MCP)
			if before != "(none)" {
				h.write(path, before)
			}
			if remove {
				h.change(false, MCP)
			}
			backup := h.read(path + backupExt)
			changes, err := Prepare(&h.Options, remove, MCP)
			if err != nil {
				t.Fatal(err)
			}
			h.write(path, "{\"theirs\": 1}\n")
			var refused *RefusedError
			if err := changes[0].Apply(); !asRefused(err, &refused) || !strings.Contains(err.Error(),
				"another program") {
				t.Errorf("it is not refused: %v", err)
			}
			if got := h.read(path); got != "{\"theirs\": 1}\n" || h.read(path+backupExt) != backup {
				t.Errorf("it is %s, the backup %s", got, h.read(path+backupExt))
			}
			for _, name := range h.tree() {
				if strings.HasSuffix(name, "-new") {
					t.Errorf("left over: %s", name)
				}
			}
		}
	}
}

// ownerOf is the owner of a file, as the system has it; 0 where it has none.
func ownerOf(info fs.FileInfo) [2]uint64 {
	sys := reflect.Indirect(reflect.ValueOf(info.Sys()))
	uid, gid := sys.FieldByName("Uid"), sys.FieldByName("Gid")
	if !uid.IsValid() || !gid.IsValid() {
		return [2]uint64{}
	}
	return [2]uint64{uid.Uint(), gid.Uint()}
}

// TestModeAndOwner: both stay, and the backup is closed.
func TestModeAndOwner(t *testing.T) {
	t.Parallel()
	h := newHome(t, Cursor)
	path := h.file(MCP)
	h.write(path, "{}")
	if err := os.Chmod(path, 0o664); err != nil {
		t.Fatal(err)
	}
	if testenv.IsRoot() {
		if err := os.Chown(path, 1234, 4321); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	h.change(false, MCP)
	after, err := os.Stat(path)
	if err != nil || after.Mode() != before.Mode() || ownerOf(after) != ownerOf(before) {
		t.Errorf("%v, %v", err, after.Mode())
	}
	if info, err := os.Stat(path + backupExt); err != nil || info.Mode() != 0o600 {
		t.Errorf("the backup: %v", err)
	}
}

// TestBackupStays: a backup that exists is not written again, and a link in its place is not followed.
func TestBackupStays(t *testing.T) {
	t.Parallel()
	h := newHome(t, Cursor)
	path := h.file(MCP)
	h.write(path, "{}")
	h.write(path+backupExt, "{\"old\": 1}")
	h.change(false, MCP)
	if got := h.read(path + backupExt); got != "{\"old\": 1}" {
		t.Errorf("it is %s", got)
	}
	h.change(true, MCP)
	if got := h.read(path); got != "{\n}" || h.read(path+backupExt) != "(none)" {
		t.Errorf("it is %q", got)
	}
	h.write(h.dir+"/secret", "1")
	if err := os.Symlink(h.dir+"/secret", path+backupExt); err != nil {
		t.Fatal(err)
	}
	h.refused("symbolic link")
}

// TestEmptyDirectoryStays: a directory that was there, empty, is not removed.
func TestEmptyDirectoryStays(t *testing.T) {
	t.Parallel()
	h := newHome(t, VSCode)
	if err := os.Mkdir(h.dir+"/.config", 0o755); err != nil {
		t.Fatal(err)
	}
	h.change(false, MCP)
	f, err := os.Open(h.dir + "/.config/Code")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := []string{".config"}
	if !safefile.Marked(f) { // this file system keeps no attributes
		want = append(want, ".config/Code", ".config/Code/User")
	}
	h.change(true, MCP)
	if got := h.tree(); !slices.Equal(got, want) {
		t.Errorf("it is %v", got)
	}
}

// TestAgents: all have an MCP server, and one has no hook.
func TestAgents(t *testing.T) {
	t.Parallel()
	if got := Agents(Hook); slices.Contains(got, VSCode) || len(got) != 4 || len(Agents(MCP)) != 5 {
		t.Error(got)
	}
}

// TestHookProgram: only lines that we write are taken for ours.
func TestHookProgram(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"/a/sallyport hook claude":              "/a/sallyport",
		"/a/sallyport hook claude --mode x":     "/a/sallyport",
		"'/a b/it'\\''s/sallyport' hook claude": "/a b/it's/sallyport",
		"/a/sallyport hook claudex":             "",
		"/a/sallyport hook codex":               "",
		"rm -rf / hook claude":                  "",
		"'/a' '/sallyport' hook claude":         "",
		"echo; sallyport hook claude":           "",
		"":                                      "",
	} {
		if got := hookProgram(line, Claude); got != want {
			t.Errorf("%s: %q", line, got)
		}
	}
}
