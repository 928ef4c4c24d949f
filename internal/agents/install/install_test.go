// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// program is what is installed in tests.
const program = "/opt/sally port/bin/sallyport"

// home is a place to install in.
type home struct {
	*testing.T
	dir string
	Options
}

func newHome(t *testing.T, agent string) *home {
	t.Helper()
	dir := t.TempDir()
	return &home{t, dir, Options{Agent: agent, Name: DefaultName, Command: program, Dir: filepath.Join(dir,
		"w"),
		Home: dir}}
}

// file returns the path of the file of a part.
func (h *home) file(part Part) string {
	i := slices.IndexFunc(agents, func(a agent) bool { return a.name == h.Agent })
	path, _ := agents[i].file(&h.Options, part)
	return path
}

func (h *home) write(path, txt string) {
	h.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(txt), 0o640); err != nil {
		h.Fatal(err)
	}
}

// read returns what a file holds; "(none)" if there is none.
func (h *home) read(path string) string {
	h.Helper()
	txt, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return "(none)"
	} else if err != nil {
		h.Fatal(err)
	}
	return string(txt)
}

// change installs or removes parts and returns whether something was written.
func (h *home) change(remove bool, parts ...Part) bool {
	h.Helper()
	changes, err := Prepare(&h.Options, remove, parts...)
	if err != nil {
		h.Fatal(err)
	}
	wrote := false
	for _, c := range changes {
		if c.Changes() != (c.Diff() != "") {
			h.Errorf("changes %v, the diff is %q", c.Changes(), c.Diff())
		}
		wrote = wrote || c.Changes()
		if err := c.Apply(); err != nil {
			h.Fatal(err)
		}
	}
	return wrote
}

// tree lists what is below the home directory.
func (h *home) tree() (names []string) {
	h.Helper()
	err := filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		if path != h.dir {
			names = append(names, strings.TrimPrefix(path, h.dir+"/"))
		}
		return err
	})
	if err != nil {
		h.Fatal(err)
	}
	return names
}

