// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/cli/otel"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// drain is a collector that reads and forgets.
func drain(b *testing.B) string {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	b.Cleanup(s.Close)
	return s.URL
}

// runsOfRound is how many runs of BenchmarkTelemetry are measured together.
const runsOfRound = 20

// BenchmarkTelemetry guards: runs with telemetry, sent to a collector on this machine, take at most 1.05 of runs
// without.
func BenchmarkTelemetry(b *testing.B) {
	testenv.NeedUserNS(b)
	p := &otel.Process{Environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + drain(b)}, Say: func(s string) { b.Error(s) }}
	defer p.Close(context.Background())
	runs := func(tracer event.Tracer) func() error {
		r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(workspace(b)), Tracer: tracer}
		b.Cleanup(func() { r.Close() })
		return func() error {
			for range runsOfRound {
				if _, err := r.Run(context.Background(), sallyport.Command("/bin/true")); err != nil {
					return err
				}
			}
			return nil
		}
	}
	compare(b, []Variant{{"telemetry", runs(p.Tracer(true))}, {"without", runs(nil)}})
}

// BenchmarkTelemetryProcess reports what whole processes take with telemetry, which each sends at its end, and
// without.
func BenchmarkTelemetryProcess(b *testing.B) {
	testenv.NeedUserNS(b)
	program, ws := release(b), workspace(b)
	run := func(settings string, more ...string) func() error {
		home := b.TempDir()
		file := filepath.Join(home, "sallyport/config.toml")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
			b.Fatal(err)
		}
		return func() error {
			cmd := exec.Command(program, "run", "--", "/bin/true")
			cmd.Dir, cmd.Env = ws, append(testenv.Environ(), append(more, "XDG_CONFIG_HOME="+home)...)
			var said strings.Builder
			cmd.Stderr = &said
			if err := cmd.Run(); err != nil || said.Len() > 0 {
				b.Fatal(err, said.String())
			}
			return nil
		}
	}
	to := "OTEL_EXPORTER_OTLP_ENDPOINT=" + drain(b)
	const on = "telemetry.enabled = true\n"
	compare(b, []Variant{{"telemetry", run(on, to)}, {"traces", run(on, to, "OTEL_LOGS_EXPORTER=none",
		"OTEL_METRICS_EXPORTER=none")}, {"without", run("telemetry.enabled = false\n")}})
}
