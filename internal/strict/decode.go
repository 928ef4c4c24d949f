// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Decode stores valid JSON, such as a part of what [Object] or package jsonrpc accepted, in the
// variable that into points to. Members are found by their exact names, as the tag "json" has
// them; others are ignored. The error is one line in the words that clients of the exec-server
// protocol know, of the first field in the order of the structure that is not as its tag "rule"
// says, which has these words with commas between:
//
//	need       it is there, and it is not null; others may be absent or null and stay as they are,
//	           but null is for a json.Unmarshaler, such as a json.RawMessage, to read
//	nonnull    it may be absent, and it is not null
//	true       it is true where it is absent or null
//	filled     a text is not empty, a number not 0; filled=NAME has another name for the error
//	one=a|b    a text is one of these
//	as=usize   the name of the type in errors
//
// A field _ with such a tag is about the structure: name=NAME is its name in errors, and strict
// refuses members that it does not know. A structure with a method Validate is asked after its
// fields.
func Decode(data []byte, into any) error {
	if len(data) == 0 {
		data = []byte("null")
	}
	return store(data, reflect.ValueOf(into).Elem(), new(field))
}

// A field is a member of an object, and its rules.
type field struct {
	name, label, kind          string // of the member, of errors about filled, of the type
	index                      []int
	need, nonnull, yes, filled bool
	own                        bool // the type reads null itself
	words                      []string
}

// A plan says how objects are decoded into a structure.
type plan struct {
	name   string
	strict bool
	fields []field
}

// plans are those of all structures that were decoded, by their types.
var plans sync.Map

func planOf(t reflect.Type) *plan {
	known, _ := plans.Load(t)
	if p, ok := known.(*plan); ok {
		return p
	}
	p := &plan{name: t.Name()}
	p.add(t, nil)
	plans.Store(t, p)
	return p
}

// add adds the fields of a structure that is at a place in the one of the plan.
func (p *plan) add(t reflect.Type, at []int) {
	for i := range t.NumField() {
		f, index := t.Field(i), append(slices.Clip(at), i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && f.Anonymous && f.Type.Kind() == reflect.Struct {
			p.add(f.Type, index)
			continue
		}
		to := field{name: name, index: index,
			own: reflect.PointerTo(f.Type).Implements(reflect.TypeFor[json.Unmarshaler]())}
		if f.Name != "_" || len(at) == 0 { // what a structure is in errors is no matter of its parts
			to.rule(f.Tag.Get("rule"), p)
		}
		if name != "" && name != "-" {
			p.fields = append(p.fields, to)
		}
	}
}

// rule reads the tag of a field.
func (f *field) rule(tag string, p *plan) {
	for rule := range strings.SplitSeq(tag, ",") {
		word, value, _ := strings.Cut(rule, "=")
		switch word {
		case "need":
			f.need = true
		case "nonnull":
			f.nonnull = true
		case "true":
			f.yes = true
		case "filled":
			f.filled, f.label = true, cmp.Or(value, f.name)
		case "one":
			f.words = strings.Split(value, "|")
		case "as":
			f.kind = value
		case "name":
			p.name = value
		case "strict":
			p.strict = true
		}
	}
}

// store stores a value.
func store(data []byte, v reflect.Value, f *field) error {
	switch own := v.Addr().Interface().(type) {
	case json.Unmarshaler:
		return own.UnmarshalJSON(data)
	case encoding.TextUnmarshaler:
		return json.Unmarshal(data, own)
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return store(data, v.Elem(), f)
	case reflect.String:
		s, err := textOf(data)
		if err == nil {
			err = f.check(string(s))
		}
		v.SetString(string(s))
		return err
	case reflect.Bool:
		v.SetBool(data[0] == 't')
		if data[0] != 't' && data[0] != 'f' {
			return expected(data, "a boolean")
		}
		return nil
	case reflect.Int, reflect.Int64, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return f.number(data, v)
	case reflect.Slice:
		return storeList(data, v)
	case reflect.Map:
		if v.Type().Key().Kind() == reflect.String {
			return storeMap(data, v)
		}
	case reflect.Struct:
		return planOf(v.Type()).store(data, v)
	}
	return json.Unmarshal(data, v.Addr().Interface())
}

// store stores an object in a structure.
func (p *plan) store(data []byte, v reflect.Value) error {
	if data[0] != '{' {
		return expected(data, "struct "+p.name)
	}
	var few [24][]byte
	values := append(few[:0], make([][]byte, len(p.fields))...)
	for name, value := range Members(data) {
		i := slices.IndexFunc(p.fields, func(f field) bool { return f.name == string(name) })
		if i >= 0 {
			values[i] = value
		} else if p.strict { // what it asks for would be left undone without a word
			var known []string
			for _, f := range p.fields {
				known = append(known, f.name)
			}
			return fmt.Errorf("unknown field `%s`, expected one of `%s`", name, strings.Join(known, "`, `"))
		}
	}
	for i := range p.fields {
		f, value := &p.fields[i], values[i]
		switch {
		case value == nil && f.need:
			return fmt.Errorf("missing field `%s`", f.name)
		case value == nil, string(value) == "null" && !f.need && !f.nonnull && !f.own:
			if f.yes {
				v.FieldByIndex(f.index).SetBool(true)
			}
		default:
			if err := store(value, v.FieldByIndex(f.index), f); err != nil {
				return err
			}
		}
	}
	if own, ok := v.Addr().Interface().(interface{ Validate() error }); ok {
		return own.Validate()
	}
	return nil
}

func storeList(data []byte, v reflect.Value) error {
	if v.Type().Elem() == reflect.TypeFor[byte]() {
		s, err := textOf(data)
		if err == nil {
			s, err = Base64(s)
		}
		v.SetBytes(s)
		return err
	}
	if data[0] != '[' {
		return expected(data, "a sequence")
	}
	var parts [][]byte
	for _, value := range Members(data) {
		parts = append(parts, value)
	}
	v.Set(reflect.MakeSlice(v.Type(), len(parts), len(parts)))
	var none field
	for i, part := range parts {
		if err := store(part, v.Index(i), &none); err != nil {
			return err
		}
	}
	return nil
}

func storeMap(data []byte, v reflect.Value) error {
	if data[0] != '{' {
		return expected(data, "a map")
	}
	v.Set(reflect.MakeMap(v.Type()))
	var none field
	for name, value := range Members(data) {
		one := reflect.New(v.Type().Elem()).Elem()
		if err := store(value, one, &none); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(string(name)).Convert(v.Type().Key()), one)
	}
	return nil
}

