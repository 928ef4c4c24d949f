// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
)

// A fake is a log that a test changes: the lines of its files, in order.
type fake struct {
	t     *testing.T
	dir   string
	names []string
	lines [][]string // without their ends
}

// makeFake writes a log of four files.
func makeFake(t *testing.T) *fake {
	t.Helper()
	l := openTest(t, Options{MaxSegment: 2500})
	f := &fake{t: t, dir: l.store.dir.Name()}
	for i := range 24 {
		l.Emit(ended(i))
	}
	syncTest(t, l)
	f.read()
	if len(f.names) != 4 || len(f.lines[3]) < 4 {
		t.Fatalf("%d files, %d lines in the last", len(f.names), len(f.lines[len(f.lines)-1]))
	}
	return f
}

func (f *fake) read() {
	f.names, _ = filepath.Glob(f.dir + "/" + rotatedPrefix + "*")
	f.names = append(f.names, filepath.Join(f.dir, currentName))
	f.lines = nil
	for _, name := range f.names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.t.Fatal(err)
		}
		f.lines = append(f.lines, strings.Split(strings.TrimSuffix(string(b), "\n"), "\n"))
	}
}

// half is the end of a last line that has no newline.
const half = "$"

func (f *fake) write() {
	for i, name := range f.names {
		f.put(name, strings.TrimSuffix(strings.Join(f.lines[i], "\n")+"\n", half+"\n"))
	}
}

func (f *fake) put(name, text string) {
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fake) remove(i int) {
	if err := os.Remove(f.names[i]); err != nil {
		f.t.Fatal(err)
	}
	f.names, f.lines = slices.Delete(f.names, i, i+1), slices.Delete(f.lines, i, i+1)
}

// forge changes a line and computes all that follows from it: sums, edges and, with a key, checkpoints.
func (f *fake) forge(file, at int, key note.Signer) {
	c := new(cursor)
	for i := range f.lines {
		for j, text := range f.lines[i] {
			l, err := parseLine([]byte(text))
			if err != nil {
				f.t.Fatal(err)
			}
			if i == file && j == at {
				l.body = bytes.Replace(l.body, []byte(`"exited"`), []byte(`"nothing"`), 1)
			}
			switch {
			case l.kind == kindSegment:
				s := segment{Version: 1, Edge: append([]sum{}, c.Edge...), Begins: 1}
				l.body, _ = json.Marshal(s)
			case l.kind == kindCheckpoint && key != nil:
				l.body, _ = json.Marshal(map[string]string{"note": f.sign(c, key)})
			}
			c.buf = c.buf[:0]
			c.add(&entry{l.time, l.kind, l.body})
			f.lines[i][j] = strings.TrimSuffix(string(c.buf), "\n")
		}
	}
	if key != nil {
		state, _ := json.Marshal(c)
		f.put(filepath.Join(f.dir, checkpointName), f.sign(c, key)+string(state)+"\n")
	}
}

func (f *fake) sign(c *cursor, key note.Signer) string {
	t := tree{c.N, c.Edge}
	cp := checkpoint{origin: key.Name(), n: c.N, root: t.root()}
	signed, err := note.Sign(&note.Note{Text: cp.text()}, key)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(signed)
}

// ownKey is the key of the log, and newKey another one of the same name.
func (f *fake) ownKey() note.Signer {
	key, err := loadKey(filepath.Join(f.dir, keyName))
	if err != nil {
		f.t.Fatal(err)
	}
	return key
}

func (f *fake) newKey() (note.Signer, string) {
	key, err := generateKey(f.ownKey().Name())
	if err != nil {
		f.t.Fatal(err)
	}
	private, public, err := key.texts()
	if err != nil {
		f.t.Fatal(err)
	}
	signer, err := newSigner(private)
	if err != nil {
		f.t.Fatal(err)
	}
	return signer, public
}

// A tampering is a change of a log, and where it is found.
type tampering struct {
	change func(f *fake)
	file   string // the base of its name, or # and its number; empty where nothing is found
	line   int    // 0 for # means some line behind the first
	why    string
}

const mid = 1 // a file in the middle

