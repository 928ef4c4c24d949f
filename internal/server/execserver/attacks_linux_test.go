// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// files compares a result with members of the machine, or of no order.
func (s *scenario) files(method string, gotText, wantText json.RawMessage) {
	s.t.Helper()
	type result struct {
		IsDirectory, IsFile, IsSymlink bool
		Size, ModifiedAtMs             int64
		Entries, Errors                []any
		Truncated                      bool
	}
	var got, want result
	if err := errors.Join(json.Unmarshal(gotText, &got), json.Unmarshal(wantText, &want)); err != nil {
		s.t.Fatal(err)
	}
	if method == "fs/getMetadata" {
		if age := time.Since(time.UnixMilli(got.ModifiedAtMs)); age < -time.Hour || age > time.Hour {
			s.t.Errorf("%s: modified %v ago", method, age)
		}
		want.ModifiedAtMs = got.ModifiedAtMs
		if !want.IsFile {
			want.Size = got.Size
		}
	}
	for _, list := range [][]any{got.Entries, want.Entries, got.Errors, want.Errors} {
		slices.SortFunc(list, func(a, b any) int {
			x, _ := json.Marshal(a)
			y, _ := json.Marshal(b)
			return strings.Compare(string(x), string(y))
		})
	}
	if !reflect.DeepEqual(got, want) {
		s.t.Errorf("%s: %s, want %s", method, gotText, wantText)
	}
}

// confined returns the member sandbox that has ws writable, and secret in it denied.
func confined(ws string) map[string]any { return confinement(ws, "root", ws+"/secret") }

// confinement returns the member sandbox that has one special place readable, ws writable and one
// path denied.
func confinement(ws, readable, denied string) map[string]any {
	special := func(kind, access string) map[string]any {
		return map[string]any{"path": map[string]any{"type": "special",
			"value": map[string]any{"kind": kind}}, "access": access}
	}
	return map[string]any{
		"permissions": map[string]any{"type": "managed", "network": "restricted", "file_system": map[string]any{
			"type": "restricted", "entries": []any{
				special(readable, "read"), special("project_roots", "write"),
				map[string]any{"path": map[string]any{"type": "path", "path": "file://" + denied},
					"access": "deny"},
			},
		}},
		"cwd": "file://" + ws, "workspaceRoots": []string{"file://" + ws}, "windowsSandboxLevel": "disabled",
	}
}

// A fileCaller makes requests about files in a workspace, in a sandbox or without one.
type fileCaller struct {
	*caller
	ws      string
	sandbox any
}

// do makes a request about path below the workspace. More are further members, as pairs.
func (c *fileCaller) do(method, path string, more ...any) message {
	c.t.Helper()
	params := map[string]any{"path": "file://" + filepath.Join(c.ws, path), "sandbox": c.sandbox}
	for i := 0; i < len(more); i += 2 {
		params[fmt.Sprint(more[i])] = more[i+1]
	}
	return c.call(method, params)
}

// write writes text to path.
func (c *fileCaller) write(path, text string) message {
	c.t.Helper()
	return c.do("fs/writeFile", path, "dataBase64", base64.StdEncoding.EncodeToString([]byte(text)))
}

// A fileAttack tries to leave the sandbox of file operations.
type fileAttack struct {
	name   string
	link   string // NAME=TARGET, made before; OUT is the directory outside
	method string
	path   string
	more   []any
	first  func(t *testing.T, c *fileCaller, outside string) // what else is done before; nil for nothing
}

// evil is what attacks write.
var evil = []any{"dataBase64", "eA=="}

