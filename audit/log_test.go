// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/safefile"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerVar); dir != "" {
		writeForever(dir)
	}
	goleak.VerifyTestMain(m)
}

// openTest opens a log, in a new directory unless one is named.
func openTest(t testing.TB, o Options) *Log {
	t.Helper()
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "audit")
	}
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.store.dir.Close() })
	return l
}

func ended(seq int) event.Event {
	return event.Event{
		Time: time.Unix(1_700_000_000+int64(seq), 0), Seq: uint64(seq), Run: fmt.Sprint("run-", seq),
		Body: event.Ended{End: "exited"},
	}
}

// syncTest has what was taken written.
func syncTest(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Sync(context.Background()); err != nil {
		t.Error(err) // also from other goroutines
	}
}

// readAll returns the records of a log that a filter selects.
func readAll(t testing.TB, dir string, f Filter) (all []Record) {
	t.Helper()
	err := Read(dir, f, func(r Record) error {
		r.Body = slices.Clone(r.Body)
		all = append(all, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// verifyTest verifies a log that must hold.
func verifyTest(t testing.TB, dir string) *Report {
	t.Helper()
	r, err := Verify(context.Background(), dir, VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLog: what is taken is in the files when Sync returns, in order, with its kind and without what Mask
// removes.
func TestLog(t *testing.T) {
	l := openTest(t, Options{Sync: true, Mask: func(e event.Event) event.Event {
		if b, ok := e.Body.(event.Ended); ok {
			b.Error = strings.ReplaceAll(b.Error, "hunter2", "***")
			e.Body = b
		}
		return e
	}})
	dir := l.store.dir.Name()
	syncTest(t, l) // nothing
	if r := verifyTest(t, dir); r.Last != 0 {
		t.Errorf("%+v", r)
	}
	e := ended(1)
	e.Body = event.Ended{Error: "the password is hunter2 <&>"}
	l.Emit(e)
	if err := l.Append("run", json.RawMessage("{\"a\": [1,\n 2]}")); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][2]string{
		"no object": {"run", "[]"}, "no JSON": {"run", "{"}, "empty": {"run", ""}, "kind": {"Run", "{}"}, "no kind": {"", "{}"},
	} {
		if err := l.Append(bad[0], json.RawMessage(bad[1])); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	syncTest(t, l)
	all := readAll(t, dir, Filter{})
	if len(all) != 3 || all[0].Kind != kindSegment || all[1].Kind != "event" || all[2].Kind != "run" ||
		string(all[2].Body) != `{"a":[1,2]}` || !all[1].Time.Equal(e.Time) || all[1].N != 2 || all[2].Line != 3 ||
		!strings.Contains(string(all[1].Body), `"the password is *** <&>"`) {
		t.Errorf("%+v", all)
	}
	if _, err := Verify(t.Context(), dir, VerifyOptions{}); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	for name, mode := range map[string]os.FileMode{".": 0o700, currentName: 0o600, checkpointName: 0o600, keyName: 0o600} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
}

// TestReopened: a log goes on where an earlier process has ended, and two that are open at once share it.
func TestReopened(t *testing.T) {
	a := openTest(t, Options{MaxSegment: 2000})
	dir := a.store.dir.Name()
	b := openTest(t, Options{Dir: dir, MaxSegment: 2000})
	for i := range 30 {
		l := []*Log{a, b}[i%2]
		l.Emit(ended(i))
		syncTest(t, l)
	}
	if r := verifyTest(t, dir); r.Signed != r.Last || r.Files < 3 || r.First != 1 || len(r.Notes) > 0 {
		t.Errorf("%+v", r)
	}
	events := readAll(t, dir, Filter{Kind: "event"})
	for i, r := range events {
		if want := fmt.Sprint("run-", i); !strings.Contains(string(r.Body), `"run":"`+want+`"`) || r.Bad != "" {
			t.Errorf("record %d is %s", i, r.Body)
		}
	}
	if len(events) != 30 {
		t.Errorf("%d events", len(events))
	}
}

// TestRetention: the oldest files go, and the log still verifies; it begins later then.
func TestRetention(t *testing.T) {
	const segment = 2000
	for name, o := range map[string]Options{
		"bytes": {MaxSegment: segment, MaxTotal: 4 * segment},
		"age":   {MaxSegment: segment, MaxAge: time.Second},
		"all":   {MaxSegment: segment, MaxTotal: 1},
	} {
		t.Run(name, func(t *testing.T) {
			o.Dir = filepath.Join(t.TempDir(), "audit")
			l := openTest(t, o)
			for i := range 100 {
				l.Emit(ended(int(time.Now().Unix()) - 1_700_000_000 + i))
				syncTest(t, l)
			}
			r := verifyTest(t, o.Dir)
			var total int64
			files, _ := os.ReadDir(o.Dir)
			for _, f := range files {
				if st, err := f.Info(); err == nil && filepath.Ext(f.Name()) == rotatedExt {
					total += st.Size()
				}
			}
			if r.First == 1 || r.Last < 100 || total > 4*segment+segment/2 {
				t.Errorf("%+v, %d bytes", r, total)
			}
		})
	}
}

// TestLong: a record that is too long for a line is named with its sum.
func TestLong(t *testing.T) {
	l := openTest(t, Options{})
	e := ended(1)
	e.Body = event.Ended{Error: strings.Repeat("x", 2<<20)}
	l.Emit(e)
	syncTest(t, l)
	r := readAll(t, l.store.dir.Name(), Filter{Kind: "ended"})
	if len(r) != 1 || !strings.Contains(string(r[0].Body), `"omitted_bytes":2097`) || r[0].Bad != "" {
		t.Errorf("%+v", r)
	}
	verifyTest(t, l.store.dir.Name())
}

// TestOpenErrors: what stands in the place of the directory is an error, and so is a key that is gone.
func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: dir + "/file"}); !errors.As(err, new(*WriteError)) {
		t.Errorf("a file: %v", err)
	}
	l := openTest(t, Options{Dir: dir + "/audit"})
	l.Emit(ended(1))
	syncTest(t, l)
	if err := os.Remove(dir + "/audit/key"); err != nil {
		t.Fatal(err)
	}
	l = openTest(t, Options{Dir: dir + "/audit"})
	l.Emit(ended(2))
	if err := l.Sync(t.Context()); !errors.As(err, new(*KeyError)) || !strings.Contains(err.Error(), "put the key back") {
		t.Errorf("no key: %v", err)
	}
	if _, err := Verify(t.Context(), dir+"/audit", VerifyOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := Verify(t.Context(), dir+"/none", VerifyOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
}

// TestSyncWaits: while another process has the lock, Sync waits as long as its context lasts, and nothing is lost.
func TestSyncWaits(t *testing.T) {
	l := openTest(t, Options{})
	l.Emit(ended(0))
	syncTest(t, l)
	dir := l.store.dir.Name()
	other, err := os.OpenFile(filepath.Join(dir, checkpointName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := safefile.WaitLock(other); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	want := errors.New("enough")
	done := make(chan error)
	l.Emit(ended(1))
	go func() { done <- l.Sync(ctx) }()
	cancel(want)
	if err := <-done; !errors.Is(err, want) {
		t.Errorf("while it is locked: %v", err)
	}
	safefile.Unlock(other)
	syncTest(t, l)
	if n := len(readAll(t, dir, Filter{Kind: "ended"})); n != 2 {
		t.Errorf("%d records", n)
	}
}

// TestTogether: goroutines that use one log get what they wrote, in their order.
func TestTogether(t *testing.T) {
	l := openTest(t, Options{MaxSegment: 4000})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				e := ended(i)
				e.Run = fmt.Sprintf("g%d-%d", g, i)
				l.Emit(e)
				if i%7 == g%7 {
					syncTest(t, l)
				}
			}
		})
	}
	wg.Wait()
	syncTest(t, l)
	next := map[string]int{}
	for _, r := range readAll(t, l.store.dir.Name(), Filter{Kind: "event"}) {
		g, i := runOf(t, &r)
		if next[g] != i {
			t.Errorf("%s: %d comes after %d", g, i, next[g]-1)
		}
		next[g] = i + 1
	}
	if len(next) != 8 {
		t.Errorf("%v", next)
	}
	verifyTest(t, l.store.dir.Name())
}
