// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
)

// bufferModel is the same buffer with nothing clever: it keeps every byte.
type bufferModel struct{ all []byte }

func (m bufferModel) want(bytesCap int) (head, tail []byte) {
	h := min(bytesCap/2, len(m.all))
	t := min(bytesCap-bytesCap/2, len(m.all)-h)
	return m.all[:h], m.all[len(m.all)-t:]
}

func checkAgainst(t *testing.T, name string, m bufferModel, bytesCap int, s Snapshot) {
	t.Helper()
	head, tail := m.want(bytesCap)
	if !bytes.Equal(s.Head, head) || !bytes.Equal(s.Tail, tail) {
		t.Fatalf("%s: kept %q and %q, want %q and %q", name, s.Head, s.Tail, head, tail)
	}
	if s.Total != uint64(len(m.all)) || s.Total != uint64(len(s.Head)+len(s.Tail))+s.Omitted {
		t.Fatalf("%s: %d + %d + %d omitted of %d, want %d", name, len(s.Head), len(s.Tail), s.Omitted,
			s.Total, len(m.all))
	}
}

func FuzzBuffer(f *testing.F) {
	f.Add(10, []byte{3, 0, 7, 200, 1, 1, 1})
	f.Add(0, []byte{1})
	f.Add(11, []byte{5, 6, 1, 255})
	f.Fuzz(func(t *testing.T, bytesCap int, sizes []byte) {
		bytesCap &= 0x3ff
		b, m := NewBuffer(bytesCap), bufferModel{}
		next := byte(0)
		for i, n := range sizes {
			if n == 254 { // a drain
				checkAgainst(t, "drained", m, bytesCap, b.Drain())
				m.all = nil
				continue
			}
			chunk := make([]byte, int(n)*(1+i%3))
			for j := range chunk {
				chunk[j] = next
				next++
			}
			b.push(chunk)
			m.all = append(m.all, chunk...)
			checkAgainst(t, "buffer", m, bytesCap, b.Snapshot())
			checkParts(t, b, m.all)
			if cap(b.head)+cap(b.tail) > bytesCap {
				t.Fatalf("cap %d holds %d bytes of memory", bytesCap, cap(b.head)+cap(b.tail))
			}
		}
	})
}

func FuzzCapture(f *testing.F) {
	f.Add(10, []byte{3, 131, 7, 200, 1, 129, 1})
	f.Add(5, bytes.Repeat([]byte{1, 129}, 40))
	f.Add(64, bytes.Repeat([]byte{100, 200, 3}, 9))
	f.Fuzz(func(t *testing.T, bytesCap int, sizes []byte) {
		bytesCap &= 0xff
		c, heads := NewCapture(Limit{Bytes: bytesCap}), NewCapture(Limit{Bytes: bytesCap, HeadOnly: true})
		var streams [2]bufferModel
		var both, kept bufferModel
		next := byte(0)
		for _, n := range sizes {
			s := executor.Stream(n >> 7)
			chunk := make([]byte, n&0x7f)
			for j := range chunk {
				chunk[j] = next
				next++
			}
			room := max(0, min(len(chunk), bytesCap-len(streams[s].all)))
			kept.all = append(kept.all, chunk[:room]...)
			c.Write(s, chunk)
			heads.Write(s, chunk)
			streams[s].all = append(streams[s].all, chunk...)
			both.all = append(both.all, chunk...)
		}
		got := c.Snapshot()
		checkAgainst(t, "stdout", streams[0], bytesCap, got.Stdout)
		checkAgainst(t, "stderr", streams[1], bytesCap, got.Stderr)
		checkAgainst(t, "combined", both, bytesCap, got.Combined)
		h := heads.Snapshot().Combined
		if !bytes.Equal(h.Bytes(), kept.all) || h.Total != uint64(len(both.all)) {
			t.Fatalf("beginnings: kept %q of %d, want %q of %d", h.Bytes(), h.Total, kept.all, len(both.all))
		}
	})
}

// checkParts reads b in pieces and from the end.
func checkParts(t *testing.T, b *Buffer, all []byte) {
	t.Helper()
	head, tail, total := b.kept()
	for off := uint64(0); off <= total; {
		p := b.at(off, 7)
		if inside := off < head || off >= tail && off < total; inside != (len(p) > 0) || len(p) > 7 ||
			!bytes.Equal(p, all[off:off+uint64(len(p))]) {
			t.Fatalf("at(%d) = %q of %q, kept %d and %d..%d", off, p, all[off:], head, tail, total)
		}
		off += max(uint64(len(p)), 1)
	}
	first := int(tail)
	if tail == head {
		first = 0
	}
	for _, n := range []int{-1, 0, 1, 5, len(all)} {
		want := all[len(all)-min(max(n, 0), len(all)-first):]
		if got := b.Last(n); !bytes.Equal(got, want) {
			t.Fatalf("Last(%d) = %q, want %q", n, got, want)
		}
	}
}
