// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
)

// A failingLog is a log that fails from its n-th Sync on.
type failingLog struct {
	mu    sync.Mutex
	kinds []string
	kept  []string
	good  int // calls of Sync that succeed; negative for all
}

func (k *failingLog) Emit(e event.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kinds = append(k.kinds, e.Body.Kind())
}

var errFull = errors.New("no space left")

func (k *failingLog) Sync(context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.good == 0 {
		return errFull
	}
	k.good--
	k.kept = slices.Clone(k.kinds)
	return nil
}

// TestAudit keeps what happened before a command starts, and all of it before Run returns.
func TestAudit(t *testing.T) {
	for name, tc := range map[string]struct {
		log      *failingLog
		required bool
		runs     int
		fails    bool   // with an *AuditError
		notice   string // part of a notice; empty for none
		kept     []string
	}{
		"kept":                 {&failingLog{good: -1}, true, 1, false, "", []string{"judged", "started", "exited", "ended"}},
		"full before":          {&failingLog{good: 0}, true, 0, true, "", nil},
		"full at the end":      {&failingLog{good: 1}, true, 1, true, "", []string{"judged"}},
		"not required":         {&failingLog{good: 0}, false, 1, false, "no space left", nil},
		"required without one": {nil, true, 0, true, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			r, _ := fakeRunner(nil, func(*executor.Spec, *e2e.FakeProcess) { runs++ })
			r.AuditRequired = tc.required
			if tc.log != nil {
				r.Audit = tc.log
			}
			defer r.Close()
			res, err := r.Run(t.Context(), &Cmd{Args: []string{"true"}, Dir: "/"})
			failed := new(AuditError)
			if errors.As(err, &failed) != tc.fails || (res != nil) != (tc.runs > 0) || runs != tc.runs {
				t.Fatalf("%v, %v, %d runs", res, err, runs)
			}
			if res != nil && !strings.Contains(strings.Join(res.Notices, "\n"), tc.notice) {
				t.Errorf("notices %q", res.Notices)
			}
			if tc.log != nil && !slices.Equal(tc.log.kept, tc.kept) {
				t.Errorf("kept %q, want %q", tc.log.kept, tc.kept)
			}
		})
	}
}
