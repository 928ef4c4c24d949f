// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
)

type broken struct{}

func (broken) MarshalJSON() ([]byte, error) { return nil, errors.New("broken") }

func TestList(t *testing.T) {
	for _, c := range []struct {
		name string
		v    any
		want string
	}{
		{"nil", list[int](nil), "[]\n"},
		{"empty and left out", struct {
			L list[int] `json:"l,omitempty"`
		}{}, "{}\n"},
		{"letters of HTML", struct{ L list[string] }{list[string]{"<a>&"}}, `{"L":["<a>&"]}` + "\n"},
		{"a list of lists", list[list[int]]{{1}, nil}, "[[1],[]]\n"},
		{"an error", list[broken]{{}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			e := json.NewEncoder(&b)
			e.SetEscapeHTML(false)
			if err := e.Encode(c.v); (err != nil) != (c.want == "") || b.String() != c.want {
				t.Errorf("%q, %v; want %q", b.String(), err, c.want)
			}
		})
	}
	var back list[int]
	if err := json.Unmarshal([]byte("[1,2]"), &back); err != nil || len(back) != 2 {
		t.Errorf("%v, %v", back, err)
	}
}