// TestEntries compares the files that are created with those of the contract.
func TestEntries(t *testing.T) {
	t.Parallel()
	const quoted = `'/opt/sally port/bin/sallyport' hook `
	tests := []struct {
		agent   string
		part    Part
		project bool
		extra   []string
		path    string
		want    string
	}{
		{"claude", MCP, false, nil, ".claude.json",
			`{"mcpServers":{"sallyport":{"type":"stdio","command":"` + program + `","args":["mcp"]}}}`},
		{"claude", MCP, true, []string{"-s", "read-only"}, "w/.mcp.json",
			`{"mcpServers":{"sallyport":{"type":"stdio","command":"` + program + `","args":["mcp","-s",` +
				`"read-only"]}}}`},
		{"claude", Hook, false, nil, ".claude/settings.json",
			`{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command",` +
				`"command":"` + quoted + `claude","timeout":30,"onFailure":"block"}]}]}}`},
		{"claude", Hook, true, []string{"--mode", "judge", "a b", "it's"}, "w/.claude/settings.json",
			`{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command",` +
				`"command":"` + quoted + `claude --mode judge 'a b' 'it'\\''s'","timeout":30,` +
				`"onFailure":"block"}]}]}}`},
		{"codex", Hook, false, nil, ".codex/hooks.json",
			`{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command",` +
				`"command":"` + quoted + `codex","timeout":30}]}]}}`},
		{"codex", Hook, true, nil, "w/.codex/hooks.json",
			`{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command",` +
				`"command":"` + quoted + `codex","timeout":30}]}]}}`},
		{"cursor", MCP, false, nil, ".cursor/mcp.json",
			`{"mcpServers":{"sallyport":{"command":"` + program + `","args":["mcp"]}}}`},
		{"cursor", MCP, true, nil, "w/.cursor/mcp.json",
			`{"mcpServers":{"sallyport":{"command":"` + program + `","args":["mcp"]}}}`},
		{"cursor", Hook, false, nil, ".cursor/hooks.json",
			`{"version":1,"hooks":{"beforeShellExecution":[{"command":"` + quoted + `cursor","timeout":30,` +
				`"failClosed":true}],"preToolUse":[{"command":"` + quoted + `cursor","timeout":30,` +
				`"failClosed":true,"matcher":"^Shell$"}]}}`},
		{"vscode", MCP, false, nil, ".config/Code/User/mcp.json",
			`{"servers":{"sallyport":{"type":"stdio","command":"` + program + `","args":["mcp"]}}}`},
		{"vscode", MCP, true, nil, "w/.vscode/mcp.json",
			`{"servers":{"sallyport":{"type":"stdio","command":"` + program + `","args":["mcp"]}}}`},
		{"gemini", MCP, false, nil, ".gemini/settings.json",
			`{"mcpServers":{"sallyport":{"command":"` + program + `","args":["mcp"],"timeout":330000}}}`},
		{"gemini", Hook, false, nil, ".gemini/settings.json",
			`{"hooks":{"BeforeTool":[{"matcher":"^run_shell_command$","hooks":[{"type":"command",` +
				`"name":"sallyport","command":"` + quoted + `gemini","timeout":30000}]}]}}`},
		{"gemini", Hook, true, nil, "w/.gemini/settings.json",
			`{"hooks":{"BeforeTool":[{"matcher":"^run_shell_command$","hooks":[{"type":"command",` +
				`"name":"sallyport","command":"` + quoted + `gemini","timeout":30000}]}]}}`},
	}
	for _, test := range tests {
		t.Run(test.agent+" "+test.part.String()+" "+test.path, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, test.agent)
			if err := os.Mkdir(h.Dir, 0o755); err != nil {
				t.Fatal(err)
			}
			h.Project, h.Extra = test.project, test.extra
			h.change(false, test.part)
			path := filepath.Join(h.dir, test.path)
			var b bytes.Buffer
			if err := json.Compact(&b, []byte(h.read(path))); err != nil || b.String() != test.want {
				t.Errorf("%v\n%s\nnot\n%s", err, &b, test.want)
			}
			info, err := os.Stat(path)
			if want := map[bool]fs.FileMode{false: 0o600, true: 0o644}[test.project]; err != nil ||
				info.Mode() != want {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
			if h.change(false, test.part) || h.read(path+backupExt) != "(none)" {
				t.Error("the second time changed something, or there is a backup of nothing")
			}
			h.change(true, test.part)
			if got := h.tree(); !slices.Equal(got, []string{"w"}) {
				t.Errorf("left over: %v", got)
			}
		})
	}
}

// TestVariables: the directories of agents can be elsewhere.
func TestVariables(t *testing.T) {
	t.Parallel()
	tests := []struct {
		agent, variable, value string
		mcp, hook              string
	}{
		{"claude", "CLAUDE_CONFIG_DIR", "DIR/c", "c/.claude.json", "c/settings.json"},
		{"codex", "CODEX_HOME", "DIR/c", "c/config.toml", "c/hooks.json"},
		{"codex", "CODEX_HOME", "../c", "c/config.toml", "c/hooks.json"},
		{"vscode", "XDG_CONFIG_HOME", "DIR/c", "c/Code/User/mcp.json", ""},
		{"vscode", "XDG_CONFIG_HOME", "", ".config/Code/User/mcp.json", ""},
		{"gemini", "XDG_CONFIG_HOME", "DIR/c", ".gemini/settings.json", ".gemini/settings.json"},
	}
	for _, test := range tests {
		h := newHome(t, test.agent)
		h.Variable = func(name string) string {
			if name == test.variable {
				return strings.Replace(test.value, "DIR", h.dir, 1)
			}
			return ""
		}
		if got := h.file(MCP); got != filepath.Join(h.dir, test.mcp) {
			t.Errorf("%s=%s: %s", test.variable, test.value, got)
		}
		if got := h.file(Hook); test.hook != "" && got != filepath.Join(h.dir, test.hook) {
			t.Errorf("%s=%s: %s", test.variable, test.value, got)
		}
		h.Project = true
		if got := h.file(MCP); !strings.HasPrefix(got, h.Dir) {
			t.Errorf("a project in %s", got)
		}
	}
}

