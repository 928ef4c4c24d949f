// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLaterEdits: what others have changed since stays.
func TestLaterEdits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, agent string
		before      string // "(none)" for no file
		edit        func(string) string
		want        string
	}{
		{"another member", Claude, "{\n  \"a\": 1\n}\n", func(s string) string {
			return strings.Replace(s,
				"\"a\": 1", "\"a\": 2, \"b\": 3", 1)
		}, "{\n  \"a\": 2, \"b\": 3\n}\n"},
		{"behind ours", Claude, "{\n  \"a\": 1\n}\n", func(s string) string {
			return strings.TrimSuffix(s,
				"\n}\n") + ",\n  \"z\": 1\n}\n"
		}, "{\n  \"a\": 1,\n  \"z\": 1\n}\n"},
		{"another server", Cursor, "(none)", func(s string) string {
			return strings.Replace(s, "\"mcpServers\": {", "\"mcpServers\": {\n    \"x\": {},", 1)
		}, "{\n  \"mcpServers\": {\n    \"x\": {}\n  }\n}\n"},
		{"a comment", Gemini, "{}\n", func(s string) string { return "// mine\n" + s }, "// mine\n{\n}\n"},
		{"a comment in ours", Cursor, "(none)", func(s string) string {
			return strings.Replace(s, "\"mcpServers\": {", "\"mcpServers\": { // mine", 1)
		}, "{\n  \"mcpServers\": { // mine\n  }\n}\n"},
		{"a comment behind ours", Cursor, "{\n  \"mcpServers\": {\n  }\n}\n",
			func(s string) string { return strings.Replace(s, "    }\n", "    } // mine\n", 1) },
			"{\n  \"mcpServers\": {\n // mine\n  }\n}\n"},
		{"other layout", Gemini, "{\n  \"a\": 1\n}\n", func(s string) string {
			var b bytes.Buffer
			_ = json.Compact(&b, []byte(s))
			return b.String()
		}, "{\n  \"a\": 1\n}\n"},
		{"tables below ours", Codex, "a = 1\n", func(s string) string {
			return s + "[mcp_servers.sallyport.env]\nX = \"1\"\n\n[b]\nc = 1\n"
		}, "a = 1\n\n[b]\nc = 1\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, test.agent)
			path := h.file(MCP)
			if test.before != "(none)" {
				h.write(path, test.before)
			}
			h.change(false, MCP)
			edited := test.edit(h.read(path))
			if edited == h.read(path) {
				t.Fatal("nothing was edited")
			}
			h.write(path, edited)
			h.change(true, MCP)
			if got := h.read(path); got != test.want {
				t.Errorf("it is\n%s\nnot\n%s", got, test.want)
			}
			if got := h.read(path + backupExt); got != "(none)" {
				t.Errorf("the backup is left: %s", got)
			}
		})
	}
}

// TestHooksOfOthers: a group of hooks that is not ours alone keeps those of others.
func TestHooksOfOthers(t *testing.T) {
	t.Parallel()
	h := newHome(t, Claude)
	path := h.file(Hook)
	h.change(false, Hook)
	txt := strings.Replace(h.read(path), "\"hooks\": [\n",
		"\"hooks\": [\n          {\"type\": \"command\", \"command\": \"lint\"},\n", 1)
	h.write(path, txt)
	h.Command = "/new/sallyport"
	if h.change(false, Hook); strings.Count(h.read(path), "hook claude") != 1 ||
		!strings.Contains(h.read(path), `"/new/sallyport hook claude"`) {
		t.Errorf("it was not updated in place: %s", h.read(path))
	}
	h.change(true, Hook)
	if got := h.read(path); !strings.Contains(got, "lint") || strings.Contains(got, "sallyport") {
		t.Errorf("it is %s", got)
	}
}

