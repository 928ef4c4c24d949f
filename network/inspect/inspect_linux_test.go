// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect_test

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/network/inspect"
	"github.com/sallyport-dev/sallyport/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestInspection: a library's command reads over TLS with a credential that it does not have, and
// nothing that no rule permits.
func TestInspection(t *testing.T) {
	testenv.NeedUserNS(t)
	testenv.NeedProgram(t, "curl")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.URL, r.Header.Get("Authorization"))
	}))
	defer server.Close()
	dir, at := t.TempDir(), server.Listener.Addr().String()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	in, err := inspect.New(inspect.Options{ExtraCA: []string{ca}, Credentials: []inspect.Credential{
		{Name: "one", Env: "TOKEN", Value: []byte("the-real-value-1"), Hosts: []string{at}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	policy, err := network.New(network.Config{
		Mode: network.Full, Inspector: in.Inspector(), Entries: []network.Entry{{Pattern: at}},
		Rules: []network.RequestRule{{Name: "open", Hosts: []string{at}, Paths: []string{"/open"},
			Set: []network.Pair{{Name: "Authorization", Value: in.Dummy("one")}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite().WithNetwork(sandbox.NetworkProxy),
		Network: policy}
	defer r.Close()
	for path, want := range map[string]string{"/open": "/open " + in.Env()["TOKEN"],
		"/shut": "mitm_hook_denied"} {
		res, err := r.Run(t.Context(), &sallyport.Cmd{Args: []string{"curl", "-sS", "https://" + at + path},
			Dir: dir, EnvPolicy: sallyport.EnvPolicy{Inherit: sallyport.InheritAll, Runtime: in.Env()}})
		if err != nil || !strings.Contains(res.Stdout.String(), want) {
			t.Errorf("%s: %v, %v", path, err, res)
		}
	}
}

func TestCredentialErrors(t *testing.T) {
	value := []byte("the-real-value-1")
	_, err := inspect.New(inspect.Options{Credentials: []inspect.Credential{{Name: "one", Env: "TOKEN",
		Value: value, Hosts: []string{"*"}}}})
	var bad *inspect.CredentialError
	if !errors.As(err, &bad) || bad.Name != "one" || strings.Contains(err.Error(), "real") || value[0] != 0 {
		t.Errorf("%v, %q", err, value)
	}
}
