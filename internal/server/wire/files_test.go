// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

// fileDecoders are the decoders of requests about files, by method.
var fileDecoders = map[string]func(json.RawMessage) (any, error){
	"file":            func(p json.RawMessage) (any, error) { return Decode[File](p) },
	"writeFile":       func(p json.RawMessage) (any, error) { return Decode[WriteFile](p) },
	"open":            func(p json.RawMessage) (any, error) { return Decode[Open](p) },
	"readBlock":       func(p json.RawMessage) (any, error) { return Decode[ReadBlock](p) },
	"writeBlock":      func(p json.RawMessage) (any, error) { return Decode[WriteBlock](p) },
	"close":           func(p json.RawMessage) (any, error) { return Decode[Close](p) },
	"createDirectory": func(p json.RawMessage) (any, error) { return Decode[CreateDirectory](p) },
	"walk":            func(p json.RawMessage) (any, error) { return Decode[Walk](p) },
	"remove":          func(p json.RawMessage) (any, error) { return Decode[Remove](p) },
	"rename":          func(p json.RawMessage) (any, error) { return Decode[Rename](p) },
	"chmod":           func(p json.RawMessage) (any, error) { return Decode[Chmod](p) },
	"symlink":         func(p json.RawMessage) (any, error) { return Decode[Symlink](p) },
	"append":          func(p json.RawMessage) (any, error) { return Decode[Append](p) },
	"copy":            func(p json.RawMessage) (any, error) { return Decode[Copy](p) },
}

