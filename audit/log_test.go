// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openTest opens a log that is closed at the end.
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
	return event.Event{Time: time.Unix(int64(seq), 0), Seq: uint64(seq), Run: fmt.Sprintf("run-%d", seq), Body: event.Ended{End: "exited"}}
}

func TestSmoke(t *testing.T) {
	l := openTest(t, Options{MaxSegment: 2000})
	for i := range 20 {
		l.Emit(ended(i + 1))
		if i%3 == 0 {
			if err := l.Append("run", json.RawMessage(fmt.Sprintf(`{"i": %d}`, i))); err != nil {
				t.Fatal(err)
			}
		}
		if i%4 == 0 {
			if err := l.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	dir := l.store.dir.Name()
	names, _ := filepath.Glob(dir + "/*")
	for _, n := range names {
		b, _ := os.ReadFile(n)
		t.Logf("%s\n%s", n, b)
	}
	r, err := Verify(t.Context(), dir, VerifyOptions{})
	t.Logf("%+v %v", r, err)
	if err != nil {
		t.Fatal(err)
	}
}