var fileAttacks = []fileAttack{
	{"a link out of the workspace", "", "fs/writeFile", "out/new", evil, nil},
	{"a link to a file", "to=OUT/file", "fs/writeFile", "to", evil, nil},
	{"a link to a file that does not exist", "to=OUT/later", "fs/writeFile", "to", evil, nil},
	{"dots", "", "fs/writeFile", "../outside/new", evil, nil},
	{"an atomic write through a link", "", "fs/writeFile", "out/new", append(evil, "atomic", true), nil},
	{"a protected name", "", "fs/writeFile", ".git/hooks/pre-commit", evil, nil},
	{"removal of a protected name", "", "fs/remove", ".git", nil, nil},
	{"a missing protected name", "", "fs/createDirectory", ".codex/rules", nil, nil},
	{"a denied path", "", "fs/readFile", "secret/key", nil, nil},
	{"a denied path by a link", "s=secret", "fs/open", "s/key", []any{"handleId", "h"}, nil},
	{"a copy of a denied path", "", "fs/copy", "secret/key", []any{"to", "copy"}, nil},
	{"a copy to the outside", "", "fs/copy", "d", []any{"to", "../outside/d"}, nil},
	{"removal outside", "", "fs/remove", "out/file", nil, nil},
	{"a directory outside", "", "fs/createDirectory", "out/a/b", nil, nil},
	{"a handle outside", "", "fs/open", "out/file", []any{"handleId", "h", "mode", "replace"}, nil},
	{"a rename to the outside", "", "fs/rename", "d", []any{"to", "../outside/d"}, nil},
	{"a rename from the outside", "", "fs/rename", "../outside/file", []any{"to", "file"}, nil},
	{"a rename through a link", "", "fs/rename", "d", []any{"to", "out/d"}, nil},
	{"a rename of a protected name", "", "fs/rename", ".git", []any{"to", "git"}, nil},
	{"a rename to a protected name", "", "fs/rename", "d", []any{"to", ".codex"}, nil},
	{"a rename of a denied path", "", "fs/rename", "secret/key", []any{"to", "key"}, nil},
	{"permissions outside", "", "fs/chmod", "out/file", []any{"mode", 0o777}, nil},
	{"permissions by a link to a file", "to=OUT/file", "fs/chmod", "to", []any{"mode", 0o777}, nil},
	{"permissions of a protected name", "", "fs/chmod", ".git/hooks", []any{"mode", 0o700}, nil},
	{"a new link outside", "", "fs/symlink", "out/link", []any{"target", "file"}, nil},
	{"a new link in a protected name", "", "fs/symlink", ".git/hooks/pre-commit", []any{"target", "/bin/true"}, nil},
	{"appending outside", "", "fs/append", "out/file", evil, nil},
	{"appending by a new link", "", "fs/append", "to", evil, func(t *testing.T, c *fileCaller, outside string) {
		if m := c.do("fs/symlink", "to", "target", outside+"/file"); m.Error != nil {
			t.Errorf("the link: %+v", m.Error)
		}
	}},
	{"a path that is swapped for a link between two calls", "", "fs/writeFile", "d/new", evil, func(t *testing.T, c *fileCaller, outside string) {
		if m := c.write("d/before", "x"); m.Error != nil {
			t.Errorf("the write before: %+v", m.Error)
		}
		check(t, errors.Join(os.Rename(c.ws+"/d", c.ws+"/moved"), os.Symlink(outside, c.ws+"/d")))
	}},
}

// attack performs an attack, and reports whether it changed what is closed, or learned the secret.
func (a *fileAttack) attack(t *testing.T, c *fileCaller, outside string) (m message, effect bool) {
	t.Helper()
	if name, target, ok := strings.Cut(a.link, "="); ok {
		check(t, os.Symlink(strings.Replace(target, "OUT", outside, 1), filepath.Join(c.ws, name)))
	}
	if a.first != nil {
		a.first(t, c, outside)
	}
	before := closedTo(t, c.ws, outside)
	if len(a.more) > 0 && a.more[0] == "to" {
		m = c.call(a.method, map[string]any{
			"sourcePath": "file://" + filepath.Join(c.ws, a.path), "destinationPath": "file://" + filepath.Join(c.ws, fmt.Sprint(a.more[1])),
			"recursive": true, "sandbox": c.sandbox,
		})
	} else {
		m = c.do(a.method, a.path, a.more...)
	}
	learned := strings.Contains(string(m.Result), base64.StdEncoding.EncodeToString([]byte("key"))) ||
		a.method == "fs/open" && m.Error == nil
	return m, learned || closedTo(t, c.ws, outside) != before
}

