// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/run/durable"
)

// text is the output of a run.
func textOf(r *Run) (text string) {
	for _, d := range r.Page(0, MaxPage).Chunks {
		text += d.Stream.String() + ":" + string(d.Data)
	}
	return strings.ReplaceAll(text, "\n", " ")
}

// TestRestore: a table that comes after one whose process was killed has the runs of an owner: their output,
// the results that were known, and of those that ran that they were lost. What was removed does not come
// back, also not for the table after that, and others have none of it.
func TestRestore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	store := func() *durable.Store {
		s, err := durable.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	first, _ := newTable(t)
	first.Durable, first.Prefix = store(), "n-1-"
	over := begin(t, first, Request{}, "sh", "-c", "echo out; echo err >&2; exit 3")
	runs := begin(t, first, Request{}, "sh", "-c", "echo begun; sleep 300")
	gone := begin(t, first, Request{}, "true")
	began := ended(t, over)
	ended(t, gone)
	if err := first.Remove("me", gone.ID()); err != nil {
		t.Fatal(err)
	}
	if reply, err := runs.Wait(t.Context(), Until{For: time.Minute, FirstOutput: true}); err != nil {
		t.Fatalf("%+v, %v", reply, err)
	}
	want := textOf(over)
	var next *Table
	for _, removed := range []bool{false, true} { // before the first table, which lives, has ended
		deadline := time.Now().Add(time.Minute)
		for known := false; !known && time.Now().Before(deadline); { // the log is written beside the run
			next, _ = newTable(t)
			next.Durable, next.Prefix = store(), "n-2-"
			next.Restore("another")
			if list := next.List("another"); len(list) != 0 {
				t.Fatalf("another owner has %+v", list)
			}
			next.Restore("me")
			next.Restore("me") // nothing twice
			r, err := next.Find("me", runs.ID())
			known = err == nil && textOf(r) != ""
		}
		list := next.List("me")
		if want := map[bool]int{false: 2, true: 1}[removed]; len(list) != want {
			t.Fatalf("%d runs, want %d: %+v", len(list), want, list)
		}
		r, err := next.Find("me", runs.ID())
		if err != nil {
			t.Fatal(err)
		}
		res, err := r.Result()
		if err != nil || res.End != sallyport.EndLost || !strings.Contains(res.Error, "was lost") ||
			textOf(r) != "stdout:begun " || !r.Page(0, MaxPage).Complete || res.Stdout.String() != "begun\n" {
			t.Errorf("lost: %+v, %v, %q", res, err, textOf(r))
		}
		if _, err := r.Wait(t.Context(), Until{For: time.Minute, ExitOnly: true}); err != nil {
			t.Error(err)
		}
		if removed {
			break
		}
		if r, err = next.Find("me", over.ID()); err != nil {
			t.Fatal(err)
		}
		if res, err = r.Result(); err != nil || res.End != sallyport.EndExited || res.ExitCode != 3 ||
			res.Run != began.Run || textOf(r) != want || res.Stdout.String() != "out\n" {
			t.Errorf("ended: %+v, %v, %q", res, err, textOf(r))
		}
		if info := list[0]; info.Running || info.Result == nil || time.Since(info.Started) < time.Millisecond {
			t.Errorf("%+v", info)
		}
		if err := next.Remove("me", over.ID()); err != nil {
			t.Error(err)
		}
	}
	var unknown *Error
	if _, err := next.Find("me", gone.ID()); !errors.As(err, &unknown) || unknown.Reason != Unknown {
		t.Errorf("a run that was removed: %v", err)
	}
}
