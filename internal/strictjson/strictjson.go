// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package strictjson reads JSON that decides something: claims of tokens, answers of approvers,
// policies. Package encoding/json ignores the case of names and takes the last of two equal
// members; a second reader of the same text may see something else, and that is a way around
// what was decided.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"
)

// maxDepth limits nesting: no form that is read here needs ten levels.
const maxDepth = 64

// Object returns the members of the one JSON object in a text. The error, a clause, says what is wrong:
// bytes that are not UTF-8, a member that is there twice (at any depth), nesting deeper than 64,
// text after the end, or no object.
func Object(data []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	switch err := check(dec, 0); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("unexpected end")
	case err != nil:
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the object")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil || members == nil {
		return nil, errors.New("not an object")
	}
	return members, nil
}

// check reads one value.
func check(dec *json.Decoder, depth int) error {
	if depth > maxDepth {
		return errors.New("nested too deeply")
	}
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for dec.More() {
		if delim == '{' {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			name, _ := key.(string)
			if seen[name] {
				return errors.New("repeated member " + strconv.Quote(name))
			}
			seen[name] = true
		}
		if err := check(dec, depth+1); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// Unmarshal is [Decode] for the object in a text that [Object] accepts.
func Unmarshal(data []byte, into any) error {
	if _, err := Object(data); err != nil {
		return err
	}
	return Decode(bytes.TrimSpace(data), into)
}