// closedTo returns what a sandbox does not let be changed, and where the secret can be read.
func closedTo(t *testing.T, ws, outside string) string {
	t.Helper()
	var all strings.Builder
	for _, top := range []string{ws, outside} {
		check(t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			own := top == ws && !strings.HasPrefix(path, ws+"/.") && content(path) != "key"
			if err == nil && !own && path != ws {
				fmt.Fprintln(&all, path, info.Mode(), content(path))
			}
			return err
		}))
	}
	return all.String()
}

// TestFileAttacks: what a sandbox of file operations keeps closed, in whatever way a path leads
// there. Each attack is made without a sandbox as well, where it must succeed.
func TestFileAttacks(t *testing.T) {
	testenv.NeedUserNS(t)
	server := run(t, options())
	for _, test := range fileAttacks {
		t.Run(test.name, func(t *testing.T) {
			for _, wall := range []bool{true, false} {
				top := realDir(t)
				ws, outside := top+"/ws", top+"/outside"
				for _, dir := range []string{ws + "/.git/hooks", ws + "/secret", ws + "/d/rules", outside} {
					check(t, os.MkdirAll(dir, 0o755))
				}
				check(t, errors.Join(os.WriteFile(ws+"/secret/key", []byte("key"), 0o644),
					os.WriteFile(outside+"/file", []byte("file"), 0o644),
					os.Symlink(outside, ws+"/out")))
				peer, _ := meet(t, server, nil)
				c := &fileCaller{caller: peer, ws: ws}
				if wall {
					c.sandbox = confined(ws)
				}
				m, effect := test.attack(t, c, outside)
				if effect == wall || (m.Error != nil) != wall {
					t.Errorf("in a sandbox: %v, the effect: %v, the answer: %+v %s", wall, effect,
						m.Error, m.Result)
				}
				check(t, c.close())
			}
		})
	}
}

// TestFileSwaps: a name that is a directory of the workspace and a link out of it in turn leads
// out never.
func TestFileSwaps(t *testing.T) {
	testenv.NeedUserNS(t)
	top := realDir(t)
	ws, outside := top+"/ws", top+"/outside"
	check(t, errors.Join(os.MkdirAll(ws+"/d", 0o755), os.Mkdir(outside, 0o755),
		os.Symlink(outside, ws+"/link")))
	testenv.Swap(t, ws+"/d", ws+"/link")
	peer, _ := meet(t, run(t, options()), nil)
	for _, c := range []*fileCaller{{caller: peer, ws: ws, sandbox: confined(ws)}, {caller: peer, ws: ws}} {
		refused, why := 0, ""
		// The name must have been both, and the scheduler of a busy machine takes its time.
		for i := 0; (i < 300 || refused == 0 || refused == i) && i < 100_000; i++ {
			more := []any{"dataBase64", ""}
			if c.sandbox == nil {
				more = append(more, "followSymlinks", false) // the other wall
			}
			if m := c.do("fs/writeFile", fmt.Sprintf("d/%d", i), more...); m.Error != nil {
				refused++
				why = m.Error.Message
			}
		}
		if left, err := os.ReadDir(outside); err != nil || len(left) > 0 || refused == 0 {
			t.Fatalf("%d files outside, %d refused (%s), %v", len(left), refused, why, err)
		}
	}
}

