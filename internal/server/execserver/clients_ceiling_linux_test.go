// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// A stage is a server below a ceiling, with a workspace, and files and a directory outside.
type stage struct {
	*fileCaller
	etc, outside string
	o            execserver.Options
}

// newStage starts a server below a managed configuration. WS and OUT in its text are directories.
func newStage(t *testing.T, managed string) *stage {
	t.Helper()
	testenv.NeedUserNS(t)
	top := realDir(t)
	s := &stage{etc: top + "/etc", outside: top + "/out", o: options()}
	ws := top + "/ws"
	check(t, errors.Join(os.Mkdir(ws, 0o755), os.Mkdir(s.outside, 0o755), os.Mkdir(s.etc, 0o755),
		os.Mkdir(top+"/home", 0o755)))
	for _, name := range []string{ws + "/file", s.outside + "/file", s.outside + "/secret"} {
		check(t, os.WriteFile(name, []byte(filepath.Base(name)), 0o600))
	}
	check(t, os.Symlink(s.outside+"/secret", ws+"/link"))
	s.o.Managed, s.o.Dir = s.etc, ws
	s.o.Environ = []string{"PATH=/usr/bin:/bin", "HOME=" + top + "/home", "VISIBLE=1", "CLOSED=1"}
	s.fileCaller = &fileCaller{ws: ws}
	s.says(t, managed)
	return s
}

// says writes the managed configuration.
func (s *stage) says(t *testing.T, managed string) {
	t.Helper()
	text := strings.NewReplacer("WS", s.ws, "OUT", s.outside).Replace(managed)
	check(t, os.WriteFile(s.etc+"/managed.toml", []byte(text), 0o644))
}

// connect starts the server and connects a client.
func (s *stage) connect(t *testing.T) *stage {
	t.Helper()
	s.caller, _ = meet(t, run(t, s.o), nil)
	return s
}

// start starts a shell script in the workspace, and returns the error, and what it printed.
func (s *stage) start(id, text string, more map[string]any) (message, string) {
	s.t.Helper()
	params := script(id, s.ws, text)
	for name, value := range more {
		params[name] = value
	}
	m := s.call("process/start", params)
	if m.Error != nil {
		return m, ""
	}
	s.ended(id)
	out := ""
	for _, e := range s.events {
		if e.Method == "process/output" && e.Params.ProcessID == id {
			out += string(e.Params.Chunk)
		}
	}
	return m, strings.TrimSpace(out)
}

// profile returns the member sandbox with the workspace ws, of a network and entries "LEVEL PLACE".
func profileOf(ws, network string, entries ...string) map[string]any {
	list := []any{}
	for _, e := range entries {
		level, place, _ := strings.Cut(e, " ")
		at := map[string]any{"type": "special", "value": map[string]any{"kind": place}}
		if strings.HasPrefix(place, "/") {
			at = map[string]any{"type": "path", "path": "file://" + place}
		}
		list = append(list, map[string]any{"path": at, "access": level})
	}
	return map[string]any{
		"permissions": map[string]any{"type": "managed", "network": network, "file_system": map[string]any{"type": "restricted", "entries": list}},
		"cwd":         "file://" + ws, "workspaceRoots": []string{"file://" + ws}, "windowsSandboxLevel": "disabled",
	}
}

// over is the beginning of the text of an error that the ceiling gives.
func over(request, what string) string {
	return request + " " + what + " is more than the managed configuration allows ("
}

// isOver reports whether an answer is the error of a run for what the ceiling does not allow.
func isOver(m message, text string) bool {
	return m.Error != nil && m.Error.Code == -32602 && m.Error.Data.Reason == "invalid" &&
		m.Error.Data.ExitCode == 122 &&
		strings.HasPrefix(m.Error.Message, text) && strings.Contains(m.Error.Message, "managed.toml:")
}

