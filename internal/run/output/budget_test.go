// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
)

// TestBudget: so many bytes are within it, in whatever pieces they come.
func TestBudget(t *testing.T) {
	for _, test := range []struct {
		name   string
		most   int64
		pieces []int
		within int
	}{
		{"none", 0, []int{1 << 20, 1 << 20}, 2 << 20},
		{"negative", -5, []int{7}, 7},
		{"exact", 10, []int{4, 6}, 10},
		{"inside of a piece", 10, []int{4, 100, 1}, 10},
		{"beyond what was over", 1, []int{3, 3}, 1},
	} {
		b, sum := NewBudget(test.most), 0
		for _, n := range test.pieces {
			sum += b.Take(n)
		}
		if sum != test.within {
			t.Errorf("%s: %d bytes are within, want %d", test.name, sum, test.within)
		}
	}
}

// TestCaptureOmit: what is omitted at the end is counted, and no gap is shown where nothing is missing.
func TestCaptureOmit(t *testing.T) {
	for _, test := range []struct {
		name                     string
		limit                    Limit
		write                    func(c *Capture)
		stdout, stderr, combined string
		total, omitted           uint64 // of both
	}{
		{"in the head", Limit{Bytes: 100}, func(c *Capture) {
			c.Write(executor.Stdout, []byte("abc"))
			c.Omit(executor.Stdout, 9)
		}, "abc", "", "abc", 12, 9},
		{"in the tail", Limit{Bytes: 8}, func(c *Capture) {
			c.Write(executor.Stdout, []byte("abcdefg"))
			c.Omit(executor.Stdout, 9)
			c.Omit(executor.Stdout, 1)
		}, "abcdefg", "", "abcdefg", 17, 10},
		{"behind a gap", Limit{Bytes: 4}, func(c *Capture) {
			c.Write(executor.Stdout, []byte("abcdefgh"))
			c.Omit(executor.Stdout, 3)
		}, "ab\n... 7 bytes omitted ...\ngh", "", "ab\n... 7 bytes omitted ...\ngh", 11, 7},
		{"nothing but that", Limit{Bytes: 8}, func(c *Capture) {
			c.Write(executor.Stdout, []byte("out"))
			c.Omit(executor.Stderr, 5)
		}, "out", "", "out", 8, 5},
		{"unlimited", Limit{Unlimited: true}, func(c *Capture) {
			c.Write(executor.Stderr, []byte("e"))
			c.Write(executor.Stdout, []byte("o"))
			c.Omit(executor.Stdout, 5)
		}, "o", "e", "eo", 7, 5},
		{"the beginning only", Limit{Bytes: 2, HeadOnly: true}, func(c *Capture) {
			c.Write(executor.Stdout, []byte("abc"))
			c.Omit(executor.Stdout, 5)
		}, "ab", "", "ab", 8, 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := NewCapture(test.limit)
			test.write(c)
			got := c.Snapshot()
			text := func(s Snapshot) string {
				if len(s.Tail) == 0 {
					return string(s.Head)
				}
				return string(s.Render())
			}
			if text(got.Stdout) != test.stdout || text(got.Stderr) != test.stderr ||
				text(got.Combined) != test.combined {
				t.Errorf("%q, %q, %q; want %q, %q, %q", text(got.Stdout), text(got.Stderr),
					text(got.Combined), test.stdout, test.stderr, test.combined)
			}
			if n, over := got.Combined.Total, got.Combined.Omitted; n != test.total || over != test.omitted {
				t.Errorf("%d bytes and %d omitted; want %d and %d", n, over, test.total, test.omitted)
			}
		})
	}
}

// TestOmitDrained: after what was omitted is told, the Buffer begins anew.
func TestOmitDrained(t *testing.T) {
	b := NewBuffer(4)
	_, _ = b.Write([]byte("abc"))
	b.Omit(2)
	if s := b.Drain(); string(s.Bytes()) != "abc" || s.Omitted != 2 || s.Total != 5 {
		t.Errorf("%+v", s)
	}
	_, _ = b.Write([]byte("abc"))
	b.Omit(2)
	_, _ = b.Write([]byte("xyz"))
	if s := b.Drain(); string(s.Head) != "abc" || string(s.Tail) != "yz" || s.Omitted != 3 {
		t.Errorf("with text behind it: %+v", s)
	}
	_, _ = b.Write([]byte("12345678"))
	if s := b.Drain(); string(s.Head) != "12" || string(s.Tail) != "78" || s.Omitted != 4 {
		t.Errorf("%+v", s)
	}
}

// TestLogAllow: a Log holds no more than it is allowed, in memory and in its file, and says at the end
// how much is missing.
func TestLogAllow(t *testing.T) {
	for _, test := range []struct {
		name string
		file bool
		most int64
	}{
		{"in memory", false, 10}, {"in the file", true, 300 << 10}, {"at the edge of memory", true, 64 << 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			var file *File
			if test.file {
				store := &Store{Dir: t.TempDir()}
				defer store.Close()
				var err error
				if file, err = store.Create(1 << 20); err != nil {
					t.Fatal(err)
				}
			}
			l := NewLog(64<<10, file, nil)
			l.Allow(test.most)
			piece := make([]byte, 7001)
			for i := range piece {
				piece[i] = 'a' + byte(i%26)
			}
			piece[7000] = '\n'
			const pieces = 100
			for range pieces {
				l.Write(executor.Stdout, piece)
			}
			if n, missing := l.Size(); n != uint64(test.most) || missing != 0 {
				t.Errorf("before the end: %d bytes and %d missing", n, missing)
			}
			l.End()
			all, over := uint64(pieces*len(piece)), uint64(pieces*len(piece))-uint64(test.most)
			if n, missing := l.Size(); n != all || missing != over {
				t.Errorf("%d bytes and %d missing; want %d and %d", n, missing, all, over)
			}
			if n := l.LineCount(); n != pieces {
				t.Errorf("%d lines, want %d", n, pieces)
			}
			held, lost, at := uint64(0), uint64(0), uint64(0)
			for {
				c, err := l.Read(context.Background(), at)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil || c.Offset != at+c.Missing {
					t.Fatalf("%+v, %v", c, err)
				}
				held, lost, at = held+uint64(len(c.Data)), lost+c.Missing, c.End()
			}
			if held != uint64(test.most) || lost != over {
				t.Errorf("%d bytes are read and %d are missing; want %d and %d", held, lost, test.most, over)
			}
			lines, _ := l.Lines(1, 0)
			if last := lines[len(lines)-1]; last.Missing != over || last.Offset != uint64(test.most) ||
				last.Last != pieces+1 {
				t.Errorf("the last line is %d at %d, %d bytes are missing up to line %d", last.Number,
					last.Offset, last.Missing, last.Last)
			}
		})
	}
}