// TestHooksLikeOurs: what another program has added since, with a command line like ours, stays.
func TestHooksLikeOurs(t *testing.T) {
	t.Parallel()
	for _, name := range []string{Claude, Codex, Cursor, Gemini} {
		for _, before := range []string{"{}\n", "(none)"} {
			h := newHome(t, name)
			path := h.file(Hook)
			if before != "(none)" {
				h.write(path, before)
			}
			h.change(false, Hook)
			ours := hookLine(program, name, nil)
			p := newPage([]byte(h.read(path)))
			i := slices.IndexFunc(agents, func(a agent) bool { return a.name == name })
			event := agents[i].events[0].name
			list, _, err := p.find("hooks", event)
			if err != nil {
				t.Fatal(err)
			}
			element := p.items(list)[0].value
			theirs := strings.Replace(h.read(path)[element.begin:element.end], encode(ours),
				encode("other hook "+name), 1)
			h.write(path, string(p.insert(list, "", theirs)))
			h.Command = "/new/sallyport"
			h.change(false, Hook)
			h.change(true, Hook)
			if got := h.read(path); strings.Count(got, "other hook "+name) != 1 || strings.Contains(got,
				"sallyport hook") {
				t.Errorf("it is %s", got)
			}
		}
	}
}

// TestTwice: the second time writes nothing, and another program updates the entry where it is.
func TestTwice(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{Claude, Codex, Cursor, Gemini} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, agent)
			for _, command := range []string{"/one", "/two", "three"} { // none of which is called sallyport
				h.Command = command
				if !h.change(false, MCP, Hook) {
					t.Errorf("%s was not installed", command)
				}
				info, _ := os.Stat(h.file(MCP))
				if h.change(false, MCP, Hook) {
					t.Errorf("%s was installed twice", command)
				}
				if again, err := os.Stat(h.file(MCP)); err != nil || !os.SameFile(info, again) ||
					!info.ModTime().Equal(again.ModTime()) {
					t.Error("it was written all the same")
				}
				for _, part := range []Part{MCP, Hook} {
					if txt := h.read(h.file(part)); strings.Count(txt, command) < 1 ||
						strings.Contains(txt, "/one") != (command == "/one") {
						t.Errorf("%s: %s", command, txt)
					}
				}
			}
			h.Command = program
			h.change(true, MCP, Hook)
			if got := h.tree(); len(got) > 0 {
				t.Errorf("left over: %v", got)
			}
		})
	}
}

// TestForeign: a server of the same name that is not ours is replaced by force only, and is back afterwards.
func TestForeign(t *testing.T) {
	t.Parallel()
	for agent, txt := range map[string]string{
		Claude: "{\n  \"mcpServers\": {\n    \"sallyport\": {\"command\": \"x\", \"args\": [\"mcp\"]},\n    " +
			"\"z\": {}\n  }\n}\n",
		Cursor: "{\"mcpServers\": {\"sallyport\": 1}}\n",
		VSCode: "{\"servers\": {\"sallyport\": {\"url\": \"https://example.com\"}}}\n",
		Codex:  "[mcp_servers.sallyport]\ncommand = \"/x/example\"\nargs = [\"mcp\"] # keep\n\n[b]\nc = 1\n",
	} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, agent)
			h.write(h.file(MCP), txt)
			h.refused("not ours")
			if h.change(true, MCP) {
				t.Error("it was removed")
			}
			h.Force = true
			h.change(false, MCP)
			if got := h.read(h.file(MCP)); !strings.Contains(got, program) || strings.Contains(got,
				"example") {
				t.Errorf("it is %s", got)
			}
			h.change(true, MCP)
			if got := h.read(h.file(MCP)); got != txt {
				t.Errorf("it is %s", got)
			}
		})
	}
}

// refused expects that installing and removing is refused for a reason, and that nothing changes.
func (h *home) refused(why ...string) {
	h.Helper()
	before := h.tree()
	txt := ""
	if info, err := os.Lstat(h.file(MCP)); err == nil && info.Mode().IsRegular() {
		txt = h.read(h.file(MCP))
	}
	changes, err := Prepare(&h.Options, false, MCP)
	if err == nil {
		err = changes[0].Apply()
	}
	var refused *RefusedError
	if !asRefused(err, &refused) || refused.Path != h.file(MCP) {
		h.Fatalf("it is not refused: %v", err)
	}
	for _, w := range why {
		if !strings.Contains(err.Error(), w) {
			h.Errorf("the reason is %v, not %s", err, w)
		}
	}
	if diff := cmp.Diff(before, h.tree()); diff != "" {
		h.Error(diff)
	}
	if txt != "" && h.read(h.file(MCP)) != txt {
		h.Error("the file was changed")
	}
}

func asRefused(err error, into **RefusedError) bool {
	return errors.As(err, into)
}
