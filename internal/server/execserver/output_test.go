// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// A quietProcess is one of a test that prints for it.
type quietProcess struct{ executor.Process }

func (quietProcess) Sandbox() executor.Sandbox { return executor.Sandbox{} }

// printing returns a process of a server that has its files in a directory.
func printing(t *testing.T, dir string) (*Server, *process) {
	t.Helper()
	s := New(Options{LogDir: dir})
	t.Cleanup(func() { _ = s.Close() })
	p := newProcess(&session{server: s}, &wire.Start{})
	p.running = quietProcess{}
	p.stream = func(s executor.Stream) string { return []string{"stdout", "stderr"}[s] }
	return s, p
}

// An expected is what reads of a process should return.
type expected struct {
	all  []wire.Chunk
	ends []uint64 // their offsets
}

// suffix returns the index of the first of the newest chunks that are at most so many, and bytes.
func (e *expected) suffix(bytes, chunks int) int {
	i := len(e.all)
	for size := 0; i > 0 && len(e.all)-i < chunks; i-- {
		if size += len(e.all[i-1].Chunk); size > bytes {
			break
		}
	}
	return i
}

// before returns how many bytes come before chunk number i.
func (e *expected) before(i int) uint64 {
	if i == 0 {
		return 0
	}
	return e.ends[i-1]
}

// check compares a page with the chunks from number first up to last, of which those before retained
// are gone.
func (e *expected) check(t *testing.T, p *process, r *wire.Read, retained, first, last int) {
	t.Helper()
	page, _ := p.page(r)
	want := e.all[first:last]
	if len(page.Chunks) != len(want) {
		t.Fatalf("%d chunks after %d, want %d", len(page.Chunks), r.AfterSeq, len(want))
	}
	for i, c := range page.Chunks {
		if c.Seq != want[i].Seq || c.Stream != want[i].Stream || !bytes.Equal(c.Chunk, want[i].Chunk) {
			t.Fatalf("chunk %d is another one than %d", c.Seq, want[i].Seq)
		}
	}
	next := p.next
	if n := len(want); n > 0 && r.MaxBytes != nil {
		next = want[n-1].Seq + 1
	}
	before, size := uint64(0), uint64(0)
	if retained > 0 && r.AfterSeq < e.all[retained-1].Seq {
		before, size = e.all[retained].Seq, e.before(retained)
	}
	if page.NextSeq != next || page.TruncatedBefore != before || page.TruncatedBytes != size {
		t.Errorf("next %d, truncated before %d with %d bytes; want %d, %d, %d",
			page.NextSeq, page.TruncatedBefore, page.TruncatedBytes, next, before, size)
	}
}

// TestReads: whatever a process prints, a read without a limit has the newest chunks, whole, up to a
// MiB, and pages have all that the file holds too, with their numbers and streams. Where something is
// missing a read says so.
func TestReads(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		dir   string
		limit int64 // of all files
		size  int   // of a chunk, at most
		n     int   // how many
		holds int   // bytes that are held at least
	}{
		{"little", t.TempDir(), 0, 100, 500, maxKept},
		{"much", t.TempDir(), 0, chunkSize, 400, 64 << 20},
		{"more than a file", t.TempDir(), 3 << 20, chunkSize, 400, 2 << 20},
		{"a full disk", t.TempDir(), 1, chunkSize, 200, maxKept - chunkSize},
		{"no directory", "", 0, chunkSize, 200, maxKept - chunkSize},
		{"a file for the directory", file, 0, chunkSize, 200, maxKept - chunkSize},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, p := printing(t, test.dir)
			s.spills.Total = test.limit
			e := &expected{}
			random := rand.New(rand.NewPCG(1, 2))
			for i := range test.n {
				if i == test.n/2 {
					// it has a number too
					p.event(wire.MethodExited, func(seq uint64) any { return &wire.Exited{Seq: seq} }, nil)
				}
				data := bytes.Repeat([]byte{byte(i)}, 1+random.IntN(test.size))
				stream := executor.Stream(random.IntN(2))
				e.all = append(e.all, wire.Chunk{Seq: p.next, Stream: p.stream(stream),
					Chunk: bytes.Clone(data)})
				e.ends = append(e.ends, e.before(i)+uint64(len(data)))
				p.onOutput(stream, data)
				if i%37 == 0 || i == test.n-1 {
					e.compare(t, p, test.holds)
				}
			}
			if entries, _ := os.ReadDir(test.dir); len(entries) > 0 {
				t.Errorf("%v", entries)
			}
			p.free()
			if got := p.log.Since(); p.end > 2*maxKept && got < p.end-maxKept {
				t.Errorf("%d of %d bytes are on disk still", p.end-got, p.end)
			}
		})
	}
}

