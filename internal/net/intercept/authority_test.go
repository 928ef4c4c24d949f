// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func mustAuthority(t testing.TB) *authority {
	t.Helper()
	a, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func mustCert(t testing.TB) *x509.Certificate { t.Helper(); return mustAuthority(t).cert }

// parse returns the certificate of a leaf.
func parse(t testing.TB, c *tls.Certificate) *x509.Certificate {
	t.Helper()
	cert, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// TestLeaf: a certificate is for one host, for servers, and verifies by the authority alone.
func TestLeaf(t *testing.T) {
	a := mustAuthority(t)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	for _, host := range []string{"example.com", "xn--bcher-kva.example", "a_b.example",
		strings.Repeat("a.", 120) + "example", "127.0.0.1", "2001:db8::7"} {
		c, err := a.leaf(host)
		if err != nil {
			t.Fatal(err)
		}
		cert := parse(t, c)
		name := host
		if _, err := cert.Verify(x509.VerifyOptions{Roots: pool, DNSName: name,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil && host != "a_b.example" {
			t.Errorf("%s: %v", host, err)
		}
		if cert.VerifyHostname("evil.test") == nil || len(cert.DNSNames)+len(cert.IPAddresses) != 1 ||
			cert.IsCA || cert.KeyUsage&x509.KeyUsageCertSign != 0 {
			t.Errorf("%s: %+v", host, cert)
		}
		if life := cert.NotAfter.Sub(cert.NotBefore); life > 7*24*time.Hour {
			t.Errorf("%s: valid for %v", host, life)
		}
		if key, ok := cert.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() ||
			key.Equal(a.cert.PublicKey) {
			t.Errorf("%s: %T", host, cert.PublicKey)
		}
	}
	// A leaf cannot be used as an authority.
	if !a.cert.IsCA || !a.cert.MaxPathLenZero || a.cert.PermittedDNSDomains != nil {
		t.Errorf("%+v", a.cert)
	}
}

// TestLeaves: the number of certificates is bounded, the one that was not used for longest goes, and
// many who ask at once get the same.
func TestLeaves(t *testing.T) {
	a := mustAuthority(t)
	serial := func(host string) string {
		c, err := a.leaf(host)
		if err != nil {
			t.Fatal(err)
		}
		return parse(t, c).SerialNumber.String()
	}
	kept, lost := serial("kept.example"), serial("lost.example")
	for i := range maxLeaves - 1 {
		serial(fmt.Sprintf("h%d.example", i))
		if serial("kept.example") != kept {
			t.Fatal("one that is used was made again")
		}
	}
	if len(a.leaves) != maxLeaves {
		t.Errorf("%d certificates", len(a.leaves))
	}
	if serial("lost.example") == lost {
		t.Error("one that was not used is still there")
	}
	var group sync.WaitGroup
	got := make([]string, 50)
	for i := range got {
		group.Go(func() { got[i] = serial("once.example") })
	}
	group.Wait()
	for _, s := range got {
		if s != got[0] {
			t.Fatal("made more than once")
		}
	}
}

// TestRenew: a certificate that ends soon is made again.
func TestRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := mustAuthority(t)
		first, err := a.leaf("a.example")
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(leafTime - renewTime - 2*skewTime)
		if again, _ := a.leaf("a.example"); again != first {
			t.Error("made again too early")
		}
		<-time.After(2 * skewTime)
		if again, _ := a.leaf("a.example"); again == first {
			t.Error("one that ends soon is still used")
		}
	})
}

// TestRoots: the bundle has the certificates of the system, of the variables of the parent and of the
// settings, each once, and nothing else of their files: no key gets there.
func TestRoots(t *testing.T) {
	dir := t.TempDir()
	system, parent, extra := mustAuthority(t), mustAuthority(t), mustAuthority(t)
	der, err := x509.MarshalPKCS8PrivateKey(parent.key)
	if err != nil {
		t.Fatal(err)
	}
	secret := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	write := func(name string, parts ...[]byte) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, bytes.Join(parts, []byte("# text\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	files := map[string]string{
		"SSL_CERT_FILE": write("parent.pem", secret, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: parent.cert.Raw, Headers: map[string]string{"Password": "x"}}), encode(system.cert.Raw)),
		"NODE_EXTRA_CA_CERTS": write("again.pem", encode(parent.cert.Raw), []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: mustCert(t).Raw})),
	}
	names := []string{filepath.Join(dir, "missing"), write("system.pem", encode(system.cert.Raw))}
	i := newInterceptor([]string{write("extra.pem", encode(extra.cert.Raw))},
		func(n string) string { return files[n] }, names)
	bundle, err := i.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	text := bundle.PEM
	ours, _ := i.authority()
	var want []byte
	for _, a := range []*authority{system, parent, extra, ours} {
		want = append(want, encode(a.cert.Raw)...)
	}
	if !bytes.Equal(text, want) {
		t.Errorf("%s\nwant %s", text, want)
	}
	if again, _ := i.Bundle(); !bytes.Equal(again.PEM, text) {
		t.Error("another bundle, of another authority")
	}
	r, _ := i.roots()
	if _, err := ours.cert.Verify(x509.VerifyOptions{Roots: r.pool}); err == nil {
		t.Error("servers are verified by the authority that is for clients")
	}

	empty := write("empty.pem", []byte("no certificate"))
	for _, tt := range []struct {
		name  string
		extra []string
		env   string
		by    string
	}{
		{"a file of the settings is missing", []string{filepath.Join(dir, "none.pem")}, "", "network.mitm.extra_ca"},
		{"a file of the settings has none", []string{empty}, "", "network.mitm.extra_ca"},
		{"a file of a variable is missing", nil, filepath.Join(dir, "none.pem"), "the variable SSL_CERT_FILE"},
		{"a file of a variable has none", nil, empty, "the variable SSL_CERT_FILE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := newInterceptor(tt.extra,
				func(n string) string { return map[string]string{"SSL_CERT_FILE": tt.env}[n] }, names)
			_, err := i.Bundle()
			var bad *RootsError
			if !errors.As(err, &bad) || bad.By != tt.by ||
				!strings.HasSuffix(err.Error(), "; fix or remove "+tt.by) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestShared: one authority in a process for the same settings, made when it is needed.
func TestShared(t *testing.T) {
	none := func(string) string { return "" }
	a, b := Shared([]string{"/x"}, none), Shared([]string{"/x"}, none)
	if a != b || a == Shared(nil, none) {
		t.Error("not one for the same settings")
	}
}

// FuzzRoots: whatever a file has, what is taken of it are certificates.
func FuzzRoots(f *testing.F) {
	cert := encode(mustCert(f).Raw)
	f.Add(cert)
	f.Add(append([]byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), cert...))
	f.Add(cert[:len(cert)/2])
	f.Fuzz(func(t *testing.T, text []byte) {
		r := &roots{pool: x509.NewCertPool()}
		err := r.add(text, map[[sha256.Size]byte]bool{})
		if (err == nil) != (len(r.text) > 0) {
			t.Errorf("%v, %d bytes", err, len(r.text))
		}
		for rest := r.text; len(rest) > 0; {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
				t.Fatalf("%q", r.text)
			}
		}
	})
}
