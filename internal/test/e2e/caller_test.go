// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestCallerID matches two commands with their events, results, lists and lines of the log.
func TestCallerID(t *testing.T) {
	var mu sync.Mutex
	var log bytes.Buffer
	events := map[string]map[string]bool{} // kinds by the id in the JSON form
	r := &sallyport.Runner{Policy: sandbox.FullAccess(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Events: event.SinkFunc(func(e event.Event) {
			text, err := json.Marshal(e)
			var j struct {
				Type     string
				CallerID *string `json:"caller_id"`
			}
			var back event.Event
			if err = errors.Join(err, json.Unmarshal(text, &j), json.Unmarshal(text, &back)); err != nil ||
				(j.CallerID != nil) != (e.CallerID != "") || back.CallerID != e.CallerID {
				t.Errorf("%s: %v", text, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if events[e.CallerID] == nil {
				events[e.CallerID] = map[string]bool{}
			}
			events[e.CallerID][j.Type] = true
		})}
	defer r.Close()
	ids := []string{"task 7/ünï", "call_2", ""}
	for _, id := range ids {
		c := sallyport.Script("echo hi")
		c.Shell, c.CallerID = "sh", id
		s, err := r.Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		c.CallerID = "changed afterwards"
		res, err := s.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(res)
		var back sallyport.Result
		if err = errors.Join(err, json.Unmarshal(text, &back)); err != nil || res.CallerID != id ||
			back.CallerID != id ||
			s.Info().CallerID != id || strings.Contains(string(text), `"caller_id"`) != (id != "") {
			t.Errorf("%q: %q, read again %q, listed %q, %v", id, res.CallerID, back.CallerID,
				s.Info().CallerID, err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(events) != len(ids) {
		t.Errorf("events of %v", events)
	}
	for _, id := range ids {
		for _, kind := range []string{"judged", "started", "output", "exited", "ended"} {
			if !events[id][kind] {
				t.Errorf("%q has no event %s", id, kind)
			}
		}
	}
	if got := log.String(); !strings.Contains(got, `caller_id="task 7/ünï"`) ||
		!strings.Contains(got, "caller_id=call_2") || strings.Count(got, "caller_id") != 2 {
		t.Error(got)
	}
}

// TestCallerIDClosed refuses ids that could not be shown.
func TestCallerIDClosed(t *testing.T) {
	r := &sallyport.Runner{Policy: sandbox.FullAccess()}
	defer r.Close()
	for name, id := range map[string]string{
		"too long": strings.Repeat("x", 129), "a line": "a\nb", "an escape": "a\x1b[31m", "no text": "a\xff", "turned around": "a\u202eb",
	} {
		var wrong *sallyport.CmdError
		if _, err := r.Run(t.Context(), &sallyport.Cmd{Args: []string{"true"}, CallerID: id}); !errors.As(err,
			&wrong) || wrong.Field != "CallerID" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := r.Run(t.Context(), &sallyport.Cmd{Args: []string{"true"},
		CallerID: strings.Repeat("x", 128)}); err != nil {
		t.Error(err)
	}
}
