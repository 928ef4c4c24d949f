// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
)

// TestKeys: keys are those of c2sp.org/signed-note: the public one is in its DER form, and Ed25519 keys of
// package note sign a log as well.
func TestKeys(t *testing.T) {
	key, err := generateKey("sallyport-audit/host")
	if err != nil {
		t.Fatal(err)
	}
	private, public, err := key.texts()
	if err != nil {
		t.Fatal(err)
	}
	coded := strings.SplitN(public, "+", 3)[2]
	der, err := base64.StdEncoding.DecodeString(coded)
	if err != nil || der[0] != algECDSA {
		t.Fatalf("%s: %v", public, err)
	}
	parsed, err := x509.ParsePKIXPublicKey(der[1:])
	if p, ok := parsed.(*ecdsa.PublicKey); err != nil || !ok || !p.Equal(&key.private.PublicKey) {
		t.Errorf("%v, %v", parsed, err)
	}
	edPrivate, edPublic, err := note.GenerateKey(rand.Reader, "ed")
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range [][2]string{{private, public}, {edPrivate, edPublic}} {
		dir := t.TempDir()
		file := filepath.Join(dir, "own")
		if err := os.WriteFile(file, []byte(pair[0]+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		l := openTest(t, Options{Dir: dir + "/audit", KeyFile: file})
		l.Emit(ended(1))
		syncTest(t, l)
		if _, err := Verify(t.Context(), dir+"/audit", VerifyOptions{Keys: []string{pair[1]}}); err != nil {
			t.Error(err)
		}
		if _, err := Verify(t.Context(), dir+"/audit", VerifyOptions{}); !errors.Is(err, ErrNoKey) {
			t.Errorf("the key is elsewhere: %v", err)
		}
	}
}

// TestBadKeys: what is no key is an error that names the file, and never another key.
func TestBadKeys(t *testing.T) {
	key, _ := generateKey("name")
	private, public, _ := key.texts()
	other, _ := generateKey("name")
	_, otherPublic, _ := other.texts()
	for name, text := range map[string]string{
		"empty": "", "a verifier key": public, "no hash": "PRIVATE+KEY+name", "no key": "PRIVATE+KEY+name+00000000+",
		"short": private[:len(private)-8], "another algorithm": "PRIVATE+KEY+name+00000000+Awo=",
	} {
		file := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := loadKey(file); !errors.As(err, new(*KeyError)) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", name, err)
		}
	}
	parts := strings.SplitN(public, "+", 3)
	mixed := parts[0] + "+" + parts[1] + "+" + strings.SplitN(otherPublic, "+", 3)[2]
	for name, text := range map[string]string{"private": private, "another hash": mixed, "empty": "",
		"short": public[:len(public)-8]} {
		if _, err := newVerifier(text); err == nil {
			t.Errorf("%s was taken as a verifier key", name)
		}
	}
	if v, err := newVerifier(public); err != nil || v.Verify([]byte("text"), bytes.Repeat([]byte("x"), 70)) {
		t.Errorf("a signature of nothing holds: %v", err)
	}
}
