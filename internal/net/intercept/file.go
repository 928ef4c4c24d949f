// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
)

// A CredentialFile has the value of a credential as a part. The command sees a copy of it, with the dummy.
type CredentialFile struct {
	Path string         // without symbolic links
	Text []byte         // what it has; [New] takes it over
	Find *regexp.Regexp // has one group, which is the value
	// Basic says that the group is the base64 of USER:VALUE.
	Basic bool
}

// Errors of files in which there is no value to take.
var (
	errNoMatch  = errors.New("find matches nothing in it; correct find")
	errMatches  = errors.New("find matches different values in it; write more of what stands before the value into find")
	errNotBasic = errors.New("what find matches in it is not the base64 of USER:PASSWORD; correct find, or remove form")
)

// Value returns the value, in memory of its own.
func (f *CredentialFile) Value() ([]byte, error) {
	group, err := f.group()
	if err != nil || !f.Basic {
		return bytes.Clone(group), err
	}
	_, value, err := cutBasic(group)
	return value, err
}

// group returns what stands in the file.
func (f *CredentialFile) group() ([]byte, error) {
	var found []byte
	for _, m := range f.Find.FindAllSubmatch(f.Text, -1) {
		if found != nil && !bytes.Equal(found, m[1]) {
			return nil, errMatches
		}
		found = m[1]
	}
	if len(found) == 0 {
		return nil, errNoMatch
	}
	return found, nil
}

// cutBasic returns the user with the colon, and the value.
func cutBasic(group []byte) (user, value []byte, err error) {
	text, err := base64.StdEncoding.Strict().DecodeString(string(group))
	i := bytes.IndexByte(text, ':')
	if err != nil || i < 0 {
		clear(text)
		return nil, nil, errNotBasic
	}
	return text[:i+1], text[i+1:], nil
}

// CheckCredentialFind compiles an expression of [CredentialFile.Find].
func CheckCredentialFind(text string) (*regexp.Regexp, error) {
	find, err := regexp.Compile("(?m:" + text + ")")
	if err != nil {
		return nil, fmt.Errorf("find: %w", err)
	}
	if n := find.NumSubexp(); n != 1 {
		return nil, fmt.Errorf("find has %d groups in parentheses; one, for the value, is needed", n)
	}
	return find, nil
}

// fillCopies makes what commands see in the place of files. All dummies are made.
func (s *Credentials) fillCopies(credentials []Credential) error {
	for i, c := range credentials {
		f := c.File
		if f == nil {
			continue
		}
		if s.copies == nil {
			s.copies = map[string][]byte{}
		}
		text := s.copies[f.Path]
		if text == nil {
			text = bytes.Clone(f.Text)
		}
		if f.Basic {
			group, err := f.group()
			if err != nil {
				return &CredentialError{c.Name, err.Error()}
			}
			user, value, err := cutBasic(group)
			if err != nil {
				return &CredentialError{c.Name, err.Error()}
			}
			dummy := base64.StdEncoding.EncodeToString(append(bytes.Clone(user), s.entries[i].dummy...))
			text = bytes.ReplaceAll(text, group, []byte(dummy))
			clear(value)
		}
		s.copies[f.Path] = text
	}
	// Last, as this leaves the ends of what is in base64: values of others, and of these in other forms.
	for _, text := range s.copies {
		s.inward.replace(text, true)
	}
	return nil
}

// Copies returns what commands see in the place of files with values, by their paths. The texts must not
// be changed.
func (s *Credentials) Copies() map[string][]byte {
	if s == nil {
		return nil
	}
	return s.copies
}
