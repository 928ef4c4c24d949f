// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/sallyport-dev/sallyport/internal/command/environ"
)

// systemBundles are where systems have their certificates in one file.
var systemBundles = environ.TrustFiles

// A RootsError reports a file of certificates that cannot be used.
type RootsError struct {
	Path string
	By   string // what names the file: a variable, or the key of settings
	Err  error
}

// Error returns a text with the fix.
func (e *RootsError) Error() string {
	return fmt.Sprintf("read certificates from %s: %v; fix or remove %s",
		strconv.QuoteToASCII(e.Path), e.Err, e.By)
}

// Unwrap returns the cause.
func (e *RootsError) Unwrap() error { return e.Err }

var errNoCertificate = errors.New("it has no certificate")

// readRoots reads the certificates of the system, of the files that variables of the parent name, and of
// the settings. Files that are named must be there: programs of the parent need them, too.
func (i *Interceptor) readRoots() (*roots, error) {
	r := &roots{pool: x509.NewCertPool()}
	seen := map[[sha256.Size]byte]bool{}
	for _, name := range i.system {
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = r.add(text, seen)
		}
		if err != nil {
			return nil, &RootsError{name, "the certificates of the system", err}
		}
		break
	}
	read := map[string]bool{}
	named := func(name, by string) error {
		if name == "" || read[name] {
			return nil
		}
		read[name] = true
		text, err := os.ReadFile(name)
		if err == nil {
			err = r.add(text, seen)
		}
		if err != nil {
			return &RootsError{name, by, err}
		}
		return nil
	}
	for _, variable := range environ.TrustNames() {
		if err := named(i.getenv(variable), "the variable "+variable); err != nil {
			return nil, err
		}
	}
	for _, name := range i.extra {
		if err := named(name, "network.mitm.extra_ca"); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// add adds the certificates of a file, each once. Anything else in it, such as a private key, is left out.
// What is no certificate that can be read is left out, too, as by the libraries of programs.
func (r *roots) add(text []byte, seen map[[sha256.Size]byte]bool) error {
	found := false
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue
		}
		found = true
		if sum := sha256.Sum256(cert.Raw); !seen[sum] {
			seen[sum] = true
			r.pool.AddCert(cert)
			r.raw = append(r.raw, cert.Raw)
			r.text = append(r.text, encode(cert.Raw)...)
		}
	}
	if !found {
		return errNoCertificate
	}
	return nil
}

// encode returns a certificate as PEM.
func encode(der []byte) []byte {
	var b bytes.Buffer
	_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: der}) // a buffer takes all
	return b.Bytes()
}
