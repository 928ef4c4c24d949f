// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"go.uber.org/goleak"
)

const (
	stdout = executor.Stdout
	stderr = executor.Stderr
)

// usual is the size of a file that takes all output of a test.
const usual = 64 << 20

func newFile(t testing.TB, size int64) *File {
	t.Helper()
	s := &Store{Dir: filepath.Join(t.TempDir(), "spill")}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return create(t, s, size)
}

// tryRead returns what a reader gets that does not wait; false if there is nothing.
func tryRead(l *Log, from uint64) (executor.Chunk, bool) {
	for at := from; ; {
		c, next, _ := l.chunk(at)
		c.Missing = at - from
		if len(c.Data) > 0 || next == at {
			return c, len(c.Data) > 0 || c.Missing > 0
		}
		at = next
	}
}

// drain reads to the end and returns what it got, with zeros for what is missing.
func drain(t testing.TB, l *Log, from uint64) (all []byte, missing uint64) {
	t.Helper()
	for {
		p, err := l.Read(t.Context(), from)
		if errors.Is(err, io.EOF) {
			return all, missing
		}
		if err != nil {
			t.Error(err)
			return all, missing
		}
		all = append(append(all, make([]byte, p.Missing)...), p.Data...)
		missing += p.Missing
		from = p.End()
	}
}

// noise returns n bytes that compress badly and have lines.
func noise(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	p := make([]byte, n)
	for i := 0; i < n; {
		for x := r.Uint64(); x > 0 && i < n; x >>= 8 {
			if p[i] = 33 + byte(x)&63; x&63 == 7 && x>>6&1 == 0 {
				p[i] = '\n'
			}
			i++
		}
	}
	return p
}

// TestBurst: nothing of 30 MB is lost to readers that come before, meanwhile and after,
// from the beginning or from a cursor.
func TestBurst(t *testing.T) {
	const size = 30_000_000
	all := noise(size)
	l := NewLog(0, newFile(t, usual), nil)
	var wg sync.WaitGroup
	read := func(from int) {
		wg.Go(func() {
			got, missing := drain(t, l, uint64(from))
			if missing != 0 || !bytes.Equal(got, all[from:]) {
				t.Errorf("a reader from %d: %d bytes, %d missing, want %d", from, len(got),
					missing, size-from)
			}
		})
	}
	read(0)
	for off := 0; off < size; {
		n := min(size-off, 40_000)
		l.Write(stdout, all[off:off+n])
		if off += n; off%10_000_000 == 0 {
			read(0)
			read(off - 1_000_000)
		}
	}
	l.End()
	read(0)
	read(size - 1)
	wg.Wait()
	if _, missing := l.Size(); missing != 0 {
		t.Errorf("%d bytes missing", missing)
	}
}

// TestStuckReader: one that does not read keeps nobody from anything.
func TestStuckReader(t *testing.T) {
	const size = 8 << 20
	all := noise(size)
	l := NewLog(64<<10, newFile(t, 1<<20), nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got, missing := drain(t, l, 0)
			if len(got) != size {
				t.Errorf("%d bytes, want %d", len(got), size)
				return
			}
			for i, b := range got {
				if b != all[i] && b != 0 {
					t.Errorf("byte %d is wrong", i)
					return
				}
			}
			if n := bytes.Count(got, []byte{0}); uint64(n) != missing {
				t.Errorf("%d bytes missing, told %d", n, missing)
			}
		})
	}
	wg.Go(func() {
		re := regexp.MustCompile("never there\x01")
		for ended := false; !ended; {
			before, _ := l.Size()
			found, err := l.Search(t.Context(), re, 0)
			if n := found.Searched + found.Missing; err != nil || n < before {
				t.Errorf("a search in at least %d bytes: %d, %v", before, n, err)
				return
			}
			lines, _ := l.Lines(l.LineCount(), 0)
			checkTrue(t, lines, all)
			l.mu.Lock()
			ended = l.ended
			l.mu.Unlock()
		}
	})
	for off := 0; off < size; {
		n := min(size-off, 1+off%30_011)
		l.Write(stdout, all[off:off+n])
		off += n
	}
	l.End()
	wg.Wait()
	p, err := l.Read(t.Context(), 0)
	if err != nil || p.Offset != 0 || !bytes.Equal(p.Data, all[:len(p.Data)]) {
		t.Errorf("the stuck one gets %d bytes at %d, %v", len(p.Data), p.Offset, err)
	}
}

