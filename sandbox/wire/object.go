// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// input is a text that is being parsed. It keeps the first error, so that the parsers
// can go on with zero values; [ParseProfile] drops what they return then.
type input struct{ err error }

// object is a JSON object. Members are found by their exact names: encoding/json ignores
// case, and a member that two readers find differently is a way around a policy.
type object struct {
	in *input
	at string // the member path of the object; empty for the outermost
	m  map[string]json.RawMessage
}

func (o object) fail(name, reason string) {
	if o.in.err == nil {
		o.in.err = &ParseError{Member: o.member(name), Reason: reason}
	}
}

func (o object) member(name string) string {
	if o.at == "" {
		return name
	}
	return o.at + "." + name
}

// outermost returns the object in data, as package strictjson reads it.
func (in *input) outermost(data []byte) object {
	o := object{in: in}
	var err error
	if o.m, err = strict.Object(data); err != nil {
		o.fail("", err.Error())
	}
	return o
}

// raw returns a member; null counts as absent.
func (o object) raw(name string) (json.RawMessage, bool) {
	v, ok := o.m[name]
	return v, ok && string(v) != "null"
}

func (o object) has(name string) bool {
	_, ok := o.raw(name)
	return ok
}

// need returns a member that must not be absent.
func (o object) need(name string) json.RawMessage {
	v, ok := o.raw(name)
	if !ok {
		o.fail(name, "missing")
	}
	return v
}

// object returns a member that must be an object.
func (o object) object(name string) object { return o.sub(name, o.need(name)) }

func (o object) sub(name string, v json.RawMessage) object {
	s := object{in: o.in, at: o.member(name)}
	if err := json.Unmarshal(v, &s.m); err != nil || s.m == nil {
		o.fail(name, "must be an object")
	}
	return s
}

// list returns a member that must be an array; absent is empty.
func (o object) list(name string) []json.RawMessage {
	var l []json.RawMessage
	if v, ok := o.raw(name); ok && json.Unmarshal(v, &l) != nil {
		o.fail(name, "must be an array")
	}
	return l
}

// text returns a member that must be a string.
func (o object) text(name string) string { return o.string(name, o.need(name)) }

func (o object) string(name string, v json.RawMessage) string {
	var s *string
	if err := json.Unmarshal(v, &s); err != nil || s == nil {
		o.fail(name, "must be a string")
		return ""
	}
	// An escaped half of a surrogate pair is decoded as U+FFFD, another name than the
	// writer meant.
	if strings.ContainsRune(*s, utf8.RuneError) {
		o.fail(name, "contains the replacement character U+FFFD, which also stands for a damaged one")
	}
	if strings.ContainsRune(*s, 0) {
		o.fail(name, "contains a NUL byte")
	}
	return *s
}

// network returns a member that must be "restricted" or "enabled".
func (o object) network(name string) sandbox.Network {
	switch word := o.text(name); word {
	case "restricted":
	case "enabled":
		return sandbox.NetworkHost
	default:
		o.fail(name, "must be restricted or enabled, not "+strconv.Quote(word))
	}
	return sandbox.NetworkNone
}

// networkWord returns the word for a network. A proxied network is a restricted one for
// the kernel.
func networkWord(n sandbox.Network) string {
	if n == sandbox.NetworkHost {
		return "enabled"
	}
	return "restricted"
}

// path returns a string that must be an absolute path or a file URI, as a clean path.
func (o object) path(name string, v json.RawMessage) string {
	s := o.string(name, v)
	if path.IsAbs(s) {
		return path.Clean(s)
	}
	if len(s) < 5 || !strings.EqualFold(s[:5], "file:") {
		o.fail(name, "must be an absolute path or a file URI, not "+strconv.Quote(s))
		return ""
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || !path.IsAbs(u.Path) || strings.ContainsRune(u.Path, 0):
		o.fail(name, strconv.Quote(s)+" is not a file URI with an absolute path")
		return ""
	case u.Host != "" && u.Host != "localhost" || u.User != nil:
		o.fail(name, strconv.Quote(s)+" names another host")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(s, "#"):
		o.fail(name, strconv.Quote(s)+" has a query or a fragment")
	}
	return path.Clean(u.Path)
}

// policy returns a policy with these entries.
func (o object) policy(mode sandbox.Mode, net sandbox.Network, entries ...sandbox.Entry) sandbox.Policy {
	p, err := sandbox.New(mode, net, entries...)
	if err != nil {
		o.fail("", reasonOf(err))
	}
	return p
}

// reasonOf returns the reason of an error of package sandbox without the entry.
func reasonOf(err error) string {
	var e *sandbox.PolicyError
	if errors.As(err, &e) {
		return e.Reason
	}
	return err.Error()
}