// TestDecodeFiles has the defaults, and the texts that clients know.
func TestDecodeFiles(t *testing.T) {
	f := File{Path: "file:///a", Follow: true}
	for _, test := range []struct {
		method, params string
		want           any // a value, or the text of the error
	}{
		{"file", `{"path":"file:///a","sandbox":null,"other":1}`, &f},
		{"file", `{"path":"file:///a","followSymlinks":false}`, &File{Path: "file:///a"}},
		{"file", `{"path":"file:///a","followSymlinks":null}`, &f},
		{"file", `{}`, "missing field `path`"},
		{"file", `{"path":5}`, "invalid type: number, expected a string"},
		{"file", `{"path":"file:///a","sandbox":{}}`, "missing field `permissions`"},
		{"file", `{"path":"file:///a","sandbox":[]}`, "invalid type: sequence, expected struct FileSystemSandboxContext"},
		{"writeFile", `{"path":"file:///a","dataBase64":"aGk="}`, &WriteFile{File: f, Encoded: "aGk="}},
		{"writeFile", `{"path":"file:///a","dataBase64":"","atomic":true}`, &WriteFile{File: f, Atomic: true}},
		{"writeFile", `{"path":"file:///a","dataBase64":"!!"}`, &WriteFile{File: f, Encoded: "!!"}},
		{"writeFile", `{"path":"file:///a"}`, "missing field `dataBase64`"},
		{"open", `{"handleId":"h","path":"file:///a"}`, &Open{File: f, HandleID: "h"}},
		{"open", `{"handleId":"h","path":"file:///a","mode":"replace"}`, &Open{File: f, HandleID: "h", Mode: "replace"}},
		{"open", `{"handleId":"h","path":"file:///a","mode":"append"}`, "unknown variant `append`, expected `read` or `replace`"},
		{"readBlock", `{"handleId":"h","offset":1,"len":2}`, &ReadBlock{HandleID: "h", Offset: 1, Len: 2}},
		{"readBlock", `{"handleId":"h","offset":null,"len":2}`, "invalid type: null, expected u64"},
		{"readBlock", `{"handleId":"h","offset":-1,"len":2}`, "invalid number"},
		{"writeBlock", `{"handleId":"h","chunk":"aGk="}`, "missing field `offset`"},
		{"writeBlock", `{"handleId":"h","offset":0,"chunk":"aGk"}`, "Invalid padding"},
		{"close", `{"handleId":"h"}`, &Close{HandleID: "h"}},
		{"createDirectory", `{"path":"file:///a"}`, &CreateDirectory{File: f, Recursive: true}},
		{"createDirectory", `{"path":"file:///a","recursive":false}`, &CreateDirectory{File: f}},
		{"remove", `{"path":"file:///a","force":null}`, &Remove{File: f, Recursive: true, Force: true}},
		{"remove", `{"path":"file:///a","recursive":false,"force":false}`, &Remove{File: f}},
		{"copy", `{"sourcePath":"file:///a","destinationPath":"file:///b","recursive":false}`, &Copy{Source: "file:///a", Destination: "file:///b", Follow: true}},
		{"copy", `{"sourcePath":"file:///a","destinationPath":"file:///b"}`, "missing field `recursive`"},
		{"rename", `{"sourcePath":"file:///a","destinationPath":"file:///b"}`, &Rename{Source: "file:///a", Destination: "file:///b", Follow: true}},
		{"rename", `{"sourcePath":"file:///a","destinationPath":"file:///b","replace":true,"followSymlinks":false}`,
			&Rename{Source: "file:///a", Destination: "file:///b", Replace: true}},
		{"rename", `{"sourcePath":"file:///a"}`, "missing field `destinationPath`"},
		{"chmod", `{"path":"file:///a","mode":420}`, &Chmod{File: f, Mode: 0o644}},
		{"chmod", `{"path":"file:///a","mode":-1}`, "invalid number"},
		{"chmod", `{"path":"file:///a"}`, "missing field `mode`"},
		{"symlink", `{"path":"file:///a","target":"../b"}`, &Symlink{File: f, Target: "../b"}},
		{"symlink", `{"path":"file:///a"}`, "missing field `target`"},
		{"append", `{"path":"file:///a","dataBase64":"aGk="}`, &Append{File: f, Data: []byte("hi")}},
		{"append", `{"path":"file:///a","dataBase64":"!!"}`, "Invalid symbol 33, offset 0."},
		{"walk", `{"path":"file:///a"}`, "missing field `options`"},
		{"walk", `{"path":"file:///a","options":null}`, "invalid type: null, expected struct WalkOptions"},
		{"walk", `{"path":"file:///a","options":{"maxDepth":1,"maxDirectories":2,"maxEntries":3,"followDirectorySymlinks":true}}`,
			&Walk{File: f, WalkOptions: WalkOptions{MaxDepth: 1, MaxDirectories: 2, MaxEntries: 3,
				FollowDirectorySymlinks: true}}},
		{"walk", `{"path":"file:///a","options":{"maxDepth":1,"maxDirectories":2,"maxEntries":3}}`, "missing field `followDirectorySymlinks`"},
	} {
		t.Run(test.method+" "+test.params, func(t *testing.T) {
			got, err := fileDecoders[test.method](json.RawMessage(test.params))
			if text, isText := test.want.(string); isText {
				if err == nil || err.Error() != text {
					t.Errorf("%v, want %q", err, text)
				}
			} else if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("%+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

// TestPolicyContext: a policy that was made for other places is not taken for these.
func TestPolicyContext(t *testing.T) {
	for context, want := range map[string][]string{
		`null`: nil,
		`{}`:   nil,
		`{"cwd":"file:///w","workspaceRoots":["file:///w"]}`: nil,
		`{"cwd":"file:///"}`:              {"policyContext"},
		`{"workspaceRoots":["file:///"]}`: {"policyContext"},
		`{"workspaceRoots":[]}`:           {"policyContext"},
		`{"cwd":1}`:                       {"policyContext"},
		`[]`:                              {"policyContext"},
	} {
		f, err := Decode[File](json.RawMessage(`{"path":"file:///a","sandbox":{"permissions":{},"windowsSandboxLevel":"disabled","cwd":"file:///w","workspaceRoots":["file:///w"],"policyContext":` + context + `}}`))
		if err != nil || !slices.Equal(f.Sandbox.Unsupported, want) {
			t.Errorf("%s: %q, %v", context, f.Sandbox.Unsupported, err)
		}
	}
}

// FuzzDecodeFiles: no parameters panic, and what is accepted has what it needs.
func FuzzDecodeFiles(f *testing.F) {
	f.Add([]byte(`{"path":"file:///a","handleId":"h","offset":1,"len":2,"dataBase64":"","chunk":"","recursive":true,"options":{"maxDepth":1}}`))
	f.Add([]byte(`{"path":null,"sandbox":{"permissions":{},"policyContext":[]},"options":[]}`))
	f.Fuzz(func(t *testing.T, params []byte) {
		if !json.Valid(params) || len(params) == 0 || params[0] == ' ' {
			return // package jsonrpc gives what it has scanned
		}
		for name, decode := range fileDecoders {
			if v, err := decode(params); err == nil && reflect.ValueOf(v).IsNil() {
				t.Errorf("%s: nothing", name)
			}
		}
	})
}
