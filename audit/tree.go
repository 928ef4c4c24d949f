// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A tree is the Merkle tree of package tlog over the first lines of a log, of which only the right
// edge is kept: the roots of the complete subtrees, the largest first.
type tree struct {
	n    uint64 // lines
	edge []sum  // as many as n has bits that are set
}

// add adds a line, without its end.
func (t *tree) add(text []byte) {
	h := tlog.RecordHash(text)
	for i := t.n; i&1 != 0; i >>= 1 {
		last := len(t.edge) - 1
		h = tlog.NodeHash(tlog.Hash(t.edge[last]), h)
		t.edge = t.edge[:last]
	}
	t.edge = append(t.edge, sum(h))
	t.n++
}

// root returns what [tlog.TreeHash] would.
func (t *tree) root() tlog.Hash {
	if len(t.edge) == 0 {
		h, _ := tlog.TreeHash(0, nil) // of nothing, which cannot fail
		return h
	}
	last := len(t.edge) - 1
	h := tlog.Hash(t.edge[last])
	for i := last - 1; i >= 0; i-- {
		h = tlog.NodeHash(tlog.Hash(t.edge[i]), h)
	}
	return h
}

// fits reports whether the edge is one of n lines.
func (t *tree) fits() bool { return bits.OnesCount64(t.n) == len(t.edge) }

// A checkpoint says what a log was at one time. Its text is that of c2sp.org/tlog-checkpoint, with the
// time as a further line.
type checkpoint struct {
	origin string // the name of the key that signs it
	n      uint64
	root   tlog.Hash
	time   time.Time
}

const timeWord = "time "

func (c *checkpoint) text() string {
	return fmt.Sprintf("%s\n%d\n%s\n%s%s\n", c.origin, c.n, c.root, timeWord, c.time.UTC().Format(time.RFC3339Nano))
}

var errNote = errors.New("it is not a checkpoint of an audit log")

// parseCheckpoint reads the text of a note.
func parseCheckpoint(text string) (*checkpoint, error) {
	parts := strings.Split(text, "\n")
	if len(parts) < 5 || !strings.HasPrefix(parts[3], timeWord) {
		return nil, errNote
	}
	n, err := strconv.ParseUint(parts[1], 10, 64)
	if err != nil {
		return nil, errNote
	}
	root, err := tlog.ParseHash(parts[2])
	if err != nil {
		return nil, errNote
	}
	at, err := time.Parse(time.RFC3339Nano, strings.TrimPrefix(parts[3], timeWord))
	if err != nil {
		return nil, errNote
	}
	c := &checkpoint{parts[0], n, root, at}
	if c.text() != text {
		return nil, errNote
	}
	return c, nil
}

// openCheckpoint reads a checkpoint that one of the keys must have signed.
func openCheckpoint(signed string, keys note.Verifiers) (*checkpoint, error) {
	n, err := note.Open([]byte(signed), keys)
	if unknown := new(note.UnverifiedNoteError); errors.As(err, &unknown) {
		return nil, fmt.Errorf("it is signed by %s, which is not the key of this log", signers(unknown.Note))
	}
	if err != nil {
		return nil, fmt.Errorf("its signature does not hold: %w", err)
	}
	return parseCheckpoint(n.Text)
}

// signers names the keys by which a note says it is signed.
func signers(n *note.Note) string {
	var names []string
	for _, s := range n.UnverifiedSigs {
		names = append(names, fmt.Sprintf("%s+%08x", text.Word(s.Name), s.Hash))
	}
	return strings.Join(names, ", ")
}

// verifiers makes the keys that are given as text.
func verifiers(keys []string) (note.Verifiers, error) {
	var list []note.Verifier
	for _, key := range keys {
		v, err := note.NewVerifier(strings.TrimSpace(key))
		if err != nil {
			return nil, fmt.Errorf("audit: %s is not the verifier key of an audit log; that of yours is what sallyport audit key prints", text.Word(key))
		}
		list = append(list, v)
	}
	return note.VerifierList(list...), nil
}

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

// pubExt is what the name of a verifier key has more than that of the key.
const pubExt = ".pub"

// loadKey reads the key of a file, and makes it where there is none.
func loadKey(file string) (note.Signer, error) {
	const usual = 4 << 10
	key, _, err := safefile.Read(file, usual)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = makeKey(file)
	}
	if err != nil {
		return nil, &KeyError{file, err}
	}
	signer, err := note.NewSigner(strings.TrimSpace(string(key)))
	if err != nil {
		return nil, &KeyError{file, errors.New("it holds no key of an audit log")}
	}
	return signer, nil
}

// makeKey makes a key, and the verifier key beside it. One whose verifier key is there was removed: a
// new key would be as good as none for those who know the old one.
func makeKey(file string) ([]byte, error) {
	if _, err := os.Lstat(file + pubExt); err == nil {
		return nil, fmt.Errorf("it is missing, and %s is there; put the key back, or move the log and %s away to begin a new one",
			text.Word(file+pubExt), text.Word(file+pubExt))
	}
	host, err := os.Hostname()
	if err != nil || strings.ContainsAny(host, "+ \t\n") || host == "" {
		host = "localhost"
	}
	key, public, err := note.GenerateKey(rand.Reader, "sallyport-audit/"+host)
	if err != nil {
		return nil, err
	}
	if err := safefile.Replace(file, []byte(key+"\n")); err != nil {
		return nil, err
	}
	return []byte(key), safefile.Replace(file+pubExt, []byte(public+"\n"))
}

// PublicKey returns the verifier key of the log in a directory, for [VerifyOptions.Keys] and for people who keep
// it elsewhere. Empty values mean those of [Options]; the key is made if it is missing. The error is a [*KeyError].
func PublicKey(dir, keyFile string) (string, error) {
	if keyFile == "" {
		if dir == "" {
			var err error
			if dir, err = DefaultDir(); err != nil {
				return "", fmt.Errorf("audit: %w", err)
			}
		}
		keyFile = filepath.Join(dir, keyName)
	}
	if _, err := loadKey(keyFile); err != nil {
		return "", err
	}
	const usual = 4 << 10
	public, _, err := safefile.Read(keyFile+pubExt, usual)
	if err != nil {
		return "", &KeyError{keyFile + pubExt, err}
	}
	return strings.TrimSpace(string(public)), nil
}
