// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sallyport-dev/sallyport/internal/strict"
)

// Decode reads the parameters of a method, or an answer, of a message that package jsonrpc has
// decoded. The rules of each member are in the tags of the message, see [strictjson.Decode].
func Decode[T any](text json.RawMessage) (*T, error) {
	v := new(T)
	return v, strict.Decode(text, v)
}

// DecodeNothing reads the parameters of a method without any: absent, null or an object.
func DecodeNothing(params json.RawMessage) (struct{}, error) {
	if len(params) == 0 || params[0] == 'n' || params[0] == '{' {
		return struct{}{}, nil
	}
	return struct{}{}, fmt.Errorf("invalid type: %s, expected unit", strict.TypeName(params))
}

// DecodeList reads the parameters of a list that can be waited for: absent, null or an object.
func DecodeList(params json.RawMessage) (*ListWait, error) {
	if len(params) == 0 || params[0] == 'n' {
		return new(ListWait), nil
	}
	return Decode[ListWait](params)
}

// DecodeSignal reads the parameters of process/signal. Known reports whether the server can send
// a signal of that name.
func DecodeSignal(params json.RawMessage, known func(name string) bool) (*Signal, error) {
	s, err := Decode[Signal](params)
	if err == nil && s.Signal != Interrupt && !known(s.Signal) {
		err = fmt.Errorf("unknown variant `%s`, expected `interrupt` or a signal of this system, such as `SIGTERM`", s.Signal)
	}
	return s, err
}

// DecodeRunSignal reads the parameters of run/signal, as [DecodeSignal].
func DecodeRunSignal(params json.RawMessage, known func(name string) bool) (*RunSignal, error) {
	s, err := Decode[RunSignal](params)
	if err == nil && !known(s.Signal) {
		err = fmt.Errorf("unknown variant `%s`, expected a signal of this system, such as `SIGTERM`", s.Signal)
	}
	return s, err
}

// DecodeRunID reads the parameters of the methods that have only the ID of a run: run/closeStdin,
// run/screen, run/terminate and run/remove.
func DecodeRunID(params json.RawMessage) (string, error) {
	p, err := Decode[RunParams](params)
	return p.RunID, err
}

// DecodeSandboxName reads the parameters of sandbox/stop.
func DecodeSandboxName(params json.RawMessage) (string, error) {
	p, err := Decode[SandboxParams](params)
	return p.Name, err
}

// DecodePolicyAnswer reads the answer to network/policyRequest. Only one that is well formed allows.
func DecodePolicyAnswer(result json.RawMessage) (*PolicyWord, error) {
	a, err := Decode[PolicyAnswer](result)
	return &a.Decision, err
}

// notEmpty returns the error for a list that must not be empty.
func notEmpty(name string, list []string) error {
	if len(list) == 0 {
		return errors.New(name + " must not be empty")
	}
	return nil
}
