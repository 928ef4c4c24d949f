// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestLocksOutOfReach: a command that holds all locks that it can take, of settings, rules, the project
// and every directory, holds up no other one, nor what is decided outside.
func TestLocksOutOfReach(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	testenv.RunAsOrdinary(t)
	s, _ := newTrustSeat(t)
	rules := filepath.Join(s.home, ".config/sallyport/rules/default.rules")
	if err := errors.Join(os.MkdirAll(filepath.Dir(rules), 0o700),
		os.WriteFile(rules, []byte("# mine\n"), 0o600),
		os.WriteFile(filepath.Join(s.home, ".config/sallyport/config.toml"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	holder := s.command(t, "sallyport", "run", "--tmp", "host", "--", "lockall", s.home, s.work)
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	n := 0
	if _, err := fmt.Fscanf(out, "locked %d\n", &n); err != nil || n < 6 {
		t.Fatalf("%d locks, %v", n, err)
	}
	s.must(t, "run", "--", "true")
	a := s.asks(t, "--", "touch", "made")
	s.must(t, "approve", "--rule", a.id)
	a.end()
	var list struct{ Rules []struct{ ID string } }
	if err := json.Unmarshal([]byte(s.must(t, "approvals", "--json")), &list); err != nil ||
		len(list.Rules) != 1 {
		t.Fatalf("%v, %+v", err, list)
	}
	s.must(t, "approvals", "revoke", list.Rules[0].ID)
	if text, err := os.ReadFile(rules); err != nil || string(text) != "# mine\n" {
		t.Errorf("%q, %v", text, err)
	}
	s.must(t, "caches", "clear")
	x := s.allow(t, "--grant", "git")
	x.Expect(trustChoices)
	x.Send("y\r")
	if code := x.Wait(); code != 0 || !s.trusts(t) {
		t.Errorf("exit code %d; seen:\n%s", code, x.Transcript())
	}
	if err := errors.Join(in.Close(), holder.Wait()); err != nil {
		t.Error(err)
	}
}
