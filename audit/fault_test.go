// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// faults fail what is written, by the number of the call.
type faults struct {
	calls int
	fails func(call int) bool
}

// A faultyFile writes half of what it is given before it fails.
type faultyFile struct {
	*os.File
	*faults
}

func (f faultyFile) fault() bool {
	f.calls++
	return f.fails(f.calls)
}

func (f faultyFile) Write(p []byte) (int, error) {
	if f.fault() {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, syscall.ENOSPC
	}
	return f.File.Write(p)
}

func (f faultyFile) WriteAt(p []byte, at int64) (int, error) {
	if f.fault() {
		n, _ := f.File.WriteAt(p[:len(p)/20], at)
		return n, syscall.ENOSPC
	}
	return f.File.WriteAt(p, at)
}

func (f faultyFile) Truncate(size int64) error {
	if f.fault() {
		return syscall.ENOSPC
	}
	return f.File.Truncate(size)
}

func (f faultyFile) Sync() error {
	if f.fault() {
		return syscall.ENOSPC
	}
	return nil // TestLog waits for the disk
}

// TestDiskFull fails each write of a log that rotates, one after the other, and those that follow it. What
// Sync has confirmed is there, what it has not is written when there is room, and the log verifies.
func TestDiskFull(t *testing.T) {
	const records = 12
	failures := []int{1, 3}
	if testenv.IsLong() {
		failures = []int{1, 2, 3, 5, 9}
	}
	for _, many := range failures {
		for _, sync := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d calls, sync %v", many, sync), func(t *testing.T) {
				failed := 0
				for k := 1; ; k++ {
					all := &faults{fails: func(call int) bool { return call >= k && call < k+many }}
					l := openTest(t, Options{MaxSegment: 1500, Sync: sync})
					l.store.wrap = func(f *os.File) file { return faultyFile{f, all} }
					failed += writeFaulty(t, l, all, k, records)
					dir := l.store.dir.Name()
					if r := verifyTest(t, dir); many == 1 && !sync && (len(r.Notes) > 0 || len(runs(t, dir)) != records) {
						t.Fatalf("call %d: one failure leaves %v, %q", k, runs(t, dir), r.Notes)
					}
					if all.calls < k {
						break // no write is left
					}
				}
				if failed == 0 {
					t.Error("nothing has failed")
				}
			})
		}
	}
}

// writeFaulty writes records, and returns how many calls of Sync failed.
func writeFaulty(t *testing.T, l *Log, all *faults, k, records int) (failed int) {
	t.Helper()
	dir := l.store.dir.Name()
	for i := range records {
		l.Emit(ended(i))
		switch err := l.Sync(t.Context()); {
		case err == nil:
			if got := runs(t, dir); !contains(got, i+1) {
				t.Fatalf("call %d: %d records were confirmed, and there are %v", k, i+1, got)
			}
		case errors.As(err, new(*WriteError)) && strings.Contains(err.Error(), dir):
			failed++
		default:
			t.Fatal(err)
		}
	}
	all.fails = func(int) bool { return false }
	syncTest(t, l)
	r := verifyTest(t, dir)
	if got := runs(t, dir); !contains(got, records) || r.Signed != r.Last {
		t.Fatalf("call %d: records %v, %+v", k, got, r)
	}
	return failed
}

// runs returns the numbers of the records in a log.
func runs(t *testing.T, dir string) (all []int) {
	t.Helper()
	for _, r := range readAll(t, dir, Filter{Kind: "event"}) {
		e := new(event.Event)
		if r.Bad != "" || e.UnmarshalJSON(r.Body) != nil {
			continue // half a line
		}
		all = append(all, int(e.Seq))
	}
	return all
}

// contains reports whether the numbers below n are there in order; they may be there twice.
func contains(all []int, n int) bool {
	next := 0
	for _, i := range all {
		if i == next {
			next++
		}
	}
	return next >= n
}

// TestLost: what there is no room for in memory is counted, by Sync and in the log.
func TestLost(t *testing.T) {
	all := &faults{fails: func(int) bool { return true }}
	l := openTest(t, Options{})
	l.store.wrap = func(f *os.File) file { return faultyFile{f, all} }
	const more = 500
	for i := range maxWaiting {
		l.Emit(ended(i))
		if i%1000 == 0 {
			_ = l.Sync(t.Context()) // it fails
		}
	}
	if err := l.Sync(t.Context()); !errors.As(err, new(*WriteError)) {
		t.Fatal(err)
	}
	for i := range more {
		l.Emit(ended(maxWaiting + i))
	}
	var lost *LostError
	if err := l.Sync(t.Context()); !errors.As(err, &lost) || lost.Records == 0 || lost.Records > more ||
		!errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	all.fails = func(int) bool { return false }
	syncTest(t, l)
	dir := l.store.dir.Name()
	if n := len(runs(t, dir)); uint64(n)+lost.Records != maxWaiting+more {
		t.Errorf("%d are kept and %d lost", n, lost.Records)
	}
	said := readAll(t, dir, Filter{Kind: kindLost})
	if len(said) != 1 || string(said[0].Body) != fmt.Sprintf(`{"records":%d}`, lost.Records) {
		t.Errorf("the log says %+v", said)
	}
	if r := verifyTest(t, dir); len(r.Notes) == 0 {
		t.Error("the report says nothing")
	}
}
