// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sallyport-dev/sallyport/executor"
)

func TestBufferKeepsBothEnds(t *testing.T) {
	mib := strings.Repeat("a", 1<<20)
	for _, tt := range []struct {
		name       string
		bytes      int
		pushes     []string
		head, tail string
		omitted    uint64
	}{
		{"fits exactly", 10, []string{"0123456789"}, "01234", "56789", 0},
		{"two bytes over", 10, []string{"0123456789", "ab"}, "01234", "789ab", 2},
		{"chunk larger than the tail", 10, []string{"0123456789", "ABCDEFGHIJK"}, "01234", "GHIJK", 11},
		{"chunk spans the boundary", 10, []string{"01", "234", "567", "89"}, "01234", "56789", 0},
		{"one byte over", 10, []string{"01", "234", "567", "89", "a"}, "01234", "6789a", 1},
		{"single bytes and empty chunks", 10, strings.Split("0,,1,,2,,3,,4,,5,,6,,7,,8,,9,,a,,b", ","), "01234", "789ab", 2},
		{"cap 0", 0, []string{"abc"}, "", "", 3},
		{"negative cap", -4, []string{"abc"}, "", "", 3},
		{"cap 1", 1, []string{"abc"}, "", "c", 2},
		{"cap 2", 2, []string{"a", "b", "c"}, "a", "c", 1},
		{"odd cap", 11, []string{"0123456789ab"}, "01234", "6789ab", 1},
		{"1 MiB and two bytes apart", 1 << 20, []string{mib, "b", "c"}, mib[:1<<19], mib[:1<<19-2] + "bc", 2},
		{"1 MiB and two bytes at once", 1 << 20, []string{mib, "bc"}, mib[:1<<19], mib[:1<<19-2] + "bc", 2},
		{"nothing", 10, nil, "", "", 0},
		{"only empty chunks", 10, []string{"", ""}, "", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := NewBuffer(tt.bytes)
			total := 0
			for _, p := range tt.pushes {
				total += len(p)
				if n, err := b.Write([]byte(p)); n != len(p) || err != nil {
					t.Fatalf("Write = %d, %v", n, err)
				}
			}
			s := b.Snapshot()
			if string(s.Head) != tt.head || string(s.Tail) != tt.tail {
				t.Errorf("kept %.40q and %.40q, want %.40q and %.40q", s.Head, s.Tail, tt.head, tt.tail)
			}
			if s.Omitted != tt.omitted || s.Total != uint64(total) {
				t.Errorf("omitted %d of %d, want %d of %d", s.Omitted, s.Total, tt.omitted, total)
			}
		})
	}
}

