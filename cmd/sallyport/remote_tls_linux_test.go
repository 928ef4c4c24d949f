// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pemFile writes a block in PEM form and returns its name.
func pemFile(t *testing.T, dir, name, kind string, raw []byte) string {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// certificates writes those of an authority, a server and a client, with the keys of the last two.
func certificates(t *testing.T, dir string) {
	t.Helper()
	var authority *x509.Certificate
	var signer *ecdsa.PrivateKey
	for i, name := range []string{"ca", "server", "client"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		template := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		}
		if authority == nil {
			template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true,
				x509.KeyUsageCertSign
			authority, signer = template, key
		}
		raw, signed := x509.CreateCertificate(rand.Reader, template, authority, &key.PublicKey, signer)
		secret, encoded := x509.MarshalPKCS8PrivateKey(key)
		if err := errors.Join(err, signed, encoded); err != nil {
			t.Fatal(err)
		}
		pemFile(t, dir, name, "CERTIFICATE", raw)
		pemFile(t, dir, name+".key", "PRIVATE KEY", secret)
	}
}

// encrypted starts a server that asks its clients for a certificate, and returns its URL.
func (d parlor) encrypted(t *testing.T, dir string) string {
	t.Helper()
	cmd := d.command(t, "sallyport", "exec-server", "--listen", "wss://127.0.0.1:0",
		"--tls-cert", filepath.Join(dir, "server"), "--tls-key", filepath.Join(dir, "server.key"),
		"--tls-client-ca", filepath.Join(dir, "ca"))
	out, err := cmd.StdoutPipe()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // when the test ends
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("the server ended with %v", cmd.ProcessState)
		}
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(url)
}

// TestRemoteTLS: run and the commands of sessions show a certificate to a server that asks for one,
// and trust one that a private authority signed. What is wrong with files is one sentence.
func TestRemoteTLS(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	dir := filepath.Join(filepath.Dir(d.work), "tls")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	certificates(t, dir)
	url := d.encrypted(t, dir)
	file := func(name string) string { return filepath.Join(dir, name) }
	flags := []string{"--remote", url, "--remote-tls-cert", file("client"), "--remote-tls-key",
		file("client.key"), "--remote-tls-ca", file("ca")}
	run := func(flags ...string) []string {
		return append(append([]string{"run"}, flags...), "-C", d.work, "--", "echo", "hi")
	}
	d.expects(t, 0, "hi\n", run(flags...)...)
	id := d.start(t, append(flags, "-C", d.work, "--", "sh", "-c", "echo there; exit 3")...)
	d.expects(t, 3, "", append(append([]string{"wait"}, flags...), id)...)
	d.expects(t, 0, "there\n", append(append([]string{"logs"}, flags...), id)...)
	if out, _, _ := d.run(t, append([]string{"ps"}, flags...)...); !strings.Contains(out, "exited (3)") {
		t.Errorf("%s", out)
	}
	for _, test := range []struct {
		name  string
		flags []string
		want  string
	}{
		{"no certificate", []string{"--remote", url, "--remote-tls-ca", file("ca")}, "certificate required"},
		{"no authority", flags[:6], "certificate signed by unknown authority"},
		{"another key", []string{"--remote", url, "--remote-tls-cert", file("client"), "--remote-tls-key", file("server.key")}, "cannot use the certificate of --remote-tls-cert with the key of --remote-tls-key: tls: private key does not match public key"},
		{"no key", []string{"--remote", url, "--remote-tls-cert", file("client")}, "--remote-tls-cert and --remote-tls-key are needed together"},
		{"no certificate with the key", []string{"--remote", url, "--remote-tls-key", file("client.key")}, "--remote-tls-cert and --remote-tls-key are needed together"},
		{"missing", []string{"--remote", url, "--remote-tls-ca", file("none")}, "cannot read the certificates of --remote-tls-ca: open " + file("none")},
		{"no PEM", []string{"--remote", url, "--remote-tls-ca", file("ca.key")}, "has no certificate in PEM form"},
		{"not encrypted", []string{"--remote", "unix:///x", "--remote-tls-ca", file("ca")}, "--remote-tls-ca needs --remote wss://HOST:PORT: other URLs are not encrypted"},
		{"no server", []string{"--remote-tls-key", file("client.key")}, "--remote-tls-key is for --remote URL"},
	} {
		for _, args := range [][]string{run(test.flags...), append([]string{"ps"}, test.flags...)} {
			out, errs, code := d.run(t, args...)
			if code != 125 || out != "" || !strings.Contains(errs, test.want) ||
				strings.Count(errs, "\n") != 1 {
				t.Errorf("%s, %s: %q, %q, exit code %d, want %q", test.name, args[0], out, errs,
					code, test.want)
			}
		}
	}
}

// TestRemoteKeyHidden: a command in a sandbox on a server of this machine does not read the files with
// which it could pose as the user. The wall is the member hidden of run/start.
func TestRemoteKeyHidden(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	dir := filepath.Join(filepath.Dir(d.work), "tls")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	certificates(t, dir)
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(file("token"), []byte("swordfish\n"), 0o600),
		os.Symlink("client.key", file("link"))); err != nil {
		t.Fatal(err)
	}
	flags := []string{"run", "--remote", d.encrypted(t, dir), "--remote-tls-cert", file("client"),
		"--remote-tls-key", file("link"), "--remote-tls-ca", file("ca"),
		"--remote-token-file", file("token"), "-C", d.work, "--", "sh", "-c"}
	out, errs, code := d.run(t, append(flags, "cat "+file("client")+"; cat "+file("client.key")+" "+
		file("link")+" "+file("token"))...)
	if code == 0 || !strings.Contains(out, "BEGIN CERTIFICATE") || strings.Contains(out, "PRIVATE") ||
		strings.Contains(out, "swordfish") {
		t.Errorf("%s%s, exit code %d", out, errs, code)
	}
}
