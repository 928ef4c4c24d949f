// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The names of the wire forms in errors.
const (
	formLegacy  = "sandbox policy"
	formProfile = "permission profile"
)

// maxJSONDepth bounds nesting; the forms need six levels.
const maxJSONDepth = 64

// An object is a JSON object being read. Members are found by their exact
// names: encoding/json's own matching ignores case, and a member that two
// readers find differently is a way around a policy.
type object struct {
	form string
	at   string // member path of the object, "" for the outermost
	m    map[string]json.RawMessage
}

func (o object) member(name string) string {
	if o.at == "" {
		return name
	}
	return o.at + "." + name
}

func (o object) bad(name, reason string) error {
	return &WireError{Form: o.form, Member: o.member(name), Reason: reason}
}

// parseObject reads the outermost object after checking what Go's decoder
// lets pass: repeated members, bytes that are not UTF-8, text after the end.
func parseObject(form string, data []byte) (object, error) {
	fail := func(reason string) (object, error) {
		return object{}, &WireError{Form: form, Reason: reason}
	}
	if !utf8.Valid(data) {
		return fail("it is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := checkValue(dec, 0); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fail("it ends early")
		}
		return fail(err.Error())
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fail("something follows the object")
	}
	o := object{form: form}
	if err := json.Unmarshal(data, &o.m); err != nil || o.m == nil {
		return fail("it is not an object")
	}
	return o, nil
}

// checkValue walks one JSON value and refuses repeated members and too deep
// nesting.
func checkValue(dec *json.Decoder, level int) error {
	if level > maxJSONDepth {
		return errors.New("it is nested too deeply")
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
				return errors.New("the member " + strconv.Quote(name) + " stands twice")
			}
			seen[name] = true
		}
		if err := checkValue(dec, level+1); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// raw returns a member; null counts as absent.
func (o object) raw(name string) (json.RawMessage, bool) {
	v, ok := o.m[name]
	return v, ok && string(v) != "null"
}

func (o object) need(name string) (json.RawMessage, error) {
	v, ok := o.raw(name)
	if !ok {
		return nil, o.bad(name, "it is missing")
	}
	return v, nil
}

// object returns a member that must be an object.
func (o object) object(name string) (object, error) {
	v, err := o.need(name)
	if err != nil {
		return object{}, err
	}
	return o.sub(name, v)
}

func (o object) sub(name string, v json.RawMessage) (object, error) {
	s := object{form: o.form, at: o.member(name)}
	if err := json.Unmarshal(v, &s.m); err != nil || s.m == nil {
		return object{}, o.bad(name, "it must be an object")
	}
	return s, nil
}

// list returns a member that must be an array; absent is empty.
func (o object) list(name string) ([]json.RawMessage, error) {
	v, ok := o.raw(name)
	if !ok {
		return nil, nil
	}
	var l []json.RawMessage
	if err := json.Unmarshal(v, &l); err != nil {
		return nil, o.bad(name, "it must be an array")
	}
	return l, nil
}

// text returns a member that must be a string.
func (o object) text(name string) (string, error) {
	v, err := o.need(name)
	if err != nil {
		return "", err
	}
	return o.string(name, v)
}

func (o object) string(name string, v json.RawMessage) (string, error) {
	var s *string
	if err := json.Unmarshal(v, &s); err != nil || s == nil {
		return "", o.bad(name, "it must be a string")
	}
	// An escape for half a character is read as U+FFFD, which would be another
	// name than the writer meant.
	if strings.ContainsRune(*s, utf8.RuneError) {
		return "", o.bad(name, "it holds a character that cannot be told apart from a damaged one")
	}
	if strings.ContainsRune(*s, 0) {
		return "", o.bad(name, "it must not contain a zero byte")
	}
	return *s, nil
}

// flag returns a member that must be a boolean; absent is the default.
func (o object) flag(name string, absent bool) (bool, error) {
	v, ok := o.raw(name)
	if !ok {
		return absent, nil
	}
	switch string(v) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, o.bad(name, "it must be true or false")
}

// network returns a member that must be "restricted" or "enabled".
func (o object) network(name string) (Network, error) {
	word, err := o.text(name)
	if err != nil {
		return NetworkNone, err
	}
	switch word {
	case "restricted":
		return NetworkNone, nil
	case "enabled":
		return NetworkHost, nil
	}
	return NetworkNone, o.bad(name, "it must be restricted or enabled, not "+strconv.Quote(word))
}

// path returns a string that must be an absolute path or a file URI, clean.
func (o object) path(name string, v json.RawMessage) (string, error) {
	s, err := o.string(name, v)
	if err != nil {
		return "", err
	}
	if path.IsAbs(s) {
		return path.Clean(s), nil
	}
	if len(s) < 5 || !strings.EqualFold(s[:5], "file:") {
		return "", o.bad(name, "it must be an absolute path or a file URI, not "+strconv.Quote(s))
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || !path.IsAbs(u.Path) || strings.ContainsRune(u.Path, 0):
		return "", o.bad(name, strconv.Quote(s)+" is not a file URI with an absolute path")
	case u.Host != "" && u.Host != "localhost" || u.User != nil:
		return "", o.bad(name, strconv.Quote(s)+" names another host")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(s, "#"):
		return "", o.bad(name, strconv.Quote(s)+" must not have a query or a fragment")
	}
	return path.Clean(u.Path), nil
}

// fileURI returns the URI of an absolute path.
func fileURI(name string) string {
	return (&url.URL{Scheme: "file", Path: name}).String()
}

// A jsonText is a string to be written as JSON. Writing is done by hand because
// encoding/json rewrites the text of values that have to be passed on as they
// arrived.
type jsonText []byte

func (b jsonText) str(s string) jsonText {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	// A string always encodes.
	_ = enc.Encode(s)
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

func (b jsonText) raw(s string) jsonText { return append(b, s...) }