// originals are files that people have, in JSON, and how they look with an MCP server for cursor; "" for
// those
// where only what they say is compared.
var originals = []struct{ name, txt, want string }{
	{"empty", "", "{\n  \"mcpServers\": {\n    \"sallyport\": S\n  }\n}\n"},
	{"blank lines", "\n\n", ""},
	{"only a mark", bom, ""},
	{"only a comment", "// nothing yet", ""},
	{"empty object", "{}", "{\n  \"mcpServers\": {\n    \"sallyport\": S\n  }\n}"},
	{"empty object and line", "{}\n", "{\n  \"mcpServers\": {\n    \"sallyport\": S\n  }\n}\n"},
	{"empty object of two lines", "{\n}\n", "{\n  \"mcpServers\": {\n    \"sallyport\": S\n  }\n}\n"},
	{"a blank in it", "{ }\n", ""},
	{"a comment in it", "{\n  // later\n}\n",
		"{\n  // later\n  \"mcpServers\": {\n    \"sallyport\": S\n  }\n}\n"},
	{"a comment in its line", "{ /* later */ }\n", ""},
	{"two blanks", "{\n  \"a\": 1\n}\n", "{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"sallyport\": S\n  }\n}" +
		"\n"},
	{"four blanks", "{\n    \"a\": 1\n}\n",
		"{\n    \"a\": 1,\n    \"mcpServers\": {\n        \"sallyport\": S\n    }\n}\n"},
	{"tabs", "{\n\t\"a\": 1\n}\n", "{\n\t\"a\": 1,\n\t\"mcpServers\": {\n\t\t\"sallyport\": S\n\t}\n}\n"},
	{"no final line end", "{\n  \"a\": 1\n}",
		"{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"sallyport\": S\n  }\n}"},
	{"line ends of Windows", "{\r\n  \"a\": 1\r\n}\r\n",
		"{\r\n  \"a\": 1,\r\n  \"mcpServers\": {\r\n    \"sallyport\": S\r\n  }\r\n}\r\n"},
	{"byte order mark", bom + "{\n  \"a\": 1\n}\n",
		bom + "{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"sallyport\": S\n  }\n}\n"},
	{"trailing comma", "{\n  \"a\": 1,\n}\n",
		"{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"sallyport\": S\n  },\n}\n"},
	{"comment behind", "{\n  \"a\": 1 // one\n}\n",
		"{\n  \"a\": 1, // one\n  \"mcpServers\": {\n    \"sallyport\": S\n  }\n}\n"},
	{"comment behind a comma", "{\n  \"a\": 1, // one, {\n}\n",
		"{\n  \"a\": 1, // one, {\n  \"mcpServers\": {\n    \"sallyport\": S\n  },\n}\n"},
	{"long comment behind", "{\n  \"a\": 1 /* one\n two */\n}\n", ""},
	{"comments everywhere", "// a\n{ // b\n  /* c */ \"a\" /* d */ : /* e */ 1 /* f */ , // g\n  // h\n} " +
		"// i\n// j", ""},
	{"comment with a quote", "{\n  \"a\": \"// no\", // \"yes\n  \"b\": \"/*\" /* \"*/\n}\n", ""},
	{"others", "{\n  \"mcpServers\": {\n    \"x\": {\"command\": \"x\"}\n  },\n  \"b\": [1, 2,]\n}\n",
		"{\n  \"mcpServers\": {\n    \"x\": {\"command\": \"x\"},\n    \"sallyport\": S\n  },\n  \"b\": [1," +
			" 2,]\n}\n"},
	{"others with a comma", "{\"mcpServers\": {\n\t\"x\": {},\n}}\n", ""},
	{"empty servers", "{\n  \"mcpServers\": {}\n}\n",
		"{\n  \"mcpServers\": {\n    \"sallyport\": S\n  }\n}\n"},
	{"empty servers of two lines", "{\n  \"mcpServers\": {\n  },\n  \"b\": 1\n}\n",
		"{\n  \"mcpServers\": {\n    \"sallyport\": S\n  },\n  \"b\": 1\n}\n"},
	{"all in one line", `{"a":1,"mcpServers":{"x":{"command":"x"}},"b":2}`, ""},
	{"all in one line, a comma", `{"a": 1, "b": 2, }`, ""},
	{"empty in one line", `{"a":1,"mcpServers":{}}`, ""},
	{"other hooks", `{
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash", "hooks": [{"type": "command", "command": "mine hook claude"}]}
    ],
    "BeforeTool": [],
    "preToolUse": [{"command": "sallyport-not hook cursor"}],
    "Stop": []
  }
}
`, ""},
	{"names with escapes", "{\n  \"mcp\\u0053ervers\": {\"\\\"\": {}}\n}\n", ""},
	{"strings with brackets", "{\n  \"a\": \"}]{[,:\\\\\", \"b\": [\"\\\\\\\"]\"]\n}\n", ""},
	{"closing bracket behind", "{\n  \"a\": 1}\n",
		"{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"sallyport\": S\n  }}\n"},
	{"old version", "{\n  \"version\": 1\n}\n", ""},
}