// checkTrue holds lines against the whole output.
func checkTrue(t *testing.T, lines []executor.Line, all []byte) {
	t.Helper()
	for _, line := range lines {
		if want := bytes.Count(all[:line.Offset], newline) + 1; line.Number != want {
			t.Errorf("line %d at %d, want %d", line.Number, line.Offset, want)
		}
		if !bytes.Equal(line.Data, all[line.Offset:line.Offset+uint64(len(line.Data))]) {
			t.Errorf("line %d is %q", line.Number, line.Data)
		}
	}
}

func TestReadWaits(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	synctest.Test(t, func(t *testing.T) {
		l := NewLog(0, nil, nil)
		off := uint64(2)
		var got []string
		done := make(chan error)
		go func() {
			for {
				p, err := l.Read(t.Context(), off)
				if err != nil {
					done <- err
					return
				}
				off = p.End()
				got = append(got, fmt.Sprintf("%v:%s", p.Stream, p.Data))
			}
		}()
		for _, s := range []string{"a", "bc", "def"} {
			synctest.Wait()
			<-time.After(time.Second) // of the test's own clock
			l.Write(executor.Stream(len(s)-1), []byte(s))
		}
		synctest.Wait()
		if want := []string{"stderr:c", "stdout:def"}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q, want %q", got, want)
		}
		l.End()
		if err := <-done; !errors.Is(err, io.EOF) {
			t.Errorf("the end is %v", err)
		}
		if _, err := l.Read(t.Context(), off); !errors.Is(err, io.EOF) {
			t.Errorf("behind the end is %v", err)
		}
		l.Write(stdout, []byte("late"))
		l.End()
		if size, _ := l.Size(); size != 6 {
			t.Errorf("size %d", size)
		}
	})
}

func TestReadIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLog(0, nil, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := l.Read(ctx, 0)
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		l.Write(stdout, []byte("x"))
		if _, err := l.Read(ctx, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("with output: %v", err)
		}
	})
}

