// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestKeptOutput: with history.output what runs print is kept for its user, without what looks like a secret,
// the newest history.runs of it; what the command prints on a terminal, and without the setting all, is not.
func TestKeptOutput(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	s := newSeat(t)
	dir := filepath.Join(s.home, "sallyport", "output")
	kept := func() (all []string) {
		files, _ := os.ReadDir(dir) // none without output
		for _, f := range files {
			info, err := f.Info()
			if err != nil || info.Mode() != 0o600 {
				t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
			}
			all = append(all, string(testenv.ReadFile(t, filepath.Join(dir, f.Name()))))
		}
		return all
	}
	if out, code := s.answer(t, "run", "--json", "--", "echo", "not kept"); code != 0 || len(kept()) != 0 {
		t.Fatalf("%d, %s: %q", code, out, kept())
	}
	s.write(t, "../home/.config/sallyport/config.toml",
		"history = { output = '1MiB', runs = 4 }\n")
	secret := "token=ghp_" + strings.Repeat("a1B2", 9)
	for _, test := range []struct {
		name, want string
		words      []string
	}{
		{"both streams in order", "a\nb\nc\n", []string{"sh", "-c", "echo a; echo b >&2; echo c"}},
		{"captured", "kept\n", []string{"--json", "--", "sh", "-c", `printf '\033[31mkept\033[0m\n'`}},
		{"a secret", "token=***\n", []string{"echo", secret}},
		{"a terminal of its own", "hello\n", []string{"-t", "--", "echo", "hello"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := len(kept())
			out, code := s.answer(t, append([]string{"run"}, test.words...)...)
			found := false
			for _, text := range kept() {
				found = found || text == test.want
			}
			if code != 0 || !found || len(kept()) != before+1 {
				t.Errorf("%d, %q: kept is %q", code, out, kept())
			}
		})
	}
	x := s.run(t, "--", "sh", "-c", "test -t 1 && echo own")
	x.Expect("own")
	if code := x.Wait(); code != 0 || len(kept()) != 4 {
		t.Errorf("on a terminal: %d, %q", code, kept())
	}
	for _, flags := range []string{"", "--ro " + s.home, "--rw " + s.home, "--net host --allow unix"} {
		words := append(append([]string{"run", "-q"}, strings.Fields(flags)...), "--", "sh", "-c",
			`cat "$0"/* || ls "$0" || touch "$0"/0`, dir)
		if out, code := s.answer(t, words...); code == 0 || len(kept()) != 4 {
			t.Errorf("%s: a command sees the output of others: %d, %s", flags, code, out)
		}
	}
	if list, _ := s.answer(t, "why", "--list"); strings.Count(list, "\n") != 4 || len(kept()) != 4 {
		t.Errorf("%d outputs, of the runs\n%s", len(kept()), list)
	}
}

// TestKeptOutputReader: a program whose output is kept ends with its reader, and is recorded, as one that
// writes itself.
func TestKeptOutputReader(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, settings := range []string{"", "history.output = '64MiB'\n"} {
		s := newSeat(t)
		s.write(t, "../home/.config/sallyport/config.toml", settings)
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd := s.command(t, "sallyport", "run", "--", "sh", "-c", "while :; do echo y; done")
		said := new(strings.Builder)
		cmd.Stdout, cmd.Stderr = write, said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_ = write.Close()
		if _, err := read.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
		_ = read.Close()
		_ = cmd.Wait() // the exit code says it
		list, _ := s.answer(t, "why", "--list")
		if code := testenv.Code(cmd.ProcessState); code != 141 || said.String() != "" ||
			!regexp.MustCompile(`signaled .*echo y`).MatchString(list) {
			t.Errorf("%q: exit code %d, %q, recorded\n%s", settings, code, said, list)
		}
	}
}
