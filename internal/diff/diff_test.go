// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// indexLine is compared by TestIndex.
var indexLine = regexp.MustCompile(`(?m)^index .*\n`)

// TestIndex compares the lines with those of git diff --full-index.
func TestIndex(t *testing.T) {
	t.Parallel()
	none, empty := strings.Repeat("0", 40), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
	const a = "78981922613b2afb6025042ff6bd878ac1994e85"
	file, script := File{ModeFile, []byte("a\n")}, File{ModeExecutable, []byte("a\n")}
	for _, c := range []struct {
		old, now File
		want     string
	}{
		{File{}, file, "index " + none + ".." + a + "\n"},
		{file, File{}, "index " + a + ".." + none + "\n"},
		{File{}, File{Mode: ModeFile}, "index " + none + ".." + empty + "\n"},
		{file, File{Mode: ModeFile}, "index " + a + ".." + empty + " 100644\n"},
		{file, File{Mode: ModeExecutable}, "index " + a + ".." + empty + "\n"},
		{file, script, ""},
	} {
		if got := indexLine.FindString(string(Patch("f", c.old, c.now))); got != c.want {
			t.Errorf("%v to %v: %q, want %q", c.old, c.now, got, c.want)
		}
	}
}

func TestPatch(t *testing.T) {
	t.Parallel()
	file := func(text string) File { return File{Mode: ModeFile, Text: []byte(text)} }
	tests := []struct {
		name, path string
		old, now   File
		want       string
	}{
		{"equal", "f", file("a\n"), file("a\n"), ""},
		{"none", "f", File{}, File{}, ""},
		{"changed", "d/f", file("a\nb\nc\nd\ne\n"), file("a\nb\nX\nd\ne\n"),
			"diff --git a/d/f b/d/f\n--- a/d/f\n+++ b/d/f\n@@ -1,5 +1,5 @@\n a\n b\n-c\n+X\n d\n e\n"},
		{"one line", "f", file("a\n"), file("b\n"),
			"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"},
		{"new", "f", File{}, file("a\n"),
			"diff --git a/f b/f\nnew file mode 100644\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"},
		{"new and empty", "f", File{}, File{Mode: ModeExecutable},
			"diff --git a/f b/f\nnew file mode 100755\n"},
		{"deleted", "f", file("a"), File{},
			"diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n\\ " +
				"No newline at end of file\n"},
		{"an end of the last line", "f", file("a"), file("a\n"),
			"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		{"mode", "f", file("a\n"), File{ModeExecutable, []byte("a\n")},
			"diff --git a/f b/f\nold mode 100644\nnew mode 100755\n"},
		{"link", "f", File{}, File{ModeLink, []byte("to")},
			"diff --git a/f b/f\nnew file mode 120000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+to\n\\ No " +
				"newline at end of file\n"},
		{"another link", "f", File{ModeLink, []byte("a")}, File{ModeLink, []byte("b\n")},
			"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n"},
		{"a file becomes a link", "f", file(""), File{ModeLink, []byte("t")},
			"diff --git a/f b/f\ndeleted file mode 100644\ndiff --git a/f b/f\nnew file mode 120000\n--- " +
				"/dev/null\n+++ b/f\n" +
				"@@ -0,0 +1 @@\n+t\n\\ No newline at end of file\n"},
		{"a blank", "a b", file("a\n"), file("b\n"),
			"diff --git a/a b b/a b\n--- a/a b\t\n+++ b/a b\t\n@@ -1 +1 @@\n-a\n+b\n"},
		{"quoted", "a\nb\"\\é\x01", File{}, file(""),
			"diff --git \"a/a\\nb\\\"\\\\\\303\\251\\001\" \"b/a\\nb\\\"\\\\\\303\\251\\001\"\nnew file " +
				"mode 100644\n"},
		{"two places", "f", file("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"), file("0\n2\n3\n4\n5\n6\n7\n8\n9\n"),
			"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,4 +1,4 @@\n-1\n+0\n 2\n 3\n 4\n@@ -7,4 +7,3 @@\n " +
				"7\n 8\n 9\n-10\n"},
		{"near places", "f", file("1\n2\n3\n4\n5\n6\n7\n8\n"), file("0\n2\n3\n4\n5\n6\n7\n"),
			"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,8 +1,7 @@\n-1\n+0\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n"},
		{"fewest lines", "f", file("a\nb\nc\na\nb\nb\na\n"), file("c\nb\na\nb\na\nc\n"),
			"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,7 +1,6 @@\n-a\n+c\n b\n-c\n a\n b\n-b\n a\n+c\n"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := indexLine.ReplaceAllString(string(Patch(c.path, c.old, c.now)), "")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// apply applies hunks as strictly as can be, and counts the lines that differ.
func apply(old, hunks []byte) (now []byte, changed int, err error) {
	var lines, out []string
	for line := range strings.Lines(string(old)) {
		lines = append(lines, line)
	}
	rest := strings.SplitAfter(string(hunks), "\n")
	at := 0
	for len(rest) > 0 && rest[0] != "" {
		var a, as, b, bs int
		head := strings.Fields(rest[0])
		if len(head) != 4 || head[0] != "@@" || head[3] != "@@" {
			return nil, 0, fmt.Errorf("no head: %q", rest[0])
		}
		a, as = numbers(head[1][1:])
		b, bs = numbers(head[2][1:])
		rest = rest[1:]
		if a < at || a+as > len(lines) || b != len(out)+a-at {
			return nil, 0, fmt.Errorf("places %q: at %d of %d, %d written", head, at, len(lines), len(out))
		}
		out, at = append(out, lines[at:a]...), a
		for as > 0 || bs > 0 {
			sign, line := rest[0][0], rest[0][1:]
			if rest = rest[1:]; strings.HasPrefix(rest[0], `\`) {
				line, rest = strings.TrimSuffix(line, "\n"), rest[1:]
			}
			if sign != '+' {
				if at >= len(lines) || lines[at] != line {
					return nil, 0, fmt.Errorf("line %d is not %q", at, line)
				}
				at, as = at+1, as-1
			}
			if sign != '-' {
				out, bs = append(out, line), bs-1
			}
			if sign != ' ' {
				changed++
			}
		}
	}
	return []byte(strings.Join(append(out, lines[at:]...), "")), changed, nil
}

// numbers reads the place of a hunk; lines count from 0 then.
func numbers(s string) (at, n int) {
	first, count, ok := strings.Cut(s, ",")
	at, _ = strconv.Atoi(first)
	if n = 1; ok {
		n, _ = strconv.Atoi(count)
	}
	if n > 0 {
		at--
	}
	return at, n
}

// shortest returns how many lines a shortest difference has.
func shortest(old, now []byte) int {
	a, b := split(old), split(now)
	row := make([]int, len(b)+1) // of common lines
	for i := range a {
		last := 0
		for j := range b {
			keep := row[j+1]
			if row[j+1] = max(keep, row[j]); bytes.Equal(a[i], b[j]) {
				row[j+1] = last + 1
			}
			last = keep
		}
	}
	return len(a) + len(b) - 2*row[len(b)]
}

func FuzzHunks(f *testing.F) {
	for _, pair := range [][2]string{{"", ""}, {"a\n", ""}, {"", "a"}, {"a\nb\n", "b\na\n"},
		{"a\n\n\n\n\n\n\n\nb", "c\n\n\n\n\n\n\n\nb\n"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n4\n5\n6\n7\n8\n9\n"}, {"aX\n\n\n\n\n", "bX\n\n\n\n\n"},
		{"\\ No newline\n", "\\"}} {
		f.Add([]byte(pair[0]), []byte(pair[1]))
	}
	f.Fuzz(func(t *testing.T, old, now []byte) {
		hunks := Hunks(old, now)
		got, changed, err := apply(old, hunks)
		if err != nil || !bytes.Equal(got, now) {
			t.Fatalf("%v\n%q to %q by\n%s\nis %q", err, old, now, hunks, got)
		}
		if len(old)+len(now) < 1<<10 {
			if want := shortest(old, now); changed != want {
				t.Errorf("%d lines differ, need %d\n%s", changed, want, hunks)
			}
		}
	})
}

// drawn is a text of lines that are often equal.
func drawn(r *rand.Rand, lines, different int) []byte {
	var b []byte
	for range lines {
		b = fmt.Appendf(b, "line %d\n", r.IntN(different))
	}
	return b[:len(b)-r.IntN(2)]
}

func TestRandom(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range testenv.Rounds(300, 5000) {
		old, now := drawn(r, 1+r.IntN(60), 1+r.IntN(20)), drawn(r, 1+r.IntN(60), 1+r.IntN(20))
		got, changed, err := apply(old, Hunks(old, now))
		if err != nil || !bytes.Equal(got, now) || changed != shortest(old, now) {
			t.Fatalf("%v\n%s\nto\n%s\nis\n%s", err, old, now, got)
		}
	}
}

// TestBounded: hostile texts take no longer than the bound of the work, and their patches are right.
func TestBounded(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		name     string
		old, now []byte
	}{
		{"two lines in random order", drawn(r, 200_000, 2), drawn(r, 200_000, 2)},
		{"many lines in random order", drawn(r, 100_000, 50_000), drawn(r, 100_000, 50_000)},
		{"more lines than are compared", bytes.Repeat([]byte("\n"), maxLines+2),
			bytes.Repeat([]byte("x\n"), maxLines+5)},
		{"one long line", bytes.Repeat([]byte("x"), 1<<22), bytes.Repeat([]byte("y"), 1<<22)},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := time.Now()
			hunks := Hunks(c.old, c.now)
			if took := time.Since(before); took > 20*time.Second { // it takes a hundredth of that
				t.Errorf("took %v", took)
			}
			if got, _, err := apply(c.old, hunks); err != nil || !bytes.Equal(got, c.now) {
				t.Errorf("%v, or another text", err)
			}
		})
	}
}

// TestPrograms: patch -p1 and git apply make of the old file the new one.
func TestPrograms(t *testing.T) {
	t.Parallel()
	file := func(text string) File { return File{Mode: ModeFile, Text: []byte(text)} }
	link := func(to string) File { return File{Mode: ModeLink, Text: []byte(to)} }
	script := File{ModeExecutable, []byte("a\n")}
	for _, args := range [][]string{{"patch", "-p1", "-s"}, {"git", "apply", "-"}} {
		program := testenv.NeedProgram(t, args[0])
		for i, c := range []struct {
			name     string
			old, now File
		}{
			{"l", link("a"), link("b")}, {"l", File{}, link("b")}, {"l", link("b"), File{}},
			{"e", File{}, file("")}, {"e", file(""), File{}},
			{"x", File{}, script}, {"x", file("a\n"), script}, {"x y", file("b"), script},
			{"\u00e9\n\"", file("a\n"), file("b")},
			{"t", file("a\n"), link("b")}, {"t", link("b"), file("a\n")}, {"d/e/f", File{}, file("x")},
			{"d/e/f", file("x"), File{}},
		} {
			dir := t.TempDir()
			if err := put(filepath.Join(dir, c.name), c.old); err != nil {
				t.Fatal(err)
			}
			patch := Patch(c.name, c.old, c.now)
			cmd := exec.Command(program, args[1:]...)
			cmd.Dir, cmd.Stdin, cmd.Env = dir, bytes.NewReader(patch),
				append(testenv.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
			out, err := cmd.CombinedOutput()
			if got := get(filepath.Join(dir, c.name)); err != nil || got.Mode != c.now.Mode ||
				!bytes.Equal(got.Text, c.now.Text) {
				t.Errorf("%s %d: %v: %s%v\n%s", args[0], i, err, out, got, patch)
			}
		}
	}
}

// FuzzGit: git apply takes patches of all texts and names that git can have.
func FuzzGit(f *testing.F) {
	git := testenv.NeedProgram(f, "git")
	f.Add("f", []byte("a\nb\n"), []byte("a\nc"), 0, 1)
	f.Add(" a\tb\n\"\\\xff", []byte(""), []byte("x\r\n\x01"), 1, 0)
	f.Add("d e/é", []byte("x"), []byte("y"), 2, 0)
	f.Add("-a", []byte("x\n"), []byte(""), 0, 3)
	modes := []uint32{ModeFile, ModeExecutable, ModeLink, 0}
	f.Fuzz(func(t *testing.T, name string, a, b []byte, am, bm int) {
		old, now := File{modes[uint(am)%4], a}, File{modes[uint(bm)%4], b}
		dir := t.TempDir()
		at := filepath.Join(dir, name)
		if !filepath.IsLocal(name) || filepath.Clean(name) != name || strings.Contains(strings.ToLower(name),
			"git") ||
			strings.Contains(name, "\x00") || put(at, old) != nil {
			return // no name or content of a file
		}
		if now.Mode == ModeLink && (len(b) == 0 || bytes.IndexByte(b, 0) >= 0 || len(b) > 1000) {
			return // no link
		}
		if old.Mode == 0 {
			old.Text = nil
		}
		if now.Mode == 0 {
			now.Text = nil
		}
		patch := Patch(name, old, now)
		if patch == nil {
			return
		}
		cmd := exec.Command(git, "apply", "--whitespace=nowarn", "-")
		cmd.Dir, cmd.Stdin, cmd.Env = dir, bytes.NewReader(patch),
			append(testenv.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\n%s", err, out, patch)
		}
		if got := get(at); got.Mode != now.Mode || !bytes.Equal(got.Text, now.Text) {
			t.Errorf("got %o %q, want %o %q\n%s", got.Mode, got.Text, now.Mode, now.Text, patch)
		}
	})
}

// put makes a file; none is no error.
func put(at string, f File) error {
	if f.Mode == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	if f.Mode == ModeLink {
		return os.Symlink(string(f.Text), at)
	}
	return os.WriteFile(at, f.Text, os.FileMode(f.Mode&0o777))
}

func get(at string) (f File) {
	info, err := os.Lstat(at)
	if err != nil {
		return f
	}
	if info.Mode()&os.ModeSymlink != 0 {
		target, _ := os.Readlink(at)
		return File{ModeLink, []byte(target)}
	}
	f.Mode = ModeFile
	if info.Mode()&0o100 != 0 {
		f.Mode = ModeExecutable
	}
	f.Text, _ = os.ReadFile(at)
	return f
}

func BenchmarkHunks(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	old := drawn(r, 10_000, 5_000)
	now := bytes.Replace(bytes.Clone(old), []byte("line 7"), []byte("other\nline 7"), 50)
	b.SetBytes(int64(len(old)))
	for b.Loop() {
		Hunks(old, now)
	}
}