// TestCeilingProcess: what a client asks for with process/start beyond the managed configuration is refused
// as a flag of a run is, and nothing runs; what is within runs.
func TestCeilingProcess(t *testing.T) {
	const write = `sandbox = "workspace-write"` + "\n"
	s := newStage(t, "").connect(t)
	link := realDir(t) + "/link"
	check(t, os.Symlink(s.outside, link))
	full := map[string]any{"type": "managed", "network": "enabled",
		"file_system": map[string]any{"type": "unrestricted"}}
	in := func(permissions any) map[string]any {
		return map[string]any{"permissions": permissions, "cwd": "file://" + s.ws,
			"windowsSandboxLevel": "disabled"}
	}
	workspace := []string{"read root", "write project_roots", "write slash_tmp", "write tmpdir"}
	with := func(more ...string) map[string]any {
		return profileOf(s.ws, "restricted", append(workspace, more...)...)
	}
	other := profileOf(s.ws, "restricted", workspace...)
	other["workspaceRoots"] = []string{"file://" + s.ws, "file://" + s.outside}
	for _, test := range []struct {
		name, managed string
		sandbox       any
		env           map[string]string
		over          string // what is; empty for nothing
	}{
		{"none", write, nil, nil, "full-access"},
		{"none, where something is denied", `deny = ["OUT"]`, nil, nil, "full-access"},
		{"unrestricted, where something is denied", `deny = ["OUT"]`, in(full), nil, "full-access"},
		{"disabled", write, in(map[string]any{"type": "disabled"}), nil, "full-access"},
		{"external", write, in(map[string]any{"type": "external", "network": "enabled"}), nil, "full-access"},
		{"unrestricted", write, in(full), nil, "full-access"},
		{"all to write", write, profileOf(s.ws, "restricted", "write root"), nil, "full-access"},
		{"the workspace", write, with(), nil, ""},
		{"nothing to write", write, profileOf(s.ws, "restricted", "read root"), nil, ""},
		{"only the platform", write, profileOf(s.ws, "restricted", "read minimal", "read project_roots"), nil, ""},
		{"a file of the workspace", write, with("read " + s.ws + "/.git"), nil, ""},
		{"another directory", write, with("write " + s.outside), nil, s.outside},
		{"another directory to read", write, with("read " + s.outside), nil, s.outside},
		{"by a link", write, with("write " + link), nil, s.outside},
		{"another workspace", write, other, nil, s.outside},
		{"a name with a dot", write, with("write " + s.ws + "/.git"), nil, s.ws + "/.git"},
		{"by TMPDIR", write, with(), map[string]string{"PATH": "/usr/bin:/bin", "TMPDIR": s.outside}, s.outside},
		{"TMPDIR in tmp", write, with(), map[string]string{"PATH": "/usr/bin:/bin", "TMPDIR": "/tmp"}, ""},
		{"what is listed", write + `write = ["OUT"]`, with("write "+s.outside, "read "+s.outside+"/.git"), nil, ""},
		{"read-only", `sandbox = "read-only"`, with(), nil, "workspace-write"},
		{"read-only, a path", `sandbox = "read-only"`, profileOf(s.ws, "restricted", "read root", "write "+s.outside), nil, s.outside},
		{"the network", `network.mode = "none"`, profileOf(s.ws, "enabled", workspace...), nil, "host"},
		{"below a denial", `deny = ["OUT"]`, with("read " + s.outside + "/secret"), nil, s.outside + "/secret"},
		{"a file that restricts nothing of it", `limits.pids = 500`, nil, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.t = t
			s.says(t, test.managed)
			more := map[string]any{"sandbox": test.sandbox}
			if test.env != nil {
				more["env"] = test.env
			}
			m, out := s.start(test.name, "echo ran", more)
			switch {
			case test.over == "" && (m.Error != nil || out != "ran"):
				t.Errorf("%+v, %q", m.Error, out)
			case test.over != "" && !isOver(m, over("process/start", test.over)):
				t.Errorf("%+v, %q", m.Error, out)
			}
		})
	}
}

