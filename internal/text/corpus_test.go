// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// A recording is what a real program wrote to a terminal of that size, and what the
// reference emulator (xterm.js 6.0 with the widths of Unicode 11, no scrollback) showed after some of it.
type recording struct {
	name       string
	cols, rows int
	raw        []byte
	screens    []golden
}

// A golden is what was to be seen after so many bytes.
type golden struct {
	after int
	want  text.Snapshot
}

// recordings reads testdata: NAME-COLSxROWS.raw and, beside it, the screens.
func recordings(tb testing.TB) []recording {
	tb.Helper()
	names, err := filepath.Glob("testdata/*.raw")
	if err != nil || len(names) < 20 {
		tb.Fatalf("testdata has %d recordings, want 20 at least (%v)", len(names), err)
	}
	var all []recording
	for _, name := range names {
		r := recording{name: strings.TrimSuffix(filepath.Base(name), ".raw")}
		if r.raw, err = os.ReadFile(name); err != nil {
			tb.Fatal(err)
		}
		size := r.name[strings.LastIndex(r.name, "-")+1:]
		if _, err := fmt.Sscanf(size, "%dx%d", &r.cols, &r.rows); err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
		r.screens = goldens(tb, strings.TrimSuffix(name, ".raw")+".screens", r.cols, r.rows)
		all = append(all, r)
	}
	return all
}

// goldens reads one file of screens.
func goldens(tb testing.TB, name string, cols, rows int) []golden {
	tb.Helper()
	file, err := os.Open(name)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	var all []golden
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		g := golden{want: text.Snapshot{Lines: make([]string, rows), Cols: cols, Rows: rows}}
		var lines int
		if _, err := fmt.Sscanf(scanner.Text(),
			"after %d cursor %d,%d visible %t alternate %t title %q lines %d", &g.after,
			&g.want.Cursor.Col, &g.want.Cursor.Row, &g.want.Cursor.Visible, &g.want.Alternate, &g.want.Title,
			&lines); err != nil {
			tb.Fatalf("%s: %q: %v", name, scanner.Text(), err)
		}
		for y := range lines {
			scanner.Scan()
			g.want.Lines[y] = scanner.Text()
		}
		all = append(all, g)
	}
	if scanner.Err() != nil || len(all) == 0 {
		tb.Fatalf("%s: %d screens, %v", name, len(all), scanner.Err())
	}
	return all
}

// write writes all of p.
func write(tb testing.TB, s *text.Screen, p []byte) {
	tb.Helper()
	if n, err := s.Write(p); n != len(p) || err != nil {
		tb.Fatalf("Write = %d, %v; want %d, nil", n, err, len(p))
	}
}

func TestRecordings(t *testing.T) {
	for _, r := range recordings(t) {
		t.Run(r.name, func(t *testing.T) {
			s := text.NewScreen(r.cols, r.rows)
			from := 0
			for _, g := range r.screens {
				write(t, s, r.raw[from:g.after])
				from = g.after
				if diff := cmp.Diff(g.want, s.Snapshot()); diff != "" {
					t.Fatalf("after %d bytes (-reference +screen):\n%s", g.after, diff)
				}
			}
			if from != len(r.raw) {
				t.Fatalf("the last screen is after %d of %d bytes", from, len(r.raw))
			}
		})
	}
}

// TestChunks writes every recording byte by byte and in random pieces.
func TestChunks(t *testing.T) {
	for _, r := range recordings(t) {
		want := r.screens[len(r.screens)-1].want
		for seed := range uint64(6) {
			t.Run(r.name+"/"+strconv.FormatUint(seed, 10), func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				s := text.NewScreen(r.cols, r.rows)
				for rest := r.raw; len(rest) > 0; {
					n := 1
					if seed > 0 {
						n = min(1+random.IntN(1<<(2*seed)), len(rest))
					}
					write(t, s, rest[:n])
					rest = rest[n:]
				}
				if diff := cmp.Diff(want, s.Snapshot()); diff != "" {
					t.Fatalf("(-whole +pieces):\n%s", diff)
				}
			})
		}
	}
}

// BenchmarkScreen guards the speed at which a session's output can be followed: the
// model runs beside every terminal and must never be what holds a program up. It is to stay
// above 50 MB/s for text and 20 MB/s for programs that draw.
func BenchmarkScreen(b *testing.B) {
	for _, r := range recordings(b) {
		switch r.name {
		case "vim-insert-80x24", "top-80x24", "tmux-80x24", "cat-wide-80x24":
		default:
			continue
		}
		b.Run(r.name, func(b *testing.B) {
			s := text.NewScreen(r.cols, r.rows)
			b.SetBytes(int64(len(r.raw)))
			b.ReportAllocs()
			for b.Loop() {
				write(b, s, r.raw)
			}
		})
	}
	b.Run("text", func(b *testing.B) {
		line := []byte(strings.Repeat("the quick brown fox jumps over the lazy dog\r\n", 100))
		s := text.NewScreen(0, 0)
		b.SetBytes(int64(len(line)))
		b.ReportAllocs()
		for b.Loop() {
			write(b, s, line)
		}
	})
}

// BenchmarkSnapshot guards what a look costs.
func BenchmarkSnapshot(b *testing.B) {
	s := text.NewScreen(0, 0)
	write(b, s, []byte(strings.Repeat("the quick brown fox ", 100)))
	b.ReportAllocs()
	for b.Loop() {
		s.Snapshot()
	}
}

// BenchmarkNew guards what an idle screen holds: at most 32 KiB, see B/op.
func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		text.NewScreen(80, 24)
	}
}
