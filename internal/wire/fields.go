// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/jsonrpc"
)

// fields are the members of an object that is being decoded. They keep the first error, so that
// a decoder can go on with zero values; it must look at err at its end. The message was checked
// by package jsonrpc: no member is there twice.
type fields struct {
	members map[string]json.RawMessage
	err     error
}

// object returns the members of params, which must be an object.
func object(params json.RawMessage, name string) *fields {
	f := new(fields)
	switch {
	case len(params) == 0:
		f.fail(fmt.Errorf("invalid type: null, expected struct %s", name))
	case params[0] != '{':
		f.fail(expected(params, "struct "+name))
	default:
		f.fail(json.Unmarshal(params, &f.members))
	}
	return f
}

func (f *fields) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

func expected(value []byte, what string) error {
	return fmt.Errorf("invalid type: %s, expected %s", jsonrpc.TypeName(value), what)
}

// need returns a member that must be there; nil when it is not.
func (f *fields) need(name string) []byte {
	v, ok := f.members[name]
	if !ok {
		f.fail(fmt.Errorf("missing field `%s`", name))
		return nil
	}
	return v
}

// optional returns a member; nil when it is absent or null.
func (f *fields) optional(name string) []byte {
	if v, ok := f.members[name]; ok && string(v) != "null" {
		return v
	}
	return nil
}

// text returns a string that must be there.
func (f *fields) text(name string) string { return f.textOf(f.need(name)) }

func (f *fields) textOf(v []byte) string {
	var s string
	if v == nil {
		return ""
	}
	if v[0] != '"' {
		f.fail(expected(v, "a string"))
		return ""
	}
	f.fail(json.Unmarshal(v, &s))
	return s
}

// optionalText returns a string; nil when it is absent or null.
func (f *fields) optionalText(name string) *string {
	v := f.optional(name)
	if v == nil {
		return nil
	}
	s := f.textOf(v)
	return &s
}

// flag returns a boolean; false when it is absent, unless it is needed.
func (f *fields) flag(name string, needed bool) bool {
	v, ok := f.members[name]
	switch {
	case !ok && needed:
		f.need(name)
	case !ok:
	case string(v) == "true":
		return true
	case string(v) != "false":
		f.fail(expected(v, "a boolean"))
	}
	return false
}

// list returns an array of strings that must be there.
func (f *fields) list(name string) []string { return f.listOf(f.need(name)) }

func (f *fields) listOf(v []byte) []string {
	if v == nil {
		return nil
	}
	var raw []json.RawMessage
	if v[0] != '[' {
		f.fail(expected(v, "a sequence"))
		return nil
	}
	f.fail(json.Unmarshal(v, &raw))
	list := make([]string, len(raw))
	for i, s := range raw {
		list[i] = f.textOf(s)
	}
	return list
}

// texts returns an object of strings that must be there.
func (f *fields) texts(name string) map[string]string {
	v := f.need(name)
	if v == nil {
		return nil
	}
	var raw map[string]json.RawMessage
	if v[0] != '{' {
		f.fail(expected(v, "a map"))
		return nil
	}
	f.fail(json.Unmarshal(v, &raw))
	texts := make(map[string]string, len(raw))
	for k, s := range raw {
		texts[k] = f.textOf(s)
	}
	return texts
}

// natural returns a whole number from 0; nil when it is absent or null. Kind is its type in
// messages.
func (f *fields) natural(name, kind string) *uint64 {
	v := f.optional(name)
	if v == nil {
		return nil
	}
	if v[0] != '-' && (v[0] < '0' || v[0] > '9') {
		f.fail(expected(v, kind))
		return nil
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	if err != nil {
		f.fail(errors.New("invalid number"))
	}
	return &n
}

// word returns a string that must be there and be one of the words.
func (f *fields) word(name string, words ...string) string {
	s := f.text(name)
	if f.err != nil {
		return ""
	}
	for _, w := range words {
		if s == w {
			return s
		}
	}
	known := "`" + strings.Join(words, "`, `") + "`"
	if len(words) > 1 {
		known = "one of " + known
	}
	f.fail(fmt.Errorf("unknown variant `%s`, expected %s", s, known))
	return ""
}

// data returns bytes in base64 that must be there.
func (f *fields) data(name string) []byte {
	b, err := decodeData(f.text(name))
	f.fail(err)
	return b
}

// decodeData reads base64. Padding is needed.
func decodeData(s string) ([]byte, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	var corrupt base64.CorruptInputError
	switch {
	case err == nil && !strings.ContainsAny(s, "\r\n"):
		return b, nil
	case errors.As(err, &corrupt) && int(corrupt) < len(s) && !base64Symbol(s[corrupt]):
		return nil, fmt.Errorf("Invalid symbol %d, offset %d.", s[corrupt], int(corrupt)) //nolint:staticcheck // clients know this text
	case err == nil:
		at := strings.IndexAny(s, "\r\n")
		return nil, fmt.Errorf("Invalid symbol %d, offset %d.", s[at], at) //nolint:staticcheck // clients know this text
	}
	return nil, errors.New("Invalid padding") //nolint:staticcheck // clients know this text
}

// base64Symbol reports whether a byte may stand in base64, padding included.
func base64Symbol(c byte) bool {
	return bytes.IndexByte([]byte("+/="), c) >= 0 || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}
