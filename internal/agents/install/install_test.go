// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
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

// TestRelativeVariable: a directory that is another one wherever the agent starts is refused.
func TestRelativeVariable(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{Claude, Codex, VSCode} {
		h := newHome(t, agent)
		h.Variable = func(string) string { return "c" }
		_, err := Prepare(&h.Options, false, MCP)
		if err == nil || !strings.Contains(err.Error(), "relative path") {
			t.Errorf("%s: %v", agent, err)
		}
		h.Project, h.Dir = true, h.dir
		if _, err := Prepare(&h.Options, false, MCP); err != nil {
			t.Errorf("%s in a project: %v", agent, err)
		}
	}
}

// originals are files that people have, in JSON, and how they look with an MCP server for cursor; "" for
// those where only what they say is compared.
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
			if _, _, err := syntax.ForeignTOML([]byte(got)); err != nil {
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
