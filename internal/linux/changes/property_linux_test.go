// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// A known file is what a model knows of one.
type known struct {
	file, content string // the content of a link is where it leads
	mode          fs.FileMode
	attr          string
}

// files describes what is in a directory, by path.
func (s *stage) files(dir string) map[string]known {
	s.Helper()
	out := map[string]known{}
	s.must(filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		k := known{mode: info.Mode() & (fs.ModePerm | fs.ModeSetuid)}
		var b []byte
		switch info.Mode().Type() {
		case 0:
			k.file = "file"
			b, err = os.ReadFile(path)
			k.content = string(b)
		case fs.ModeDir:
			k.file = "dir"
		case fs.ModeSymlink:
			k.file = "symlink"
			k.content, err = os.Readlink(path)
		default:
			k.file = "special"
		}
		if n, attrErr := syscall.Getxattr(path, "user.k", make([]byte, 4<<10)); k.file != "symlink" &&
			attrErr == nil {
			k.attr = fmt.Sprint(n)
		}
		at, _ := filepath.Rel(dir, path)
		out[at] = k
		return err
	}))
	return out
}

// differences is the model: the changes from one tree to another, one a line.
func differences(old, now map[string]known) string {
	var lines []string
	under := func(tree map[string]known, dir string) (n int) {
		for at := range tree {
			if strings.HasPrefix(at, dir+"/") {
				n++
			}
		}
		return n
	}
	paths := maps.Clone(old)
	maps.Copy(paths, now)
	for _, at := range slices.Sorted(maps.Keys(paths)) {
		a, was := old[at]
		b, is := now[at]
		gone := false // with a directory above
		for dir := filepath.Dir(at); dir != "."; dir = filepath.Dir(dir) {
			gone = gone || now[dir].file != "dir"
		}
		kind := ""
		switch {
		case gone:
		case !is:
			kind = executor.ChangeDeleted
			if a.file == "dir" {
				if n := under(old, at); n > 0 {
					lines = append(lines, fmt.Sprintf("%s %s %d", kind, at, n))
					continue
				}
			}
		case !was && (b.file != "dir" || under(now, at) == 0):
			kind = executor.ChangeAdded
		case !was:
		case a.file != b.file:
			kind = executor.ChangeType
		case a.content != b.content:
			kind = executor.ChangeModified
		case a != b:
			kind = executor.ChangeMode
		}
		if kind != "" {
			lines = append(lines, kind+" "+at+" 0")
		}
	}
	return strings.Join(lines, "\n")
}

// randomOp draws an operation on a few names.
func randomOp(r *rand.Rand) op {
	name := func() string {
		names := []string{"a", "b", "c-d", "é\n", `q"\`, "x y"}
		at := names[r.IntN(len(names))]
		for range r.IntN(3) {
			at += "/" + names[r.IntN(len(names))]
		}
		return at
	}
	text := func() string {
		var b strings.Builder
		for range r.IntN(40) {
			fmt.Fprintf(&b, "line %d\n", r.IntN(8))
		}
		if r.IntN(4) == 0 {
			b.WriteString("no end")
		}
		return b.String()
	}
	do := []string{"write", "write", "write", "replace", "append", "mkdirs", "mkdirs", "remove", "removeall",
		"rename", "symlink",
		"link", "chmod", "attr", "fifo", "times", "open", "truncate"}
	o := op{Do: do[r.IntN(len(do))], A: name(), B: name(), Data: text(),
		Mode: []uint32{0o644, 0o755, 0o600}[r.IntN(3)]}
	switch o.Do {
	case "mkdirs":
		o.A += "/" + name()
	case "open":
		o.Data = ""
	case "attr":
		o.B = "k"
	case "truncate":
		o.Mode = uint32(r.IntN(9))
	case "chmod":
		o.Mode |= 0o500 // the model has to look into it
	}
	return o
}

func randomOps(r *rand.Rand, n int) []op {
	out := make([]op, n)
	for i := range out {
		out[i] = randomOp(r)
	}
	return out
}

// TestProperty: after random operations in a stage, in several runs, exactly the difference to a direct run
// of the same operations is listed, and its diff makes the same files of the host's.
func TestProperty(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for seed := range 15 { // git apply removes no directory with an empty one in it, as some more would want
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			fill := slices.DeleteFunc(randomOps(r, 40), func(o op) bool {
				return o.Do == "link" || o.Do == "fifo" // an overlay breaks links where it changes files
			})
			s := newStage(t, fill...)
			direct := t.TempDir()
			s.perform(&childJob{Dir: direct, Ops: fill})
			before := s.files(s.host)
			if diff := cmp.Diff(before, s.files(direct), cmp.AllowUnexported(known{})); diff != "" {
				t.Fatal(diff)
			}
			for round := range 3 {
				ops := randomOps(r, 15)
				a, b := s.run(ops...), s.perform(&childJob{Dir: direct, Ops: ops})
				if a != b {
					t.Fatalf("the operations differ: %s\n%s", a, b)
				}
				entries := s.read()
				want := differences(before, s.files(direct))
				if diff := cmp.Diff(strings.Split(want, "\n"),
					strings.Split(kinds(entries), "\n")); diff != "" {
					t.Fatalf("round %d (-want +got):\n%s\n%v", round, diff, ops)
				}
				for i := range entries {
					if why := entries[i].Conflict(); why != "" {
						t.Errorf("%s: conflict %s", entries[i].Path, why)
					}
				}
				s.applied(entries, direct)
			}
			if diff := cmp.Diff(before, s.files(s.host), cmp.AllowUnexported(known{})); diff != "" {
				t.Errorf("the host's files were changed: %s", diff)
			}
		})
	}
}

func kinds(entries []Entry) string {
	var lines []string
	for i := range entries {
		if e := &entries[i]; !e.Way {
			lines = append(lines, fmt.Sprintf("%s %s %d", e.Kind, e.Path, e.Entries))
		}
	}
	return strings.Join(lines, "\n")
}

// applied checks that git apply makes of a copy of the host's files what a direct run has made, but for what
// no diff has.
func (s *stage) applied(entries []Entry, direct string) {
	s.Helper()
	git := testenv.NeedProgram(s, "git")
	var patch bytes.Buffer
	s.must(Diff(s.Context(), &patch, entries, s.layers, s.host))
	copied := filepath.Join(s.TempDir(), "copy")
	s.must(os.CopyFS(copied, os.DirFS(s.host)))
	if patch.Len() == 0 {
		return
	}
	for _, args := range [][]string{{"apply", "--check", "-"}, {"apply", "-"}} {
		cmd := exec.Command(git, args...)
		cmd.Dir, cmd.Stdin = copied, bytes.NewReader(patch.Bytes())
		cmd.Env = append(testenv.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(copied),
			"HOME="+s.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil && strings.Contains(patch.String(), "\ndiff --git") {
			s.Fatalf("git %v: %v: %s\n%s", args, err, out, patch.Bytes())
		}
	}
	after, made := s.files(direct), s.files(copied)
	for at, k := range after {
		if k.file == "special" { // and what was there stays
			delete(made, at)
		}
	}
	shown := func(tree map[string]known) map[string]known {
		maps.DeleteFunc(tree, func(_ string, k known) bool { return k.file == "dir" || k.file == "special" })
		for at, k := range tree {
			if k.attr = ""; k.file == "file" {
				k.mode &= 0o100
			}
			tree[at] = k
		}
		return tree
	}
	if diff := cmp.Diff(shown(after), shown(made), cmp.AllowUnexported(known{})); diff != "" {
		s.Fatalf("after git apply (-want +got):\n%s\n%s", diff, patch.Bytes())
	}
}