// TestCeilingNarrows: what the ceiling says beside a request holds for its process.
func TestCeilingNarrows(t *testing.T) {
	s := newStage(t, "").connect(t)
	check(t, os.WriteFile(s.ws+"/a.key", []byte("key"), 0o600))
	all := map[string]any{"inherit": "all", "ignoreDefaultExcludes": true, "exclude": []string{},
		"set": map[string]string{}, "includeOnly": []string{}}
	for _, test := range []struct {
		name, managed, script string
		more                  map[string]any
		out                   string
	}{
		{"a denied file", `deny = ["OUT/secret"]`, "cat link 2>/dev/null; cat file", map[string]any{"sandbox": profileOf(s.ws, "restricted", "read root")}, "file"},
		{"a pattern", `deny = ["**/*.key"]`, "cat a.key 2>/dev/null; cat file", map[string]any{"sandbox": profileOf(s.ws, "restricted", "read root", "write project_roots")}, "file"},
		{"variables", `environment.exclude = ["CLOSED"]`, "echo $VISIBLE$CLOSED", map[string]any{"envPolicy": all}, "1"},
		{"no variables", `environment.inherit = "none"`, "echo $VISIBLE$CLOSED", map[string]any{"envPolicy": all}, ""},
		{"its own tmp", "tmp = \"private\"", "ls -A /tmp", map[string]any{"cwd": "file:///", "sandbox": profileOf("/usr", "restricted", "read root", "write slash_tmp")}, ""},
		{"time", `limits.timeout = "1s"`, "echo begun; sleep 1000", nil, "begun"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.t = t
			s.says(t, test.managed)
			if m, out := s.start(test.name, test.script, test.more); m.Error != nil || out != test.out {
				t.Errorf("%+v, %q, want %q", m.Error, out, test.out)
			}
		})
	}
}

// TestCeilingRules: rules of the managed configuration hold, and what they ask about is refused: no user
// answers for a process.
func TestCeilingRules(t *testing.T) {
	const forbids = "[rules]\nprefix_rules = [{ pattern = [{ token = \"date\" }], decision = \"forbidden\", justification = \"no time\" }," +
		"{ pattern = [{ token = \"id\" }], decision = \"prompt\", justification = \"who asks\" }]\n"
	s := newStage(t, "").connect(t)
	sandbox := profileOf(s.ws, "restricted", "read root")
	for _, test := range []struct {
		name, managed, script string
		code                  int
		says                  string
	}{
		{"forbidden", forbids, "date", 122, "forbidden: "},
		{"in a script", forbids, "true; date", 122, "forbidden: "},
		{"asked about", forbids, "id", 122, "forbidden: approval required by policy"},
		{"no rule", forbids, "true", 0, ""},
		{"untrusted", `approval = "untrusted"`, "touch x", 123, "refused: "},
		{"untrusted, known to read only", `approval = "untrusted"`, "ls", 0, ""},
		{"on-request", `approval = "on-request"`, "touch x", 0, ""},
		{"rules that do not load", "rules = [\"OUT/missing.rules\"]\n", "true", 125, "nothing runs because the rules do not load"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.t = t
			s.says(t, test.managed)
			m, _ := s.start(test.name, test.script, map[string]any{"sandbox": sandbox})
			switch {
			case test.code == 0 && m.Error != nil:
				t.Errorf("%+v", m.Error)
			case test.code != 0 && (m.Error == nil || m.Error.Data.ExitCode != test.code ||
				!strings.HasPrefix(m.Error.Message, test.says)):
				t.Errorf("%+v", m.Error)
			}
		})
	}
}

