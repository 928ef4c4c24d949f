// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// emitRun emits what an ordinary run does.
func emitRun(l *Log, i int) {
	e := event.Event{Time: time.Now(), Run: fmt.Sprintf("%016x", i), Attempt: 1}
	for n, body := range []event.Body{
		event.Judged{Args: []string{"/bin/true", "--some", "words"}, Dir: "/home/user/project", Decision: "allow",
			PolicyVersion: "0123456789abcdef"},
		event.Started{Sandbox: event.Sandbox{Mode: "workspace-write", Sandbox: executor.Sandbox{Level: "native",
			Mechanism: []string{"userns", "mountns", "landlock", "seccomp"}, Plan: strings.Repeat("0a", 32)}}},
		event.Exited{Duration: time.Second}, event.Ended{End: "exited", Duration: time.Second},
	} {
		e.Seq, e.Body = uint64(4*i+n+1), body
		l.Emit(e)
	}
}

// BenchmarkRun is what a run of four events waits for: Sync when all are emitted.
func BenchmarkRun(b *testing.B) {
	for _, name := range []string{"open", "each opens"} {
		b.Run(name, func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "audit")
			l := openTest(b, Options{Dir: dir})
			i := 0
			for b.Loop() {
				if name != "open" {
					l = openTest(b, Options{Dir: dir})
				}
				emitRun(l, i)
				syncTest(b, l)
				if name != "open" {
					_ = l.Close() // it has nothing to write
				}
				i++
			}
		})
	}
}

// BenchmarkVerify verifies a log of a million records.
func BenchmarkVerify(b *testing.B) {
	testenv.Long(b)
	const records = 1_000_000
	l := openTest(b, Options{MaxTotal: 1 << 40})
	for i := range records / 4 {
		emitRun(l, i)
		if i%500 == 0 {
			syncTest(b, l)
		}
	}
	syncTest(b, l)
	dir := l.store.dir.Name()
	var size int64
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		if st, err := f.Info(); err == nil {
			size += st.Size()
		}
	}
	b.SetBytes(size)
	for b.Loop() {
		r, err := Verify(context.Background(), dir, VerifyOptions{})
		if err != nil || r.Last < records {
			b.Fatal(r, err)
		}
	}
}
