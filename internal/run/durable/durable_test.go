// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// open opens a store until the test ends.
func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// frames returns what a log has.
func frames(t *testing.T, l *Left) (all []Frame) {
	t.Helper()
	if err := l.Read(func(f Frame) { all = append(all, f) }); err != nil {
		t.Error(err)
	}
	return all
}

// TestStore: the next store of a directory has what was written, also where the last frame was cut, and
// nothing of what was removed.
func TestStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	s := open(t, dir)
	if len(s.Left()) != 0 {
		t.Error("a new directory has logs")
	}
	l := s.Create(Record{Kind: "k", Credential: "c", ID: "1", Argv: []string{"a"}, Started: time.Now()})
	l.Write(Frame{Kind: Output, Stream: 2, Number: 7, Before: 9, Data: []byte("text")})
	l.Write(Frame{Kind: End, Number: 8})
	l.Write(Frame{Kind: Output, Number: 9, Data: []byte("after the end")})
	cut := s.Create(Record{ID: "2"})
	cut.Write(Frame{Kind: Output, Number: 1, Data: []byte("whole")})
	cut.Write(Frame{Kind: Output, Number: 2, Data: []byte("cut")})
	if err := os.Truncate(filepath.Join(dir, cut.name), int64(cut.size)-1); err != nil {
		t.Fatal(err)
	}
	s.Create(Record{ID: "3"}).Remove()
	left := open(t, dir).Left()
	if len(left) != 2 || left[0].ID != "1" || left[0].Credential != "c" || left[1].ID != "2" {
		t.Fatalf("%+v", left)
	}
	got := frames(t, left[0])
	if len(got) != 2 || got[0].Stream != 2 || got[0].Number != 7 || got[0].Before != 9 ||
		string(got[0].Data) != "text" || got[1].Kind != End {
		t.Errorf("%+v", got)
	}
	if got := frames(t, left[1]); len(got) != 1 || string(got[0].Data) != "whole" {
		t.Errorf("of a log that was cut: %+v", got)
	}
	left[0].Remove()
	if left := open(t, dir).Left(); len(left) != 1 {
		t.Errorf("%d logs are left, want 1", len(left))
	}
	var none *Store
	none.Create(Record{}).Write(Frame{})
	if none.Create(Record{}).Remove(); none.Left() != nil || none.Dir() != "" {
		t.Error("a nil store has something")
	}
}

// TestRotates: of a long output the last frames are there, without a hole, and the disk has a bound.
func TestRotates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	s := open(t, dir)
	l := s.Create(Record{ID: "1"})
	const frame, n = 1 << 20, 100
	for i := range uint64(n) {
		l.Write(Frame{Kind: Output, Number: i + 1, Before: i * frame,
			Data: bytes.Repeat([]byte{byte(i)}, frame)})
	}
	got := frames(t, open(t, dir).Left()[0])
	if len(got) < maxFile/frame-1 || len(got) > 2*maxFile/frame || got[len(got)-1].Number != n {
		t.Fatalf("%d frames, up to %d", len(got), got[len(got)-1].Number)
	}
	for i, f := range got {
		if want := uint64(n - len(got) + i + 1); f.Number != want || f.Before != (want-1)*frame ||
			f.Data[0] != byte(want-1) {
			t.Fatalf("frame %d has the number %d", i, f.Number)
		}
	}
	if size := s.size.Load(); size > 2*maxFile+n {
		t.Errorf("%d bytes are counted", size)
	}
}

// TestBounds: logs that are too old, and the oldest of too many, go; the newest ones stay.
func TestBounds(t *testing.T) {
	defer func(most int64) { maxTotal = most }(maxTotal)
	maxTotal = 5000
	dir := filepath.Join(t.TempDir(), "d")
	s := open(t, dir)
	for _, id := range []string{"1", "2", "3"} {
		s.Create(Record{ID: id}).Write(Frame{Kind: Output, Data: make([]byte, 2000)})
	}
	s.Create(Record{ID: "4"}) // there is room for two
	old := filepath.Join(dir, nameOf(time.Now().Add(-maxAge-time.Minute))+"x")
	text, err := os.ReadFile(filepath.Join(dir, s.tidy()[0]))
	if err == nil {
		err = os.WriteFile(old, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	ids := ""
	for _, l := range open(t, dir).Left() {
		ids += l.ID
	}
	if ids != "234" {
		t.Errorf("logs %s are left, want 234", ids)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("an old log is left")
	}
}
