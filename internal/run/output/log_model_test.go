// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"pgregory.net/rapid"
)

// A model is a Log that keeps everything and knows what the real one must keep.
type model struct {
	all    []byte
	labels []executor.Stream

	head, tail int // of memory
	file       bool
	fileCap    int
	flushed    int
}

func (m *model) write(s executor.Stream, p []byte) {
	if lag := min(m.tail, maxLag); m.file && len(p) > 0 && len(m.all)-m.flushed+len(p) > lag {
		m.flushed = len(m.all)
		if len(p) > lag {
			m.flushed += len(p)
		}
	}
	m.all = append(m.all, p...)
	for range p {
		m.labels = append(m.labels, s)
	}
}

func (m *model) close() { m.flushed = len(m.all) }

func (m *model) kept(i int) bool {
	return m.inMemory(i) || m.file && i < m.flushed &&
		(i < m.fileCap/2 || i >= m.flushed-(m.fileCap-m.fileCap/2))
}

func (m *model) inMemory(i int) bool { return i < m.head || i >= len(m.all)-m.tail }

// reads gives what a reader at from must get: how many bytes are missing, then the
// offset of what is kept.
func (m *model) gap(from int) int {
	for from < len(m.all) && !m.kept(from) {
		from++
	}
	return from
}

// failing is the part of a test that the checks need.
type failing interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkPiece holds a piece that a reader at off got against the model, and returns the
// offset behind it.
func (m *model) checkPiece(t failing, off int, p executor.Chunk, block uint64) int {
	t.Helper()
	at := m.gap(off)
	if p.Offset != uint64(at) || p.Missing != uint64(at-off) || len(p.Data) == 0 ||
		at+len(p.Data) > len(m.all) {
		t.Fatalf("at %d: piece at %d with %d bytes, %d missing; want it at %d of %d", off, p.Offset,
			len(p.Data), p.Missing, at, len(m.all))
	}
	if !bytes.Equal(p.Data, m.all[at:at+len(p.Data)]) {
		t.Fatalf("at %d: %q, want %q", at, p.Data, m.all[at:at+len(p.Data)])
	}
	for i := at; i < at+len(p.Data); i++ {
		from := i
		if p.Joined {
			from = i / int(block) * int(block)
		}
		if !m.kept(i) || !slices.Contains(m.labels[from:i+1], p.Stream) {
			t.Fatalf("byte %d: kept %v, %v, joined %v; want %v", i, m.kept(i), p.Stream, p.Joined,
				m.labels[from:i+1])
		}
		if m.inMemory(at) && p.Joined {
			t.Fatalf("byte %d is in memory, and its stream is not known", i)
		}
	}
	return at + len(p.Data)
}

// drawn is a Log with its model.
type drawn struct {
	log   *Log
	store *Store
	m     *model
}

func draw(t *rapid.T, dir string) drawn {
	retain := rapid.IntRange(1, 120).Draw(t, "retain")
	labels := rapid.IntRange(2, 40).Draw(t, "labels")
	d := drawn{m: &model{head: retain / 2, tail: retain - retain/2}}
	var file *File
	if rapid.Bool().Draw(t, "file") {
		n := rapid.IntRange(1, 400).Draw(t, "file cap")
		d.store = &Store{Dir: filepath.Join(dir, "spill")}
		f, err := d.store.Create(int64(n))
		if err != nil {
			t.Fatal(err)
		}
		file, d.m.file, d.m.fileCap = f, true, n
	}
	d.log = NewLog(retain, file, nil)
	d.log.labels.most = labels
	d.log.index.stride = 16
	return d
}

func (d drawn) done() {
	if d.store != nil {
		d.store.Close()
	}
}

// text returns n bytes with a newline now and then.
func text(from, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		x := from + i
		if p[i] = byte('!' + (x^x>>5)%90); (x*x+x/3)%11 == 0 {
			p[i] = '\n'
		}
	}
	return p
}

