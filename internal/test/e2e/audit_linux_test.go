// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// BenchmarkAudit guards: the audit log adds at most 5 % to "run -- /bin/true", with the record written before
// the command returns. The ratios are to no log. A required one is kept before the process starts, too.
func BenchmarkAudit(b *testing.B) {
	testenv.NeedUserNS(b)
	program, ws := release(b), workspace(b)
	run := func(name, text string) Variant {
		dir, state := b.TempDir(), b.TempDir()
		at := filepath.Join(dir, "sallyport")
		err := os.Mkdir(at, 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(at, "config.toml"), []byte("[audit]\n"+text), 0o600)
		}
		if err != nil {
			b.Fatal(err)
		}
		return Variant{name, func() error {
			cmd := exec.Command(program, "run", "--", "/bin/true")
			cmd.Dir, cmd.Env = ws, append(testenv.Environ(), "XDG_CONFIG_HOME="+dir, "XDG_STATE_HOME="+state)
			return cmd.Run()
		}}
	}
	log, err := audit.Open(audit.Options{Dir: filepath.Join(b.TempDir(), "audit")})
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	inside := func(name string, log event.Log, required bool) Variant {
		r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(), Audit: log, AuditRequired: required}
		b.Cleanup(func() { _ = r.Close() })
		return Variant{name, func() error {
			res, err := r.Run(b.Context(), &sallyport.Cmd{Args: []string{"/bin/true"}, Dir: ws})
			if err == nil {
				err = res.Err()
			}
			return err
		}}
	}
	for b.Loop() {
		for _, vs := range [][]Variant{
			{run("off", "path = \"off\""), run("on", ""), run("required", "required = true"),
				run("on-disk", "sync = true")},
			{inside("runner", nil, false), inside("runner-on", log, false),
				inside("runner-required", log, true)},
		} {
			times, err := Rounds(rounds, vs)
			if err != nil {
				b.Fatal(err)
			}
			for i := range vs {
				b.ReportMetric(float64(Middle(times[i]).Microseconds()), vs[i].Name+"-us")
				if i > 0 {
					b.ReportMetric(Ratio(times[i], times[0]), "x-"+vs[i].Name)
				}
			}
		}
	}
}
