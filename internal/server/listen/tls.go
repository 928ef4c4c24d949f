// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
)

// TLS says with which files a listener encrypts. The zero TLS does not. The files are read once.
type TLS struct {
	// Cert has the certificate of the server with those between it and the root, and Key its private
	// key, both in PEM form.
	Cert, Key string
	// ClientCA has the certificates, in PEM form, of which clients need one that signed theirs. The
	// key of its certificate identifies a client then. Empty means that clients need none.
	ClientCA string
}

// The errors of options.
var (
	errTLSPair   = errors.New("`--tls-cert` and `--tls-key` are needed together")
	errTLSServer = errors.New("`--tls-client-ca` needs `--tls-cert` and `--tls-key`: clients show a certificate only to a server that has one")
	errTLSListen = errors.New("TLS needs a listener on a TCP port, `--listen wss://IP:PORT`")
	errNoTLS     = errors.New("`--listen wss://IP:PORT` needs `--tls-cert` and `--tls-key`")
)

// Config checks the options and reads the files; nil for no TLS.
func (t *TLS) Config() (*tls.Config, error) {
	switch {
	case (t.Cert == "") != (t.Key == ""):
		return nil, errTLSPair
	case t.Cert == "" && t.ClientCA != "":
		return nil, errTLSServer
	case t.Cert == "":
		return nil, nil //nolint:nilnil // there is none
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot use the certificate of `--tls-cert` with the key of `--tls-key`: %w", err)
	}
	c := &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
		SessionTicketsDisabled: true, // every connection shows its certificate
	}
	if t.ClientCA == "" {
		return c, nil
	}
	text, err := os.ReadFile(t.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificates of `--tls-client-ca`: %w", err)
	}
	c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !c.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM form; `--tls-client-ca` names the certificate that signs those of clients", t.ClientCA)
	}
	return c, nil
}

// gate returns the gate for clients that g lets in and that showed a certificate. Both are part of
// who the client is.
func (t *TLS) gate(g gate) gate {
	if t.ClientCA == "" {
		return g
	}
	return func(r *http.Request) (string, error) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			return "", errors.New("missing client certificate")
		}
		credential, err := g(r)
		if err != nil {
			return "", err
		}
		// A certificate that is renewed with its key is that of the same client.
		key := sha256.Sum256(r.TLS.VerifiedChains[0][0].RawSubjectPublicKeyInfo)
		return "certificate " + hex.EncodeToString(key[:]) + "\x00" + credential, nil
	}
}

// boundedTLS returns the listener for encrypted connections. Those that have not shaken hands count,
// too.
func boundedTLS(l net.Listener, c *tls.Config, most int) net.Listener {
	return tls.NewListener(newBoundedListener(l, most), c)
}