// TestLogAgainstModel writes at random and lets readers that come at any offset read
// at any time.
func TestLogAgainstModel(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, dir)
		defer d.done()
		type reader struct{ off int }
		var readers []*reader
		read := func(r *reader) bool {
			p, ok := tryRead(d.log, uint64(r.off))
			if !ok {
				if r.off < len(d.m.all) {
					t.Fatalf("a reader at %d of %d gets nothing", r.off, len(d.m.all))
				}
				return false
			}
			r.off = d.m.checkPiece(t, r.off, p, d.log.labels.block)
			return true
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				off := rapid.IntRange(0, len(d.m.all)).Draw(t, "from")
				readers = append(readers, &reader{off})
			case 1:
				if len(readers) > 0 {
					read(rapid.SampledFrom(readers).Draw(t, "reader"))
				}
			default:
				s := executor.Stream(rapid.IntRange(0, 1).Draw(t, "stream"))
				p := text(len(d.m.all), rapid.IntRange(0, 70).Draw(t, "bytes"))
				d.log.Write(s, p)
				d.m.write(s, p)
			}
		}
		d.check(t)
		if rapid.Bool().Draw(t, "close") {
			d.log.End()
			d.m.close()
			d.check(t)
		}
		for _, r := range append(readers, &reader{}) {
			for read(r) {
				continue
			}
		}
	})
}

// check compares everything that is kept.
func (d drawn) check(t *rapid.T) {
	missing, buf := 0, make([]byte, 17)
	for off := 0; off < len(d.m.all); {
		n, next := d.log.readAt(buf, uint64(off))
		if n == 0 {
			if next != uint64(d.m.gap(off)) {
				t.Fatalf("gap %d..%d, want it up to %d", off, next, d.m.gap(off))
			}
			missing += int(next) - off
		} else if !d.m.kept(off) || next != uint64(off+n) || !bytes.Equal(buf[:n], d.m.all[off:off+n]) {
			t.Fatalf("ReadAt(%d) = %q, kept %v, want %q", off, buf[:n], d.m.kept(off), d.m.all[off:])
		}
		off = int(next)
	}
	if size, got := d.log.Size(); got != uint64(missing) || size != uint64(len(d.m.all)) {
		t.Fatalf("%d of %d missing, want %d of %d", got, size, missing, len(d.m.all))
	}
	from := rapid.IntRange(-1, 40).Draw(t, "first line")
	to := from + rapid.IntRange(-2, 40).Draw(t, "lines")
	d.checkLines(t, from, to)
	d.checkLines(t, 1, 0)
	d.checkSearch(t)
}

// wantLines cuts the model's bytes into lines and gaps, byte by byte.
func (m *model) wantLines(from, to int) []executor.Line {
	var out []executor.Line
	line, number, open, behind := executor.Line{}, 1, false, false
	end := func(cut bool) {
		if open && line.Number >= from && line.Number <= to {
			line.Cut = line.Cut || cut
			out = append(out, line)
		}
		open = false
	}
	for i := 0; i < len(m.all); {
		if !m.kept(i) {
			end(true)
			g := executor.Line{Number: number, Offset: uint64(i)}
			for ; !m.kept(i); i++ {
				g.Missing++
				number += bytes.Count(m.all[i:i+1], newline)
			}
			if g.Last = number; g.Number <= to && g.Last >= from {
				out = append(out, g)
			}
			behind = true
			continue
		}
		if !open {
			line, open = executor.Line{Number: number, Offset: uint64(i), Cut: behind}, true
		}
		if m.all[i] == '\n' {
			end(false)
			number++
			behind = false
		} else {
			line.Data = append(line.Data, m.all[i])
			line.Size++
		}
		i++
	}
	end(false)
	return out
}

func (d drawn) checkLines(t *rapid.T, from, to int) {
	got, more := d.log.Lines(from, to)
	if to < 1 {
		to = 1 << 30
	}
	want := d.m.wantLines(max(from, 1), to)
	if more || len(got) != len(want) {
		t.Fatalf("lines %d to %d: %d of them, more %v, want %d\n%s\n%s", from, to, len(got), more, len(want),
			show(got), show(want))
	}
	for i := range got {
		if show(got[i:i+1]) != show(want[i:i+1]) {
			t.Fatalf("lines %d to %d:\n%s\nwant\n%s", from, to, show(got), show(want))
		}
	}
	lines := bytes.Count(d.m.all, newline)
	if n := len(d.m.all); n > 0 && d.m.all[n-1] != '\n' {
		lines++
	}
	if d.log.LineCount() != lines {
		t.Fatalf("%d lines, want %d", d.log.LineCount(), lines)
	}
}

