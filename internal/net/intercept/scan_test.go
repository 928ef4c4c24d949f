// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

var errEnd = io.EOF

// small is a table in which one thing is the beginning of another, and a third the end of one.
func small() *table {
	return newTable([]pair{
		{[]byte("aab"), []byte("xyz"), nil}, {[]byte("aabca"), []byte("12345"), nil}, {[]byte("bc"), []byte("BC"), nil},
	})
}

// through reads pieces through a stream.
func through(t testing.TB, table *table, parts ...[]byte) string {
	t.Helper()
	src := make(pieces, 0, len(parts))
	for _, p := range parts {
		src = append(src, bytes.Clone(p))
	}
	out, err := io.ReadAll(newStream(new(Credentials), &src, table))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestEveryCut: what is read does not depend on where reads end. All texts of seven letters, cut at all
// pairs of places.
func TestEveryCut(t *testing.T) {
	const size, letters = 7, "abc"
	table := small()
	text := make([]byte, size)
	for n := 0; n < 3*3*3*3*3*3*3; n++ {
		for i, rest := 0, n; i < size; i, rest = i+1, rest/3 {
			text[i] = letters[rest%3]
		}
		want := string(wholly(table, text))
		for i := 0; i <= size; i++ {
			for j := i; j <= size; j++ {
				if got := through(t, table, text[:i], text[i:j], text[j:]); got != want {
					t.Fatalf("%s cut at %d and %d: %q, want %q", text, i, j, got, want)
				}
			}
		}
	}
}

// TestLongStream: pieces of the buffer's size and about it.
func TestLongStream(t *testing.T) {
	s := open(t, one(github, "body"))
	e := s.entries[0]
	for _, size := range []int{pieceSize - 1, pieceSize, pieceSize + 1, 3*pieceSize - 7} {
		for _, cut := range []int{0, 1, 20, len(github) - 1} {
			text := strings.Repeat("-", size-cut) + dummyOf(t, s, "ONE") + strings.Repeat("gh", 50000)
			want := strings.Replace(text, dummyOf(t, s, "ONE"), github, 1)
			if got := through(t, s.outward[e], []byte(text)); got != want {
				t.Errorf("size %d, cut %d", size, cut)
			}
		}
	}
}

// TestNothingWaits: bytes that cannot begin anything are read at once, though nothing follows.
func TestNothingWaits(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"an event", "data: x\n\n", "data: x\n\n"},
		{"a beginning", "data: xaa", "data: x"},
		{"whole", "data: bc\n", "data: BC\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, w := io.Pipe()
			go func() { _, _ = io.WriteString(w, c.text); _, _ = r, w }()
			s := newStream(new(Credentials), r, small())
			got := make([]byte, 100)
			n, err := io.ReadAtLeast(s, got, len(c.want))
			if err != nil || string(got[:n]) != c.want {
				t.Errorf("%q, %v", got[:n], err)
			}
			_ = r.Close()
		})
	}
}

// TestEndMasked: the beginning of a value with which a response ends is replaced.
func TestEndMasked(t *testing.T) {
	s := open(t, one(github))
	dummy := dummyOf(t, s, "ONE")
	for n := range len(github) {
		got := through(t, s.inward, []byte("x"+github[:n]))
		want := "x" + github[:n]
		if n >= minMasked {
			want = "x" + dummy[:n]
		}
		if got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// TestBrokenStream: what a stream that breaks ends with is treated as at the end of one.
func TestBrokenStream(t *testing.T) {
	s := open(t, one(github))
	dummy := dummyOf(t, s, "ONE")
	broken := errors.New("broken")
	src := io.MultiReader(strings.NewReader("x"+github[:minMasked]), iotest.ErrReader(broken))
	got, err := io.ReadAll(newStream(s, io.NopCloser(src), s.inward))
	if want := "x" + dummy[:minMasked]; string(got) != want || !errors.Is(err, broken) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// TestRefusedInStream: nothing behind what is refused is read, nor that itself.
func TestRefusedInStream(t *testing.T) {
	s := open(t, one(github))
	refused := errors.New("refused")
	dummy := dummyOf(t, s, "ONE")
	for cut := range len(dummy) {
		src := pieces{[]byte("before " + dummy[:cut]), []byte(dummy[cut:] + " after")}
		in := newStream(s, &src, s.misuse[s.entries[0]])
		in.refused = func(*entry) error { return refused }
		out, err := io.ReadAll(in)
		if !errors.Is(err, refused) || string(out) != "before " {
			t.Errorf("cut at %d: %q, %v", cut, out, err)
		}
	}
}

// FuzzStream: a stream in any pieces is what the whole is, and has no real value.
func FuzzStream(f *testing.F) {
	f.Add([]byte("token "+github+" end"), []byte{3, 5, 7})
	f.Add([]byte("Basic eDpnaHBfOWFCM2NENGVGNWdINmlKN2tMOG1OOW9QMHFSMXNUMnVWM3dY"), []byte{1})
	f.Add([]byte("\xff&<>%2f"), []byte{})
	f.Fuzz(func(t *testing.T, text, cuts []byte) {
		s := open(t, one(github), Credential{Name: "b", Env: "B", Value: []byte(github[:20]),
			Hosts: []string{"b.example.com"}})
		s.inward.mask = false // the whole has no end that is cut
		var parts [][]byte
		rest := text
		for _, n := range cuts {
			k := min(int(n), len(rest))
			parts, rest = append(parts, rest[:k]), rest[k:]
		}
		got := through(t, s.inward, append(parts, rest)...)
		if want := wholly(s.inward, text); got != string(want) {
			t.Errorf("%q, want %q", got, want)
		}
		if strings.Contains(got, github[:20]) {
			t.Errorf("the value is in %q", got)
		}
	})
}

// BenchmarkStream is a download that has no value.
func BenchmarkStream(b *testing.B) {
	s := open(b, one(github))
	text := bytes.Repeat([]byte("the quick brown fox jumps over the lazy dog; eyJ ghp_ x\n"), 20000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := io.Copy(io.Discard, newStream(s, io.NopCloser(bytes.NewReader(text)),
			s.inward)); err != nil {
			b.Fatal(err)
		}
	}
}
