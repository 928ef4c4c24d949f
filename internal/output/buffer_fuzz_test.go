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
		t.Fatalf("%s: %d + %d + %d omitted of %d, want %d", name, len(s.Head), len(s.Tail), s.Omitted, s.Total, len(m.all))
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

func FuzzAt(f *testing.F) {
	f.Add(10, []byte{3, 131, 7, 200, 1, 129, 1})
	f.Add(700, bytes.Repeat([]byte{1, 129}, 2000))
	f.Add(0, []byte{3, 131})
	f.Add(4095, bytes.Repeat([]byte{1, 129, 1, 130, 9, 255}, 3000))
	f.Fuzz(func(t *testing.T, bytesCap int, sizes []byte) {
		bytesCap &= 0xfff
		c := NewCapture(Limit{Bytes: bytesCap})
		var all []byte
		var labels []executor.Stream
		for i, n := range sizes {
			s := executor.Stream(n >> 7)
			chunk := make([]byte, n&0x7f)
			for j := range chunk {
				chunk[j] = byte(len(all) + j)
				labels = append(labels, s)
			}
			c.Write(s, chunk)
			all = append(all, chunk...)
			if i%1021 == 0 || i == len(sizes)-1 {
				checkAt(t, c, all, labels, bytesCap)
			}
		}
	})
}

// checkAt reads everything through At and compares it with the whole output.
func checkAt(t *testing.T, c *Capture, all []byte, labels []executor.Stream, bytesCap int) {
	t.Helper()
	head, tail, total := c.Kept()
	wantHead, wantTail := (bufferModel{all}).want(bytesCap)
	if head != uint64(len(wantHead)) || total != uint64(len(all)) || total-tail != uint64(len(wantTail)) {
		t.Fatalf("kept %d and %d..%d, want %d and the last %d of %d", head, tail, total, len(wantHead), len(wantTail), len(all))
	}
	for off := uint64(0); off < total; {
		s, p := c.At(off)
		if off >= head && off < tail {
			if p != nil {
				t.Fatalf("At(%d) = %d bytes of the gap %d..%d", off, len(p), head, tail)
			}
			off = tail
			continue
		}
		if len(p) == 0 || !bytes.Equal(p, all[off:off+uint64(len(p))]) {
			t.Fatalf("At(%d) = %q of %q", off, p, all[off:])
		}
		for i := range p {
			if labels[off+uint64(i)] != s {
				t.Fatalf("At(%d) says %v of byte %d", off, s, off+uint64(i))
			}
		}
		off += uint64(len(p))
	}
	if _, p := c.At(total); p != nil {
		t.Fatalf("At(%d) = %q, after the end", total, p)
	}
}
