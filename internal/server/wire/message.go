// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/sallyport-dev/sallyport/internal/strict"
)

// The bounds of one message.
const (
	// MaxValues is how many JSON values a message may hold: objects and arrays, and what is
	// in them. Names of members do not count.
	MaxValues = 262_144
	// maxDepth is how deep objects and arrays may be nested.
	maxDepth = 128
)

// scan is [strictjson.Scan] for a message, with errors in the words that clients know.
func scan(data []byte, member func(name, value []byte)) error {
	err := strict.Scan(data, strict.Limits{Depth: maxDepth, Values: MaxValues}, member)
	var twice *strict.RepeatedError
	switch {
	case errors.As(err, &twice):
		return fmt.Errorf("duplicate JSON object key `%s` at byte %d", twice.Name, twice.At)
	case errors.Is(err, strict.ErrUTF8):
		return errors.New("invalid UTF-8")
	case errors.Is(err, strict.ErrNoObject):
		return errors.New("expected a JSON-RPC object")
	case errors.Is(err, strict.ErrDepth):
		return fmt.Errorf("nested more than %d deep", maxDepth)
	case errors.Is(err, strict.ErrValues):
		return fmt.Errorf("more than %d JSON values", MaxValues)
	}
	return err
}

// Kind is the kind of a message.
type Kind uint8

// The kinds of messages. The zero Kind is none of them.
const (
	KindRequest      Kind = iota + 1 // has a method and an ID
	KindNotification                 // has a method
	KindResponse                     // has a result
	KindError                        // has an error
	KindBinary                       // is none of JSON-RPC: Params are its bytes
)

// The codes of errors.
const (
	CodeInvalidRequest = -32600
	CodeNoMethod       = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	// CodeNotFound is for a file, or a handle of one, that does not exist.
	CodeNotFound = -32004
	// CodeAttached is for a session that another connection uses.
	CodeAttached = -32010
	// CodeCanceled is for a request that the client canceled.
	CodeCanceled = -32800
)

// An ID identifies a request: a string or a whole number. The zero ID is that of no request.
// IDs are comparable.
type ID struct {
	kind   uint8 // idNumber, idText
	number int64
	text   string
}

const (
	idNumber = iota + 1
	idText
)

// Number returns the ID with a number.
func Number(n int64) ID { return ID{kind: idNumber, number: n} }

// Int returns the number of an ID, and false when it has none.
func (id ID) Int() (int64, bool) { return id.number, id.kind == idNumber }

// Malformed is the ID in the error for a message that cannot be read.
func Malformed() ID { return Number(-1) }

// MarshalJSON returns the number or the string; null for the zero ID.
func (id ID) MarshalJSON() ([]byte, error) {
	switch id.kind {
	case idNumber:
		return strconv.AppendInt(nil, id.number, 10), nil
	case idText:
		return json.Marshal(id.text)
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads an ID. Null is none.
func (id *ID) UnmarshalJSON(value []byte) (err error) {
	*id, err = decodeID(value)
	return err
}

var errID = errors.New("data did not match any variant of untagged enum RequestId")

// decodeID reads an ID: a string, or a number without fraction that fits into 64 bits.
func decodeID(value []byte) (ID, error) {
	if value[0] == '"' {
		id := ID{kind: idText}
		return id, json.Unmarshal(value, &id.text)
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return ID{}, errID
	}
	return Number(n), nil
}

// Trace is the W3C trace context that a request may have; see
// https://www.w3.org/TR/trace-context. An empty member is absent.
type Trace struct {
	Parent string `json:"traceparent"`
	State  string `json:"tracestate"`
}

// An Error is the error of a request.
type Error struct {
	Code    int64           `json:"code" rule:"need"`
	Message string          `json:"message" rule:"need"`
	Data    json.RawMessage `json:"data,omitempty"` // nil for none
}

// Error returns the message and the code.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// A Message is one message. Which members are set depends on its Kind.
type Message struct {
	Kind   Kind
	ID     ID
	Method string
	Params json.RawMessage // nil when absent; part of what was decoded
	Trace  *Trace          // nil when absent
	Result json.RawMessage // part of what was decoded
	Error  *Error
}

// A MalformedError reports a message that cannot be read. The connection can go on.
type MalformedError struct{ Err error }

// Error returns the reason.
func (e *MalformedError) Error() string { return "failed to parse JSON-RPC message: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *MalformedError) Unwrap() error { return e.Err }

// DecodeMessage decodes one message. The Message keeps parts of data. Errors are a *MalformedError.
// Members that the dialect does not know are ignored.
func DecodeMessage(data []byte) (*Message, error) {
	var raw struct{ id, method, params, trace, result, err []byte }
	err := scan(data, func(name, value []byte) {
		switch string(name) {
		case "id":
			raw.id = value
		case "method":
			raw.method = value
		case "params":
			raw.params = value
		case "trace":
			raw.trace = value
		case "result":
			raw.result = value
		case "error":
			raw.err = value
		}
	})
	m := &Message{Params: raw.params, Result: raw.result}
	switch {
	case err != nil:
	case raw.method != nil && raw.id != nil:
		m.Kind = KindRequest
		if err = m.decodeCall(raw.method, raw.trace); err == nil {
			m.ID, err = decodeID(raw.id)
		}
	case raw.method != nil:
		m.Kind = KindNotification
		err = m.decodeCall(raw.method, nil)
	case raw.id == nil:
		err = errors.New("missing field `id`")
	default:
		m.Kind = KindResponse
		if m.ID, err = decodeID(raw.id); err == nil && raw.result == nil {
			m.Kind = KindError
			m.Error, err = decodeError(raw.err)
		}
	}
	if err != nil {
		return nil, &MalformedError{err}
	}
	return m, nil
}

// decodeCall reads what a request and a notification share.
func (m *Message) decodeCall(method, trace []byte) error {
	if err := decodeText(method, &m.Method); err != nil {
		return err
	}
	if trace == nil || string(trace) == "null" {
		return nil
	}
	m.Trace = new(Trace)
	if strict.Decode(trace, m.Trace) != nil {
		return errors.New("invalid trace context")
	}
	return nil
}

func decodeText(value []byte, to *string) error {
	if value[0] != '"' {
		return fmt.Errorf("invalid type: %s, expected a string", strict.TypeName(value))
	}
	return json.Unmarshal(value, to)
}

func decodeError(value []byte) (*Error, error) {
	if value == nil {
		return nil, errors.New("missing field `error`")
	}
	e := new(Error)
	return e, strict.Decode(value, e)
}

// Request encodes a request. A zero Trace is none.
func Request(id ID, method string, params json.RawMessage, trace Trace) ([]byte, error) {
	return encode(struct {
		ID     ID              `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params,omitempty"`
		Trace  Trace           `json:"trace,omitzero"`
	}{id, method, params, trace})
}

// Response encodes the result of a request.
func Response(id ID, result any) ([]byte, error) {
	return encode(struct {
		ID     ID  `json:"id"`
		Result any `json:"result"`
	}{id, result})
}

// Failure encodes the error of a request.
func Failure(id ID, e *Error) ([]byte, error) {
	return encode(struct {
		Error *Error `json:"error"`
		ID    ID     `json:"id"`
	}{e, id})
}

// Notification encodes a notification.
func Notification(method string, params any) ([]byte, error) {
	return encode(struct {
		Method string `json:"method"`
		Params any    `json:"params"`
	}{method, params})
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("cannot encode a message: %w", err)
	}
	return b.Bytes()[:b.Len()-1], nil // without the newline of the encoder
}
