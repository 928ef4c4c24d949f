// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// An authority signs certificates for tests.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	dir  string
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, key: newKey(t), dir: t.TempDir()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// sign returns a certificate for a key.
func (a *authority) sign(key *ecdsa.PrivateKey, usage x509.ExtKeyUsage, end time.Time) tls.Certificate {
	a.t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-2 * time.Hour),
		NotAfter:    end,
		ExtKeyUsage: []x509.ExtKeyUsage{usage}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// file writes a block in PEM form and returns its name.
func (a *authority) file(name, kind string, raw []byte) string {
	a.t.Helper()
	name = filepath.Join(a.dir, name)
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o644); err != nil {
		a.t.Fatal(err)
	}
	return name
}

// files returns those of a server whose clients need a certificate of the authority.
func (a *authority) files() TLS {
	a.t.Helper()
	key := newKey(a.t)
	cert := a.sign(key, x509.ExtKeyUsageServerAuth, a.cert.NotAfter)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return TLS{a.file("cert", "CERTIFICATE", cert.Certificate[0]), a.file("key", "PRIVATE KEY", raw),
		a.file("ca", "CERTIFICATE", a.cert.Raw)}
}

// trust returns the configuration of a client with certificates.
func (a *authority) trust(certs ...tls.Certificate) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13, Certificates: certs}
}

// A streamPeer is a speaker over a stream.
type streamPeer struct{ wire.Stream }

func (s streamPeer) send(message []byte, _ bool) error { return s.Write(message) }
func (s streamPeer) receive() ([]byte, error)          { return s.Read() }
func (s streamPeer) close() error                      { return s.Close() }

// secure connects over TLS, and returns the error of the connection, of which a server can tell its
// client only after the handshake, or that of initialize.
func secure(t *testing.T, url, token string, config *tls.Config,
	params map[string]any) (*caller, message, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream, err := wire.Dial(ctx, url, token, config)
	if err != nil {
		return nil, message{}, err
	}
	t.Cleanup(func() { _ = stream.Close() })
	c := &caller{t: t, speaker: streamPeer{stream}}
	params["clientName"] = "test"
	return c, c.call("initialize", params), nil
}

// TestClientCertificate lets in clients with a certificate that the authority signed for them, and
// no others. The key of the certificate is who the client is.
func TestClientCertificate(t *testing.T) {
	ours, other := newAuthority(t), newAuthority(t)
	o := options()
	o.Listen, o.TLS = "wss://127.0.0.1:0", ours.files()
	url := run(t, o)
	if !strings.HasPrefix(url, "wss://127.0.0.1:") {
		t.Fatal(url)
	}
	alice, later := newKey(t), time.Now().Add(time.Hour)
	client := x509.ExtKeyUsageClientAuth
	for name, config := range map[string]*tls.Config{
		"no certificate":             ours.trust(),
		"another authority":          ours.trust(other.sign(alice, client, later)),
		"a certificate of a server":  ours.trust(ours.sign(alice, x509.ExtKeyUsageServerAuth, later)),
		"a certificate that expired": ours.trust(ours.sign(alice, client, time.Now().Add(-time.Hour))),
		"a certificate without its key": ours.trust(tls.Certificate{
			Certificate: ours.sign(alice, client, later).Certificate, PrivateKey: newKey(t),
		}),
	} {
		if _, m, err := secure(t, url, "", config, map[string]any{}); err == nil {
			t.Errorf("%s: let in: %+v", name, m)
		}
	}
	if w, _, err := dial(strings.Replace(url, "wss", "ws", 1), nil); w != nil {
		t.Error(err)
		t.Error("let in without TLS")
	}
	_, m, err := secure(t, url, "", ours.trust(ours.sign(alice, client, later)), map[string]any{})
	var hello struct{ SessionID string }
	if err != nil || m.Error != nil || json.Unmarshal(m.Result, &hello) != nil {
		t.Fatalf("%v, %+v", err, m.Error)
	}
	for name, test := range map[string]struct {
		key   *ecdsa.PrivateKey
		knows bool
	}{"another client": {newKey(t), false}, "a renewed certificate": {alice, true}} {
		_, m, err := secure(t, url, "", ours.trust(ours.sign(test.key, client, later)),
			map[string]any{"observeSessionId": hello.SessionID})
		if err != nil || (m.Error == nil) != test.knows {
			t.Errorf("%s: %v, %+v", name, err, m.Error)
		}
	}
}