func TestRender(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
	}{
		{"all kept", "0123456789", "0123456789"},
		{"gap", "0123456789ab", "01234\n... 2 bytes omitted ...\n789ab"},
		{"empty", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := NewBuffer(10)
			b.push([]byte(tt.in))
			if got := string(b.Snapshot().Render()); got != tt.want {
				t.Errorf("Render = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	seed := Limit{Bytes: 10 * 1024, Lines: 256, HeadOnly: true} // the earliest public exec tool
	lines := func(n int) string { return strings.Repeat("x\n", n) }
	for _, tt := range []struct {
		name  string
		limit Limit
		in    string
		want  string
	}{
		{"zero keeps nothing", Limit{}, "abc", ""},
		{"head only", Limit{Bytes: 2, HeadOnly: true}, "abc", "ab"},
		{"lines imply head only", Limit{Bytes: 4, Lines: 9}, "abcdef", "abcd"},
		{"seed, bytes first", seed, strings.Repeat("y", 10241), strings.Repeat("y", 10240)},
		{"seed, exactly the bytes", seed, strings.Repeat("y", 10240), strings.Repeat("y", 10240)},
		{"seed, lines first", seed, lines(300), lines(256)},
		{"seed, exactly the lines", seed, lines(256) + "z", lines(256)},
		{"seed, last newline is the last byte", seed, strings.Repeat("\n", 255) + strings.Repeat("y", 10240-256) + "\n!", strings.Repeat("\n", 255) + strings.Repeat("y", 10240-256) + "\n"},
		{"shell tool keeps exactly 1 MiB of 1 MiB + 128 KiB", Limit{Bytes: 1 << 20, HeadOnly: true}, strings.Repeat("a", 1<<20) + strings.Repeat("b", 128<<10), strings.Repeat("a", 1<<20)},
		{"row 9: full buffer keeps all", Limit{Unlimited: true}, strings.Repeat("a", 3<<20), strings.Repeat("a", 3<<20)},
	} {
		for _, size := range []int{1, 3, 1000, 8192, 4 << 20} {
			if size < 1000 && len(tt.in) > 1<<16 {
				continue // a million tiny writes show nothing new
			}
			b := newBuffer(tt.limit)
			for p := []byte(tt.in); len(p) > 0; {
				n := min(size, len(p))
				b.push(p[:n])
				p = p[n:]
			}
			if got := string(b.Snapshot().Bytes()); got != tt.want {
				t.Errorf("%s, chunks of %d: kept %d bytes, want %d", tt.name, size, len(got), len(tt.want))
			}
			if b.Total() != uint64(len(tt.in)) || b.omitted != uint64(len(tt.in)-len(tt.want)) {
				t.Errorf("%s, chunks of %d: omitted %d of %d", tt.name, size, b.omitted, b.Total())
			}
		}
	}
}

func TestDrain(t *testing.T) {
	t.Run("empties and keeps the cap", func(t *testing.T) {
		b := NewBuffer(10)
		b.push([]byte("0123456789abc"))
		want := Snapshot{Head: []byte("01234"), Tail: []byte("89abc"), Omitted: 3, Total: 13}
		if diff := cmp.Diff(want, b.Drain()); diff != "" {
			t.Error(diff)
		}
		if b.Total() != 0 || b.Len() != 0 || b.Snapshot().Bytes() != nil {
			t.Errorf("after Drain: %d kept of %d", b.Len(), b.Total())
		}
		b.push([]byte("ABCDEFGHIJKLM"))
		if got, want := string(b.Snapshot().Render()), "ABCDE\n... 3 bytes omitted ...\nIJKLM"; got != want {
			t.Errorf("second life: %q, want %q", got, want)
		}
	})
	t.Run("what was handed out does not change", func(t *testing.T) {
		b := NewBuffer(4)
		b.push([]byte("abcd"))
		s := b.Drain()
		b.push([]byte("WXYZ"))
		if got := string(s.Bytes()); got != "abcd" {
			t.Errorf("drained bytes became %q", got)
		}
	})
	t.Run("collecting drained parts equals one buffer", func(t *testing.T) {
		part, whole, sum := NewBuffer(1<<20), NewBuffer(1<<20), NewBuffer(1<<20)
		for _, c := range []string{"a", "b", "c"} {
			chunk := bytes.Repeat([]byte(c), 1<<20)
			whole.push(chunk)
			part.push(chunk)
			sum.Append(part.Drain())
		}
		want, got := whole.Snapshot(), sum.Snapshot()
		if !bytes.Equal(got.Head, want.Head) || !bytes.Equal(got.Tail, want.Tail) ||
			got.Omitted != want.Omitted {
			t.Errorf("omitted %d, want %d, or other bytes kept", got.Omitted, want.Omitted)
		}
	})
	t.Run("omitted counts survive", func(t *testing.T) {
		part, sum := NewBuffer(4), NewBuffer(100)
		for range 3 {
			part.push([]byte("0123456789"))
			sum.Append(part.Drain())
		}
		if sum.omitted != 18 || sum.Total() != 30 {
			t.Errorf("omitted %d of %d, want 18 of 30", sum.omitted, sum.Total())
		}
	})
}

func TestCountsSaturate(t *testing.T) {
	b := NewBuffer(2)
	b.Append(Snapshot{Omitted: math.MaxUint64})
	b.push([]byte("abc"))
	if b.omitted != math.MaxUint64 || b.Total() != math.MaxUint64 {
		t.Errorf("omitted %d of %d, want the largest number twice", b.omitted, b.Total())
	}
}

func TestZeroBufferCounts(t *testing.T) {
	var b Buffer
	b.push([]byte("abc"))
	if b.Len() != 0 || b.omitted != 3 {
		t.Errorf("zero Buffer keeps %d, omits %d; want 0 and 3", b.Len(), b.omitted)
	}
}

func TestMemoryFollowsData(t *testing.T) {
	b := NewBuffer(1 << 30)
	b.push(make([]byte, 10))
	if c := cap(b.head) + cap(b.tail); c > firstGrow {
		t.Errorf("10 bytes in a buffer of 1 GiB hold %d bytes of memory", c)
	}
	small := NewBuffer(1000)
	for range 5000 {
		small.push([]byte("x"))
	}
	if c := cap(small.head) + cap(small.tail); c > 1000 {
		t.Errorf("a cap of 1000 holds %d bytes of memory", c)
	}
}

func TestWriteDoesNotAllocate(t *testing.T) {
	b := NewBuffer(64 << 10)
	c := NewCapture(Limit{Bytes: 64 << 10})
	chunk := make([]byte, 4096)
	write := func() {
		b.push(chunk)
		b.push(chunk[:7])
		c.Write(executor.Stdout, chunk)
		c.Write(executor.Stderr, chunk[:7])
	}
	for range 2000 {
		write()
	}
	if n := testing.AllocsPerRun(1000, write); n != 0 {
		t.Errorf("a warm Write allocates %v times", n)
	}
}