// TestFewBytesCostLittle: what a log costs that has printed little, and a write to it.
func TestFewBytesCostLittle(t *testing.T) {
	const logs = 1000
	keep := make([]*Log, logs)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range keep {
		keep[i] = NewLog(0, nil, nil)
		keep[i].Write(stdout, []byte("$ "))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := int64(after.HeapAlloc-before.HeapAlloc) / logs
	t.Logf("%d bytes each", each)
	if each > 3<<10 {
		t.Errorf("a log with a prompt in it costs %d bytes", each)
	}
	l := keep[0]
	line := []byte("one line of output\n")
	for range 1 << 16 {
		l.Write(stdout, line)
	}
	if n := testing.AllocsPerRun(10_000, func() { l.Write(stdout, line) }); n != 0 {
		t.Errorf("%v allocations per write", n)
	}
	runtime.KeepAlive(keep)
}

func missing(l *Log) uint64 {
	_, n := l.Size()
	return n
}

// TestLinesOfLongOutput: lines of 40 MB of which the middle is gone, by their numbers.
func TestLinesOfLongOutput(t *testing.T) {
	const size = 40 << 20
	all := noise(size)
	file := newFile(t, 8<<20)
	l := NewLog(0, file, nil)
	for off := 0; off < size; off += 64 << 10 {
		l.Write(stdout, all[off:off+64<<10])
	}
	l.End()
	if n := len(l.index.counts); n > maxEntries {
		t.Errorf("%d entries of the index", n)
	}
	lines := bytes.Split(all, newline)
	total := l.LineCount()
	if want := len(lines); total != want {
		t.Fatalf("%d lines, want %d", total, want)
	}
	check := func(from, to int) []executor.Line {
		got, more := l.Lines(from, to)
		if more || len(got) == 0 {
			t.Fatalf("lines %d to %d: %d, more %v", from, to, len(got), more)
		}
		for _, line := range got {
			if line.Missing == 0 && !line.Cut && !bytes.Equal(line.Data, lines[line.Number-1]) {
				t.Fatalf("line %d is %q, want %q", line.Number, line.Data, lines[line.Number-1])
			}
		}
		checkTrue(t, got, all)
		return got
	}
	for _, at := range []int{1, 2, 1000, 20_000, total - 20_000, total - 1, total} {
		if got := check(at, min(at+2, total)); len(got) != min(3, total-at+1) {
			t.Errorf("%d lines from %d", len(got), at)
		}
	}
	for _, at := range []int{total / 3, total / 2} {
		got := check(at, at+5)
		if len(got) != 1 || got[0].Missing == 0 || got[0].Number > at || got[0].Last < at+5 ||
			got[0].Missing != missing(l) {
			t.Errorf("in the gap: %+v, %d missing", got, missing(l))
		}
	}
	if got, _ := l.Lines(total+1, total+9); len(got) != 0 {
		t.Errorf("behind the end: %v", got)
	}
	if err := file.Remove(); err != nil {
		t.Fatal(err)
	}
	if n := missing(l); n != size-DefaultBytes {
		t.Errorf("%d missing without the file", n)
	}
	check(total-3, 0)
	if got, _ := l.Lines(50_000, 50_000); len(got) != 1 || got[0].Missing != missing(l) {
		t.Errorf("without the file: %+v", got)
	}
}

func TestLongLines(t *testing.T) {
	l := NewLog(0, newFile(t, usual), nil)
	long := strings.Repeat("x", 100_000)
	l.Write(stdout, []byte("first\n"+long[:MaxChunk-1]+"needle"+long+"\nlast needle\r\n"+"needle at the end"))
	lines, more := l.Lines(2, 3)
	if more || len(lines) != 2 || len(lines[0].Data) != MaxChunk || lines[0].Size != MaxChunk-1+6+100_000 ||
		lines[1].Number != 3 {
		t.Errorf("%d lines, more %v", len(lines), more)
	}
	found, err := l.Search(t.Context(), regexp.MustCompile(`needle$`), 0)
	if err != nil || len(found.Matches) != 1 || found.Matches[0].Line != 3 || found.Split != 1 ||
		found.Missing != 0 {
		t.Errorf("%+v, %v", found, err)
	}
	if m := found.Matches[0]; string(m.Data) != "last needle" || string(m.Data[m.Start:m.End]) != "needle" {
		t.Errorf("%+v", m)
	}
	found, err = l.Search(t.Context(), regexp.MustCompile(`x{300}`), 0)
	if err != nil || len(found.Matches) != 1 || found.Matches[0].Line != 2 ||
		len(found.Matches[0].Data) != maxMatchData {
		t.Errorf("%d matches, %v", len(found.Matches), err)
	}
	found, err = l.Search(t.Context(), regexp.MustCompile(`.`), 2)
	if err != nil || len(found.Matches) != 2 || !found.More {
		t.Errorf("%d matches, more %v, %v", len(found.Matches), found.More, err)
	}
	if _, err := l.Search(t.Context(), nil, 0); err == nil {
		t.Error("nothing was searched for, and found")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Search(ctx, regexp.MustCompile(`.`), 2); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	empty := NewLog(0, newFile(t, usual), nil)
	empty.Write(stdout, bytes.Repeat(newline, 1<<20))
	lines, more = empty.Lines(0, 0)
	if n := len(lines); !more || n != maxLines/lineCost || lines[n-1].Number != n {
		t.Errorf("%d empty lines, more %v", n, more)
	}
}

// TestManyRuns: two streams that take turns more often than can be remembered.
func TestManyRuns(t *testing.T) {
	const size = 12 << 20
	l := NewLog(0, newFile(t, 4<<20), nil)
	all := noise(size)
	m := &model{head: DefaultBytes / 2, tail: DefaultBytes / 2, file: true, fileCap: 4 << 20}
	s := stdout
	for off := 0; off < size; {
		n := min(size-off, 40+off%300)
		l.Write(s, all[off:off+n])
		m.write(s, all[off:off+n])
		off += n
		s ^= 1
	}
	l.End()
	m.close()
	if n := cap(l.labels.runs); n > 2*maxLabels+2 {
		t.Errorf("%d runs are remembered", n)
	}
	t.Logf("blocks of %d bytes", l.labels.block)
	joined, off := 0, 0
	for {
		p, ok := tryRead(l, uint64(off))
		if !ok {
			break
		}
		if off = m.checkPiece(t, off, p, max(l.labels.block, 1)); p.Joined {
			joined++
		}
	}
	if off != size || joined == 0 {
		t.Errorf("the end at %d, %d joined pieces", off, joined)
	}
}
