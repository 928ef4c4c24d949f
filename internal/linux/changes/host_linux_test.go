// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// tick waits until the kernel's stamps of files are later than now: it makes files until one is.
func (s *stage) tick() {
	s.Helper()
	name := filepath.Join(s.TempDir(), "tick")
	for start := Now(); ; {
		s.must(os.WriteFile(name, nil, 0o600))
		var st unix.Stat_t
		s.must(unix.Stat(name, &st))
		if time.Unix(st.Ctim.Unix()).After(start) {
			return
		}
		s.must(os.Remove(name))
	}
}

// TestHostChanged: what others change on the host after the stage has met it is a conflict, unless it is the
// same change.
func TestHostChanged(t *testing.T) {
	testenv.RunAsOrdinary(t)
	host := []op{{Do: "write", A: "a", Data: "one\n"}, {Do: "mkdirs", A: "d/e"},
		{Do: "write", A: "d/x", Data: "x\n"}, {Do: "write", A: "d/e/y"}}
	tests := []struct {
		name        string
		ops, others []op
		want        string
	}{
		{"content", []op{{Do: "append", A: "a", Data: "2"}}, []op{{Do: "write", A: "a", Data: "zwei\n"}},
			"modified a file 0644 5 5 conflict=content\n"},
		{"the same content", []op{{Do: "write", A: "a", Data: "same"}},
			[]op{{Do: "write", A: "a", Data: "same"}}, ""},
		{"replaced", []op{{Do: "append", A: "a", Data: "2"}}, []op{{Do: "replace", A: "a", Data: "one\n"}},
			"modified a file 0644 5 4 conflict=content\n"},
		{"mode", []op{{Do: "append", A: "a", Data: "2"}}, []op{{Do: "chmod", A: "a", Mode: 0o600}},
			"modified a file 0644 5 4 conflict=mode\n"},
		{"another file", []op{{Do: "append", A: "a", Data: "2"}}, []op{{Do: "write", A: "b"},
			{Do: "append", A: "d/x", Data: "x"}}, "modified a file 0644 5 4\n"},
		{"deleted by others", []op{{Do: "append", A: "a", Data: "2"}}, []op{{Do: "remove", A: "a"}},
			"added a file 0644 5 0 conflict=deleted\n"},
		{"deleted by both", []op{{Do: "remove", A: "a"}, {Do: "removeall", A: "d"}},
			[]op{{Do: "remove", A: "a"}, {Do: "removeall", A: "d"}}, ""},
		{"deleted and changed", []op{{Do: "remove", A: "a"}}, []op{{Do: "append", A: "a", Data: "2"}},
			"deleted a file 0644 0 5 conflict=content\n"},
		{"made by both", []op{{Do: "write", A: "n", Data: "1"}}, []op{{Do: "write", A: "n", Data: "2"}},
			"modified n file 0644 1 1 conflict=content\n"},
		{"made as something else", []op{{Do: "write", A: "n", Data: "1"}}, []op{{Do: "mkdirs", A: "n"}},
			"type n file 0644 1 0 conflict=kind\n"},
		{"made with another mode", []op{{Do: "write", A: "n", Data: "1"}},
			[]op{{Do: "write", A: "n", Data: "1", Mode: 0o600}}, "mode n file 0644 1 1 conflict=mode\n"},
		{"another kind", []op{{Do: "append", A: "a", Data: "2"}}, []op{{Do: "remove", A: "a"},
			{Do: "symlink", A: "a", B: "d"}}, "type a file 0644 5 0 conflict=kind\n"},
		{"a mode of a directory on the way", []op{{Do: "append", A: "d/x", Data: "2"}},
			[]op{{Do: "chmod", A: "d", Mode: 0o711}}, "modified d/x file 0644 3 2\n"},
		{"modes of a directory", []op{{Do: "chmod", A: "d", Mode: 0o700}},
			[]op{{Do: "chmod", A: "d", Mode: 0o711}}, "mode d dir 0700 0 0 conflict=mode\n"},
		{"new in a deleted directory", []op{{Do: "removeall", A: "d"}}, []op{{Do: "write", A: "d/e/n"}},
			"deleted d dir 0755 0 0 entries=4 conflict=content\n"},
		{"changed in a deleted directory", []op{{Do: "removeall", A: "d"}},
			[]op{{Do: "append", A: "d/x", Data: "x"}}, "deleted d dir 0755 0 0 entries=3 conflict=content\n"},
		{"gone from a deleted directory", []op{{Do: "removeall", A: "d"}}, []op{{Do: "remove", A: "d/x"}},
			"deleted d dir 0755 0 0 entries=2\n"},
		{"new in a replaced directory", []op{{Do: "removeall", A: "d"}, {Do: "mkdirs", A: "d"},
			{Do: "write", A: "d/x", Data: "x\n"}}, []op{{Do: "write", A: "d/n"}},
			"deleted d/e dir 0755 0 0 entries=1\ndeleted d/n file 0644 0 0 conflict=content\n"},
		{"new where a file is now", []op{{Do: "removeall", A: "d"}, {Do: "write", A: "d"}},
			[]op{{Do: "write", A: "d/e/n"}}, "type d file 0644 0 0 conflict=content\n"},
		{"both made a directory", []op{{Do: "mkdirs", A: "n"}, {Do: "write", A: "n/a"}},
			[]op{{Do: "mkdirs", A: "n"}, {Do: "write", A: "n/b"}}, "added n/a file 0644 0 0\n"},
		{"both made a file in it", []op{{Do: "mkdirs", A: "n"}, {Do: "write", A: "n/a", Data: "1"}},
			[]op{{Do: "mkdirs", A: "n"}, {Do: "write", A: "n/a"}},
			"modified n/a file 0644 1 0 conflict=content\n"},
		{"opened only", []op{{Do: "open", A: "a"}}, nil, ""},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, host...)
			if out := s.run(c.ops...); out != "" {
				t.Fatal(out)
			}
			s.tick()
			if out := s.perform(&childJob{Dir: s.host, Ops: c.others}); out != "" {
				t.Fatal(out)
			}
			if diff := cmp.Diff(c.want, s.list()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if s.run(); s.list() != c.want {
				t.Errorf("after another run: %s", s.list())
			}
		})
	}
}