func show(lines []executor.Line) string {
	var b bytes.Buffer
	for _, l := range lines {
		fmt.Fprintf(&b, "%d at %d: %q size %d cut %v missing %d last %d\n", l.Number, l.Offset, l.Data,
			l.Size, l.Cut, l.Missing, l.Last)
	}
	return b.String()
}

func (d drawn) checkSearch(t *rapid.T) {
	re := regexp.MustCompile([]string{`[a-c]`, `^.?$`, `%`,
		`A.B`}[rapid.IntRange(0, 3).Draw(t, "expression")])
	most := rapid.IntRange(1, 20).Draw(t, "most")
	got, err := d.log.Search(t.Context(), re, most)
	if err != nil {
		t.Fatal(err)
	}
	var want []executor.Match
	missing := uint64(0)
	more := false
	for _, l := range d.m.wantLines(1, 1<<30) {
		missing += l.Missing
		at := re.FindIndex(l.Data)
		if l.Missing > 0 || at == nil || len(want) > 0 && want[len(want)-1].Line == l.Number {
			continue
		}
		if more = len(want) == most; more {
			break
		}
		want = append(want, executor.Match{Line: l.Number, Offset: l.Offset + uint64(at[0]), Data: l.Data,
			Start: at[0], End: at[1]})
	}
	if fmt.Sprint(got.Matches) != fmt.Sprint(want) || got.More != more {
		t.Fatalf("%v:\n%v more %v\nwant\n%v more %v", re, got.Matches, got.More, want, more)
	}
	if !more && (got.Missing != missing || got.Searched+missing != uint64(len(d.m.all))) {
		t.Fatalf("searched %d, %d missing of %d, want %d", got.Searched, got.Missing, len(d.m.all), missing)
	}
}

// FuzzReaders drives a log with a file by bytes: writes of both streams, one reader
// that reads now and then, one that waits for the end.
func FuzzReaders(f *testing.F) {
	f.Add(uint8(10), uint16(40), []byte{3, 131, 7, 200, 1, 255, 129, 1})
	f.Add(uint8(1), uint16(1), []byte{60, 255, 60, 255, 60})
	f.Add(uint8(64), uint16(300), bytes.Repeat([]byte{20, 140, 3, 255}, 40))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, retain uint8, fileCap uint16, steps []byte) {
		store := &Store{Dir: filepath.Join(dir, fmt.Sprint(time.Now().UnixNano()))}
		defer store.Close()
		size := int(fileCap&0xfff) + 1
		file, err := store.Create(int64(size))
		if err != nil {
			t.Fatal(err)
		}
		n := max(int(retain), 1)
		m := &model{head: n / 2, tail: n - n/2, file: true, fileCap: size}
		l := NewLog(n, file, nil)
		l.labels.most, l.index.stride = 8, 16
		off := 0
		for _, b := range steps {
			if b == 255 {
				if p, ok := tryRead(l, uint64(off)); ok {
					off = m.checkPiece(t, off, p, l.labels.block)
				}
				continue
			}
			p := text(len(m.all), int(b&0x7f))
			l.Write(executor.Stream(b>>7), p)
			m.write(executor.Stream(b>>7), p)
		}
		l.End()
		m.close()
		for {
			p, err := l.Read(t.Context(), uint64(off))
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			off = m.checkPiece(t, off, p, l.labels.block)
		}
		if off != len(m.all) {
			t.Fatalf("the end at %d of %d", off, len(m.all))
		}
		if _, err := l.Search(context.Background(), regexp.MustCompile("x"), 0); err != nil {
			t.Fatal(err)
		}
	})
}
