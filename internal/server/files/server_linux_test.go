// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

type output struct{ bytes.Buffer }

func (*output) Close() error { return nil }

// TestServe: each line has one answer, in order, also one that is no request about files.
func TestServe(t *testing.T) {
	dir := wire.URI(t.TempDir())
	in := `{"id":1,"method":"fs/writeFile","params":{"path":"` + dir + `/a","dataBase64":"eA=="}}
{"id":2,"method":"fs/readFile","params":{"path":"` + dir + `/a"}}
{"id":3,"method":"fs/readFile","params":{}}
{"id":4,"method":"process/start","params":{}}
{"id":5,"method":"fs/readFile","params":{"path":"` + dir + `/b"}}
`
	var out output
	if err := Serve("linux", io.NopCloser(strings.NewReader(in)), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	wants := []string{`"id":1,"result":{}`, `"dataBase64":"eA=="`, `-32602`, `-32600`, `-32004`}
	if len(lines) != len(wants) {
		t.Fatalf("%q", lines)
	}
	for i, want := range wants {
		if !strings.Contains(lines[i], want) {
			t.Errorf("%s, want %s", lines[i], want)
		}
	}
}

// TestInspect: a root that has something is an error with the reason, not a list of nothing.
func TestInspect(t *testing.T) {
	empty, full := t.TempDir(), t.TempDir()
	file := filepath.Join(full, "SKILL.md")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		root wire.CapabilityRoot
		want string // in the error; empty for none
	}{
		{"empty", wire.CapabilityRoot{Path: wire.URI(empty)}, ""},
		{"something", wire.CapabilityRoot{Path: wire.URI(full)}, "the protocol does not define the files of plugins and skills"},
		{"a file", wire.CapabilityRoot{Path: wire.URI(file)}, "not a directory"},
		{"missing", wire.CapabilityRoot{Path: wire.URI(filepath.Join(empty, "x"))}, "no such file"},
		{"in a sandbox", wire.CapabilityRoot{Path: wire.URI(empty), Sandbox: &wire.Sandbox{}}, "in a sandbox is not supported"},
		{"no URI", wire.CapabilityRoot{Path: empty}, "invalid URI"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := (&Server{System: "linux"}).Inspect(test.root)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
