// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"math"
	"time"
)

// An encoder writes the binary form of Protocol Buffers. Fields are those of opentelemetry-proto 1.10.
type encoder []byte

// The types of fields.
const (
	typeVarint  = 0
	typeFixed64 = 1
	typeBytes   = 2
	typeFixed32 = 5
)

func (e *encoder) tag(field, kind int) { *e = binary.AppendUvarint(*e, uint64(field<<3|kind)) }

func (e *encoder) varint(field int, v uint64) {
	e.tag(field, typeVarint)
	*e = binary.AppendUvarint(*e, v)
}

func (e *encoder) fixed64(field int, v uint64) {
	e.tag(field, typeFixed64)
	*e = binary.LittleEndian.AppendUint64(*e, v)
}

func (e *encoder) fixed32(field int, v uint32) {
	e.tag(field, typeFixed32)
	*e = binary.LittleEndian.AppendUint32(*e, v)
}

func (e *encoder) double(field int, v float64) { e.fixed64(field, math.Float64bits(v)) }

func (e *encoder) time(field int, t time.Time) { e.fixed64(field, uint64(t.UnixNano())) }

func (e *encoder) bytes(field int, b []byte) {
	e.tag(field, typeBytes)
	*e = append(binary.AppendUvarint(*e, uint64(len(b))), b...)
}

func (e *encoder) text(field int, s string) {
	if s != "" {
		e.bytes(field, []byte(s))
	}
}

// message writes a message within this one.
func (e *encoder) message(field int, write func(*encoder)) {
	var inner encoder
	write(&inner)
	e.bytes(field, inner)
}

// attributes writes KeyValue messages.
func (e *encoder) attributes(field int, attrs []slog.Attr) {
	for _, a := range attrs {
		e.message(field, func(e *encoder) {
			e.text(1, a.Key)
			e.message(2, func(e *encoder) { e.value(a.Value) })
		})
	}
}

// value writes the only member of an AnyValue, also if it is zero.
func (e *encoder) value(v slog.Value) {
	switch v.Kind() {
	case slog.KindBool:
		n := uint64(0)
		if v.Bool() {
			n = 1
		}
		e.varint(2, n)
	case slog.KindInt64:
		e.varint(3, uint64(v.Int64()))
	case slog.KindUint64:
		e.varint(3, min(v.Uint64(), math.MaxInt64))
	default:
		e.bytes(1, []byte(v.String()))
	}
}

// scopeName is the name of the instrumentation.
const scopeName = "github.com/sallyport-dev/sallyport"

// request writes what a POST has: items of one resource and one scope. Each is a field of its scope.
func request(resource []slog.Attr, version string, items func(e *encoder)) []byte {
	var e encoder
	e.message(1, func(e *encoder) {
		e.message(1, func(e *encoder) { e.attributes(1, resource) })
		e.message(2, func(e *encoder) {
			e.message(1, func(e *encoder) {
				e.text(1, scopeName)
				e.text(2, version)
			})
			items(e)
		})
	})
	return e
}

// itemField is the field of a scope with the spans, metrics or log records.
const itemField = 2

// errTruncated: a response is not a message.
var errTruncated = errors.New("the response is invalid")

// rejected reads the response to a request: how many items were not taken, and a message.
func rejected(body []byte) (n uint64, message string, err error) {
	err = fields(body, func(field int, _ uint64, inner []byte) error {
		if field != 1 {
			return nil
		}
		return fields(inner, func(field int, v uint64, b []byte) error {
			switch field {
			case 1:
				n = v
			case 2:
				message = string(b)
			}
			return nil
		})
	})
	return n, message, err
}

// fields calls found with each field of a message: its number, and its value.
func fields(body []byte, found func(field int, v uint64, b []byte) error) error {
	for len(body) > 0 {
		tag, n := binary.Uvarint(body)
		if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
			return errTruncated
		}
		body = body[n:]
		var v uint64
		var b []byte
		switch tag & 7 {
		case typeVarint:
			if v, n = binary.Uvarint(body); n <= 0 {
				return errTruncated
			}
		case typeBytes:
			size, length := binary.Uvarint(body)
			if length <= 0 || size > uint64(len(body)-length) {
				return errTruncated
			}
			n = length + int(size)
			b = body[length:n]
		case typeFixed64:
			n = 8
		case typeFixed32:
			n = 4
		default:
			return errTruncated
		}
		if n > len(body) {
			return errTruncated
		}
		body = body[n:]
		if err := found(int(tag>>3), v, b); err != nil {
			return err
		}
	}
	return nil
}