// entryOf is the server of cursor, indented.
func entryOf(indent, unit, eol string) string {
	return strings.Join([]string{"{", indent + unit + `"command": "` + program + `",`,
		indent + unit + `"args": [`,
		indent + unit + unit + `"mcp"`, indent + unit + `]`, indent + "}"}, eol)
}

// TestKept installs into files that people have, in both orders, and removes in both orders.
func TestKept(t *testing.T) {
	t.Parallel()
	for _, original := range originals {
		for _, agent := range []string{"claude", "cursor", "vscode", "gemini"} {
			t.Run(original.name+", "+agent, func(t *testing.T) {
				t.Parallel()
				parts := []Part{MCP, Hook}
				if agent == "vscode" {
					parts = parts[:1]
				}
				orders := 1
				if agent == Gemini { // both are in one file
					orders = 4
				}
				for i := range orders {
					h := newHome(t, agent)
					for _, part := range parts {
						h.write(h.file(part), original.txt)
					}
					before := h.tree()
					order := slices.Clone(parts)
					if slices.Reverse(order); i%2 == 0 {
						slices.Reverse(order)
					}
					for _, part := range order {
						if !h.change(false, part) || h.change(false, part) {
							t.Errorf("%s: nothing was done, or it was done twice", part)
						}
						h.inserted(original.txt, h.read(h.file(part)))
						if got := h.read(h.file(part) + backupExt); got != original.txt {
							t.Errorf("the backup is %q", got)
						}
					}
					if agent == "cursor" && original.want != "" {
						unit, eol := "  ", eolOf([]byte(original.txt))
						if strings.Contains(original.txt, "\t") {
							unit = "\t"
						} else if strings.Contains(original.txt, "    ") && original.name == "four blanks" {
							unit = "    "
						}
						want := strings.Replace(original.want, "S", entryOf(unit+unit, unit, eol), 2)
						want = strings.Replace(want, entryOf(unit+unit, unit, eol)+"ervers", "Servers", 1)
						if diff := cmp.Diff(strings.SplitAfter(want, "\n"),
							strings.SplitAfter(h.read(h.file(MCP)), "\n")); diff != "" {
							t.Error(diff)
						}
					}
					if slices.Reverse(order); i < 2 {
						slices.Reverse(order)
					}
					for _, part := range order {
						if !h.change(true, part) || h.change(true, part) {
							t.Errorf("%s: nothing was removed, or it was removed twice", part)
						}
					}
					for _, part := range parts {
						if got := h.read(h.file(part)); got != original.txt {
							t.Errorf("it is\n%q, it was\n%q", got, original.txt)
						}
					}
					if diff := cmp.Diff(before, h.tree()); diff != "" {
						t.Error(diff)
					}
				}
			})
		}
	}
}

// inserted checks that a text is another one with something put in, that it says what that said, and that its
// line ends are of one kind.
func (h *home) inserted(old, now string) {
	h.Helper()
	rest := now
	for i := range len(old) {
		at := strings.IndexByte(rest, old[i])
		if at < 0 {
			h.Fatalf("byte %d of\n%q is missing in\n%q", i, old, now)
		}
		rest = rest[at+1:]
	}
	if strings.Contains(old, "\r\n") && strings.Count(now, "\n") != strings.Count(now, "\r\n") {
		h.Errorf("line ends are mixed: %q", now)
	}
	p := newPage([]byte(now))
	if p.err != nil {
		h.Fatalf("%v\n%s", p.err, now)
	}
	said, before := map[string]any{}, map[string]any{}
	if err := json.Unmarshal(p.plain, &said); err != nil {
		h.Fatal(err)
	}
	if q := newPage([]byte(old)); q.err == nil && q.root.begin < q.root.end {
		if err := json.Unmarshal(q.plain, &before); err != nil {
			h.Fatal(err)
		}
	}
	for name, value := range before {
		if name != "mcpServers" && name != "servers" && name != "hooks" && !cmp.Equal(said[name], value) {
			h.Errorf("%s was %v, is %v", name, value, said[name])
		}
	}
}