// compare reads everything, in several ways.
func (e *expected) compare(t *testing.T, p *process, holds int) {
	t.Helper()
	n := len(e.all)
	kept := e.suffix(maxKept, maxChunks)
	for _, i := range []int{0, kept - 1, kept, kept + 1, n - 1} {
		if i < 0 || i >= n {
			continue
		}
		e.check(t, p, &wire.Read{AfterSeq: e.all[i].Seq - 1}, kept, max(i, kept), n)
	}
	e.check(t, p, &wire.Read{AfterSeq: p.next}, kept, n, n)
	retained := n - len(p.chunks)
	if retained > e.suffix(holds, maxIndex) {
		t.Errorf("only %d bytes of %d are held", e.before(n)-e.before(retained), e.before(n))
	}
	const limit = 100_000
	for first := retained; first < n; {
		last := first + 1
		for last < n && e.before(last+1)-e.before(first) <= limit {
			last++
		}
		most := uint64(limit)
		after := uint64(0)
		if first > retained {
			after = e.all[first-1].Seq
		}
		e.check(t, p, &wire.Read{AfterSeq: after, MaxBytes: &most}, retained, first, last)
		first = last
	}
	all := uint64(1 << 40)
	page, _ := p.page(&wire.Read{MaxBytes: &all})
	size := 0
	for _, c := range page.Chunks {
		size += len(c.Chunk)
	}
	if retained < kept && size > maxPage { // it is read from disk
		t.Errorf("a page of %d bytes", size)
	}
	none := uint64(0) // one chunk in any case
	e.check(t, p, &wire.Read{AfterSeq: e.all[retained].Seq - 1, MaxBytes: &none}, retained,
		retained, retained+1)
}

// TestManyChunks: the chunks that are known are bounded, however small they are.
func TestManyChunks(t *testing.T) {
	_, p := printing(t, t.TempDir())
	for range maxIndex + 10 {
		p.onOutput(executor.Stdout, []byte("x"))
	}
	all, most := wire.Read{}, uint64(1<<30)
	page, _ := p.page(&all)
	if len(page.Chunks) != maxChunks || page.Chunks[0].Seq != maxIndex+10-maxChunks+1 {
		t.Errorf("%d chunks from %d", len(page.Chunks), page.Chunks[0].Seq)
	}
	all.MaxBytes = &most
	if page, _ = p.page(&all); len(page.Chunks) != maxIndex || page.TruncatedBefore != 11 ||
		page.TruncatedBytes != 10 {
		t.Errorf("%d chunks, truncated before %d with %d bytes", len(page.Chunks), page.TruncatedBefore,
			page.TruncatedBytes)
	}
}

// TestLostFile: a read of output whose file is lost has what memory has, and says what is missing.
func TestLostFile(t *testing.T) {
	_, p := printing(t, t.TempDir())
	for range 100 {
		p.onOutput(executor.Stdout, make([]byte, chunkSize))
	}
	_ = p.log.Close()
	most := uint64(1 << 30)
	page, _ := p.page(&wire.Read{MaxBytes: &most})
	if len(page.Chunks) != maxKept/chunkSize || page.TruncatedBefore != page.Chunks[0].Seq ||
		page.TruncatedBytes != 100*chunkSize-maxKept {
		t.Errorf("%d chunks, truncated before %d with %d bytes", len(page.Chunks), page.TruncatedBefore,
			page.TruncatedBytes)
	}
}
