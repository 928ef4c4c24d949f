// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
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
		return map[string]any{"path": map[string]any{"type": "special", "value": map[string]any{"kind": kind}}, "access": access}
	}
	return map[string]any{
		"permissions": map[string]any{"type": "managed", "network": "restricted", "file_system": map[string]any{
			"type": "restricted", "entries": []any{
				special(readable, "read"), special("project_roots", "write"),
				map[string]any{"path": map[string]any{"type": "path", "path": "file://" + denied}, "access": "deny"},
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

// rename renames, with absolute paths.
func (c *fileCaller) rename(source, destination string) message {
	c.t.Helper()
	return c.call("fs/rename", map[string]any{"sourcePath": "file://" + source, "destinationPath": "file://" + destination, "sandbox": c.sandbox})
}

// write writes text to path.
func (c *fileCaller) write(path, text string) message {
	c.t.Helper()
	return c.do("fs/writeFile", path, "dataBase64", base64.StdEncoding.EncodeToString([]byte(text)))
}

// A fileAttack tries to leave the sandbox of file operations. It returns the answer to the request
// that must be refused, and whether it had an effect.
type fileAttack struct {
	name   string
	attack func(t *testing.T, c *fileCaller, outside string) (message, bool)
}

var fileAttacks = []fileAttack{
	{"a link out of the workspace", func(_ *testing.T, c *fileCaller, outside string) (message, bool) {
		return c.write("out/new", "x"), exists(outside + "/new")
	}},
	{"a link to a file", func(t *testing.T, c *fileCaller, outside string) (message, bool) {
		check(t, os.Symlink(outside+"/file", c.ws+"/to"))
		m := c.write("to", "evil")
		return m, content(outside+"/file") != "file"
	}},
	{"a link to a file that does not exist", func(t *testing.T, c *fileCaller, outside string) (message, bool) {
		check(t, os.Symlink(outside+"/later", c.ws+"/to"))
		return c.write("to", "evil"), exists(outside + "/later")
	}},
	{"dots", func(_ *testing.T, c *fileCaller, outside string) (message, bool) {
		return c.write("../"+filepath.Base(outside)+"/new", "x"), exists(outside + "/new")
	}},
	{"an atomic write through a link", func(_ *testing.T, c *fileCaller, outside string) (message, bool) {
		return c.do("fs/writeFile", "out/new", "dataBase64", "eA==", "atomic", true), exists(outside + "/new")
	}},
	{"a protected name", func(_ *testing.T, c *fileCaller, _ string) (message, bool) {
		return c.write(".git/hooks/pre-commit", "evil"), exists(c.ws + "/.git/hooks/pre-commit")
	}},
	{"removal of a protected name", func(_ *testing.T, c *fileCaller, _ string) (message, bool) {
		return c.do("fs/remove", ".git"), !exists(c.ws + "/.git/hooks")
	}},
	{"a missing protected name", func(_ *testing.T, c *fileCaller, _ string) (message, bool) {
		return c.do("fs/createDirectory", ".codex/rules"), exists(c.ws + "/.codex/rules")
	}},
	{"a denied path", func(_ *testing.T, c *fileCaller, _ string) (message, bool) {
		m := c.do("fs/readFile", "secret/key")
		return m, strings.Contains(string(m.Result), base64.StdEncoding.EncodeToString([]byte("key")))
	}},
	{"a denied path by a link", func(t *testing.T, c *fileCaller, _ string) (message, bool) {
		check(t, os.Symlink("secret", c.ws+"/s"))
		m := c.do("fs/open", "s/key", "handleId", "h")
		return m, m.Error == nil
	}},
	{"a copy of a denied path", func(_ *testing.T, c *fileCaller, _ string) (message, bool) {
		m := c.call("fs/copy", map[string]any{
			"sourcePath": "file://" + c.ws + "/secret/key", "destinationPath": "file://" + c.ws + "/copy", "recursive": true, "sandbox": c.sandbox,
		})
		return m, content(c.ws+"/copy") == "key"
	}},
	{"a copy to the outside", func(_ *testing.T, c *fileCaller, outside string) (message, bool) {
		m := c.call("fs/copy", map[string]any{
			"sourcePath": "file://" + c.ws + "/d", "destinationPath": "file://" + outside + "/d", "recursive": true, "sandbox": c.sandbox,
		})
		return m, exists(outside + "/d")
	}},
	{"removal outside", func(_ *testing.T, c *fileCaller, outside string) (message, bool) {
		return c.do("fs/remove", "out/file"), !exists(outside + "/file")
	}},
	{"a directory outside", func(_ *testing.T, c *fileCaller, outside string) (message, bool) {
		return c.do("fs/createDirectory", "out/a/b"), exists(outside + "/a")
	}},
	{"a handle outside", func(_ *testing.T, c *fileCaller, outside string) (message, bool) {
		m := c.do("fs/open", "out/file", "handleId", "h", "mode", "replace")
		return m, content(outside+"/file") != "file"
	}},
	{"a rename to the outside", func(_ *testing.T, c *fileCaller, outside string) (message, bool) {
		return c.rename(c.ws+"/d", outside+"/d"), exists(outside + "/d")
	}},
	{"a rename from the outside", func(_ *testing.T, c *fileCaller, outside string) (message, bool) {
		return c.rename(outside+"/file", c.ws+"/file"), !exists(outside + "/file")
	}},
	{"a rename through a link", func(_ *testing.T, c *fileCaller, outside string) (message, bool) {
		return c.rename(c.ws+"/d", c.ws+"/out/d"), exists(outside + "/d")
	}},
	{"a rename of a protected name", func(_ *testing.T, c *fileCaller, _ string) (message, bool) {
		return c.rename(c.ws+"/.git", c.ws+"/git"), !exists(c.ws + "/.git/hooks")
	}},
	{"a rename to a protected name", func(t *testing.T, c *fileCaller, _ string) (message, bool) {
		check(t, os.Mkdir(c.ws+"/d/rules", 0o755))
		return c.rename(c.ws+"/d", c.ws+"/.codex"), exists(c.ws + "/.codex/rules")
	}},
	{"a rename of a denied path", func(_ *testing.T, c *fileCaller, _ string) (message, bool) {
		return c.rename(c.ws+"/secret/key", c.ws+"/key"), exists(c.ws + "/key")
	}},
	{"permissions outside", func(t *testing.T, c *fileCaller, outside string) (message, bool) {
		m := c.do("fs/chmod", "out/file", "mode", 0o777)
		info, err := os.Stat(outside + "/file")
		check(t, err)
		return m, info.Mode().Perm() == 0o777
	}},
	{"permissions by a link to a file", func(t *testing.T, c *fileCaller, outside string) (message, bool) {
		check(t, os.Symlink(outside+"/file", c.ws+"/to"))
		m := c.do("fs/chmod", "to", "mode", 0o777)
		info, err := os.Stat(outside + "/file")
		check(t, err)
		return m, info.Mode().Perm() == 0o777
	}},
	{"permissions of a protected name", func(t *testing.T, c *fileCaller, _ string) (message, bool) {
		m := c.do("fs/chmod", ".git/hooks", "mode", 0o700)
		info, err := os.Stat(c.ws + "/.git/hooks")
		check(t, err)
		return m, info.Mode().Perm() == 0o700
	}},
	{"a new link outside", func(_ *testing.T, c *fileCaller, outside string) (message, bool) {
		m := c.do("fs/symlink", "out/link", "target", "file")
		_, err := os.Lstat(outside + "/link")
		return m, err == nil
	}},
	{"a new link in a protected name", func(_ *testing.T, c *fileCaller, _ string) (message, bool) {
		m := c.do("fs/symlink", ".git/hooks/pre-commit", "target", "/bin/true")
		_, err := os.Lstat(c.ws + "/.git/hooks/pre-commit")
		return m, err == nil
	}},
	{"appending outside", func(_ *testing.T, c *fileCaller, outside string) (message, bool) {
		return c.do("fs/append", "out/file", "dataBase64", "eA=="), content(outside+"/file") != "file"
	}},
	{"appending by a new link", func(t *testing.T, c *fileCaller, outside string) (message, bool) {
		if m := c.do("fs/symlink", "to", "target", outside+"/file"); m.Error != nil {
			t.Errorf("the link: %+v", m.Error)
		}
		return c.do("fs/append", "to", "dataBase64", "eA=="), content(outside+"/file") != "file"
	}},
	{"a path that is swapped for a link between two calls", func(t *testing.T, c *fileCaller, outside string) (message, bool) {
		if m := c.write("d/before", "x"); m.Error != nil {
			t.Errorf("the write before: %+v", m.Error)
		}
		check(t, errors.Join(os.Rename(c.ws+"/d", c.ws+"/moved"), os.Symlink(outside, c.ws+"/d")))
		return c.write("d/new", "x"), exists(outside + "/new")
	}},
}

// TestFileAttacks: what a sandbox of file operations keeps closed, in whatever way a path leads
// there. Each attack is made without a sandbox as well, where it must succeed.
func TestFileAttacks(t *testing.T) {
	testenv.NeedUserNS(t)
	server := run(t, options())
	for _, test := range fileAttacks {
		t.Run(test.name, func(t *testing.T) {
			for _, wall := range []bool{true, false} {
				top, err := filepath.EvalSymlinks(t.TempDir())
				check(t, err)
				ws, outside := top+"/ws", top+"/outside"
				for _, dir := range []string{ws + "/.git/hooks", ws + "/secret", ws + "/d", outside} {
					check(t, os.MkdirAll(dir, 0o755))
				}
				check(t, errors.Join(os.WriteFile(ws+"/secret/key", []byte("key"), 0o644), os.WriteFile(outside+"/file", []byte("file"), 0o644),
					os.Symlink(outside, ws+"/out")))
				peer, _ := meet(t, server, nil)
				c := &fileCaller{caller: peer, ws: ws}
				if wall {
					c.sandbox = confined(ws)
				}
				m, effect := test.attack(t, c, outside)
				if effect == wall || (m.Error != nil) != wall {
					t.Errorf("in a sandbox: %v, the effect: %v, the answer: %+v %s", wall, effect, m.Error, m.Result)
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
	top, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	ws, outside := top+"/ws", top+"/outside"
	check(t, errors.Join(os.MkdirAll(ws+"/d", 0o755), os.Mkdir(outside, 0o755), os.Symlink(outside, ws+"/link")))
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
			ws, err := filepath.EvalSymlinks(t.TempDir())
			check(t, err)
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
	top, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
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
	open["permissions"] = map[string]any{"type": "managed", "network": "enabled", "file_system": map[string]any{"type": "unrestricted"}}
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
	ws, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
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
		if n, err := unix.Poll(ends[i:i+1], 20_000); n != 1 {
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
	if m := c.do("fs/readFile", "large"); m.Error == nil || m.Error.Code != -32600 || !strings.Contains(m.Error.Message, "fs/open") {
		t.Errorf("a large file: %.100v %s", m.Error, m.Result[:min(len(m.Result), 100)])
	}
	check(t, os.Truncate(ws+"/large", 11<<20))
	if m := c.do("fs/readFile", "large"); m.Error != nil || len(m.Result) < 11<<20 {
		t.Errorf("a file that fits: %+v", m.Error)
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
		peer.until(func(m *message) bool { return m.Method == "fs/missingChanged" })
		if got := peer.events[len(peer.events)-1]; fmt.Sprint(got.Params.WatchID) != name {
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
		if m := peer.call("fs/watchMissing", params); m.Error == nil || !strings.Contains(m.Error.Message, test.want) {
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
