// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
)

func TestCaptureOrder(t *testing.T) {
	// Each piece is "o" or "e" and the text that stream prints.
	for _, tt := range []struct {
		name            string
		limit           Limit
		pieces          []string
		out, err        string
		combined        string
		combinedOmitted uint64
	}{
		{"interleaved", Limit{Bytes: 100}, []string{"oone\n", "etwo\n", "othree\n"}, "one\nthree\n", "two\n", "one\ntwo\nthree\n", 0},
		{"aggregate overflows, streams do not", Limit{Bytes: 10}, []string{"oabcd", "eABCD", "oefgh"}, "abcdefgh", "ABCD", "abcdA" + "Defgh", 2},
		{"tail of the aggregate lies in a head", Limit{Bytes: 4}, []string{"oabcdef", "eX"}, "abef", "X", "ab" + "fX", 3},
		{"one stream", Limit{Bytes: 4}, []string{"oab", "ocd", "oef"}, "abef", "", "abef", 2},
		{"nothing kept", Limit{}, []string{"oab", "ecd"}, "", "", "", 4},
		{"beginnings, all that is kept in order", Limit{Bytes: 3, HeadOnly: true}, []string{"oab", "eABCD", "ocd"}, "abc", "ABC", "abABCc", 2},
		{"lines", Limit{Bytes: 99, Lines: 1}, []string{"oa\nb", "eA\nB", "oc"}, "a\n", "A\n", "a\nA\n", 3},
		{"unlimited", FullBufferLimit(), []string{"oa", "eb", "oc", "ed"}, "ac", "bd", "abcd", 0},
		{"empty pieces", Limit{Bytes: 9}, []string{"oa", "e", "ob"}, "ab", "", "ab", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := NewCapture(tt.limit)
			for _, p := range tt.pieces {
				s := executor.Stdout
				if p[0] == 'e' {
					s = executor.Stderr
				}
				c.Write(s, []byte(p[1:]))
			}
			got := c.Drain()
			for _, x := range []struct{ name, got, want string }{
				{"stdout", string(got.Stdout.Bytes()), tt.out},
				{"stderr", string(got.Stderr.Bytes()), tt.err},
				{"combined", string(got.Combined.Bytes()), tt.combined},
			} {
				if x.got != x.want {
					t.Errorf("%s %q, want %q", x.name, x.got, x.want)
				}
			}
			if got.Combined.Omitted != tt.combinedOmitted {
				t.Errorf("combined omits %d, want %d", got.Combined.Omitted, tt.combinedOmitted)
			}
			if again := c.Drain(); again.Combined.Total+again.Stdout.Total+again.Stderr.Total != 0 {
				t.Errorf("second drain is not empty: %+v", again)
			}
		})
	}
}

func TestChunksNameTheirStream(t *testing.T) {
	c := NewCapture(Limit{Bytes: 8})
	for i, p := range []string{"ab", "AB", "cd", "CD", "ef", "EF"} {
		c.Write(executor.Stream(i%2), []byte(p))
	}
	head, seq := c.Chunks()
	var got strings.Builder
	for s, p := range seq {
		got.WriteString(s.String()[3:] + ":" + string(p) + " ")
	}
	if want := "out:ab err:AB out:ef err:EF "; got.String() != want || head != 4 {
		t.Errorf("chunks %q with %d before the gap, want %q with 4", got.String(), head, want)
	}
	for range seq { // a reader may stop early
		break
	}
}

func TestDrainedCaptureStartsAnew(t *testing.T) {
	c := NewCapture(Limit{Bytes: 6})
	for range 2 {
		c.Write(executor.Stdout, []byte("abcdefgh"))
		c.Write(executor.Stderr, []byte("X"))
		if got, want := string(c.Drain().Combined.Render()), "abc\n... 3 bytes omitted ...\nghX"; got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}

func TestRunMemoryIsSmall(t *testing.T) {
	c := NewCapture(Limit{Bytes: 64 << 10})
	for i := range 1 << 20 {
		c.Write(executor.Stream(i&1), []byte{byte(i)})
	}
	if n := cap(c.first.enc) + cap(c.last.enc); n > 3*64<<10 {
		t.Errorf("alternating single bytes cost %d bytes for a cap of 64 KiB", n)
	}
	got := c.Combined()
	for i, b := range got.Tail {
		if want := byte(1<<20 - len(got.Tail) + i); b != want {
			t.Fatalf("byte %d of the tail is %d, want %d", i, b, want)
		}
	}
}

func TestAggregateUpstream(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		name             string
		out, err, cap    int
		wantOut, wantErr int
	}{
		{"row 10: both full", mib, mib, mib, 349525, 699051},
		{"row 11: little output, full errors", mib / 10, mib, mib, 104857, 943719},
		{"row 12: full output, one byte of errors", mib, 1, mib, 1048575, 1},
		{"row 13: both fit", 4, 3, mib, 4, 3},
		{"row 14: no cap, both full", mib, mib, -1, mib, mib},
		{"cap 0", 5, 5, 0, 0, 0},
		{"exact fit", 5, 5, 10, 5, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := AggregateUpstream(bytes.Repeat([]byte("o"), tt.out), bytes.Repeat([]byte("e"), tt.err), tt.cap)
			o, e := bytes.Count(got, []byte("o")), bytes.Count(got, []byte("e"))
			if o != tt.wantOut || e != tt.wantErr {
				t.Errorf("took %d and %d, want %d and %d", o, e, tt.wantOut, tt.wantErr)
			}
			if !bytes.HasPrefix(got, bytes.Repeat([]byte("o"), o)) {
				t.Error("output does not come first")
			}
		})
	}
}

// TestAtOfManyRuns: bytes are found among so many runs that marks are needed, and after
// the queue has moved in its memory.
func TestAtOfManyRuns(t *testing.T) {
	const bytesCap = 16 << 10
	c := NewCapture(Limit{Bytes: bytesCap})
	var all []byte
	var labels []executor.Stream
	for i := range 60_000 {
		s, p := executor.Stream(i&1), []byte{byte(i), byte(i >> 8)}[:1+i%7/6]
		c.Write(s, p)
		all = append(all, p...)
		for range p {
			labels = append(labels, s)
		}
		if i%1021 == 0 {
			checkAt(t, c, all, labels, bytesCap)
		}
	}
	if len(c.last.marks) < 2 || len(c.last.marks) > 64 || c.last.base == 0 {
		t.Errorf("%d marks, %d bytes of lengths gone", len(c.last.marks), c.last.base)
	}
}
