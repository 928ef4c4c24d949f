// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/recording"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// BenchmarkRecording guards: 512 MiB that a command prints on its terminal take at most 1.2 of the time when
// they are recorded. The size is that of BenchmarkTerminalThroughput.
func BenchmarkRecording(b *testing.B) {
	testenv.NeedUserNS(b)
	mib, rounds := 16, 5
	if text := os.Getenv(terminalEnv); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 {
			b.Fatalf("%s is %q, which is no number of MiB", terminalEnv, text)
		}
		mib = n
	}
	size := mib << 20
	ws := workspace(b)
	b.Setenv("XDG_STATE_HOME", filepath.Join(workspace(b), "state"))
	env := testenv.NeedProgram(b, "env")
	line := []string{env, printsEnv + "=" + strconv.Itoa(size), copiedSelf(b, ws)}
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(ws)}
	defer r.Close()
	file := filepath.Join(workspace(b), "a.cast")
	run := func(record bool) error {
		cmd := sallyport.Command(line...)
		cmd.Dir, cmd.TTY = ws, new(sallyport.Size)
		if record {
			cmd.Record = recording.New(recording.Options{MaxSize: -1,
				Open: func() (*os.File, error) { return os.Create(file) }})
		}
		res, err := r.Run(context.Background(), cmd)
		shown := uint64(size + size/len(printedLine))
		if err == nil && (res.ExitCode != 0 || res.Stdout.Total != shown || record != (res.Recording != nil)) {
			err = fmt.Errorf("%+v", res)
		}
		if err == nil && record && (res.Recording.Error != "" || res.Recording.Gaps > 0) {
			err = fmt.Errorf("%+v", res.Recording)
		}
		return err
	}
	vs := []Variant{
		{"recorded", func() error { return run(true) }},
		{"not", func() error { return run(false) }},
	}
	clean := func() error {
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			return err
		}
		return nil
	}
	for b.Loop() {
		times, err := RoundsBetween(rounds, vs, clean)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(Ratio(times[0], times[1]), "x-not")
		for i := range vs {
			b.ReportMetric(float64(mib)/Middle(times[i]).Seconds(), vs[i].Name+"-MiB/s")
		}
	}
}
