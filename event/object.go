// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/base64"
	"strconv"
)

// An object is a JSON object on its way. The zero value is the empty one. What begins
// with "some" leaves empty values out, as omitempty does.
type object struct {
	b   []byte
	err error // the first one
}

func (o *object) key(name string) {
	if o.b == nil {
		o.b = append(make([]byte, 0, 512), '{')
	} else {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, '"'), name...), '"', ':')
}

// end returns the object.
func (o *object) end() []byte {
	if o.b == nil {
		return []byte("{}")
	}
	return append(o.b, '}')
}

func (o *object) text(name, s string) {
	o.key(name)
	o.b = appendText(o.b, s)
}

func (o *object) someText(name, s string) {
	if s != "" {
		o.text(name, s)
	}
}

func (o *object) texts(name string, list []string) {
	o.key(name)
	o.b = append(o.b, '[')
	for i, s := range list {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = appendText(o.b, s)
	}
	o.b = append(o.b, ']')
}

func (o *object) someTexts(name string, list []string) {
	if len(list) > 0 {
		o.texts(name, list)
	}
}

func (o *object) someBytes(name string, data []byte) {
	if len(data) == 0 {
		return
	}
	o.key(name)
	o.b = append(base64.StdEncoding.AppendEncode(append(o.b, '"'), data), '"')
}

func (o *object) number(name string, n int64) {
	o.key(name)
	o.b = strconv.AppendInt(o.b, n, 10)
}

func (o *object) count(name string, n uint64) {
	o.key(name)
	o.b = strconv.AppendUint(o.b, n, 10)
}

func (o *object) flag(name string, is bool) {
	o.key(name)
	o.b = strconv.AppendBool(o.b, is)
}

// raw takes what is JSON already, or the reason why it could not be had.
func (o *object) raw(name string, data []byte, err error) {
	if err != nil {
		if o.err == nil {
			o.err = err
		}
		return
	}
	o.key(name)
	o.b = append(o.b, data...)
}

// appendList appends a list of what package json knows how to write. It is usually empty.
func appendList[T any](o *object, name string, list []T, omit bool) {
	switch {
	case len(list) > 0:
		data, err := encode(list)
		o.raw(name, data, err)
	case !omit:
		o.raw(name, []byte("[]"), nil)
	}
}