var tamperings = map[string]tampering{
	"untouched": {change: func(*fake) {}},
	"removed": {func(f *fake) { f.lines[mid] = slices.Delete(f.lines[mid], 2, 3) },
		"#1", 3, "before it is missing"},
	"removed at the begin": {func(f *fake) { f.lines[0] = f.lines[0][1:] }, "#0", 1, "a log cannot begin"},
	"removed at the end of a file": {func(f *fake) { f.lines[mid] = f.lines[mid][:len(f.lines[mid])-1] },
		"#1", 8, "does not end with a checkpoint"},
	"reordered": {func(f *fake) { l := f.lines[mid]; l[3], l[4] = l[4], l[3] },
		"#1", 4, "before it is missing"},
	"moved to another file": {func(f *fake) {
		f.lines[3] = append(f.lines[3], f.lines[mid][3])
		f.lines[mid] = slices.Delete(f.lines[mid], 3, 4)
	}, "#1", 4, "before it is missing"},
	"moved back":        {func(f *fake) { f.lines[3] = append(f.lines[3], f.lines[mid][3]) }, "#3", 0, "was moved or is there twice"},
	"duplicated":        {func(f *fake) { f.lines[mid] = slices.Insert(f.lines[mid], 3, f.lines[mid][2]) }, "#1", 4, "is there twice"},
	"a file duplicated": {func(f *fake) { f.lines[2] = f.lines[1] }, "#2", 1, "moved or is there twice"},
	"truncated": {func(f *fake) { f.lines[3] = f.lines[3][:len(f.lines[3])-2] },
		"#3", 0, "are missing: the checkpoint of"},
	"the last line truncated": {func(f *fake) {
		last := &f.lines[3][len(f.lines[3])-1]
		*last = (*last)[:50] + half
	}, "#3", 0, "is cut off"},
	"a file removed":         {func(f *fake) { f.remove(mid) }, "#1", 1, "before it are missing"},
	"the first file removed": {func(f *fake) { f.remove(0) }, "#0", 1, "the log did not remove them"},
	"the last file removed":  {func(f *fake) { f.remove(3) }, "#2", 0, "are missing: the checkpoint of"},
	"files exchanged":        {func(f *fake) { f.lines[1], f.lines[2] = f.lines[2], f.lines[1] }, "#1", 1, "before it are missing"},
	"a file renamed":         {func(f *fake) { f.remove(0); f.names[0] = f.dir + "/audit-0000000001.jsonl" }, "#0", 1, ""},
	"the checkpoint removed": {func(f *fake) { os.Remove(filepath.Join(f.dir, checkpointName)) }, checkpointName, 0, "missing"},
	"the checkpoint overwritten": {func(f *fake) { f.put(filepath.Join(f.dir, checkpointName), "x\n") },
		checkpointName, 0, "signature"},
	"empty line":           {func(f *fake) { f.lines[mid] = slices.Insert(f.lines[mid], 3, "") }, "#1", 4, "not a line"},
	"another form":         {func(f *fake) { f.lines[mid][3] = strings.Replace(f.lines[mid][3], `,"prev"`, `, "prev"`, 1) }, "#1", 4, "not a line"},
	"made up":              {func(f *fake) { f.lines[3] = append(f.lines[3], `{"n":99}`) }, "#3", 0, "not a line"},
	"one re-hashed":        {func(f *fake) { f.lines[mid][3] = rehashed(f.t, f.lines[mid][3]) }, "#1", 5, "does not follow line"},
	"re-hashed to the end": {func(f *fake) { f.forge(mid, 3, nil) }, "#1", 8, "was replaced, and those after it"},
	"re-hashed at the end": {func(f *fake) { f.forge(3, 2, nil) }, "#3", 0, "was replaced, and those after it"},
	"re-signed":            {func(f *fake) { key, _ := f.newKey(); f.forge(mid, 3, key) }, checkpointName, 0, "which is not the key"},
	"signed by another key of the same hash": {func(f *fake) {
		key, _ := f.newKey()
		if k, ok := key.(*ecdsaKey); ok {
			k.hash = f.ownKey().KeyHash()
		}
		f.forge(mid, 3, key)
	}, checkpointName, 0, "signature does not hold"},
	"an old checkpoint in the place of a new one": {func(f *fake) {
		f.lines[2][len(f.lines[2])-1] = f.lines[1][len(f.lines[1])-1]
		f.forge(mid, 3, nil)
	}, "#1", 8, "was replaced, and those after it"},
	"half a line behind a file": {func(f *fake) {
		f.lines[mid] = append(f.lines[mid], "x"+half)
	}, "#1", 9, "cut off"},
	"re-signed, the old checkpoint": {func(f *fake) {
		old, _ := os.ReadFile(filepath.Join(f.dir, checkpointName))
		key, _ := f.newKey()
		f.forge(mid, 3, key)
		f.put(filepath.Join(f.dir, checkpointName), string(old))
	}, "#0", 8, "which is not the key"},
}

