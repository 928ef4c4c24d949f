// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// readTests are what operations in an overlay leave, with the host's files of [TestRead].
var readTests = []struct {
	name string
	ops  []op
	want string
}{
	{"nothing", nil, ""},
	{"added", []op{{Do: "write", A: "new", Data: "12345"}}, "added new file 0644 5 0\n"},
	{"modified", []op{{Do: "write", A: "a", Data: "onE\n"}}, "modified a file 0644 4 4\n"},
	{"modified in size", []op{{Do: "append", A: "d/x", Data: "more"}}, "modified d/x file 0644 6 2\n"},
	{"deleted", []op{{Do: "remove", A: "a"}}, "deleted a file 0644 0 4\n"},
	{"opened for writing", []op{{Do: "open", A: "a"}, {Do: "open", A: "d/e/z"}}, ""},
	{"written with the same", []op{{Do: "write", A: "a", Data: "one\n"},
		{Do: "replace", A: "b", Data: "two\n"}}, ""},
	{"times", []op{{Do: "times", A: "a"}, {Do: "times", A: "d"}}, ""},
	{"mode", []op{{Do: "chmod", A: "a", Mode: 0o600}, {Do: "chmod", A: "d", Mode: 0o700}},
		"mode a file 0600 4 4\nmode d dir 0700 0 0\n"},
	{"mode and content", []op{{Do: "write", A: "a", Data: "new\n"}, {Do: "chmod", A: "a", Mode: 0o600}},
		"modified a file 0600 4 4\n"},
	{"attributes", []op{{Do: "attr", A: "a", B: "k", Data: "v"}, {Do: "attr", A: "d", B: "k", Data: "v"}},
		"mode a file 0644 4 4\nmode d dir 0755 0 0\n"},
	{"renamed", []op{{Do: "rename", A: "a", B: "d/q"}},
		"deleted a file 0644 0 4\nadded d/q file 0644 4 0\n"},
	{"new directories", []op{{Do: "mkdirs", A: "n/m/o"}, {Do: "write", A: "n/m/f"}},
		"added n/m/f file 0644 0 0\nadded n/m/o dir 0755 0 0\n"},
	{"an empty directory", []op{{Do: "mkdir", A: "n", Mode: 0o700}}, "added n dir 0700 0 0\n"},
	{"made and removed", []op{{Do: "mkdirs", A: "n/m"}, {Do: "write", A: "n/m/f"},
		{Do: "removeall", A: "n"}}, ""},
	{"deleted directory", []op{{Do: "removeall", A: "d"}}, "deleted d dir 0755 0 0 entries=4\n"},
	{"replaced directory", []op{{Do: "removeall", A: "d"}, {Do: "mkdir", A: "d", Mode: 0o755},
		{Do: "write", A: "d/x", Data: "x\n"}, {Do: "write", A: "d/n"}},
		"deleted d/e dir 0755 0 0 entries=1\nadded d/n file 0644 0 0\ndeleted d/y file 0644 0 2\n"},
	{"replaced and equal", []op{{Do: "removeall", A: "d"}, {Do: "mkdir", A: "d", Mode: 0o755},
		{Do: "write", A: "d/x", Data: "x\n"},
		{Do: "write", A: "d/y", Data: "y\n"}, {Do: "mkdir", A: "d/e", Mode: 0o755},
		{Do: "write", A: "d/e/z", Data: "z\n"}}, ""},
	{"directory to file", []op{{Do: "removeall", A: "d"}, {Do: "write", A: "d", Data: "f"}},
		"type d file 0644 1 0\n"},
	{"directory to link", []op{{Do: "removeall", A: "d"}, {Do: "symlink", A: "d", B: "/etc"}},
		"type d symlink 0777 0 0\n"},
	{"file to directory", []op{{Do: "remove", A: "a"}, {Do: "mkdir", A: "a", Mode: 0o755},
		{Do: "write", A: "a/i", Data: "i"}},
		"type a dir 0755 0 4\nadded a/i file 0644 1 0\n"},
	{"link", []op{{Do: "remove", A: "link"}, {Do: "symlink", A: "link", B: "b"}},
		"modified link symlink 0777 0 0\n"},
	{"the same link", []op{{Do: "remove", A: "link"}, {Do: "symlink", A: "link", B: "a"}}, ""},
	{"link to file", []op{{Do: "remove", A: "link"}, {Do: "write", A: "link", Data: "a"}},
		"type link file 0644 1 0\n"},
	{"binary", []op{{Do: "write", A: "a", Data: "o\x00e\n"}, {Do: "write", A: "bin", Data: "text"},
		{Do: "write", A: "n", Data: "\x00"}},
		"modified a file 0644 4 4 binary\nmodified bin file 0644 4 2 binary\nadded n file 0644 1 0 " +
			"binary\n"},
	{"binary and deleted", []op{{Do: "remove", A: "bin"}}, "deleted bin file 0644 0 2 binary\n"},
	{"special", []op{{Do: "fifo", A: "p"}}, "added p special 0600 0 0\n"},
	{"hard links", []op{{Do: "write", A: "h", Data: "1"}, {Do: "link", A: "h", B: "i"}},
		"added h file 0644 1 0\nadded i file 0644 1 0\n"},
	{"odd names", []op{{Do: "write", A: "a\nb"}, {Do: "write", A: "\xff\xfe"}, {Do: "write", A: " "}},
		"added   file 0644 0 0\nadded a\nb file 0644 0 0\nadded \xff\xfe file 0644 0 0\n"},
	{"order", []op{{Do: "mkdir", A: "s"}, {Do: "write", A: "s/1"}, {Do: "write", A: "s-1"},
		{Do: "write", A: "s0"}},
		"added s-1 file 0644 0 0\nadded s/1 file 0644 0 0\nadded s0 file 0644 0 0\n"},
	{"run later", []op{{Do: "mkdirs", A: ".git/hooks"}, {Do: "mkdirs", A: ".git/objects/aa"},
		{Do: "write", A: ".git/hooks/pre-commit"},
		{Do: "write", A: ".git/objects/aa/b"}, {Do: "write", A: ".git/index"},
		{Do: "write", A: ".git/config"}, {Do: "mkdir", A: ".vscode"},
		{Do: "write", A: ".vscode/tasks.json"}, {Do: "write", A: "d/.envrc"}},
		"added .git/config file 0644 0 0 later\nadded .git/hooks/pre-commit file 0644 0 0 later\nadded " +
			".git/index file 0644 0 0\n" +
			"added .git/objects/aa/b file 0644 0 0\nadded .vscode/tasks.json file 0644 0 0 later\n" +
			"added d/.envrc file 0644 0 0 later\n"},
	{"without permissions", []op{{Do: "mkdir", A: "n"}, {Do: "write", A: "n/f", Data: "\x00"},
		{Do: "chmod", A: "n/f", Mode: 0}, {Do: "chmod", A: "n", Mode: 0}},
		"added n/f file 0000 1 0 binary\n"},
	{"the root", []op{{Do: "chmod", A: ".", Mode: 0o700}}, "mode . dir 0700 0 0\n"},
}

