// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"encoding/asn1"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestTrustStore: the file for Java has the certificates of the bundle, all of them trusted, and needs no
// password.
func TestTrustStore(t *testing.T) {
	one, two := mustCert(t).Raw, mustCert(t).Raw
	text, err := trustStore([][]byte{one, two})
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := asn1.Marshal([]asn1.ObjectIdentifier{oidAnyUsage})
	if err != nil {
		t.Fatal(err)
	}
	trusted[0]++ // a set
	if !bytes.Contains(text, one) || !bytes.Contains(text, two) || bytes.Count(text, trusted) != 2 {
		t.Errorf("%x", text)
	}
	b, err := trusting(t, mustCert(t)).Bundle()
	if err != nil {
		t.Fatal(err)
	}
	if want := bytes.Count(b.PEM, []byte("BEGIN CERTIFICATE")); want != 2 ||
		bytes.Count(b.PKCS12, trusted) != want {
		t.Errorf("%d certificates for Java", bytes.Count(b.PKCS12, trusted))
	}
}

// TestTrustStoreRead: programs read the file, with no password and with one, as older settings name.
func TestTrustStoreRead(t *testing.T) {
	text, err := trustStore([][]byte{mustCert(t).Raw, mustCert(t).Raw})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "store.p12")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, program string
		args          []string
		word          string
	}{
		{"Java", "keytool", []string{"-J-Duser.language=en", "-list", "-keystore", name, "-storepass", "changeit"}, "trustedCertEntry"},
		{"OpenSSL", "openssl", []string{"pkcs12", "-in", name, "-passin", "pass:", "-nomacver"}, "BEGIN CERTIFICATE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testenv.NeedProgram(t, tt.program)
			out, err := exec.CommandContext(t.Context(), tt.program, tt.args...).CombinedOutput()
			if n := strings.Count(string(out), tt.word); n != 2 {
				t.Errorf("%d certificates, %v: %s", n, err, out)
			}
		})
	}
}

// BenchmarkBundle is the cost of a command whose TLS is opened, with the certificates of this machine.
func BenchmarkBundle(b *testing.B) {
	for b.Loop() {
		if _, err := newInterceptor(nil, func(string) string { return "" },
			systemBundles).Bundle(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTrustStore is the part of the file for Java.
func BenchmarkTrustStore(b *testing.B) {
	r, err := newInterceptor(nil, func(string) string { return "" }, systemBundles).roots()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := trustStore(r.raw); err != nil {
			b.Fatal(err)
		}
	}
}