// TestFilesNotConfined: what cannot be confined is refused, and nothing is done.
func TestFilesNotConfined(t *testing.T) {
	testenv.NeedUserNS(t)
	for _, test := range []struct {
		name   string
		change func(o *execserver.Options, sandbox map[string]any)
		want   string
	}{
		{"no helper", func(o *execserver.Options, _ map[string]any) { o.FileHelper = nil }, "not available"},
		{"a helper that does not exist", func(o *execserver.Options, _ map[string]any) { o.FileHelper = []string{"/nonexistent"} }, "cannot start the sandbox"},
		{"a helper that ends", func(o *execserver.Options, _ map[string]any) { o.FileHelper = []string{"/bin/true"} }, "has ended"},
		{"a helper that talks nonsense", func(o *execserver.Options, _ map[string]any) {
			o.FileHelper = []string{"/bin/sh", "-c", `read x; echo '{"id":1}'; cat >/dev/null`}
		}, "has ended"},
		{"a helper that answers another request", func(o *execserver.Options, _ map[string]any) {
			o.FileHelper = []string{"/bin/sh", "-c", `read x; echo '{"id":7,"result":{}}'; cat >/dev/null`}
		}, "something else than the answer"},
		{"a form that is not supported", func(_ *execserver.Options, s map[string]any) { s["useLegacyLandlock"] = true }, "useLegacyLandlock"},
		{"no place of the workspace", func(_ *execserver.Options, s map[string]any) { delete(s, "cwd"); delete(s, "workspaceRoots") }, "sandbox.cwd"},
		{"a helper that the policy denies", func(o *execserver.Options, s map[string]any) {
			s["permissions"] = confinement("/", "root", filepath.Dir(o.FileHelper[0]))["permissions"]
		}, "it denies"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ws := realDir(t)
			o, member := options(), confined(ws)
			test.change(&o, member)
			peer, _ := meet(t, run(t, o), nil)
			c := &fileCaller{caller: peer, ws: ws, sandbox: member}
			for range 2 { // the second time with a new helper
				if m := c.write("new", "x"); m.Error == nil || !strings.Contains(m.Error.Message, test.want) {
					t.Errorf("%+v, want %q", m.Error, test.want)
				}
			}
			if exists(ws + "/new") {
				t.Error("it was done all the same")
			}
		})
	}
}

// TestFilesMinimal: the helper runs under a policy that does not list it, which opens nothing else.
func TestFilesMinimal(t *testing.T) {
	testenv.NeedUserNS(t)
	top := realDir(t)
	ws := top + "/ws"
	check(t, errors.Join(os.Mkdir(ws, 0o755), os.WriteFile(top+"/beside", []byte("x"), 0o644)))
	peer, _ := meet(t, run(t, options()), nil)
	c := &fileCaller{caller: peer, ws: ws, sandbox: confinement(ws, "minimal", ws+"/secret")}
	if m := c.write("new", "x"); m.Error != nil || content(ws+"/new") != "x" {
		t.Errorf("%+v", m.Error)
	}
	if m := c.do("fs/readFile", "new", "followSymlinks", false); m.Error != nil {
		t.Errorf("without links: %+v", m.Error)
	}
	here, err := os.Getwd()
	check(t, err)
	for _, path := range []string{"../beside", "../../../../../../.." + here} {
		if m := c.do("fs/getMetadata", path); m.Error == nil {
			t.Errorf("%s: %s", path, m.Result)
		}
	}
}

// TestFilesHidden: a path that the server hides from processes in a sandbox is hidden from its
// helpers for files, too.
func TestFilesHidden(t *testing.T) {
	testenv.NeedUserNS(t)
	ws, err := filepath.EvalSymlinks(t.TempDir())
	check(t, errors.Join(err, os.WriteFile(ws+"/token", []byte("token"), 0o600)))
	o := options()
	o.Hidden = []string{ws + "/token"}
	peer, _ := meet(t, run(t, o), nil)
	c := &fileCaller{caller: peer, ws: ws}
	if m := c.do("fs/readFile", "token"); m.Error != nil {
		t.Errorf("without a sandbox: %+v", m.Error)
	}
	open := confined(ws)
	open["permissions"] = map[string]any{"type": "managed", "network": "enabled",
		"file_system": map[string]any{"type": "unrestricted"}}
	for _, c.sandbox = range []any{confined(ws), open} {
		if m := c.do("fs/readFile", "token"); m.Error == nil {
			t.Errorf("%v: %s", c.sandbox, m.Result)
		}
		if m := c.write("token", "mine"); m.Error == nil || content(ws+"/token") != "token" {
			t.Errorf("%v: it was written", c.sandbox)
		}
	}
}

