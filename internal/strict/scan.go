// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Limits bound a text.
type Limits struct {
	Depth  int // how deep objects and arrays may be nested, the outermost one included
	Values int // objects and arrays, and what is in them, without names of members; 0 means any number
}

// The errors of [Scan], beside a *json.SyntaxError.
var (
	ErrUTF8     = errors.New("not UTF-8")
	ErrNoObject = errors.New("not an object")
	ErrDepth    = errors.New("nested too deeply")
	ErrValues   = errors.New("too many values")
)

// A RepeatedError reports a member that is there twice.
type RepeatedError struct {
	Name string
	At   int // the place of the second one, in bytes
}

// Error names the member.
func (e *RepeatedError) Error() string { return "repeated member " + strconv.Quote(e.Name) }

// A container is an object or array that the scan is in.
type container struct {
	object bool
	inName bool // the next string is the name of a member
	names  names
}

// names are the names of the members of an object so far.
type names struct {
	few  [][]byte
	many map[string]struct{} // nil until there are more than fewNames
}

// fewNames is how many names are compared one by one. More are looked up, so that an object of
// a hundred thousand members takes no time that grows with their square.
const fewNames = 16

// add adds a name and reports whether it is new.
func (n *names) add(name []byte) bool {
	if n.many == nil && len(n.few) < fewNames {
		if slices.ContainsFunc(n.few, func(x []byte) bool { return bytes.Equal(x, name) }) {
			return false
		}
		n.few = append(n.few, name)
		return true
	}
	if n.many == nil {
		n.many = make(map[string]struct{}, 4*fewNames)
		for _, x := range n.few {
			n.many[string(x)] = struct{}{}
		}
	}
	_, known := n.many[string(name)]
	n.many[string(name)] = struct{}{}
	return !known
}

// Scan checks a text, which is one JSON object, and calls member with each of its members: the name, and the
// value as it stands. The slices are parts of data.
func Scan(data []byte, limits Limits, member func(name, value []byte)) error {
	if !utf8.Valid(data) {
		return ErrUTF8
	}
	if !json.Valid(data) {
		return invalid(data)
	}
	s := scanner{data: data, limits: limits, member: member}
	for s.at < len(data) {
		if err := s.step(); err != nil {
			return err
		}
	}
	return nil
}

// invalid returns the error for text that is not JSON.
func invalid(data []byte) error {
	var v json.RawMessage
	err := json.Unmarshal(data, &v)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("%w at byte %d", err, syntax.Offset)
	}
	return errors.New("invalid JSON")
}

// A scanner walks over valid JSON.
type scanner struct {
	data   []byte
	at     int
	limits Limits
	member func(name, value []byte)

	stack  []container
	values int
	name   []byte // of the member of the outermost object that is being read
	value  int    // where its value begins
}

// step goes over one token.
func (s *scanner) step() error {
	switch c := s.data[s.at]; c {
	case ' ', '\t', '\r', '\n':
		s.at++
	case ':':
		s.at++
		if len(s.stack) == 1 {
			s.value = s.at
		}
	case ',', ']', '}':
		s.end(c)
	case '{', '[':
		return s.open(c == '{')
	case '"':
		return s.text()
	default:
		if len(s.stack) == 0 {
			return ErrNoObject
		}
		s.at += bytes.IndexAny(s.data[s.at:], ",]} \t\r\n") // valid JSON has one of them
		return s.count()
	}
	return nil
}

// end goes over the end of a value in a container.
func (s *scanner) end(c byte) {
	top := &s.stack[len(s.stack)-1]
	if len(s.stack) == 1 && s.name != nil {
		s.member(s.name, bytes.TrimSpace(s.data[s.value:s.at]))
		s.name = nil
	}
	s.at++
	if c == ',' {
		top.inName = top.object
		return
	}
	s.stack = s.stack[:len(s.stack)-1]
}

func (s *scanner) open(object bool) error {
	if len(s.stack) == 0 && !object {
		return ErrNoObject
	}
	if len(s.stack) == s.limits.Depth {
		return ErrDepth
	}
	s.at++
	if len(s.stack) < cap(s.stack) { // the names of an earlier container have their memory used again
		few := s.stack[:len(s.stack)+1][len(s.stack)].names.few[:0]
		s.stack = append(s.stack, container{object: object, inName: object, names: names{few: few}})
	} else {
		s.stack = append(s.stack, container{object: object, inName: object})
	}
	return s.count()
}

// textOf goes over a string, which is a value or the name of a member.
func (s *scanner) text() error {
	if len(s.stack) == 0 {
		return ErrNoObject
	}
	start := s.at
	escaped := false
	s.at++
	for quote := start; ; {
		if quote < s.at { // each byte is looked at once for either, however many are escaped
			quote = s.at + bytes.IndexByte(s.data[s.at:], '"')
		}
		n := bytes.IndexByte(s.data[s.at:quote], '\\')
		if n < 0 {
			s.at = quote + 1
			break
		}
		s.at += n + 2
		escaped = true
	}
	top := &s.stack[len(s.stack)-1]
	if !top.inName {
		return s.count()
	}
	top.inName = false
	name := s.data[start+1 : s.at-1]
	if escaped {
		var text string
		_ = json.Unmarshal(s.data[start:s.at], &text) // it is valid
		name = []byte(text)
	}
	if !top.names.add(name) {
		return &RepeatedError{string(name), start}
	}
	if len(s.stack) == 1 {
		s.name = name
	}
	return nil
}

func (s *scanner) count() error {
	if s.values++; s.limits.Values > 0 && s.values > s.limits.Values {
		return ErrValues
	}
	return nil
}
