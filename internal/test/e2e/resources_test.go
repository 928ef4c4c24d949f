// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// limit returns the entry of a limit.
func limit(t *testing.T, res *sallyport.Result, name string) executor.Enforced {
	t.Helper()
	for _, l := range res.Limits {
		if l.Limit == name {
			return l
		}
	}
	t.Fatalf("there is no limit %s in %+v", name, res.Limits)
	return executor.Enforced{}
}

// TestResourceEnds has each limit end a command.
func TestResourceEnds(t *testing.T) {
	testenv.RunAsOrdinary(t)
	dir := t.TempDir()
	r := newRunner(t, sandbox.WorkspaceWrite("."))
	all := executor.Resources{Memory: 64 << 20, PIDs: 50, Disk: 16 << 20, Output: 1 << 20, CPUs: 2}
	for _, test := range []struct {
		name, script, limit string
		end                 sallyport.End
		code                int // -1 for any but 0
	}{
		// What is over a limit stays until that is seen.
		{"none", "echo fine", "", sallyport.EndExited, 0},
		{"memory", "(head -c 400m /dev/zero; sleep 60) | tail -c 400m >/dev/null", executor.LimitMemory, sallyport.EndOOM, 137},
		{"disk", "head -c 800m /dev/zero >fill; sleep 60", executor.LimitDisk, sallyport.EndDisk, 137},
		{"output", "yes", executor.LimitOutput, sallyport.EndOutput, 143},
		{"output of a command that ends", "head -c 4m /dev/zero; exit 3", executor.LimitOutput, sallyport.EndOutput, -1},
		{"output on both streams", "yes >&2 & yes", executor.LimitOutput, sallyport.EndOutput, 143},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := sh(test.script)
			c.Dir, c.Resources = dir, all
			res := run(t, r, c)
			if err := os.RemoveAll(filepath.Join(dir, "fill")); err != nil {
				t.Error(err)
			}
			if res.End != test.end || res.ExitCode != test.code && !(test.code < 0 && res.ExitCode > 0) {
				t.Errorf("end %s, exit %d, want %s, %d", res.End, res.ExitCode, test.end, test.code)
			}
			for _, name := range []string{executor.LimitMemory, executor.LimitCPUs, executor.LimitPIDs,
				executor.LimitDisk, executor.LimitOutput} {
				if l := limit(t, res, name); l.Hit != (name == test.limit) || l.By == "" || l.Value <= 0 {
					t.Errorf("%+v", l)
				}
			}
			if res.Usage.CPU == nil {
				t.Errorf("usage %+v", res.Usage)
			}
		})
	}
}

// TestOutputLimit looks at who hears what.
func TestOutputLimit(t *testing.T) {
	testenv.RunAsOrdinary(t)
	const most = 100_000
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var writer bytes.Buffer
	for _, test := range []struct {
		name     string
		out, err io.Writer
		heard    func() int
		kept     bool
	}{
		{"kept", nil, nil, nil, true},
		{"writer", &writer, nil, writer.Len, true},
		{"file", file, file, func() int { st, _ := file.Stat(); return int(st.Size()) }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRunner(t, sandbox.WorkspaceWrite("."))
			c := sh("head -c 1000000 /dev/zero; head -c 1000 /dev/zero >&2; exit 0")
			c.Stdout, c.Stderr, c.Resources.Output = test.out, test.err, most
			res := run(t, r, c)
			if res.End != sallyport.EndOutput || !limit(t, res, executor.LimitOutput).Hit {
				t.Errorf("end %s, %+v", res.End, res.Limits)
			}
			if test.heard != nil && test.heard() != most {
				t.Errorf("%d bytes were passed on, want %d", test.heard(), most)
			}
			if kept := res.Stdout.Total > most; kept != test.kept {
				t.Errorf("%d bytes counted", res.Stdout.Total)
			}
			// Below the limit nothing is different.
			c = sh("head -c 1000 /dev/zero; exit 4")
			c.Stdout, c.Resources.Output = test.out, most
			res = run(t, r, c)
			if res.End != sallyport.EndExited || res.ExitCode != 4 ||
				limit(t, res, executor.LimitOutput).Hit {
				t.Errorf("end %s, exit %d", res.End, res.ExitCode)
			}
		})
	}
}

// TestOutputOrder: two streams of one file keep their order through the pipes.
func TestOutputOrder(t *testing.T) {
	r := newRunner(t, sandbox.WorkspaceWrite("."))
	dir := t.TempDir()
	name := filepath.Join(dir, "both")
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	other, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	// The next line is said when the one before is in the file.
	c := sh("echo a; until read x <both; do sleep 0.01; done; echo b >&2; until { read x; read x; } <both; do sleep 0.01; done; echo c")
	c.Dir = dir
	c.Stdout, c.Stderr, c.Resources.Output = out, other, 1<<20
	run(t, r, c)
	if b, err := os.ReadFile(name); err != nil || string(b) != "a\nb\nc\n" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestResourceErrors(t *testing.T) {
	r := newRunner(t, sandbox.FullAccess())
	c := sallyport.Command("true")
	c.Resources.Memory = 1
	var bad *executor.LimitError
	if _, err := r.Run(t.Context(), c); !errors.As(err, &bad) || bad.Limit != executor.LimitMemory {
		t.Errorf("%v", err)
	}
	c.Resources = executor.Resources{Disk: 1 << 30}
	if _, err := r.Run(t.Context(), c); !errors.Is(err, sallyport.ErrNoSandbox) {
		t.Errorf("%v", err)
	}
}

func TestAgentResources(t *testing.T) {
	l := sallyport.AgentResources()
	if err := l.Check(); err != nil || l.Memory == 0 || l.PIDs == 0 || l.Disk == 0 || l.Output == 0 {
		t.Errorf("%+v, %v", l, err)
	}
	r := newRunner(t, sandbox.WorkspaceWrite("."))
	c := sh("echo fine")
	c.Resources = l
	res := run(t, r, c)
	if res.ExitCode != 0 || res.Stdout.String() != "fine\n" || len(res.Limits) != 4 {
		t.Errorf("exit %d, %+v", res.ExitCode, res.Limits)
	}
	var object struct {
		Limits []executor.Enforced
		Usage  map[string]any
	}
	text, err := json.Marshal(res)
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	if err != nil || len(object.Limits) != 4 || object.Usage["cpu_ms"] == nil ||
		!strings.Contains(string(text), `{"limit":"memory","value":8589934592,"by":"`) {
		t.Errorf("%v, %s", err, text)
	}
}
