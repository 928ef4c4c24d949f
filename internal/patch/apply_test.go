// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// twenty makes a tree and a patch that does everything with twenty files of it.
func twenty(t testing.TB, tree string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("*** Begin Patch\n")
	for i := range 20 {
		name := fmt.Sprintf("d%d/f%d", i%3, i)
		if i%5 != 0 {
			put(t, filepath.Join(tree, name), fmt.Sprintf("a\nb%d\nc\n", i))
		}
		switch i % 5 {
		case 0:
			fmt.Fprintf(&b, "*** Add File: new%d/%s\n+x\n", i, name)
		case 1, 2:
			fmt.Fprintf(&b, "*** Update File: %s\n@@\n-b%d\n+B\n", name, i)
		case 3:
			fmt.Fprintf(&b, "*** Delete File: %s\n", name)
		case 4:
			fmt.Fprintf(&b, "*** Update File: %s\n*** Move to: moved/%d\n@@\n a\n+B\n", name, i)
		}
	}
	put(t, filepath.Join(tree, "file"), "x\n")
	b.WriteString("*** Delete File: file\n*** Add File: file/in/its/place\n+y\n*** End Patch")
	return b.String()
}

func put(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func makePlan(t testing.TB, text, tree string) *Plan {
	t.Helper()
	p, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := Make(context.Background(), p, Options{Dir: tree, Allow: within(tree)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { plan.Close() })
	return plan
}

// killedEnv has the tree, the journals and the step at which the process kills itself.
const killedEnv = "PATCH_TEST_KILLED"

// TestKilledHelper is the process that TestKilled kills.
func TestKilledHelper(t *testing.T) {
	words := strings.Split(os.Getenv(killedEnv), "|")
	if len(words) != 3 {
		return // it is for a process of TestKilled
	}
	at := 0
	if _, err := fmt.Sscan(words[2], &at); err != nil {
		t.Fatal(err)
	}
	n := 0
	kill := func() {
		if n++; n == at {
			p, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = p.Kill()
			}
			if err != nil {
				panic(err)
			}
			select {}
		}
	}
	if os.Getenv("PATCH_TEST_RECOVER") != "" {
		dir, _, err := openJournals(words[1])
		if err != nil {
			t.Fatal(err)
		}
		if err := recoverAll(dir, nil, kill); err != nil {
			t.Fatal(err)
		}
		return
	}
	text := string(testenv.ReadFile(t, filepath.Join(words[1], "patch")))
	if err := makePlan(t, text, words[0]).apply(context.Background(), words[1], kill); err != nil {
		t.Fatal(err)
	}
}

// killed runs the helper, and reports whether it was killed.
func killed(t *testing.T, tree, journals string, at int, more ...string) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledHelper$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%d", killedEnv, tree, journals, at))
	cmd.Env = append(cmd.Env, more...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() == 1 && strings.Contains(string(out), "FAIL") {
		t.Fatalf("at %d: %v\n%s", at, err, out)
	}
	return err != nil
}

// recoverIn is what a patch does first with the directory of its journals.
func recoverIn(path string) error {
	dir, unlock, err := openJournals(path)
	if err != nil {
		return err
	}
	return errors.Join(recoverAll(dir, nil, func() {}), unlock())
}

// TestDamagedJournal: what is no journal of ours is named, and nothing is done because of it.
func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"", `{"ID":`, `{"ID":"x","Steps":[{"Path":"file"}]}`,
		`{"ID":"x","Dirs":["d"],"Steps":[{"Path":"/x"}]}`,
		`{"Form":3,"ID":"x","Steps":[{"Path":"L3g="}]}`, `{"Form":1,"ID":"x","Steps":[{"Path":"eA=="}]}`} {
		journals := testenv.RealTemp(t)
		put(t, filepath.Join(journals, "a.undo"), content)
		if err := recoverIn(journals); err == nil || !strings.Contains(err.Error(), "a.undo, is damaged") {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// TestHinderedJournal: what a cut patch left and cannot be undone stops patches of the same files, and no
// others.
func TestHinderedJournal(t *testing.T) {
	t.Parallel()
	tree, journals := testenv.RealTemp(t), testenv.RealTemp(t)
	for _, name := range []string{"a", "b", "d/c"} {
		put(t, filepath.Join(tree, name), "old\n")
	}
	j := newJournal()
	for _, name := range []string{"a", "d"} {
		j.Steps = append(j.Steps, journalStep{Path: fileName(filepath.Join(tree, name)), Sum: "x"})
	}
	dir, unlock, err := openJournals(journals)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.write(dir, func() {}), unlock()); err != nil {
		t.Fatal(err)
	}
	inTheWay := filepath.Join(tree, j.beside(0, "new"))
	put(t, filepath.Join(inTheWay, "full"), "")
	apply := func(name string) error {
		text := "*** Begin Patch\n*** Update File: " + name + "\n@@\n-old\n+new\n*** End Patch"
		_, err := applyText(text, Options{Dir: tree, Allow: within(tree)}, journals)
		return err
	}
	for _, name := range []string{"a", "d/c"} {
		err := apply(name)
		for _, want := range []string{j.ID + undoSuffix, filepath.Join(tree, "a"), filepath.Base(inTheWay)} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want the name %s", name, err, want)
			}
		}
	}
	if err := apply("b"); err != nil {
		t.Error("a patch of another file:", err)
	}
	if err := os.RemoveAll(inTheWay); err != nil {
		t.Fatal(err)
	}
	if err := apply("a"); err != nil {
		t.Error("nothing hinders it:", err)
	}
	if left, _ := filepath.Glob(filepath.Join(journals, "*.*")); len(left) > 0 {
		t.Errorf("journals are left: %v", left)
	}
}

