// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package reach

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// workspace makes a directory with files, each with its own name as its text if it has none.
func workspace(t *testing.T, files map[string]string) string {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := hostfacts.RealPath(t.TempDir())
	for name, text := range files {
		at := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(at), 0o755) //nolint:gosec // a workspace
		if to, ok := strings.CutPrefix(text, "-> "); ok {
			err = errors.Join(err, os.Symlink(to, at))
		} else {
			err = errors.Join(err, testenv.WriteProgram(at, text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func command(dir string, args ...string) *ApprovedCommand {
	return &ApprovedCommand{
		Local: true, Args: args, Dir: dir, Env: []string{"PATH=" + dir + "/venv:/usr/bin:/bin"},
		Policy: sandbox.WorkspaceWrite(dir).Bind(sandbox.Places{Dir: dir}),
	}
}

// TestFiles: each file that a command runs or reads, and that commands can change, counts once, by its
// part in the command; what it writes does not.
func TestFiles(t *testing.T) {
	dir := workspace(t, map[string]string{
		"run.sh": "#!/bin/sh\n", "lib.sh": "x", "deep/in.sh": "x", "data": "x", "out": "x", "link": "-> run.sh", "bin/run": "#!" + "/usr/bin/env -S interp -x\n",
		"venv/interp": "#!/bin/sh\n", "venv/tool": "x", "chain": "#!./second\n", "second": "#!./third -a\n", "third": "x", "a.tar": "x",
		"venv/python3": "-> /bin/sh", "a/b/two": "x",
		"by-unset": "#!/usr/bin/env -S -u FOO interp\n", "by-quoted": "#!/usr/bin/env -S \"interp\" -x\n",
		"by-chdir": "#!/usr/bin/env -S -C a/b ./two\n", "by-script": "#!/bin/sh ./lib.sh\n", "by-option": "#!/usr/bin/env -S sh -c 'tool; . ./lib.sh'\n",
	})
	for _, test := range []struct {
		line string
		want string
	}{
		{"./run.sh", "program run.sh"},
		{"./link", "program run.sh"},
		{"tool data", "program venv/tool, argument data"},
		{"env -i ./run.sh data", "program run.sh, argument data"},
		{"nice -n 5 tool", "program venv/tool"},
		{"bin/run", "program bin/run, interpreter venv/interp"},
		{"./chain", "program chain, interpreter second, interpreter third"},
		{"sh lib.sh data", "script lib.sh, argument data"},
		{"python3 lib.sh", "program /bin/sh, script lib.sh"},
		{"sh run.sh", "script run.sh"},
		{"sh -c|./run.sh data", "program run.sh, argument data"},
		{"bash -c|. ./lib.sh; tool", "program venv/tool, script lib.sh"},
		{"bash -c|source lib.sh && $X data", "script lib.sh"},
		{"bash -c|cd deep && sh in.sh", "script deep/in.sh"},
		{"bash -c|cd a && cd b && ./two", "program a/b/two"},
		{"bash -c|pushd a/b; ./two", "program a/b/two"},
		{"env -C a/b ./two", "program a/b/two"},
		{"env --chdir=a/b ./two", "program a/b/two"},
		{"env -Ca/b ./two", "program a/b/two"},
		{"nice env --chdir a/b sh two", "script a/b/two"},
		{"sudo -D a/b ./two", "program a/b/two"},
		{"./by-unset", "program by-unset, interpreter venv/interp"},
		{"./by-quoted", "program by-quoted, interpreter venv/interp"},
		{"./by-chdir", "program by-chdir, interpreter a/b/two"},
		{"./by-script", "program by-script, script lib.sh"},
		{"./by-option", "program by-option, interpreter venv/tool, script lib.sh"},
		{"bash -c|cat data | tee -a out", "argument data"},
		{"cat data none .", "argument data"},
		{"tool --config=data", "program venv/tool, argument data"},
		{"cc -c data -o out", "argument data"},
		{"cc --output=out data", "argument data"},
		{"tee -a out", ""}, {"touch out data", ""}, {"rm -rf data", ""}, {"mkdir out", ""}, {"go build -o out data", "argument data"},
		{"cp data out", "argument data"}, {"cp -t out data", "argument data"}, {"mv data out", "argument data"}, {"install -m 755 data out", "argument data"},
		{"dd if=data of=out", "argument data"},
		{"tar -xf a.tar", "argument a.tar"}, {"tar xf a.tar", "argument a.tar"}, {"tar -czf out data", "argument data"}, {"tar czf out data", "argument data"},
		{"unzip -o a.tar", "argument a.tar"}, {"grep -o data out", "argument data, argument out"},
		{"sed -i s/a/b/ data", ""}, {"sed -n s/a/b/p data", "argument data"}, {"sed -ni p data", ""},
		{"chmod +x data", ""}, {"tool -- -o out", "program venv/tool, argument out"},
	} {
		t.Run(test.line, func(t *testing.T) {
			first, script, isScript := strings.Cut(test.line, "|")
			args := strings.Fields(first)
			if isScript {
				args = append(args, script)
			}
			l := TakeLook(command(dir, args...), false)
			defer l.Close()
			var got []string
			for _, f := range l.Files {
				text, err := os.ReadFile(f.Path)
				if sum := sha256.Sum256(text); err != nil || f.Digest != hex.EncodeToString(sum[:]) {
					t.Errorf("the digest of %s is %s, %v", f.Path, f.Digest, err)
				}
				name := strings.TrimPrefix(f.Path, dir+"/")
				if name == hostfacts.RealPath("/bin/sh") {
					name = "/bin/sh"
				}
				got = append(got, string(f.Role)+" "+name)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, ", ")); diff != "" || l.Err != nil {
				t.Errorf("(-want +got):\n%s%v", diff, l.Err)
			}
		})
	}
}

// TestProgramDigest: it is that of the file alone, also of a program that commands cannot change.
func TestProgramDigest(t *testing.T) {
	dir := workspace(t, map[string]string{"run.sh": "#!/bin/sh\n"})
	for _, args := range [][]string{{"./run.sh"}, {"cat", "run.sh"}, {"cat"}} {
		l := TakeLook(command(dir, args...), false)
		text, err := os.ReadFile(l.Program)
		if sum := sha256.Sum256(text); err != nil || l.ProgramDigest() != hex.EncodeToString(sum[:]) {
			t.Errorf("%q: %s, %v", args, l.ProgramDigest(), err)
		}
		l.Close()
	}
}

// TestUnreadable: what a command runs and cannot be read is an error, and has no digest by other means.
func TestUnreadable(t *testing.T) {
	testenv.RunAsOrdinary(t)
	dir := workspace(t, map[string]string{"run.sh": "#!/bin/sh\n", "interp": "#!/bin/sh\n",
		"by": "#!./interp\n", "large": "x", "venv/none": "x"})
	for _, err := range []error{
		os.Chmod(filepath.Join(dir, "run.sh"), 0o311), os.Chmod(filepath.Join(dir, "interp"), 0o311),
		os.Truncate(filepath.Join(dir, "large"), maxBytes+1),
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		line string
		role approval.Role
		mode bool // root reads it
	}{
		{"./run.sh", approval.RoleProgram, true},
		{"sh run.sh", approval.RoleScript, true},
		{"cat run.sh", approval.RoleArgument, true},
		{"env ./run.sh", approval.RoleProgram, true},
		{"./by", approval.RoleInterpreter, true},
		{"./large", approval.RoleProgram, false},
		{"sh pipe", approval.RoleScript, false},
	} {
		if test.mode && os.Geteuid() == 0 {
			continue
		}
		l := TakeLook(command(dir, strings.Fields(test.line)...), false)
		var un *approval.UnreadableError
		if !errors.As(l.Err, &un) || un.Role != test.role || un.Err == nil {
			t.Errorf("%s: %v", test.line, l.Err)
		}
		if test.line == "./run.sh" && l.ProgramDigest() != "" {
			t.Errorf("%s has the digest %s", test.line, l.ProgramDigest())
		}
		l.Close()
	}
	l := TakeLook(command(dir, "rm", "run.sh"), false)
	defer l.Close()
	if l.Err != nil {
		t.Error(l.Err)
	}
}

// TestChanged: what is done to the files between the look and the start is seen, whatever its time says.
func TestChanged(t *testing.T) {
	const program = "#!/bin/sh\necho good\n"
	evil := strings.Replace(program, "good", "evil", 1)
	for name, change := range map[string]func(at string) error{
		"nothing": func(string) error { return nil },
		"in place, with its time": func(at string) error {
			info, err := os.Stat(at)
			f, oerr := os.OpenFile(at, os.O_WRONLY, 0)
			if err = errors.Join(err, oerr); err != nil {
				return err
			}
			_, err = f.WriteString(evil)
			return errors.Join(err, f.Close(), os.Chtimes(at, info.ModTime(), info.ModTime()))
		},
		"replaced": func(at string) error {
			return errors.Join(os.WriteFile(at+"2", []byte(program), 0o755), os.Rename(at+"2", at))
		}, //nolint:gosec // a program
		"for a link":  func(at string) error { return errors.Join(os.Rename(at, at+"2"), os.Symlink(at+"2", at)) },
		"its mode":    func(at string) error { return os.Chmod(at, 0o700) },
		"removed":     os.Remove,
		"a directory": func(at string) error { return errors.Join(os.Remove(at), os.Mkdir(at, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := workspace(t, map[string]string{"run": program})
			l := TakeLook(command(dir, "./run"), false)
			defer l.Close()
			if err := change(filepath.Join(dir, "run")); err != nil {
				t.Fatal(err)
			}
			if said := l.Changed(); (said == "") != (name == "nothing") {
				t.Errorf("%q", said)
			}
		})
	}
}

// TestOwnOutput: the key of an approval for the session stays when the command has done its work, and is
// another one when what it runs or reads has changed.
func TestOwnOutput(t *testing.T) {
	for line, changes := range map[string]map[string]bool{
		"tee -a log":               {"log": false},
		"touch log":                {"log": false},
		"cp data log":              {"log": false, "data": true},
		"./build data -o log":      {"log": false, "data": true, "build": true},
		"sh build --out=log":       {"log": false, "build": true},
		"sh -c|./build >log":       {"log": false, "build": true},
		"sh -c|cat data | tee log": {"log": false, "data": true},
	} {
		for changed, want := range changes {
			t.Run(line+", "+changed, func(t *testing.T) {
				dir := workspace(t, map[string]string{"log": "x", "data": "x", "build": "#!/bin/sh\n"})
				first, script, isScript := strings.Cut(line, "|")
				args := strings.Fields(first)
				if isScript {
					args = append(args, script)
				}
				before := IdentityOf(command(dir, args...)).Key()
				if err := testenv.WriteProgram(filepath.Join(dir, changed), "#!/bin/sh\nmore\n"); err != nil {
					t.Fatal(err)
				}
				if after := IdentityOf(command(dir, args...)).Key(); (before != after) != want || before == "" {
					t.Errorf("another question: %v, want %v", before != after, want)
				}
			})
		}
	}
}

// TestOutputsNamed: a table cannot be about what is no name of a program.
func TestOutputsNamed(t *testing.T) {
	for name := range outputs() {
		if name != filepath.Base(name) || slices.Contains([]string{"", ".", "source"}, name) {
			t.Errorf("%q", name)
		}
	}
}