// TestCeilingFiles: requests about files reach what the managed configuration leaves, with a sandbox and
// without one, by names and by links.
func TestCeilingFiles(t *testing.T) {
	const write, deny = `sandbox = "workspace-write"` + "\n", `deny = ["OUT/secret"]` + "\n"
	s := newStage(t, "").connect(t)
	ws := profileOf(s.ws, "restricted", "read root", "write project_roots")
	more := profileOf(s.ws, "restricted", "read root", "write project_roots", "write "+s.outside)
	reopens := profileOf(s.ws, "restricted", "read root", "write project_roots", "read "+s.outside+"/secret")
	up := "../out/"
	for _, test := range []struct {
		name, managed string
		sandbox       any
		method, path  string
		more          []any
		over          string // the error of the ceiling; "-" another one, empty for none
	}{
		{"read", write + deny, nil, "fs/readFile", "file", nil, ""},
		{"read outside", write + deny, nil, "fs/readFile", up + "file", nil, ""},
		{"read what is denied", write + deny, nil, "fs/readFile", up + "secret", nil, s.outside + "/secret"},
		{"the same by a link", write + deny, nil, "fs/readFile", "link", nil, s.ws + "/link"},
		{"the same, and nothing else is bounded", deny, nil, "fs/readFile", up + "secret", nil, s.outside + "/secret"},
		{"in a sandbox", deny, ws, "fs/readFile", up + "secret", nil, s.outside + "/secret"},
		{"in a sandbox that names it", deny, reopens, "fs/readFile", up + "secret", nil, s.outside + "/secret"},
		{"by a handle", deny, nil, "fs/open", up + "secret", []any{"handleId", "h"}, s.outside + "/secret"},
		{"a pattern", `deny = ["**/fi*"]`, nil, "fs/readFile", "file", nil, s.ws + "/file"},
		{"write", write, nil, "fs/writeFile", "new", []any{"dataBase64", ""}, "full-access"},
		{"write outside", write, nil, "fs/writeFile", up + "new", []any{"dataBase64", ""}, "full-access"},
		{"write in a sandbox", write, ws, "fs/writeFile", "new", []any{"dataBase64", ""}, ""},
		{"write outside of it", write, ws, "fs/writeFile", up + "new", []any{"dataBase64", ""}, "-"},
		{"write in one that is wider", write, more, "fs/writeFile", up + "new", []any{"dataBase64", ""}, s.outside},
		{"write in one that is listed", write + `write = ["OUT"]`, more, "fs/writeFile", up + "listed", []any{"dataBase64", ""}, ""},
		{"open to replace", write, nil, "fs/open", "file", []any{"handleId", "w", "mode", "replace"}, "full-access"},
		{"remove", write, nil, "fs/remove", up + "file", nil, "full-access"},
		{"make a directory", write, nil, "fs/createDirectory", up + "d", nil, "full-access"},
		{"append", write, nil, "fs/append", up + "file", []any{"dataBase64", ""}, "full-access"},
		{"chmod", write, nil, "fs/chmod", up + "file", []any{"mode", 0o777}, "full-access"},
		{"symlink", write, nil, "fs/symlink", up + "l", []any{"target", "x"}, "full-access"},
		{"write in a denied directory", `deny = ["OUT"]`, nil, "fs/writeFile", up + "new", []any{"dataBase64", ""}, "full-access"},
		{"the same in a sandbox", `deny = ["OUT"]`, more, "fs/writeFile", up + "new", []any{"dataBase64", ""}, s.outside + "/new"},
		{"write beside it", `deny = ["OUT"]`, ws, "fs/writeFile", "beside", []any{"dataBase64", ""}, ""},
		{"a list", `deny = ["OUT"]`, nil, "fs/readDirectory", up, nil, s.outside},
		{"only the platform", `sandbox = ":minimal"`, nil, "fs/readFile", up + "file", nil, "-"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.t, s.sandbox = t, test.sandbox
			s.says(t, test.managed)
			m := s.do(test.method, test.path, test.more...)
			switch want := test.over; {
			case want == "" && m.Error != nil, want == "-" && m.Error == nil:
				t.Errorf("%+v %s", m.Error, m.Result)
			case want != "" && want != "-" && !isOver(m, over(test.method, want)):
				t.Errorf("%+v %s", m.Error, m.Result)
			}
		})
	}
	t.Run("copy and rename", func(t *testing.T) {
		s.t, s.sandbox = t, nil
		s.says(t, deny)
		copied := s.call("fs/copy", map[string]any{"sourcePath": "file://" + s.outside + "/secret",
			"destinationPath": "file://" + s.ws + "/copy", "recursive": false, "sandbox": ws})
		moved := s.call("fs/rename", map[string]any{"sourcePath": "file://" + s.outside + "/secret",
			"destinationPath": "file://" + s.ws + "/moved", "sandbox": ws})
		if !isOver(copied, over("fs/copy", s.outside+"/secret")) || moved.Error == nil ||
			content(s.ws+"/copy") != "" || exists(s.ws+"/moved") {
			t.Errorf("%+v, %+v", copied.Error, moved.Error)
		}
	})
	if content(s.outside+"/file") != "file" || content(s.outside+"/secret") != "secret" ||
		exists(s.outside+"/new") || exists(s.ws+"/new") && content(s.ws+"/new") != "" {
		t.Error("something outside was changed")
	}
}

