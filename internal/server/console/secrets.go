// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/safefile"
)

const (
	secretTime  = 12 * time.Hour
	maxSecrets  = 256     // pairs that are kept, the newest ones
	maxFile     = 1 << 20 // bytes
	secretsFile = "secrets.json"
)

// hash returns the hash of a secret of at least 128 random bits: it needs no salt.
func hash(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

// A purpose is what secrets open.
type purpose struct {
	Address  string `json:"address"`
	ViewOnly bool   `json:"viewOnly"`
	Scope    string `json:"scope"`
}

// A pair are the hashes of two secrets that are needed together.
type pair struct {
	For     purpose   `json:"for"`
	Cookie  []byte    `json:"cookie"`
	Page    []byte    `json:"page"`
	Expires time.Time `json:"expires"`
}

// secrets are the pairs that open one console.
type secrets struct {
	dir     string // empty for none
	purpose purpose
	now     func() time.Time

	mu    sync.Mutex
	pairs []pair // of purpose
}

// loadSecrets returns the pairs for a purpose that a console of before has left in a directory.
func loadSecrets(dir string, p purpose, now func() time.Time) (*secrets, error) {
	s := &secrets{dir: dir, purpose: p, now: now}
	all, err := s.read()
	for _, p := range all {
		if p.For == s.purpose {
			s.pairs = append(s.pairs, p)
		}
	}
	return s, err
}

// read returns the pairs of the file that have not expired. A file that cannot be read as such has none.
func (s *secrets) read() ([]pair, error) {
	if s.dir == "" {
		return nil, nil
	}
	text, more, err := safefile.Read(filepath.Join(s.dir, secretsFile), maxFile)
	if errors.Is(err, fs.ErrNotExist) || more {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []pair
	if json.Unmarshal(text, &all) != nil {
		all = nil // who was let in enters again
	}
	now := s.now()
	return slices.DeleteFunc(all, func(p pair) bool { return !p.Expires.After(now) }), nil
}

// add makes a pair.
func (s *secrets) add() (cookie, page string, expires time.Time, err error) {
	cookie, page = rand.Text(), rand.Text()
	a, b := hash(cookie), hash(page)
	made := pair{s.purpose, a[:], b[:], s.now().Add(secretTime)}
	if err := s.write(made); err != nil {
		return "", "", time.Time{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pairs = append(s.pairs, made)
	return cookie, page, made.Expires, nil
}

// write adds a pair to the file.
func (s *secrets) write(made pair) error {
	if s.dir == "" {
		return nil
	}
	lock, err := dirs.Lock("console")
	if err != nil {
		return err
	}
	defer lock.Close()
	all, err := s.read()
	if err != nil {
		return err
	}
	all = append(all, made)
	text, err := json.Marshal(all[max(0, len(all)-maxSecrets):])
	if err != nil {
		return err
	}
	return safefile.Replace(filepath.Join(s.dir, secretsFile), text)
}

// check returns when a pair expires that one of the cookies and the secret of a page are, and false for none.
func (s *secrets) check(cookies []string, page string) (time.Time, bool) {
	b := hash(page)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, p := range s.pairs {
		if subtle.ConstantTimeCompare(p.Page, b[:]) != 1 || !p.Expires.After(now) {
			continue
		}
		for _, c := range cookies {
			if a := hash(c); subtle.ConstantTimeCompare(p.Cookie, a[:]) == 1 {
				return p.Expires, true
			}
		}
	}
	return time.Time{}, false
}
