// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/event"
)

// An auditTrail is a log that fails where full is set.
type auditTrail struct {
	mu             sync.Mutex
	emitted, kept  []string
	full, required bool
}

func (a *auditTrail) Emit(e event.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.emitted = append(a.emitted, e.Body.Kind())
}

func (a *auditTrail) Sync(context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.full {
		return errors.New("no space left")
	}
	a.kept = slices.Clone(a.emitted)
	return nil
}

func (a *auditTrail) Note(kind string, body map[string]any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept = append(a.kept, fmt.Sprint(kind, " ", body["action"], " ", body["id"], " ", body["paths"]))
	return nil
}

func (a *auditTrail) Required() bool { return a.required }

// TestAuditedProcesses: what clients start is kept before its end is told; where the log is required and
// fails, nothing starts.
func TestAuditedProcesses(t *testing.T) {
	for _, test := range []struct {
		name   string
		log    *auditTrail
		argv   string
		starts bool
		kept   string
	}{
		{"kept", &auditTrail{required: true}, "", true, "judged started exited ended"},
		{"full", &auditTrail{required: true, full: true}, "", false, ""},
		{"full and not required", &auditTrail{full: true}, "", true, ""},
		{"what does not start", &auditTrail{required: true}, "/no/such/program", false, "judged ended"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := options()
			o.Audit = test.log
			c, _ := meet(t, run(t, o), nil)
			dir := t.TempDir()
			start := script("p", dir, "echo >ran")
			if test.argv != "" {
				start["argv"] = []string{test.argv}
			}
			m := c.call("process/start", start)
			if (m.Error == nil) != test.starts {
				t.Fatalf("%+v", m.Error)
			}
			if test.starts {
				c.until(func(m *message) bool { return m.Method == "process/closed" })
			} else if test.log.full && !strings.Contains(m.Error.Message,
				"the audit log is required and cannot be written: no space left") {
				t.Errorf("%+v", m.Error)
			}
			if _, err := os.Stat(filepath.Join(dir, "ran")); (err == nil) != test.starts {
				t.Errorf("it ran: %v", err == nil)
			}
			if got := strings.Join(test.log.kept, " "); got != test.kept {
				t.Errorf("kept %q, want %q", got, test.kept)
			}
		})
	}
}
