// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package consoles

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/internal/cli/sessions"
	"github.com/sallyport-dev/sallyport/internal/server/listen"
	"github.com/sallyport-dev/sallyport/internal/server/mcp"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

func TestMain(m *testing.M) {
	testenv.MostlyWait()
	goleak.VerifyTestMain(m)
}

// certificate makes the files of one for 127.0.0.1, and returns who trusts it.
func certificate(t *testing.T) (cert, key string, trust *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, b []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}),
			0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	cert, key = write("cert", "CERTIFICATE", der), write("key", "PRIVATE KEY", secret)
	text, _ := os.ReadFile(cert)
	trust = x509.NewCertPool()
	trust.AppendCertsFromPEM(text)
	return cert, key, trust
}

// serve runs console with flags until the test ends, and returns the URL that it prints.
func serve(t *testing.T, env *Env, words ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	url, over := make(chan string, 1), make(chan error, 1)
	env.Sessions, env.Token = &sessions.Env{Env: env.Env}, mcp.Token
	env.Print = func(text string) error {
		url <- strings.TrimSuffix(text, "\n")
		return nil
	}
	o := new(Options)
	if _, err := syntax.ParseFlags(Flags(o), words); err != nil {
		t.Fatal(err)
	}
	go func() { over <- Run(ctx, env, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	select {
	case u := <-url:
		return u
	case err := <-over:
		over <- nil
		t.Fatal(err)
	}
	return ""
}

// exchange exchanges a token, and returns the status.
func exchange(t *testing.T, c *http.Client, url, token string) int {
	t.Helper()
	body, _ := json.Marshal(map[string]string{"token": token})
	answer, err := c.Post(url+"/session", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	c.CloseIdleConnections()
	return answer.StatusCode
}

// TestRun serves with TLS and a token file, and without.
func TestRun(t *testing.T) {
	testenv.NeedInotify(t)
	cert, key, trust := certificate(t)
	for _, test := range []struct {
		name, scheme string
		words        []string
		fixed        bool
	}{
		{"usual", "http", nil, false},
		{"a token file", "http", []string{"--token-file", "token"}, true},
		{"TLS", "https", []string{"--tls-cert", cert, "--tls-key", key}, false},
		{"TLS at every address", "https", []string{"--tls-cert", cert, "--tls-key", key, "--token-file",
			"token",
			"--listen", "0.0.0.0:0"}, true},
		{"every address, insecure", "http", []string{"--insecure", "--listen", "0.0.0.0:0"}, false},
		{"another exec-server", "http", []string{"--remote", "ws://127.0.0.1:1"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			env := testEnv(t)
			words := slices.Clone(test.words)
			token := filepath.Join(os.Getenv("XDG_STATE_HOME"), "sallyport", "my-token")
			if i := slices.Index(words, "token"); i >= 0 {
				words[i] = token
				if dir, err := stateDir(); dir == "" || err != nil {
					t.Fatal(err)
				}
			}
			at, once, ok := strings.Cut(serve(t, env, words...), "/#token=")
			if !ok || !strings.HasPrefix(at, test.scheme+"://127.0.0.1:") {
				t.Fatalf("%s, %s", at, once)
			}
			c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust,
				MinVersion: tls.VersionTLS13}}}
			if got := exchange(t, c, at, once); got != http.StatusOK {
				t.Errorf("status %d", got)
			}
			if got := exchange(t, c, at, once); got != http.StatusUnauthorized {
				t.Errorf("the second time: status %d", got)
			}
			if fixed, err := os.ReadFile(token); test.fixed {
				got := exchange(t, c, at, strings.TrimSpace(string(fixed)))
				if err != nil || got != http.StatusOK {
					t.Errorf("the token of the file: status %d, %v", got, err)
				}
			}
		})
	}
}

// TestRunErrors has flags with which nothing is served.
func TestRunErrors(t *testing.T) {
	cert, key, _ := certificate(t)
	home := testenv.RealTemp(t)
	for _, test := range []struct {
		name  string
		words []string
		want  string
	}{
		{"no port", []string{"--listen", "127.0.0.1"}, "use IP:PORT"},
		{"a name", []string{"--listen", "localhost:0"}, "use IP:PORT"},
		{"every address", []string{"--listen", "0.0.0.0:0"}, "other machines"},
		{"every address of IPv6", []string{"--listen", "[::]:0"}, "other machines"},
		{"with TLS only", []string{"--listen", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key},
			"other machines"},
		{"with a token file only", []string{"--listen", "0.0.0.0:0", "--token-file", "STATE/token"},
			"other machines"},
		{"half of TLS", []string{"--tls-cert", cert}, "needed together"},
		{"no certificate", []string{"--tls-cert", key, "--tls-key", key}, "cannot use the certificate"},
		{"a token in the workspace", []string{"--token-file", "token"}, "--token-file"},
		{"a token that commands can read", []string{"--token-file", "/usr/share/token"}, "can read"},
		{"a token that others can read", []string{"--token-file", "STATE/open"}, "can be read by others"},
		{"no URL", []string{"--remote", "http://x"}, "use ws://"},
		{"no token of the remote", []string{"--remote", "ws://127.0.0.1:1", "--remote-token-file",
			"/nothing"}, "/nothing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			env := testEnv(t)
			env.Dir = home
			state, err := stateDir()
			if err = errors.Join(err, os.WriteFile(filepath.Join(state, "open"), []byte("token"),
				0o644)); err != nil {
				t.Fatal(err)
			}
			env.Sessions, env.Token = &sessions.Env{Env: env.Env}, mcp.Token
			env.Print = func(string) error { return errors.New("it serves") }
			var words []string
			for _, w := range test.words {
				words = append(words, strings.Replace(w, "STATE", state, 1))
			}
			o := new(Options)
			if _, err := syntax.ParseFlags(Flags(o), words); err != nil {
				t.Fatal(err)
			}
			if err := Run(t.Context(), env, o); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// TestNotHere: methods about this machine are no answers about another one.
func TestNotHere(t *testing.T) {
	env := testEnv(t)
	here, there := methods(env, new(history), new(listen.QuestionWatch)), methods(env, new(history), nil)
	for name := range here {
		_, err := there[name](t.Context(), nil)
		if wire.RefusalOf(err).Reason != "notHere" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(there) != len(here) {
		t.Error("a method is relayed")
	}
}
