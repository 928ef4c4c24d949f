// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package consoles

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// begin is when the first recorded run began.
var begin = time.UnixMilli(1_790_000_000_000)

// testEnv returns an environment with a home and a state directory of the test's.
func testEnv(t testing.TB) *Env {
	t.Helper()
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	return &Env{Env: &args.Env{Environ: []string{"HOME=" + home}, Dir: home, Managed: t.TempDir()}}
}

// record adds runs to the audit log, each with lines about something else.
func record(t testing.TB, from, n int) {
	t.Helper()
	log, err := audit.Open(audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := from; i < from+n; i++ {
		r := explain.Record{Start: begin.Add(time.Duration(i) * time.Second), Result: sallyport.Result{
			Run: fmt.Sprintf("run-%06d", i), Args: []string{"make", "-C", fmt.Sprintf("target-%d", i), "all"},
			Dir: "/src/project", End: sallyport.EndExited, ExitCode: i % 3, Duration: time.Second}}
		if i%10 == 0 {
			r.SetDenials([]sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Write, Path: "/src/out/file"},
				Errno: "EROFS", Source: sandbox.Notified, Grant: "--rw /src/out"}}, 0)
			r.Stage = &executor.Staged{ID: "abcd", Total: 2}
		}
		body, err := r.Body()
		for j := range 3 {
			err = errors.Join(err, log.Append("note", json.RawMessage(fmt.Sprintf(`{"run":"run-%06d","n":%d,"text":%q}`, i, j,
				"an event of about as many bytes as the events of a run have, which are read and are not shown in the list"))))
		}
		if err = errors.Join(err, log.Append(explain.RecordKind, body)); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 999 {
			if err := log.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

// call performs a method and reads its result into v.
func call(t testing.TB, m func() (any, error), v any) {
	t.Helper()
	result, err := m()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(result)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestTimes(t *testing.T) {
	env := testEnv(t)
	record(t, 0, 10_000)
	dir, _ := audit.DefaultDir()
	files, _ := filepath.Glob(dir + "/*")
	for _, f := range files {
		i, _ := os.Stat(f)
		t.Log(f, i.Size())
	}
	begin := time.Now()
	h := &history{env}
	var got struct{ Runs []recorded }
	call(t, func() (any, error) { return h.list(t.Context(), json.RawMessage(`{}`)) }, &got)
	t.Log(len(got.Runs), time.Since(begin))
	names, _ := audit.Files("")
	for _, f := range names {
		begin = time.Now()
		n := 0
		err := audit.Read(f, audit.Filter{Kind: "run"}, func(audit.Record) error { n++; return nil })
		t.Log(f, n, err, time.Since(begin))
	}
}
