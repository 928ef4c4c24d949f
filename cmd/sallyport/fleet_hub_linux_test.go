// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFleetHub: the hub prints its URL and nothing else, is told of tenants, and ends by SIGTERM with 0; the
// verbs about tenants and nodes print the path of credentials, and errors with the fix.
func TestFleetHub(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	hub := s.command(t, "sallyport", "fleet", "hub", "--listen", "127.0.0.1:0")
	var warnings bytes.Buffer
	hub.Stderr = &warnings
	out, err := hub.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := hub.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	url, err := r.ReadString('\n')
	if err != nil || !strings.HasPrefix(url, "nats://127.0.0.1:") {
		t.Fatalf("%q %v %s", url, err, warnings.String())
	}
	store := filepath.Join(s.home, "sallyport", "fleet")
	for _, test := range []struct {
		words, out, err string // out and what is in err
	}{
		{"add-tenant acme", filepath.Join(store, "creds/acme.creds") + "\n", ""},
		{"add-tenant acme", "", "there is a tenant or node with this name"},
		{"add-node one --tenant acme", filepath.Join(store, "creds/one.creds") + "\n", ""},
		{"add-node two", filepath.Join(store, "creds/two.creds") + "\n", ""},
		{"add-node x --tenant none", "", "fleet add-tenant"},
		{"add-node", "", "fleet add-node NAME"},
		{"add-node a b", "", "unexpected argument"},
		{"add-node ../x", "", "a name has 1 to 64"},
		{"hub --listen 127.0.0.1:0", "", "another hub serves it"},
		{"hub --store other --listen 0.0.0.0:0", "", "--insecure"},
		{"hub --store other --tls-cert x", "", "--tls-key"},
		{"remove-node two", "", ""},
		{"remove-node two", "", "there is no such node"},
		{"remove-tenant acme", "", ""},
		{"", "", "fleet needs a subcommand"},
		{"hbu", "", `did you mean "hub"?`},
	} {
		t.Run(test.words, func(t *testing.T) {
			cmd := s.command(t, append([]string{"sallyport", "fleet"}, strings.Fields(test.words)...)...)
			var said bytes.Buffer
			cmd.Stderr = &said
			got, err := cmd.Output()
			if string(got) != test.out || (err == nil) != (test.err == "") ||
				!strings.Contains(said.String(), test.err) || test.err == "" && said.Len() > 0 {
				t.Errorf("%q, %q, %v", got, said.String(), err)
			}
			if err != nil && cmd.ProcessState.ExitCode() != 125 {
				t.Error(err)
			}
		})
	}
	if left, err := os.ReadDir(filepath.Join(store, "creds")); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
	if err := hub.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(r)
	if err := hub.Wait(); err != nil || len(rest) > 0 || warnings.Len() > 0 {
		t.Errorf("%q, %q, %v", rest, warnings.String(), err)
	}
	if err != nil {
		t.Error(err)
	}
}
