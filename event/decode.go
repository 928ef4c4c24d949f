// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/strict"
)

// A DecodeError reports JSON that is no event which this package reads.
type DecodeError struct {
	Type    string // of the event, as it is written; empty where that cannot be read
	Version int    // likewise, 0
	Err     error  // what is wrong
}

// Error returns one sentence with the type, what is wrong and the fix.
func (e *DecodeError) Error() string {
	if e.Type == "" {
		return "event: cannot decode an event: " + e.Err.Error()
	}
	return fmt.Sprintf("event: cannot decode an event of type %q: %v", e.Type, e.Err)
}

// Unwrap returns what is wrong.
func (e *DecodeError) Unwrap() error { return e.Err }

// ErrVersion is the cause of a [DecodeError] for another version of the JSON form than [Version].
var ErrVersion = fmt.Errorf("its member v is not %d; read it with the version of sallyport that wrote it", Version)

var errResult = errors.New("it is a result; decode it into a sallyport.Result")

// UnmarshalJSON reads the form of MarshalJSON: encoding what it reads gives the same object. An event of
// a type that is not known is an [Unknown], and members that are not known are ignored: later versions of
// sallyport add both. The error is a *DecodeError, and leaves e as it was.
//
// Names count in their exact case, and a member that is there twice is an error. What JSON does not
// have is not there afterwards: Judged has no Path, Requires and Held, the Review of a
// question only the ID of its Request, Exited and Survived name the first [SurvivorsListed] processes,
// and times are in whole milliseconds.
func (e *Event) UnmarshalJSON(data []byte) error {
	var head envelope
	err := strict.Unmarshal(data, &head)
	switch {
	case err == nil && head.Version == 0 && head.Type == "result":
		err = errResult
	case err == nil && head.Version != Version:
		err = ErrVersion
	case err == nil && head.Type == "":
		err = errors.New("the member type is missing")
	case err == nil && (head.Time.UTC().Year() < 0 || head.Time.UTC().Year() > 9999):
		err = errors.New("the year of the member time is not one of four digits")
	}
	var body Body
	if err == nil {
		body, err = decode(head.Type, data)
	}
	if err != nil {
		return &DecodeError{head.Type, head.Version, err}
	}
	*e = Event{head.Time.UTC(), head.Seq, head.Run, head.Attempt, head.CallerID, body}
	return nil
}

// decode returns the body of an event of a type.
func decode(kind string, data []byte) (Body, error) {
	known, ok := forms[kind]
	if !ok {
		members, err := strict.Object(data)
		if err != nil {
			return nil, err
		}
		for _, f := range reflect.VisibleFields(reflect.TypeFor[envelope]()) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			delete(members, name)
		}
		rest, err := encode(members)
		return Unknown{kind, rest}, err
	}
	into := reflect.New(reflect.TypeOf(known))
	if err := strict.Unmarshal(data, into.Interface()); err != nil {
		return nil, err
	}
	f, _ := into.Elem().Interface().(form) // it has the type of known
	body, err := f.value()
	if err == nil && body.Kind() != kind {
		err = fmt.Errorf("its members are those of the type %q", body.Kind())
	}
	return body, err
}

// Unknown is the body of an event of a type that is not known, as a later version of sallyport may write.
// Only [Event.UnmarshalJSON] makes it.
type Unknown struct {
	Type    string
	Members json.RawMessage // an object: the members beside those that all events have
}

// Kind returns Type.
func (u Unknown) Kind() string { return u.Type }
func (Unknown) body()          {}

// MarshalJSON returns Members.
func (u Unknown) MarshalJSON() ([]byte, error) { return u.Members, nil }

// Forms returns, by the type of an event, a value whose Go type describes the members that it has in JSON
// beside those of all events, by its fields and their tags, for programs that generate schemas. The zero
// key is for the members that all events have.
func Forms() map[string]any {
	out := map[string]any{"": envelope{}}
	for kind, f := range maps.All(forms) {
		out[kind] = f
	}
	return out
}
