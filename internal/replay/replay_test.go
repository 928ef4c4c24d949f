// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/wire"
)

// TestLog compares a log with what was added, also after it has gone round several times.
func TestLog(t *testing.T) {
	const most = 3 * step
	for name, used := range map[string]int64{"alone": 0, "nearly full disk": MaxDisk - 2*step} {
		t.Run(name, func(t *testing.T) {
			d := &Disk{Dir: filepath.Join(t.TempDir(), "new"), used: used}
			l := d.NewLog()
			l.most = most
			random := rand.New(rand.NewPCG(1, 2))
			var all []wire.Chunk
			for i := range 500 {
				c := wire.Chunk{Seq: uint64(2*i + 3), Stream: "stdout", Chunk: make([]byte, 1+random.IntN(64<<10))}
				for j := range c.Chunk {
					c.Chunk[j] = byte(random.Uint32())
				}
				all = append(all, c)
				l.Add(c)
				if i%50 != 0 && i != 499 {
					continue
				}
				after, got := uint64(0), []wire.Chunk(nil)
				for page := l.After(after, 100_000); page != nil; page = l.After(after, 100_000) {
					size := 0
					for _, c := range page {
						size += len(c.Chunk)
					}
					if size > 100_000 {
						t.Fatalf("a page of %d bytes", size)
					}
					got = append(got, page...)
					after = page[len(page)-1].Seq
				}
				first := len(all) - len(got)
				for j, c := range got {
					if w := all[first+j]; c.Seq != w.Seq || c.Stream != w.Stream || !bytes.Equal(c.Chunk, w.Chunk) {
						t.Fatalf("chunk %d of %d is another one", c.Seq, i)
					}
				}
				want := uint64(0)
				if first > 0 {
					want = all[first-1].Seq
				}
				if l.Gone() != want {
					t.Errorf("gone %d, want %d", l.Gone(), want)
				}
				if size := int64(l.Held()); size > l.room || first > 0 && size < l.room-64<<10 {
					t.Errorf("%d bytes of %d are held", size, l.room)
				}
			}
			if want := min(most, MaxDisk-used); l.room != want || d.used != used+want {
				t.Errorf("room %d, used %d", l.room, d.used)
			}
			l.Close()
			l.Close()
			l.Add(all[0])
			if entries, err := os.ReadDir(d.Dir); err != nil || len(entries) > 0 || d.used != used || l.After(0, 1) != nil {
				t.Errorf("%v, %v, used %d", entries, err, d.used)
			}
		})
	}
}

// TestNoLog holds nothing where there is no directory, or no room.
func TestNoLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]*Disk{"none": {}, "a file": {Dir: file}, "full": {Dir: t.TempDir(), used: MaxDisk}} {
		l := d.NewLog()
		l.Add(wire.Chunk{Seq: 1, Chunk: []byte("x")})
		l.Add(wire.Chunk{Seq: 2, Chunk: []byte("x")})
		if got := l.After(0, 1); got != nil || l.Held() != 0 {
			t.Errorf("%s: %v", name, got)
		}
		l.Close()
	}
}

// TestChunks bounds the number of chunks, which take memory.
func TestChunks(t *testing.T) {
	d := &Disk{Dir: t.TempDir()}
	l := d.NewLog()
	defer l.Close()
	for i := range uint64(MaxChunks + 10) {
		l.Add(wire.Chunk{Seq: i + 1, Chunk: []byte("x")})
	}
	if got := l.After(0, 1); l.Held() != MaxChunks || l.Gone() != 10 || got[0].Seq != 11 {
		t.Errorf("held %d, gone %d, first %d", l.Held(), l.Gone(), got[0].Seq)
	}
}
