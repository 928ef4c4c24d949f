// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// BenchmarkSettings guards: one user file adds at most 0.5 ms to "run -- true", against an empty
// directory of settings in the same rounds. What a setting does, such as a timer or a mount, is
// no part of it.
func BenchmarkSettings(b *testing.B) {
	testenv.NeedUserNS(b)
	program, ws := release(b), workspace(b)
	run := func(name, text string) Variant {
		dir := b.TempDir()
		at := filepath.Join(dir, "sallyport")
		err := os.Mkdir(at, 0o755)
		if err == nil && text != "" {
			err = os.WriteFile(filepath.Join(at, "config.toml"), []byte(text), 0o600)
		}
		if err != nil {
			b.Fatal(err)
		}
		return Variant{name, func() error {
			cmd := exec.Command(program, "run", "--", "/bin/true")
			cmd.Dir, cmd.Env = ws, append(testenv.Environ(), "XDG_CONFIG_HOME="+dir)
			return cmd.Run()
		}}
	}
	const rounds = 60
	for b.Loop() {
		times, err := Rounds(rounds, []Variant{run("none", ""),
			run("file", "level = \"bwrap\"\n[profiles.p]\nextends = \"read-only\"\n")})
		if err != nil {
			b.Fatal(err)
		}
		added := make([]float64, len(times[0]))
		for i := range added {
			added[i] = float64(times[1][i]-times[0][i]) / 1e3
		}
		b.ReportMetric(Median(added), "added-us")
		b.ReportMetric(float64(Middle(times[0]).Microseconds()), "none-us")
	}
}