// TestRead compares what operations in an overlay leave with what is listed.
func TestRead(t *testing.T) {
	testenv.RunAsOrdinary(t)
	host := []op{
		{Do: "write", A: "a", Data: "one\n"}, {Do: "write", A: "b", Data: "two\n"},
		{Do: "write", A: "run", Data: "#!\n", Mode: 0o755},
		{Do: "write", A: "bin", Data: "\x00\x01"}, {Do: "symlink", A: "link", B: "a"},
		{Do: "mkdir", A: "d", Mode: 0o755}, {Do: "write", A: "d/x", Data: "x\n"},
		{Do: "write", A: "d/y", Data: "y\n"},
		{Do: "mkdir", A: "d/e", Mode: 0o755}, {Do: "write", A: "d/e/z", Data: "z\n"},
	}
	for _, c := range readTests {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, host...)
			if out := s.run(c.ops...); out != "" {
				t.Fatal(out)
			}
			if diff := cmp.Diff(c.want, s.list()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			again, err := OpenBase(s.base.file)
			s.must(err)
			if diff := cmp.Diff(s.base.roots, again.roots, cmp.AllowUnexported(rootKey{})); diff != "" {
				t.Errorf("the record that was read again (-want +got):\n%s", diff)
			}
			if out := s.run(); out != "" || s.list() != c.want {
				t.Errorf("after another run: %s", s.list())
			}
		})
	}
}