// TestKilled kills a patch at each change to a file system, and the repair at each change of its own.
func TestKilled(t *testing.T) {
	t.Parallel()
	before, after := testenv.RealTemp(t), testenv.RealTemp(t)
	twenty(t, before)
	text := twenty(t, after)
	if err := makePlan(t, text, after).Apply(context.Background(), testenv.RealTemp(t)); err != nil {
		t.Fatal(err)
	}
	olds, news := testenv.Contents(t, before), testenv.Contents(t, after)
	undone, done := 0, 0
	for at := 1; ; at++ {
		tree, journals := testenv.RealTemp(t), testenv.RealTemp(t)
		twenty(t, tree)
		put(t, filepath.Join(journals, "patch"), text)
		if !killed(t, tree, journals, at) {
			break
		}
		if at%7 == 0 { // the repair is killed as well: at its first change, at its second
			for again := 1; killed(t, tree, journals, again, "PATCH_TEST_RECOVER=1"); again++ {
				continue
			}
		}
		if err := recoverIn(journals); err != nil {
			t.Fatalf("at %d: %v", at, err)
		}
		got := testenv.Contents(t, tree)
		switch {
		case cmp.Equal(got, olds):
			undone++
		case cmp.Equal(got, news):
			done++
		default:
			t.Fatalf("at %d a mixture is left:\n%s\n%s", at, cmp.Diff(olds, got), cmp.Diff(news, got))
		}
		if left, _ := filepath.Glob(filepath.Join(journals, "*.*")); len(left) > 0 {
			t.Fatalf("at %d journals are left: %v", at, left)
		}
	}
	t.Logf("killed at %d changes: %d old trees, %d new ones", undone+done, undone, done)
	if undone < 20 || done < 2 {
		t.Error("that is too few")
	}
}

// TestAllOrNothing lets a change of somebody else come between.
func TestAllOrNothing(t *testing.T) {
	t.Parallel()
	const begin, end = "*** Begin Patch\n", "*** End Patch"
	const patch = begin + "*** Update File: a\n@@\n-a\n+A\n*** Add File: new/x\n+x\n" +
		"*** Update File: z\n@@\n-z\n+Z\n" + end
	tests := []struct {
		name    string
		between func(t *testing.T, tree string)
	}{
		{"a file was written", func(t *testing.T, tree string) { put(t, filepath.Join(tree, "z"), "zz\n") }},
		{"a file became a link", func(t *testing.T, tree string) {
			z := filepath.Join(tree, "z")
			if err := errors.Join(os.Remove(z), os.Symlink("a", z)); err != nil {
				t.Fatal(err)
			}
		}},
		{"a file went", func(t *testing.T, tree string) {
			if err := os.Remove(filepath.Join(tree, "z")); err != nil {
				t.Fatal(err)
			}
		}},
		{"a new file is there", func(t *testing.T, tree string) {
			put(t, filepath.Join(tree, "new/x"), "other\n")
		}},
		{"a directory became a link", func(t *testing.T, tree string) {
			if err := os.Symlink(os.TempDir(), filepath.Join(tree, "new")); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tree := testenv.RealTemp(t)
			put(t, filepath.Join(tree, "a"), "a\n")
			put(t, filepath.Join(tree, "z"), "z\n")
			plan := makePlan(t, patch, tree)
			test.between(t, tree)
			want := testenv.Contents(t, tree)
			if err := plan.Apply(context.Background(), testenv.RealTemp(t)); err == nil {
				t.Error("it says nothing")
			}
			if diff := cmp.Diff(want, testenv.Contents(t, tree)); diff != "" {
				t.Error("it changed (- before, + after):", diff)
			}
		})
	}
}

// TestWrittenMeanwhile has another program write to a file, with its old time, before each change to the file
// system: what it wrote is never lost, and the patch is done or not, as a whole.
func TestWrittenMeanwhile(t *testing.T) {
	t.Parallel()
	const text = "*** Begin Patch\n*** Update File: a\n@@\n-a\n+A\n" +
		"*** Update File: z\n@@\n-z\n+Z\n*** End Patch"
	for at := 1; ; at++ {
		tree, n := testenv.RealTemp(t), 0
		a, z := filepath.Join(tree, "a"), filepath.Join(tree, "z")
		put(t, a, "a\n")
		put(t, z, "z\n")
		plan := makePlan(t, text, tree)
		info, err := os.Stat(z)
		if err != nil {
			t.Fatal(err)
		}
		err = plan.apply(context.Background(), testenv.RealTemp(t), func() {
			if n++; n == at {
				put(t, z, "y\n")
				if err := os.Chtimes(z, info.ModTime(), info.ModTime()); err != nil {
					t.Error(err)
				}
			}
		})
		if n < at {
			break
		}
		got := testenv.Contents(t, tree)
		was := "a\n"
		if err == nil {
			was = "A\n"
		}
		if string(testenv.ReadFile(t, z)) != "y\n" || string(testenv.ReadFile(t, a)) != was {
			t.Errorf("at %d: %v, %v", at, err, got)
		}
	}
}