// TestCeilingOthers: what else reaches files or the network.
func TestCeilingOthers(t *testing.T) {
	s := newStage(t, `deny = ["OUT"]`+"\n"+`network.mode = "none"`)
	s.o.AllowHTTP = true
	s.connect(t)
	if m := s.fetched("http://127.0.0.1:1/", nil); !isOver(m, over("http/request", "host")) {
		t.Errorf("http/request: %+v %s", m.Error, m.Result)
	}
	m := s.call("fs/watchMissing", map[string]any{"watchId": 1,
		"missing": []string{"file://" + s.outside + "/later"}})
	if m.Error != nil || string(m.Result) != `{"watching":false}` {
		t.Errorf("fs/watchMissing: %+v %s", m.Error, m.Result)
	}
	m = s.call("capabilityRoots/discoverV1",
		map[string]any{"roots": []any{map[string]any{"id": "a", "path": "file://" + s.outside}}})
	if m.Error == nil {
		t.Errorf("capabilityRoots/discoverV1: %s", m.Result)
	}
	proxy := map[string]any{"proxy": map[string]any{"enabled": true, "enableSocks5": false,
		"enableSocks5Udp": false, "allowUpstreamProxy": false,
		"dangerouslyAllowAllUnixSockets": false, "mode": "full", "domains": map[string]string{"example.com": "allow"}, "unixSockets": nil, "allowLocalBinding": false}}
	sandbox := map[string]any{"sandbox": profileOf(s.ws, "restricted", "read root"), "networkProxy": proxy}
	for managed, what := range map[string]string{
		`network.mode = "none"`:             "full",
		`network.allow = ["*.example.org"]`: "example.com",
	} {
		s.says(t, managed)
		if m, _ := s.start(managed, "true", sandbox); !isOver(m, over("process/start", what)) {
			t.Errorf("%s: %+v", managed, m.Error)
		}
	}
	s.says(t, `network.allow = ["example.com"]`)
	if m, _ := s.start("allowed", "true", sandbox); m.Error != nil {
		t.Errorf("a host that is allowed: %+v", m.Error)
	}
	if m := s.fetched("http://127.0.0.1:1/", nil); !isOver(m, over("http/request", "host")) {
		t.Errorf("http/request with hosts that are listed: %+v", m.Error)
	}
}

// TestCeilingUnreadable: a managed configuration that cannot be read is a no to everything, and what it says
// counts for the next request.
func TestCeilingUnreadable(t *testing.T) {
	s := newStage(t, "")
	s.o.AllowHTTP = true
	s.connect(t)
	if m := s.do("fs/readFile", "file"); m.Error != nil {
		t.Fatalf("%+v", m.Error)
	}
	for name, spoil := range map[string]func() error{
		"broken":         func() error { return os.WriteFile(s.etc+"/managed.toml", []byte("sandbox = "), 0o644) },
		"unknown key":    func() error { return os.WriteFile(s.etc+"/managed.toml", []byte("sandboxes = 1\n"), 0o644) },
		"a directory":    func() error { return os.Mkdir(s.etc+"/managed.toml", 0o755) },
		"a link to none": func() error { return os.Symlink("none", s.etc+"/managed.toml") },
		"a broken part": func() error {
			return errors.Join(os.MkdirAll(s.etc+"/managed.d", 0o755),
				os.WriteFile(s.etc+"/managed.d/1.toml", []byte("x"), 0o644))
		},
	} {
		check(t, errors.Join(os.RemoveAll(s.etc+"/managed.toml"), os.RemoveAll(s.etc+"/managed.d"), spoil()))
		started, _ := s.start(name, "true", nil)
		confined, _ := s.start(name, "true",
			map[string]any{"sandbox": profileOf(s.ws, "restricted", "read root")})
		for i, m := range []message{
			started, confined, s.do("fs/readFile", "file"), s.do("fs/getMetadata", "file"),
			s.do("fs/writeFile", "file", "dataBase64", ""),
			s.do("fs/remove", "file"), s.fetched("http://127.0.0.1:1/", nil),
		} {
			if m.Error == nil || m.Error.Code != -32602 || m.Error.Data.ExitCode != 125 ||
				!strings.Contains(m.Error.Message, s.etc+"/managed.") {
				t.Errorf("%s, request %d: %+v %s", name, i, m.Error, m.Result)
			}
		}
	}
	check(t, errors.Join(os.RemoveAll(s.etc+"/managed.toml"), os.RemoveAll(s.etc+"/managed.d")))
	if m := s.do("fs/readFile", "file"); m.Error != nil || content(s.ws+"/file") != "file" {
		t.Errorf("afterwards: %+v", m.Error)
	}
}
