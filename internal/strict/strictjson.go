// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package strict checks what others hand in that decides something, or that can break the caller.
//
// JSON that decides, such as claims of tokens, answers of approvers and policies, is read by [Decode] and its
// like. Package encoding/json ignores the case of names and takes the last of two equal members; a second
// reader of the same text may see something else, and that is a way around what was decided.
//
// What callers of the library can do wrong at run time becomes an error: a context that is nil, and a
// function or a value of theirs that panics, or ends its goroutine, when it is called. Who calls a library
// from a server recovers panics, a test ends its goroutine by t.FailNow, and what is then left half done
// hangs.
package strict

import (
	"bytes"
	"encoding/json"
	"errors"
)

// bounds are those of [Object]: no form that is read here needs ten levels.
var bounds = Limits{Depth: 65}

// Object returns the members of the one JSON object in a text. The error, a clause, says what is wrong:
// bytes that are not UTF-8, a member that is there twice (at any depth), nesting deeper than 64,
// textOf after the end, or no object.
func Object(data []byte) (map[string]json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	err := Scan(data, bounds, func(name, value []byte) { members[string(name)] = bytes.Clone(value) })
	if err == nil {
		return members, nil
	}
	if errors.As(err, new(*json.SyntaxError)) &&
		json.NewDecoder(bytes.NewReader(data)).Decode(new(json.RawMessage)) == nil {
		err = errors.New("text after the object")
	}
	return nil, err
}

// Unmarshal is [Decode] for the object in a text that [Object] accepts.
func Unmarshal(data []byte, into any) error {
	if _, err := Object(data); err != nil {
		return err
	}
	return Decode(bytes.TrimSpace(data), into)
}