// TestNoUTF8 kills a patch of a file whose name, and directory, are no UTF-8: both are brought back.
func TestNoUTF8(t *testing.T) {
	t.Parallel()
	const file = "caf\xe9/caf\xe9"
	for at := 1; ; at++ {
		tree, journals := testenv.RealTemp(t), testenv.RealTemp(t)
		if err := os.Mkdir(filepath.Join(tree, "caf\xe9"), 0o755); err != nil {
			t.Log("this file system has only names in UTF-8: ", err)
			return
		}
		put(t, filepath.Join(tree, file), "old\n")
		put(t, filepath.Join(journals, "patch"), "*** Begin Patch\n*** Update File: "+file+
			"\n@@\n-old\n+new\n*** End Patch")
		again := killed(t, tree, journals, at)
		if err := recoverIn(journals); err != nil {
			t.Fatal(err)
		}
		got := testenv.Contents(t, tree)
		text := string(testenv.ReadFile(t, filepath.Join(tree, file)))
		if len(got) != 2 || text != "old\n" && text != "new\n" {
			t.Fatalf("at %d: %v", at, got)
		}
		if !again {
			break
		}
	}
}

// TestTooMuch: what would take all memory, or hours, is an error.
func TestTooMuch(t *testing.T) {
	t.Parallel()
	many := strings.Repeat
	const update = "*** Begin Patch\n*** Update File: f\n"
	for name, c := range map[string]struct {
		file, text string
		size       int64
		want       error
	}{
		"a large file": {"", update + "@@\n-x\n+y\n*** End Patch", 1 << 40, errTooLarge},
		"lines that are almost found": {many("a\n", 200_000),
			update + "@@\n" + many("-a\n", 100_000) + "-b\n*** End Patch", 0, errWork},
		"chunks that are found late": {many("a \n", 100_000),
			update + many("@@\n-a\n+b\n", 50_000) + "*** End Patch", 0, errWork},
		"a file that is read again and again": {many("a\n", 10_000),
			update + many("@@\n-a\n+a\n"+update[len("*** Begin Patch\n"):], 9_000) + "@@\n a\n*** End Patch",
			0, errWork},
		"many hunks": {"", "*** Begin Patch\n" + many("*** Add File: x\n", maxHunks+1) + "*** End Patch",
			0, errHunks},
	} {
		t.Run(name, func(t *testing.T) {
			tree := testenv.RealTemp(t)
			f := filepath.Join(tree, "f")
			put(t, f, c.file)
			if c.size > 0 {
				if err := os.Truncate(f, c.size); err != nil {
					t.Fatal(err)
				}
			}
			_, err := applyText(c.text, Options{Dir: tree, Allow: within(tree)}, testenv.RealTemp(t))
			if !errors.Is(err, c.want) || err.Error() == "" {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// TestOutside names what lies in no root.
func TestOutside(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, hunk string }{
		{"above", "*** Add File: ../x\n+x"},
		{"absolute", "*** Add File: /x\n+x"},
		{"a link to a file", "*** Add File: file-link\n+x"},
		{"a link to a directory", "*** Add File: dir-link/x\n+x"},
		{"an update by a link", "*** Update File: file-link\n@@\n-out\n+x"},
		{"a deletion by a link", "*** Delete File: dir-link/out"},
		{"a move by a link", "*** Update File: in\n*** Move to: dir-link/x\n@@\n-in\n+x"},
		{"the root", "*** Delete File: ."},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			top := testenv.RealTemp(t)
			tree := filepath.Join(top, "tree")
			put(t, filepath.Join(tree, "in"), "in\n")
			put(t, filepath.Join(top, "out/out"), "out\n")
			err := errors.Join(os.Symlink("../out/out", filepath.Join(tree, "file-link")),
				os.Symlink(filepath.Join(top, "out"), filepath.Join(tree, "dir-link")))
			if err != nil {
				t.Fatal(err)
			}
			want := testenv.Contents(t, top)
			text := "*** Begin Patch\n" + test.hunk + "\n*** End Patch"
			_, err = applyText(text, Options{Dir: tree, Allow: within(tree)}, testenv.RealTemp(t))
			if outside := (*OutsideError)(nil); !errors.As(err, &outside) {
				t.Errorf("got %v, want an OutsideError", err)
			}
			if diff := cmp.Diff(want, testenv.Contents(t, top)); diff != "" {
				t.Error("it changed (- before, + after):", diff)
			}
		})
	}
}