// TestTampering: each change is found, where it was made.
func TestTampering(t *testing.T) {
	for name, tc := range tamperings {
		t.Run(name, func(t *testing.T) {
			f := makeFake(t)
			names := slices.Clone(f.names)
			tc.change(f)
			f.write()
			if n, ok := strings.CutPrefix(tc.file, "#"); ok {
				i := int(n[0] - '0')
				tc.file = filepath.Base(f.names[min(i, len(f.names)-1)])
				if tc.line == 0 {
					tc.line = -1
				}
			}
			_, err := Verify(t.Context(), f.dir, VerifyOptions{})
			var broken *BrokenError
			if tc.file == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.As(err, &broken) || filepath.Base(broken.File) != tc.file || !strings.Contains(broken.Why, tc.why) ||
				tc.line >= 0 && broken.Line != tc.line || tc.line < 0 && broken.Line < 2 {
				t.Errorf("%v, want %s:%d: %s (files %q)", err, tc.file, tc.line, tc.why, names)
			}
		})
	}
}

func rehashed(t *testing.T, text string) string {
	t.Helper()
	l, err := parseLine([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	l.body = bytes.Replace(l.body, []byte(`"exited"`), []byte(`"nothing"`), 1)
	b, _ := appendLine(nil, l)
	return strings.TrimSuffix(string(b), "\n")
}

// TestFlipped: each bit of a line that flips is found at this line.
func TestFlipped(t *testing.T) {
	f := makeFake(t)
	const file, at = 1, 3
	good := f.lines[file][at] + "\n"
	for i := range good {
		bad := []byte(good)
		bad[i] ^= 1 << (i % 7)
		f.lines[file][at] = strings.TrimSuffix(string(bad), "\n")
		f.put(f.names[file], strings.Join(f.lines[file][:at], "\n")+"\n"+string(bad)+strings.Join(f.lines[file][at+1:], "\n")+"\n")
		_, err := Verify(t.Context(), f.dir, VerifyOptions{})
		if broken := new(BrokenError); !errors.As(err, &broken) || broken.File != f.names[file] || broken.Line != at+1 {
			t.Fatalf("byte %d, %q: %v", i, bad, err)
		}
	}
}

// TestKeptElsewhere: who has the key of the log can write another one, which is found with a verifier key
// and a checkpoint that were kept elsewhere, and not without them.
func TestKeptElsewhere(t *testing.T) {
	f := makeFake(t)
	public, err := PublicKey(f.dir, "")
	if err != nil {
		t.Fatal(err)
	}
	kept, err := Checkpoint(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := os.ReadFile(filepath.Join(f.dir, checkpointName)) // the whole file does as well
	if err != nil {
		t.Fatal(err)
	}
	verify := func(o VerifyOptions) error {
		_, err := Verify(context.Background(), f.dir, o)
		return err
	}
	elsewhere := []VerifyOptions{{Checkpoint: string(kept)}, {Checkpoint: string(copied)},
		{Keys: []string{public}, Checkpoint: string(kept)}}
	for _, o := range elsewhere {
		if err := verify(o); err != nil {
			t.Fatal(err)
		}
	}
	var broken *BrokenError
	f.forge(1, 3, f.ownKey())
	f.write()
	if err := verify(VerifyOptions{}); err != nil {
		t.Errorf("the documented limit: %v", err)
	}
	for _, o := range elsewhere {
		if err := verify(o); !errors.As(err, &broken) || !strings.Contains(broken.Why, "was replaced") {
			t.Errorf("re-signed with its own key: %v", err)
		}
	}
	key, other := f.newKey()
	f.forge(1, 3, key)
	f.write()
	f.put(filepath.Join(f.dir, keyName+pubExt), other)
	if err := verify(VerifyOptions{}); err != nil {
		t.Errorf("the documented limit: %v", err)
	}
	if err := verify(VerifyOptions{Keys: []string{public}}); !errors.As(err, &broken) {
		t.Errorf("re-signed with another key: %v", err)
	}
	if err := verify(VerifyOptions{Keys: []string{public, other}}); err != nil {
		t.Errorf("with both keys: %v", err)
	}
	os.Remove(filepath.Join(f.dir, keyName+pubExt))
	if err := verify(VerifyOptions{}); !errors.Is(err, ErrNoKey) {
		t.Errorf("no key: %v", err)
	}
	if err := verify(VerifyOptions{Keys: []string{"x"}}); err == nil {
		t.Error("a key that is none was taken")
	}
}

// TestPutBack: an older log with its own checkpoint is one that holds. A checkpoint of later finds what is missing.
func TestPutBack(t *testing.T) {
	f := makeFake(t)
	older, err := os.ReadFile(filepath.Join(f.dir, checkpointName))
	if err != nil {
		t.Fatal(err)
	}
	l := openTest(t, Options{Dir: f.dir})
	l.Emit(ended(100))
	syncTest(t, l)
	kept, err := Checkpoint(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	f.write()
	f.put(filepath.Join(f.dir, checkpointName), string(older))
	verifyTest(t, f.dir) // the documented limit
	_, err = Verify(t.Context(), f.dir, VerifyOptions{Checkpoint: string(kept)})
	if broken := new(BrokenError); !errors.As(err, &broken) || !strings.Contains(broken.Why, "is missing") {
		t.Errorf("%v", err)
	}
}

// TestCutAndWritten: a writer does not sign away what was cut off before.
func TestCutAndWritten(t *testing.T) {
	for name, cut := range map[string]func(f *fake){
		"lines":       func(f *fake) { f.lines[3] = f.lines[3][:len(f.lines[3])-2] },
		"whole file":  func(f *fake) { f.remove(3) },
		"half a line": func(f *fake) { f.put(f.names[3], strings.Join(f.lines[3], "\n")[:700]); f.names = nil },
		"all lines":   func(f *fake) { f.put(f.names[3], ""); f.names = nil },
	} {
		t.Run(name, func(t *testing.T) {
			f := makeFake(t)
			cut(f)
			f.write()
			l := openTest(t, Options{Dir: f.dir, MaxSegment: 2500})
			for i := range 20 {
				l.Emit(ended(100 + i))
				syncTest(t, l)
			}
			_, err := Verify(t.Context(), f.dir, VerifyOptions{})
			if broken := new(BrokenError); !errors.As(err, &broken) || !strings.Contains(broken.Why, "missing") {
				t.Errorf("%v", err)
			}
			found := readAll(t, f.dir, Filter{Kind: kindRecovered})
			if n := len(slices.DeleteFunc(found, func(r Record) bool { return r.Kind != kindRecovered })); n != 1 {
				t.Errorf("%d lines say so: %+v", n, found)
			}
			if n := len(readAll(t, f.dir, Filter{Run: "run-119"})); n < 1 {
				t.Error("what was written later is not there")
			}
		})
	}
}

// TestOneFile: a file of a log can be verified alone.
func TestOneFile(t *testing.T) {
	f := makeFake(t)
	if all, err := Files(f.dir); err != nil || !slices.Equal(all, f.names) {
		t.Errorf("files %q, %v, want %q", all, err, f.names)
	}
	for _, name := range f.names {
		if r, err := Verify(t.Context(), name, VerifyOptions{}); err != nil || r.Files != 1 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	f.lines[3] = f.lines[3][:len(f.lines[3])-1]
	f.lines[1] = f.lines[1][:len(f.lines[1])-1]
	f.write()
	for _, i := range []int{1, 3} {
		if _, err := Verify(t.Context(), f.names[i], VerifyOptions{}); !errors.As(err, new(*BrokenError)) {
			t.Errorf("%s, cut: %v", f.names[i], err)
		}
	}
}

// TestBad: reading hides nothing, and goes on after what is bad.
func TestBad(t *testing.T) {
	f := makeFake(t)
	f.lines[1][3] = strings.Replace(f.lines[1][3], "exited", "exitec", 1)
	f.lines[2] = slices.Delete(f.lines[2], 4, 5)
	f.write()
	var bad []string
	for _, r := range readAll(t, f.dir, Filter{Run: "none"}) {
		bad = append(bad, fmt.Sprintf("%s:%d %s", filepath.Base(r.File), r.Line, r.Bad))
	}
	if len(bad) != 2 || !strings.Contains(bad[0], ":4 it was changed") || !strings.Contains(bad[1], ":5 line") {
		t.Errorf("%q", bad)
	}
}