// TOML texts that people have.
var tomlOriginals = []struct{ name, txt string }{
	{"empty", ""},
	{"a key", "model = \"o\" # mine\n"},
	{"no final line end", "model = \"o\""},
	{"line ends of Windows", "model = \"o\"\r\n\r\n[a]\r\nb = 1\r\n"},
	{"byte order mark", bom + "model = \"o\"\n"},
	{"empty line at the end", "model = \"o\"\n\n"},
	{"comment at the end", "model = \"o\"\n# the end\n"},
	{"others", "[mcp_servers.x]\ncommand = \"x\"\n\n[[list]]\na = 1\n[[list]]\na = 2\n"},
	{"dotted", "mcp_servers.x.command = \"x\"\n[b]\nc = [\n  1, # one\n]\n"},
	{"inline server", "[mcp_servers]\nx = { command = \"x\" }\n"},
	{"strings with headers", "a = '''\n[mcp_servers.sallyport]\n'''\n"},
}

// TestTOML does the same with the configuration of Codex.
func TestTOML(t *testing.T) {
	t.Parallel()
	for _, original := range tomlOriginals {
		t.Run(original.name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, Codex)
			path := h.file(MCP)
			h.write(path, original.txt)
			h.change(false, MCP)
			got := h.read(path)
			added, ok := strings.CutPrefix(got, original.txt)
			if !ok {
				t.Errorf("it is\n%s\nit was\n%s", got, original.txt)
			}
			eol := eolOf([]byte(original.txt))
			want := strings.Join([]string{"[mcp_servers.sallyport]", `command = "` + program + `"`,
				`args = ["mcp"]`,
				"tool_timeout_sec = 330"}, eol)
			if strings.TrimSpace(added) != want {
				t.Errorf("added %q", added)
			}
			if ended := strings.HasSuffix(original.txt, "\n") ||
				original.txt == ""; ended != strings.HasSuffix(added, "\n") {
				t.Errorf("the final line end: %q", added)
			}
			values := map[string]any{}
			if err := toml.Unmarshal([]byte(strings.TrimPrefix(got, bom)), &values); err != nil {
				t.Fatal(err)
			}
			if h.change(false, MCP) {
				t.Error("it was installed twice")
			}
			h.Command, h.Extra = "/new", []string{"-s", "read-only"}
			h.change(false, MCP)
			if got := h.read(path); !strings.Contains(got,
				`command = "/new"`+eol+`args = ["mcp", "-s", "read-only"]`) {
				t.Errorf("it was not updated: %s", got)
			}
			h.Name = "other"
			h.change(false, MCP)
			h.change(true, MCP)
			if h.Name = DefaultName; h.read(path+backupExt) != original.txt {
				t.Error("the backup is gone before the last server is")
			}
			h.change(true, MCP)
			if got := h.read(path); got != original.txt || h.read(path+backupExt) != "(none)" {
				t.Errorf("it is\n%q, it was\n%q", got, original.txt)
			}
		})
	}
}

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
		Claude: "{\n  \"mcpServers\": {\n    \"sallyport\": {\"command\": \"x\", \"args\": [\"y\"]},\n    " +
			"\"z\": {}\n  }\n}\n",
		Cursor: "{\"mcpServers\": {\"sallyport\": 1}}\n",
		VSCode: "{\"servers\": {\"sallyport\": {\"url\": \"https://example.com\"}}}\n",
		Codex:  "[mcp_servers.sallyport]\nurl = \"https://example.com\"\n\n[b]\nc = 1\n",
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
			h.write(path+".new", "")
			return nil
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
				if strings.HasSuffix(name, ".new") {
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
	if os.Geteuid() == 0 {
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
	if !safefile.Marked(f) {
		t.Skip("this file system keeps no attributes")
	}
	h.change(true, MCP)
	if got := h.tree(); !slices.Equal(got, []string{".config"}) {
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
