// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A KeyError says that the key which signs checkpoints cannot be used.
type KeyError struct {
	File string
	Err  error
}

// Error returns one sentence.
func (e *KeyError) Error() string {
	return fmt.Sprintf("audit: cannot use the key %s: %v", text.Word(e.File), e.Err)
}

// Unwrap returns the cause.
func (e *KeyError) Unwrap() error { return e.Err }

// Keys are those of signed notes (c2sp.org/signed-note). New ones are ECDSA keys of the curve P-256: the
// first Ed25519 signature of a process takes 2 ms, which is much beside a run. Ed25519 keys are taken as
// well.
const (
	algECDSA   = 2
	privateKey = "PRIVATE+KEY+" // and then name, hash and key, as those of package note
	pubExt     = ".pub"         // what the name of a verifier key has more than that of the key
	maxKey     = 4 << 10
)

// spki is what the DER form of a public key of P-256 has before its point.
var spki, _ = hex.DecodeString("3059301306072a8648ce3d020106082a8648ce3d030107034200")

var errKey = errors.New("it holds no key of an audit log")

// An ecdsaKey signs notes, and verifies them.
type ecdsaKey struct {
	name    string
	hash    uint32
	private *ecdsa.PrivateKey // nil where it only verifies
	public  *ecdsa.PublicKey
}

// Name is part of a signature.
func (k *ecdsaKey) Name() string { return k.name }

// KeyHash is part of a signature.
func (k *ecdsaKey) KeyHash() uint32 { return k.hash }

// Sign implements [note.Signer].
func (k *ecdsaKey) Sign(msg []byte) ([]byte, error) {
	hash := sha256.Sum256(msg)
	return ecdsa.SignASN1(rand.Reader, k.private, hash[:])
}

// Verify implements [note.Verifier].
func (k *ecdsaKey) Verify(msg, sig []byte) bool {
	hash := sha256.Sum256(msg)
	return ecdsa.VerifyASN1(k.public, hash[:], sig)
}

// splitKey reads the text of a key: name, hash, algorithm and the key itself.
func splitKey(text string) (k *ecdsaKey, alg byte, key []byte, err error) {
	name, rest, _ := strings.Cut(text, "+")
	hash, coded, _ := strings.Cut(rest, "+")
	h, err := strconv.ParseUint(hash, 16, 32)
	if err != nil || name == "" {
		return nil, 0, nil, errKey
	}
	key, err = base64.StdEncoding.DecodeString(coded)
	if err != nil || len(key) == 0 {
		return nil, 0, nil, errKey
	}
	return &ecdsaKey{name: name, hash: uint32(h)}, key[0], key[1:], nil
}

func newSigner(text string) (note.Signer, error) {
	public, ok := strings.CutPrefix(text, privateKey)
	k, alg, key, err := splitKey(public)
	switch {
	case !ok || err != nil:
		return nil, errKey
	case alg != algECDSA:
		return note.NewSigner(text)
	}
	k.private, err = ecdsa.ParseRawPrivateKey(elliptic.P256(), key)
	return k, err
}

func newVerifier(text string) (note.Verifier, error) {
	k, alg, key, err := splitKey(text)
	switch {
	case err != nil:
		return nil, err
	case alg != algECDSA:
		return note.NewVerifier(text)
	}
	point, ok := bytes.CutPrefix(key, spki)
	if !ok || hashKey(key) != k.hash {
		return nil, errKey
	}
	k.public, err = ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	return k, err
}

// hashKey is the hash of a public key in its DER form.
func hashKey(der []byte) uint32 {
	hash := sha256.Sum256(der)
	return binary.BigEndian.Uint32(hash[:])
}

