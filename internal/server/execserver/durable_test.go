// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/run/durable"
)

// TestReviveOwn: the session of a server before this one is that of the credential that had it, and unknown
// to others.
func TestReviveOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	store := func() *durable.Store {
		s, err := durable.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	store().Create(durable.Record{Kind: ofProcess, Session: "s", Credential: "a", ID: "p",
		Started: time.Now()})
	s := New(Options{Durable: store()})
	defer s.Close()
	for _, test := range []struct {
		id, credential string
		known          bool
	}{{"s", "b", false}, {"s", "", false}, {"other", "a", false}, {"s", "a", true}} {
		s.revive(test.id, test.credential)
		s.mu.Lock()
		ses := s.sessions[test.id]
		s.mu.Unlock()
		if known := ses != nil; known != test.known || known &&
			(ses.credential != "a" || ses.find("p") == nil) {
			t.Errorf("%+v: %+v", test, ses)
		}
	}
}