// check applies the rules for a text.
func (f *field) check(s string) error {
	switch {
	case f.filled && s == "":
		return fmt.Errorf("%s must not be empty", f.label)
	case f.words == nil || slices.Contains(f.words, s):
		return nil
	}
	known := "`" + strings.Join(f.words, "`, `") + "`"
	switch len(f.words) {
	case 1:
	case 2:
		known = "`" + f.words[0] + "` or `" + f.words[1] + "`"
	default:
		known = "one of " + known
	}
	return fmt.Errorf("unknown variant `%s`, expected %s", s, known)
}

// number stores a whole number.
func (f *field) number(data []byte, v reflect.Value) error {
	kind, bits := f.kind, v.Type().Bits()
	if kind == "" {
		kind = v.Kind().String()[:1] + strconv.Itoa(bits)
	}
	if data[0] != '-' && (data[0] < '0' || data[0] > '9') {
		return expected(data, kind)
	}
	if v.CanInt() {
		n, err := strconv.ParseInt(string(data), 10, bits)
		v.SetInt(n)
		if err != nil {
			return errNumber
		}
		return nil
	}
	n, err := strconv.ParseUint(string(data), 10, 64)
	over := n >= 1<<bits && bits < 64
	switch {
	case err != nil, over && !f.filled:
		return errNumber
	case f.filled && bits == 64 && n == 0:
		return fmt.Errorf("%s must not be 0", f.label)
	case f.filled && bits < 64 && (n == 0 || over):
		return fmt.Errorf("%s must be between 1 and %d", f.label, 1<<bits-1)
	}
	v.SetUint(n)
	return nil
}

var errNumber = errors.New("invalid number")

func expected(value []byte, what string) error {
	return fmt.Errorf("invalid type: %s, expected %s", TypeName(value), what)
}

// textOf returns a string, which may be a part of data.
func textOf(data []byte) ([]byte, error) {
	if data[0] != '"' {
		return nil, expected(data, "a string")
	}
	if s := data[1 : len(data)-1]; bytes.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	var s string
	err := json.Unmarshal(data, &s)
	return []byte(s), err
}