// TestTLSToken asks for the token behind TLS, also of clients with a certificate.
func TestTLSToken(t *testing.T) {
	a := newAuthority(t)
	for name, needsCertificate := range map[string]bool{"token": false, "token and certificate": true} {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.TLS = a.files()
			config := a.trust()
			if needsCertificate {
				config = a.trust(a.sign(newKey(t), x509.ExtKeyUsageClientAuth, time.Now().Add(time.Hour)))
			} else {
				o.TLS.ClientCA = ""
			}
			o.Auth = Auth{Kind: AuthCapability, TokenFile: filepath.Join(a.dir, "token")}
			if err := os.WriteFile(o.Auth.TokenFile, []byte("swordfish"), 0o600); err != nil {
				t.Fatal(err)
			}
			url := run(t, o)
			var status *wire.StatusError
			if _, _, err := secure(t, url, "", config, map[string]any{}); !errors.As(err, &status) ||
				status.Status != http.StatusUnauthorized {
				t.Errorf("without it: %v", err)
			}
			c, m, err := secure(t, url, "swordfish", config, map[string]any{"binaryOutput": true})
			if err != nil || m.Error != nil {
				t.Fatalf("%v, %+v", err, m.Error)
			}
			c.post(map[string]any{"method": "initialized"})
			c.served()
		})
	}
}

// TestTLSOptions refuses options that would not do what they say.
func TestTLSOptions(t *testing.T) {
	a := newAuthority(t)
	files := a.files()
	empty := filepath.Join(a.dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		listen string
		tls    TLS
		want   string
	}{
		{"wss://127.0.0.1:0", TLS{}, errNoTLS.Error()},
		{"wss://127.0.0.1:0", TLS{Cert: files.Cert}, errTLSPair.Error()},
		{"wss://127.0.0.1:0", TLS{Key: files.Key}, errTLSPair.Error()},
		{"ws://127.0.0.1:0", TLS{ClientCA: files.ClientCA}, errTLSServer.Error()},
		{"wss://127.0.0.1:0", TLS{files.Cert, files.Key, empty}, empty + " has no certificate in PEM form"},
		{"wss://127.0.0.1:0", TLS{files.Cert, files.Key, empty + "x"}, "cannot read the certificates of `--tls-client-ca`"},
		{"wss://127.0.0.1:0", TLS{files.Cert, empty, ""}, "cannot use the certificate of `--tls-cert`"},
		{"stdio", files, errTLSListen.Error()},
		{"unix://" + a.dir + "/socket", files, errTLSListen.Error()},
		{"wss://0.0.0.0:0", TLS{files.Cert, files.Key, ""}, "set `--ws-auth` or `--tls-client-ca`"},
		{"wss://example.com:1", files, "invalid listen address"},
	} {
		o := options()
		o.Listen, o.TLS, o.Stdout = test.listen, test.tls, nil
		if err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s, %+v: %v", test.listen, test.tls, err)
		}
	}
	o := Options{TLS: files}
	if err := o.mayListen(netip.MustParseAddrPort("192.0.2.1:1")); err != nil {
		t.Error(err)
	}
}

// TestSecretsHidden requires that a process in a sandbox that reads the whole disk reads neither the
// token that would let it run others without one nor the key with which it could pose as the server. The
// wall is execserver.Options.Hidden.
func TestSecretsHidden(t *testing.T) {
	testenv.NeedUserNS(t)
	a := newAuthority(t)
	o := options()
	o.TLS = a.files()
	o.TLS.ClientCA = ""
	o.Auth = Auth{Kind: AuthCapability, TokenFile: writeFile(t, "swordfish\n")}
	c, m, err := secure(t, run(t, o), "swordfish", a.trust(), map[string]any{})
	if err != nil || m.Error != nil {
		t.Fatalf("%v, %+v", err, m.Error)
	}
	c.post(map[string]any{"method": "initialized"})
	text := fmt.Sprintf("cat %s || exit; cat %s || cat %s && exit 9", o.TLS.Cert, o.TLS.Key, o.Auth.TokenFile)
	c.start("/", text, map[string]any{"sandbox": managed(t.TempDir())})
	code, printed := c.ended()
	if code == 9 || !strings.Contains(printed, "BEGIN CERTIFICATE") ||
		strings.Contains(printed, "BEGIN PRIVATE") || strings.Contains(printed, "swordfish") {
		t.Errorf("%d, printed %s", code, printed)
	}
}
