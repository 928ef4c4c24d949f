// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestFileLinks: a link that is not followed has the codes and the texts that clients know, in a sandbox
// and without one.
func TestFileLinks(t *testing.T) {
	const way, end, kind = "Not a directory (os error 20)", "Too many levels of symbolic links (os error 40)",
		"path contains a symbolic link"
	for _, in := range []string{"without a sandbox", "in a sandbox"} {
		t.Run(in, func(t *testing.T) {
			ws := realDir(t)
			peer, _ := meet(t, run(t, options()), nil)
			c := &fileCaller{caller: peer, ws: ws}
			if in == "in a sandbox" {
				testenv.NeedUserNS(t)
				c.sandbox = confinement(ws, "root", "/nowhere")
			}
			check(t, errors.Join(os.Mkdir(ws+"/dir", 0o755), os.WriteFile(ws+"/dir/file", []byte("x"), 0o600),
				os.Symlink("dir", ws+"/to"), os.Symlink("dir/file", ws+"/link")))
			for _, test := range []struct {
				method, path string
				code         int64
				says         string
				more         []any
			}{
				{"fs/readFile", "to/file", -32603, way, nil},
				{"fs/readFile", "link", -32603, end, nil},
				{"fs/open", "link", -32603, end, []any{"handleId", "h"}},
				{"fs/writeFile", "to/new", -32603, way, []any{"dataBase64", ""}},
				{"fs/writeFile", "link", -32603, end, []any{"dataBase64", ""}},
				{"fs/writeFile", "link", -32603, end, []any{"dataBase64", "", "atomic", true}},
				{"fs/append", "link", -32603, end, []any{"dataBase64", ""}},
				{"fs/chmod", "link", -32603, end, []any{"mode", 0o600}},
				{"fs/createDirectory", "to/new", -32603, way, nil},
				{"fs/createDirectory", "to", -32603, way, nil},
				{"fs/createDirectory", "to", -32603, "File exists (os error 17)", []any{"recursive", false}},
				{"fs/getMetadata", "to/file", -32603, way, nil},
				{"fs/getMetadata", "link", -32600, kind, nil},
				{"fs/remove", "link", -32600, kind, []any{"recursive", false}},
				{"fs/remove", "to/file", -32603, way, []any{"recursive", false}},
				{"fs/remove", "dir", -32603, "recursive no-follow removal is unsupported", nil},
				{"fs/readFile", "missing", -32004, "No such file or directory (os error 2)", nil},
			} {
				m := c.do(test.method, test.path, append([]any{"followSymlinks", false}, test.more...)...)
				if m.Error == nil || int64(m.Error.Code) != test.code || m.Error.Message != test.says {
					t.Errorf("%s %s: %+v, want %d %s", test.method, test.path, m.Error, test.code, test.says)
				}
			}
			if content(ws+"/dir/file") != "x" || exists(ws+"/dir/new") {
				t.Error("something was written behind a link")
			}
		})
	}
}

// TestListings: nothing is in a workspace for its missing protected names, in a sandbox, beside it, and
// in a copy.
func TestListings(t *testing.T) {
	testenv.NeedUserNS(t)
	ws, server := realDir(t), run(t, options())
	first, _ := meet(t, server, nil)
	second, _ := meet(t, server, nil)
	in, beside := &fileCaller{caller: first, ws: ws, sandbox: confinement(ws, "root", "/nowhere")},
		&fileCaller{caller: second, ws: ws}
	check(t, errors.Join(os.Mkdir(ws+"/dir", 0o755), os.WriteFile(ws+"/file", nil, 0o600)))
	if m := in.write("file", "x"); m.Error != nil {
		t.Fatalf("%+v", m.Error)
	}
	for _, name := range sandbox.ProtectedNames() {
		if exists(filepath.Join(ws, name)) {
			t.Errorf("%s is there", name)
		}
	}
	for place, c := range map[string]*fileCaller{"in the sandbox": in, "beside it": beside} {
		for _, m := range []message{
			c.do("fs/readDirectory", ""),
			c.do("fs/walk", "", "options", map[string]any{"maxDepth": 3, "maxDirectories": 9,
				"maxEntries": 99, "followDirectorySymlinks": false}),
		} {
			var list struct {
				Entries []struct{ FileName, Path string }
			}
			if m.Error != nil || json.Unmarshal(m.Result, &list) != nil {
				t.Fatalf("%s: %+v", place, m)
			}
			var names []string
			for _, e := range list.Entries {
				names = append(names, e.FileName+strings.TrimPrefix(e.Path, "file://"+ws+"/"))
			}
			if got := strings.Join(names, " "); got != "dir file" {
				t.Errorf("%s: %s", place, got)
			}
		}
		for _, name := range sandbox.ProtectedNames() {
			if m := c.do("fs/getMetadata", name); m.Error == nil || m.Error.Code != -32004 {
				t.Errorf("%s: %s is described: %+v", place, name, m)
			}
		}
	}
	to := realDir(t) + "/copy"
	if m := beside.call("fs/copy", map[string]any{"sourcePath": "file://" + ws, "destinationPath": "file://" +
		to, "recursive": true}); m.Error != nil {
		t.Fatalf("%+v", m.Error)
	}
	if names, err := os.ReadDir(to); len(names) != 2 || err != nil {
		t.Errorf("copied: %v, %v", names, err)
	}
}

// realDir returns a new directory by its path without links.
func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	return dir
}