// TestChangedDuringRun: a host's file that is changed after a run has copied it, and before its end, is a
// conflict; one that was changed in the run before that is none.
func TestChangedDuringRun(t *testing.T) {
	s := newStage(t, op{Do: "write", A: "a", Data: "one\n"}, op{Do: "write", A: "b", Data: "one\n"},
		op{Do: "mkdirs", A: "d"})
	start := Now()
	s.tick()
	s.must(os.WriteFile(filepath.Join(s.host, "b"), []byte("two\n"), 0o644))
	s.tick()
	s.perform(&childJob{Dir: s.host, Upper: s.upper, Work: s.work,
		Ops: []op{{Do: "append", A: "a", Data: "+"},
			{Do: "append", A: "b", Data: "+"}, {Do: "removeall", A: "d"}}})
	s.tick()
	s.must(os.WriteFile(filepath.Join(s.host, "a"), []byte("two\n"), 0o644),
		os.WriteFile(filepath.Join(s.host, "d/n"), nil, 0o644))
	s.must(s.base.Update(t.Context(), s.layers, start))
	want := "modified a file 0644 5 4 conflict=content\nmodified b file 0644 5 4\ndeleted d dir 0755 0 0 " +
		"entries=1 conflict=content\n"
	if diff := cmp.Diff(want, s.list()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestApplied: what was applied is the base of later changes.
func TestApplied(t *testing.T) {
	s := newStage(t, op{Do: "write", A: "a", Data: "one\n"}, op{Do: "write", A: "b"})
	s.run(op{Do: "append", A: "a", Data: "+"}, op{Do: "mkdirs", A: "n"}, op{Do: "write", A: "n/x"},
		op{Do: "write", A: "n/y"}, op{Do: "remove", A: "b"})
	s.tick()
	s.perform(&childJob{Dir: s.host, Ops: []op{{Do: "append", A: "a", Data: "+"}, {Do: "mkdirs", A: "n"},
		{Do: "write", A: "n/x"}, {Do: "remove", A: "b"}}})
	s.must(os.Remove(filepath.Join(s.upper, "b")))
	if got := s.list(); got != "added n/y file 0644 0 0\n" {
		t.Error(got)
	}
	entries := []Entry{{}, {Way: true}, {}, {}}
	for i, path := range []string{"a", "n", "n/x", "b"} {
		entries[i].Path, entries[i].Root = path, s.host
	}
	s.must(s.base.Applied(s.layers, entries))
	s.run(op{Do: "append", A: "a", Data: "+"}, op{Do: "append", A: "n/x", Data: "+"}, op{Do: "write", A: "b"})
	if got, want := s.list(), "modified a file 0644 6 5\nadded b file 0644 0 0\nmodified n/x file 0644 1 "+
		"0\nadded n/y file 0644 0 0\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestOneFile: a layer of one file compares the copy, and nothing beside it.
func TestOneFile(t *testing.T) {
	s := newStage(t, op{Do: "write", A: "a", Data: "one\n"}, op{Do: "write", A: "b"})
	s.tick()
	s.must(os.WriteFile(filepath.Join(s.upper, "a"), []byte("one\n"), 0o644),
		os.Chmod(filepath.Join(s.upper, "a"), 0o644))
	s.layers[0].Name = "a"
	s.must(s.base.Update(t.Context(), s.layers, Now()))
	if got := s.list(); got != "" {
		t.Error(got)
	}
	s.must(os.WriteFile(filepath.Join(s.upper, "a"), []byte("2"), 0o644))
	if got := s.list(); got != "modified a file 0644 1 4\n" {
		t.Error(got)
	}
	var out bytes.Buffer
	s.must(Diff(t.Context(), &out, s.read(), s.layers, "/elsewhere"))
	if at := s.host[1:]; !strings.HasPrefix(out.String(), "diff --git a/"+at+"/a b/"+at+"/a\n") {
		t.Errorf("a root outside of the workspace: %s", out.Bytes())
	}
	s.must(os.Remove(filepath.Join(s.upper, "a")))
	if _, err := Read(t.Context(), s.layers, s.base); err == nil ||
		!strings.Contains(err.Error(), "lost its copy") {
		t.Errorf("without the copy: %v", err)
	}
}

// TestDeep: trees that are deeper than paths can be, and than a process may open files, are read whole.
func TestDeep(t *testing.T) {
	s := newStage(t, op{Do: "deep", A: "old", Mode: 100})
	depth := testenv.Rounds(150, 1_000)
	if out := s.run(op{Do: "deep", A: "old", Mode: 110}, op{Do: "deep", A: "new", Mode: uint32(depth)},
		op{Do: "chmod", A: "old/" + level, Mode: 0o700}); out != "" {
		t.Fatal(out)
	}
	last := func(entries []Entry) (changes []string) {
		for i := range entries {
			if e := &entries[i]; !e.Way {
				changes = append(changes, fmt.Sprintf("%s %d %s", e.Kind, strings.Count(e.Path, "/"),
					filepath.Base(e.Path)))
			}
		}
		return changes
	}
	entries := s.read()
	want := []string{fmt.Sprintf("added %d end", depth+1), "mode 1 " + level, "added 111 end"}
	if diff := cmp.Diff(want, last(entries)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	var out bytes.Buffer
	s.must(Diff(t.Context(), &out, entries, s.layers, s.host))
	if n := strings.Count(out.String(), "\n+deep\n"); n != 2 {
		t.Errorf("the diff has %d files", n)
	}
	s.run(op{Do: "removeall", A: "old"})
	if entries := s.read(); entries[len(entries)-1].Entries != 101 {
		t.Errorf("the deleted tree has %d entries", entries[len(entries)-1].Entries)
	}
}

// TestBad: what cannot be read is an error that names it.
func TestBad(t *testing.T) {
	s := newStage(t, op{Do: "write", A: "a"})
	s.must(os.Symlink(s.upper, s.upper+"-link"))
	t.Cleanup(func() { s.must(os.Remove(s.upper + "-link")) })
	for name, l := range map[string]Layer{
		"no root":    {Root: s.host + "-none", Upper: s.upper},
		"no upper":   {Root: s.host, Upper: s.upper + "-none"},
		"a file":     {Root: filepath.Join(s.host, "a"), Upper: s.upper},
		"a link":     {Root: s.host, Upper: s.upper + "-link"},
		"below that": {Root: s.host, Upper: s.upper + "-link/x"},
	} {
		_, err := Read(t.Context(), []Layer{l}, nil)
		var at *fs.PathError
		if !errors.As(err, &at) {
			t.Errorf("%s: Read: %v", name, err)
		}
		if err := s.base.Update(t.Context(), []Layer{l}, Now()); err == nil {
			t.Errorf("%s: Update works", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.run(op{Do: "write", A: "n"})
	cancel()
	if _, err := Read(ctx, s.layers, s.base); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestSwapped: while names in both trees change between directories, links out of them and pipes, nothing
// outside is read, and nothing blocks.
func TestSwapped(t *testing.T) {
	s := newStage(t, op{Do: "mkdirs", A: "d"}, op{Do: "write", A: "d/f", Data: "host"})
	outside := t.TempDir()
	s.must(os.WriteFile(filepath.Join(outside, "f"), []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	s.must(os.Mkdir(filepath.Join(s.upper, "d"), 0o755), os.WriteFile(filepath.Join(s.upper, "d/f"),
		[]byte("copy"), 0o644),
		os.WriteFile(filepath.Join(s.upper, "f"), []byte("copy"), 0o644),
		os.Symlink(outside, filepath.Join(s.upper, "l")), os.Symlink(outside, filepath.Join(s.host, "l")),
		unix.Mkfifo(filepath.Join(s.upper, "p"), 0o600))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			for _, dir := range []string{s.upper, s.host} {
				for _, pair := range [][2]string{{"d", "l"}, {"f", "p"}} {
					_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, pair[0]), unix.AT_FDCWD,
						filepath.Join(dir, pair[1]), unix.RENAME_EXCHANGE)
				}
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	for range testenv.Rounds(150, 1_000) {
		entries, err := Read(t.Context(), s.layers, nil)
		if err != nil && !errors.Is(err, errChanged) {
			t.Error(err)
		}
		var out bytes.Buffer
		if err := Diff(t.Context(), &out, entries, s.layers, s.host); err != nil &&
			!errors.Is(err, errChanged) {
			t.Error(err)
		}
		for i := range entries {
			if e := &entries[i]; strings.Contains(e.Path, "secret") || e.Size == 6 || e.OldSize == 6 {
				t.Errorf("outside: %+v", e.Change)
			}
		}
		if bytes.Contains(out.Bytes(), []byte("secret")) {
			t.Errorf("outside: %s", out.Bytes())
		}
	}
	close(stop)
	<-done
}

// TestMany: 100 000 changes are listed and recorded.
func TestMany(t *testing.T) {
	testenv.Long(t)
	layers := many(t, 100_000)
	b, err := OpenBase(filepath.Join(t.TempDir(), "base"))
	if err == nil {
		err = b.Update(t.Context(), layers, time.Time{})
	}
	if err != nil {
		t.Fatal(err)
	}
	entries, err := Read(t.Context(), layers, b)
	if err != nil || len(entries) != 101_001 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	if _, err := Select(entries, []string{layers[0].Root + "/none"}); !errors.Is(err, executor.ErrNoChange) {
		t.Errorf("no change: %v", err)
	}
	if info, err := os.Stat(b.file); err != nil || info.Size() > 100_000*60 {
		t.Errorf("the record takes %v, %v", info.Size(), err)
	}
}

// TestTidy: only copies that never were a change leave the stage, and nothing else of it is touched.
func TestTidy(t *testing.T) {
	testenv.RunAsOrdinary(t)
	equal := op{Do: "open", A: "d/a"}
	tests := []struct {
		name        string
		ops, others []op
		want        string // what stays in the stage
	}{
		{"equal", []op{equal}, nil, "d"},
		{"equal again", []op{{Do: "append", A: "d/a", Data: "2"}, {Do: "write", A: "d/a", Data: "one\n"}},
			nil, "d"},
		{"beside a change", []op{{Do: "write", A: "d/new"}, equal}, nil, "d d/new"},
		{"two names", []op{equal, {Do: "link", A: "d/a", B: "d/b"}}, nil, "d d/a d/b"},
		{"the host has the change by now", []op{{Do: "append", A: "d/a", Data: "2"}},
			[]op{{Do: "append", A: "d/a", Data: "2"}}, "d d/a"},
		{"a directory that is closed", []op{equal, {Do: "chmod", A: "d", Mode: 0o555}}, nil, "d d/a"},
	}
	if os.Geteuid() == 0 {
		tests[len(tests)-1].want = "d" // nothing is closed to root
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t, op{Do: "mkdir", A: "d"}, op{Do: "write", A: "d/a", Data: "one\n"})
			if out := s.run(append(tt.ops, op{Do: "times", A: "d"})...); out != "" {
				t.Fatal(out)
			}
			s.tick()
			s.perform(&childJob{Dir: s.host, Ops: tt.others})
			before := s.list()
			entries, err := Tidy(t.Context(), s.layers, s.base)
			s.must(err)
			if got := listOf(entries); got != before || got != s.list() {
				t.Errorf("the changes are %q, were %q", got, before)
			}
			var left []string
			for at := range s.files(s.upper) {
				left = append(left, at)
			}
			slices.Sort(left)
			left = left[1:] // "."
			if got := strings.Join(left, " "); got != tt.want {
				t.Errorf("left: %s; want %s", got, tt.want)
			}
			info, err := os.Stat(filepath.Join(s.upper, "d"))
			s.must(err)
			if info.ModTime().Unix() != 1e9 {
				t.Errorf("the directory was changed %v", info.ModTime())
			}
		})
	}
}

// TestNow: no file has a time that is later than what Now returns after that.
func TestNow(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var last time.Time
	for range 100 {
		_, err := os.Stat(name) // files that were looked at get finer times
		if err == nil {
			err = os.Chmod(name, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		now := Now()
		var st unix.Stat_t
		if err := unix.Stat(name, &st); err != nil {
			t.Fatal(err)
		}
		if at := time.Unix(st.Ctim.Unix()); at.After(now) || at.Before(last) {
			t.Fatalf("changed at %v, between %v and %v", at, last, now)
		}
		last = now
	}
}
