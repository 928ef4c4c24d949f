// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A factKind says what a fact is about.
type factKind byte

const (
	isEmpty     factKind = 'e' // a directory that was no repository
	isTree      factKind = 't' // a work tree that was looked at; the value is its git directory
	isCommon    factKind = 'c' // the git directory that work trees share
	isFile      factKind = 'f' // a file that git obeys; the value is its stamp
	isAdmin     factKind = 'a' // the git directory of a linked work tree
	isSubmodule factKind = 'l' // the .git of a populated submodule
	isValue     factKind = 'v' // a value that git does not write
	isName      factKind = 'n' // a name that git does not make
	isOdd       factKind = 'o' // what is neither a file nor a directory
	isShut      factKind = 's' // a path that commands could not change
)

// A fact is something that was true of a git directory before a command could change it.
type fact struct {
	kind  factKind
	path  string
	value string
}

// maxValue is how long a value may be that is kept as it is.
const maxValue = 128

// newFact returns a fact. A long value is kept as its digest.
func newFact(kind factKind, path, value string) fact {
	if len(value) > maxValue {
		sum := sha256.Sum256([]byte(value))
		value = "sha256 " + hex.EncodeToString(sum[:])
	}
	return fact{kind, path, value}
}

// Lines of a list of facts: each has a kind, a path and a value in quotes. The last line says
// that the list is whole.
const (
	factsMagic = "sallyport git 1\n"
	factsEnd   = "end\n"
)

// errFacts is a list that was not written by encodeFacts.
var errFacts = errors.New("it is not a whole list of facts")

// encodeFacts returns the text of a list of facts, in a stable order.
func encodeFacts(facts map[fact]bool) []byte {
	b := []byte(factsMagic)
	sorted := slices.SortedFunc(maps.Keys(facts), func(a, b fact) int {
		return strings.Compare(string(a.kind)+a.path+"\x00"+a.value, string(b.kind)+b.path+"\x00"+b.value)
	})
	for _, f := range sorted {
		b = append(b, byte(f.kind), ' ')
		b = strconv.AppendQuote(b, f.path)
		b = append(b, ' ')
		b = strconv.AppendQuote(b, f.value)
		b = append(b, '\n')
	}
	return append(b, factsEnd...)
}

// decodeFacts reads what encodeFacts has written, and nothing else.
func decodeFacts(text []byte) (map[fact]bool, error) {
	rest, ok := strings.CutPrefix(string(text), factsMagic)
	rest, whole := strings.CutSuffix(rest, factsEnd)
	if !ok || !whole {
		return nil, errFacts
	}
	facts := map[fact]bool{}
	for line := range strings.Lines(rest) {
		line = strings.TrimSuffix(line, "\n")
		if len(line) < 2 || line[1] != ' ' {
			return nil, errFacts
		}
		quoted, err := strconv.QuotedPrefix(line[2:])
		if err != nil {
			return nil, errFacts
		}
		path, err1 := strconv.Unquote(quoted)
		value, err2 := strconv.Unquote(strings.TrimPrefix(line[2+len(quoted):], " "))
		if err1 != nil || err2 != nil {
			return nil, errFacts
		}
		facts[fact{factKind(line[0]), path, value}] = true
	}
	return facts, nil
}
