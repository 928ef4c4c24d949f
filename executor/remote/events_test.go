// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// says writes what a sorter has made ready, one word an event.
func says(s *sorter) string {
	var words []string
	for _, e := range s.ready {
		switch e.kind {
		case kindOutput:
			words = append(words, string(e.data))
		case kindExit:
			words = append(words, fmt.Sprint("exit", e.code))
		case kindClosed:
			words = append(words, "end")
		case kindGap:
			words = append(words, fmt.Sprintf("lost:%d/%d", e.lost.Chunks, e.lost.Bytes))
		}
	}
	return strings.Join(words, " ")
}

func chunk(seq uint64, text string) wire.Chunk {
	return wire.Chunk{Seq: seq, Stream: "stdout", Chunk: []byte(text)}
}

// TestSorter: events are passed on in the order of their numbers, once each, and what a page of
// the server does not have is lost and counted.
func TestSorter(t *testing.T) {
	three := 3
	page := func(next uint64, chunks ...wire.Chunk) *wire.ReadResult {
		return &wire.ReadResult{Chunks: chunks, NextSeq: next}
	}
	over := func(p *wire.ReadResult, closed bool) *wire.ReadResult {
		p.Exited, p.ExitCode, p.Closed = true, &three, closed
		return p
	}
	truncated := func(p *wire.ReadResult, before, bytes uint64) *wire.ReadResult {
		p.TruncatedBefore, p.TruncatedBytes = before, bytes
		return p
	}
	out := func(text string) event { return event{data: []byte(text)} }
	type step struct {
		seq  uint64
		e    event
		page *wire.ReadResult
	}
	for _, test := range []struct {
		name  string
		steps []step
		want  string
		gap   bool
	}{
		{"in order", []step{{1, out("a"), nil}, {2, out("b"), nil}}, "a b", false},
		{"out of order", []step{{2, out("b"), nil}, {3, event{kind: kindExit, code: 1}, nil}, {1, out("a"), nil}}, "a b exit1", false},
		{"twice", []step{{1, out("a"), nil}, {1, out("x"), nil}, {3, out("c"), nil}, {3, out("y"), nil}, {2, out("b"), nil}}, "a b c", false},
		{"missing", []step{{1, out("a"), nil}, {3, out("c"), nil}}, "a", true},
		{"page fills", []step{{1, out("a"), nil}, {3, out("c"), nil}, {page: page(4, chunk(2, "b"), chunk(3, "c"))}}, "a b c", false},
		{"page again", []step{{1, out("a"), nil}, {page: page(2, chunk(1, "a"))}, {page: page(1)}}, "a", false},
		{"page behind", []step{{1, out("a"), nil}, {2, out("b"), nil}, {page: page(2)}}, "a b", false},
		{"page, then the same live", []step{{page: page(3, chunk(1, "a"), chunk(2, "b"))}, {2, out("b"), nil}, {3, out("c"), nil}}, "a b c", false},
		{"exit in a page", []step{{1, out("a"), nil}, {page: over(page(3), false)}}, "a exit3", false},
		{"exit between chunks", []step{{page: over(page(4, chunk(1, "a"), chunk(3, "c")), false)}}, "a exit3 c", false},
		{"exit and end in a page", []step{{page: over(page(4, chunk(1, "a")), true)}}, "a exit3 end", false},
		{"exit known", []step{{2, event{kind: kindExit, code: 3}, nil}, {page: over(page(4, chunk(1, "a")), true)}}, "a exit3 end", false},
		{"lost", []step{{1, out("aa"), nil}, {page: truncated(page(5, chunk(4, "d")), 4, 12)}}, "aa lost:2/10 d", false},
		{"lost, amount unknown", []step{{1, out("aa"), nil}, {page: page(5, chunk(4, "d"))}}, "aa lost:2/0 d", false},
		{"lost there, arrived here", []step{{3, out("cc"), nil}, {page: truncated(page(5, chunk(4, "d")), 4, 12)}}, "lost:2/10 cc d", false},
		{"lost before the exit", []step{{page: over(truncated(page(6, chunk(5, "e")), 5, 7), false)}}, "lost:3/7 exit3 e", false},
		{"everything lost", []step{{page: over(page(5), true)}}, "lost:2/0 exit3 end", false},
		{"later ones stay early", []step{{7, out("g"), nil}, {page: page(3, chunk(1, "a"), chunk(2, "b"))}}, "a b", true},
		{"chunk beyond the page", []step{{page: page(2, chunk(1, "a"), chunk(9, "x"))}}, "a", false},
		{"no exit code", []step{{page: &wire.ReadResult{NextSeq: 2, Exited: true}}}, "exit-1", false},
		{"enormous", []step{{page: page(1 << 63)}}, "lost:9223372036854775807/0", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSorter()
			for _, step := range test.steps {
				var err error
				if step.page != nil {
					err = s.merge(step.page)
				} else {
					err = s.add(step.seq, step.e)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if got := says(&s); got != test.want || s.gap() != test.gap {
				t.Errorf("%q, gap %v, want %q, %v", got, s.gap(), test.want, test.gap)
			}
		})
	}
	s := newSorter()
	var err error
	for seq := uint64(2); err == nil && seq < maxEarly+10; seq++ {
		err = s.add(seq, event{})
	}
	if !errors.Is(err, errFlood) || len(s.early) > maxEarly {
		t.Errorf("%v, %d events", err, len(s.early))
	}
}

// FuzzSorter plays a server that retains little, a connection that loses and repeats events, and
// reads in between: what is passed on is what happened, in order, and every missing byte is counted.
func FuzzSorter(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, uint8(3), uint64(1))
	f.Add(bytes.Repeat([]byte{9, 200, 30}, 20), uint8(1), uint64(7))
	f.Fuzz(func(t *testing.T, sizes []byte, keep uint8, seed uint64) {
		random, s := rand.New(rand.NewPCG(seed, 0)), newSorter()
		var all []wire.Chunk // by number; the exit has no data
		exitAt, dropped, before := uint64(len(sizes)/2+1), 0, uint64(0)
		kept := func() []wire.Chunk { return all[dropped:] }
		read := func(closed bool) {
			page := &wire.ReadResult{NextSeq: uint64(len(all) + 1), Exited: uint64(len(all)) >= exitAt,
				ExitCode: new(int), Closed: closed}
			if closed {
				page.NextSeq++
			}
			for _, c := range kept() {
				if c.Seq != exitAt && c.Seq >= s.next {
					page.Chunks = append(page.Chunks, c)
				}
			}
			if uint64(dropped) >= s.next && dropped < len(all) {
				page.TruncatedBefore, page.TruncatedBytes = all[dropped].Seq, before
				if all[dropped].Seq == exitAt && dropped+1 < len(all) {
					page.TruncatedBefore++
				}
			}
			if err := s.merge(page); err != nil {
				t.Fatal(err)
			}
		}
		total := 0
		for i, size := range sizes {
			c := wire.Chunk{Seq: uint64(i + 1), Stream: "stdout",
				Chunk: bytes.Repeat([]byte{byte(i)}, int(size)+1)}
			e := outputEvent(c)
			if c.Seq == exitAt {
				c.Chunk, e = nil, event{kind: kindExit}
			}
			total += len(c.Chunk)
			all = append(all, c)
			for len(kept()) > int(keep)+1 {
				before += uint64(len(all[dropped].Chunk))
				dropped++
			}
			switch random.IntN(4) {
			case 0: // lost
			case 1:
				read(false)
			default:
				for range random.IntN(2) + 1 {
					if err := s.add(c.Seq, e); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		read(true)
		checkEvents(t, &s, total, len(sizes) >= int(exitAt))
	})
}

// checkEvents checks what a sorter passed on of so many bytes.
func checkEvents(t *testing.T, s *sorter, total int, exited bool) {
	t.Helper()
	seen, exits, last, unknown := uint64(0), 0, -1, false
	for _, e := range s.ready {
		switch e.kind {
		case kindOutput:
			if seen += uint64(len(e.data)); int(e.data[0]) <= last && last < 255 && len(s.ready) < 255 {
				t.Fatalf("chunk %d after %d", e.data[0], last)
			}
			last = int(e.data[0])
		case kindGap:
			seen += e.lost.Bytes
			unknown = unknown || e.lost.Bytes == 0
		case kindExit:
			exits++
		}
	}
	if !unknown && seen != uint64(total) || seen > uint64(total) {
		t.Errorf("%d bytes arrived or are counted, want %d: %s", seen, total, says(s))
	}
	if exited && exits != 1 || !s.end || s.gap() {
		t.Errorf("%d exits, end %v, gap %v", exits, s.end, s.gap())
	}
}

// TestRetained: offsets count the bytes that are lost, for every reader.
func TestRetained(t *testing.T) {
	r := &retained{Log: output.NewLog(1<<20, nil, nil)}
	r.Write(executor.Stdout, []byte("one\ntw"))
	r.miss(100)
	r.Write(executor.Stdout, []byte("o\nthree\n"))
	r.miss(0)
	r.miss(7)
	r.End()
	if total, missing := r.Size(); total != 6+100+8+7 || missing != 107 {
		t.Errorf("%d bytes, %d missing", total, missing)
	}
	for _, test := range []struct {
		from, offset, missing uint64
		data                  string
	}{
		{0, 0, 0, "one\ntw"},
		{4, 4, 0, "tw"},
		{6, 106, 100, "o\nthree\n"},
		{50, 106, 56, "o\nthree\n"},
		{106, 106, 0, "o\nthree\n"},
		{108, 108, 0, "three\n"},
		{114, 121, 7, ""},
		{120, 121, 1, ""},
	} {
		c, err := r.Read(t.Context(), test.from)
		if err != nil || c.Offset != test.offset || c.Missing != test.missing || string(c.Data) != test.data {
			t.Errorf("from %d: %+v %q, %v, want %+v", test.from, c, c.Data, err, test)
		}
	}
	if c, err := r.Read(t.Context(), 121); !errors.Is(err, io.EOF) {
		t.Errorf("%+v, %v", c, err)
	}
	lines, _ := r.Lines(1, 0)
	if len(lines) != 3 || lines[0].Cut || !lines[1].Cut || lines[1].Offset != 4 || lines[2].Offset != 108 {
		t.Errorf("%+v", lines)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