// TestFileHelperEnds: a helper that was killed is replaced, its handles are gone, and none stays
// when its connection has ended.
func TestFileHelperEnds(t *testing.T) {
	testenv.NeedUserNS(t)
	ws := realDir(t)
	server := run(t, options())
	peer, _ := meet(t, server, nil)
	c := &fileCaller{caller: peer, ws: ws, sandbox: confined(ws)}
	if m := c.do("fs/open", "f", "handleId", "h", "mode", "replace"); m.Error != nil {
		t.Fatalf("%+v", m.Error)
	}
	kill := func() int {
		pids := helpers(t)
		for _, pid := range pids {
			check(t, unix.Kill(pid, unix.SIGKILL))
		}
		return len(pids)
	}
	if n := kill(); n == 0 {
		t.Fatal("no helper was found")
	}
	block := map[string]any{"handleId": "h", "offset": 0, "chunk": "eA=="}
	if m := c.call("fs/writeBlock", block); m.Error == nil || m.Error.Code != -32603 {
		t.Errorf("after the helper was killed: %+v", m)
	}
	if m := c.call("fs/writeBlock", block); m.Error == nil || m.Error.Code != -32004 {
		t.Errorf("a handle of a helper that is gone: %+v", m)
	}
	if m := c.write("f", "x"); m.Error != nil || content(ws+"/f") != "x" {
		t.Errorf("with a new helper: %+v", m.Error)
	}
	var ends []unix.PollFd
	for _, pid := range helpers(t) {
		fd, err := unix.PidfdOpen(pid, 0)
		check(t, err)
		defer unix.Close(fd)
		ends = append(ends, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	check(t, c.close())
	for i := range ends {
		if n, err := testenv.Poll(ends[i:i+1], time.Minute); n != 1 {
			t.Errorf("a helper stays after its connection: %v", err)
		}
	}
}

// helpers returns the processes that perform file operations for this one.
func helpers(t *testing.T) (pids []int) {
	t.Helper()
	program, err := os.Executable()
	check(t, err)
	dirs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	check(t, err)
	for _, dir := range dirs {
		if content(dir) == program+"\x00"+fileHelper+"\x00" {
			var pid int
			_, _ = fmt.Sscanf(dir, "/proc/%d/", &pid)
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestFileLimits: an answer that one message does not carry is an error, and the connection goes
// on; so do the bounds of handles.
func TestFileLimits(t *testing.T) {
	ws := t.TempDir()
	f, err := os.Create(ws + "/large")
	check(t, errors.Join(err, f.Truncate(12<<20), f.Close()))
	peer, _ := meet(t, run(t, options()), nil)
	c := &fileCaller{caller: peer, ws: ws}
	if m := c.do("fs/readFile", "large"); m.Error == nil || m.Error.Code != -32600 ||
		!strings.Contains(m.Error.Message, "fs/open") {
		t.Errorf("a large file: %.100v %s", m.Error, m.Result[:min(len(m.Result), 100)])
	}
	check(t, os.Truncate(ws+"/large", 11<<20))
	c.post(map[string]any{"id": "fits", "method": "fs/readFile",
		"params": map[string]any{"path": "file://" + ws + "/large"}})
	if text, err := c.receive(); err != nil || len(text) < 11<<20 ||
		!bytes.Contains(text[:60], []byte(`"result"`)) {
		t.Errorf("a file that fits: %.100s, %v", text, err)
	}
	for i := range 129 {
		m := c.do("fs/open", "large", "handleId", fmt.Sprint(i))
		if over := m.Error != nil; over != (i == 128) {
			t.Fatalf("handle %d: %+v", i, m.Error)
		}
	}
	if m := c.call("fs/close", map[string]any{"handleId": "7"}); m.Error != nil {
		t.Errorf("%+v", m.Error)
	}
	if m := c.do("fs/open", "large", "handleId", "again"); m.Error != nil {
		t.Errorf("after one was closed: %+v", m.Error)
	}
}

// TestWatches: a watch is told about once, ends when its ID is used again, and makes room then.
func TestWatches(t *testing.T) {
	ws := t.TempDir()
	peer, _ := meet(t, run(t, options()), nil)
	watch := func(id int, names ...string) message {
		missing := []string{}
		for _, name := range names {
			missing = append(missing, "file://"+ws+"/"+name)
		}
		return peer.call("fs/watchMissing", map[string]any{"watchId": id, "missing": missing})
	}
	watching := func(m message) bool { return m.Error == nil && string(m.Result) == `{"watching":true}` }
	for i := range 16 {
		if m := watch(i, fmt.Sprint(i)); !watching(m) {
			t.Fatalf("watch %d: %+v %s", i, m.Error, m.Result)
		}
	}
	if m := watch(16, "16"); m.Error == nil || !strings.Contains(m.Error.Message, "limit of watches (16)") {
		t.Errorf("one more: %+v", m)
	}
	if m := watch(3); string(m.Result) != `{"watching":false}` {
		t.Errorf("an empty list: %+v", m)
	}
	if m := watch(16, "16", "there"); !watching(m) {
		t.Errorf("after one ended: %+v", m.Error)
	}
	for _, name := range []string{"3", "16", "there", "5"} {
		check(t, os.WriteFile(ws+"/"+name, nil, 0o600))
		if name == "3" || name == "there" {
			continue // it was given up; it is part of a watch that is over
		}
		if got := peer.until(func(m *message) bool { return m.Method == "fs/missingChanged" }); fmt.Sprint(got.Params.WatchID) != name {
			t.Errorf("%+v, want watch %s", got, name)
		}
	}
	for _, test := range []struct {
		member string
		value  any
		want   string
	}{
		{"sandbox", confined(ws), "in a sandbox is not supported"},
		{"present", "file://" + ws, "`present` is not supported"},
		{"missing", []string{"relative"}, "relative URL"},
		{"missing", slices.Repeat([]string{"file:///x"}, 257), "at most 256"},
	} {
		params := map[string]any{"watchId": 5, "missing": []string{"file://" + ws + "/x"}}
		params[test.member] = test.value
		if m := peer.call("fs/watchMissing", params); m.Error == nil ||
			!strings.Contains(m.Error.Message, test.want) {
			t.Errorf("%s: %+v, want %q", test.member, m.Error, test.want)
		}
	}
}

// TestFileOrder: requests about files are performed in their order, and a process that is started
// after them sees what they did.
func TestFileOrder(t *testing.T) {
	ws := t.TempDir()
	peer, _ := meet(t, run(t, options()), nil)
	const n = 200
	for i := range n {
		peer.post(map[string]any{"id": fmt.Sprint(i), "method": "fs/writeFile", "params": map[string]any{
			"path": "file://" + ws + "/f", "dataBase64": base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(i))),
		}})
	}
	params := script("p", ws, "cat f")
	peer.post(map[string]any{"id": "start", "method": "process/start", "params": params})
	peer.ended("p")
	var out []byte
	for _, m := range peer.events {
		out = append(out, m.Params.Chunk...)
	}
	if string(out) != fmt.Sprint(n-1) {
		t.Errorf("the process saw %q", out)
	}
}

// writeFile returns the name of a new file with a text.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func content(path string) string {
	text, _ := os.ReadFile(path) // empty after an error
	return string(text)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