// texts returns the texts of a key that signs, and of its verifier key.
func (k *ecdsaKey) texts() (private, public string, err error) {
	raw, err := k.private.Bytes()
	if err != nil {
		return "", "", err
	}
	point, err := k.private.PublicKey.Bytes()
	if err != nil {
		return "", "", err
	}
	der := append(bytes.Clone(spki), point...)
	form := func(key []byte) string {
		return fmt.Sprintf("%s+%08x+%s", k.name, hashKey(der), base64.StdEncoding.EncodeToString(
			append([]byte{algECDSA}, key...)))
	}
	return privateKey + form(raw), form(der), nil
}

// verifiers makes the keys that are given as text.
func verifiers(keys []string) (note.Verifiers, error) {
	var list []note.Verifier
	for _, key := range keys {
		v, err := newVerifier(strings.TrimSpace(key))
		if err != nil {
			return nil, fmt.Errorf("audit: %s is not a verifier key; that of your log is what sallyport audit key prints",
				text.Word(key))
		}
		list = append(list, v)
	}
	return note.VerifierList(list...), nil
}

// loadKey reads the key of a file, and makes it where there is none, with the verifier key beside it.
func loadKey(file string) (note.Signer, error) {
	key, _, err := safefile.Read(file, maxKey)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = makeKey(file)
	}
	if err != nil {
		return nil, keyFailed(file, err)
	}
	signer, err := newSigner(strings.TrimSpace(string(key)))
	if err != nil {
		return nil, &KeyError{file, errKey}
	}
	if k, ok := signer.(*ecdsaKey); ok {
		if err := k.publish(file); err != nil {
			return nil, keyFailed(file+pubExt, err)
		}
	}
	return signer, nil
}

// keyFailed returns why a key cannot be used, or made: then it is a [*WriteError].
func keyFailed(file string, err error) error {
	if unwritten := new(WriteError); errors.As(err, &unwritten) {
		return unwritten
	}
	return &KeyError{file, err}
}

// writeKey writes the text of a key.
func writeKey(file, text string) error {
	if err := safefile.Replace(file, []byte(text+"\n")); err != nil {
		return &WriteError{file, err}
	}
	return nil
}

// makeKey makes a key. One whose verifier key is there was removed: a
// new key would be as good as none for those who know the old one.
func makeKey(file string) ([]byte, error) {
	if _, err := os.Lstat(file + pubExt); err == nil {
		return nil, fmt.Errorf("it is missing, and %s is there; put the key back, or move both and the log away",
			text.Word(file+pubExt))
	}
	host, err := os.Hostname()
	if err != nil || strings.ContainsAny(host, "+ \t\n") || host == "" {
		host = "localhost"
	}
	key, err := generateKey("sallyport-audit/" + host)
	if err != nil {
		return nil, err
	}
	private, _, err := key.texts()
	if err != nil {
		return nil, err
	}
	return []byte(private), writeKey(file, private)
}

// generateKey makes a key of a name, which has no plus sign and no blank.
func generateKey(name string) (*ecdsaKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return &ecdsaKey{name: name, private: key}, err
}

// publish writes the verifier key beside a key, unless it is there.
func (k *ecdsaKey) publish(file string) error {
	if _, err := os.Lstat(file + pubExt); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, public, err := k.texts()
	if err != nil {
		return err
	}
	return writeKey(file+pubExt, public)
}

// PublicKey returns the verifier key of a log, for [VerifyOptions.Keys] and for people who keep it
// elsewhere. The log and its key are made if they are missing. Empty values mean those of [Options]. It
// waits for those who write. The error is that of [Open] or Log.Sync.
func PublicKey(dir, keyFile string) (string, error) {
	l, err := Open(Options{Dir: dir, KeyFile: keyFile})
	if err != nil {
		return "", err
	}
	defer l.store.dir.Close()
	c, err := l.store.lock() // so that two do not make a key
	if err != nil {
		return "", err
	}
	defer c.unlock()
	if _, err := loadKey(l.store.keyFile); err != nil {
		return "", err
	}
	public, _, err := safefile.Read(l.store.keyFile+pubExt, maxKey)
	if err != nil {
		return "", &KeyError{l.store.keyFile + pubExt, err}
	}
	return strings.TrimSpace(string(public)), nil
}
