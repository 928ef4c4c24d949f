// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// shade has a word for each number.
type shade uint8

func (s *shade) UnmarshalText(text []byte) error {
	if string(text) != "dark" {
		return errors.New("no shade")
	}
	*s = 7
	return nil
}

type part struct {
	_    struct{} `rule:"name=Inner"`
	Size uint16   `json:"size" rule:"need,filled"`
}

type limits struct {
	_    struct{} `rule:"strict"`
	Most uint64   `json:"most"`
	Raw  bool     `json:"raw"`
}

type message struct {
	_ struct{} `rule:"name=Outer"`
	part
	ID     string            `json:"id" rule:"need,filled"`
	Mode   string            `json:"mode" rule:"one=read|write|none"`
	Two    string            `json:"two" rule:"one=a|b"`
	Only   string            `json:"only" rule:"one=x"`
	Follow bool              `json:"follow" rule:"true"`
	Pipe   bool              `json:"pipe" rule:"nonnull"`
	Wait   uint64            `json:"wait" rule:"filled=the wait"`
	Most   *uint64           `json:"most" rule:"as=usize"`
	Small  uint32            `json:"small"`
	Signed int64             `json:"signed"`
	Data   []byte            `json:"data"`
	Env    map[string]string `json:"env"`
	Names  []string          `json:"names"`
	Shades []shade           `json:"shades"`
	Limits *limits           `json:"limits"`
	Raw    json.RawMessage   `json:"raw"`
}

func (m *message) Validate() error {
	if m.Mode == "none" && m.Pipe {
		return errors.New("none and pipe exclude each other")
	}
	return nil
}

// TestDecode has each rule, the bounds of numbers, and the order of errors.
func TestDecode(t *testing.T) {
	four := uint64(1<<64 - 1)
	for _, test := range []struct {
		text string
		want any // a message with what differs from the least one, or the text of the error
	}{
		{``, "invalid type: null, expected struct Outer"}, {`null`, "invalid type: null, expected struct Outer"}, {`[]`, "invalid type: sequence, expected struct Outer"},
		{`{}`, "missing field `size`"}, {`{"size":1}`, "missing field `id`"}, {`{"Size":1,"ID":"a"}`, "missing field `size`"},
		{`{"size":1,"id":null}`, "invalid type: null, expected a string"}, {`{"size":1,"id":""}`, "id must not be empty"},
		{`{"id":5,"size":"x"}`, `invalid type: string "x", expected u16`}, // the first field, not the first member
		{`{"size":0,"id":"a"}`, "size must be between 1 and 65535"}, {`{"size":65536,"id":"a"}`, "size must be between 1 and 65535"},
		{`{"size":65535,"id":"a"}`, message{part: part{Size: 65535}}},
		{`+"mode":"x"`, "unknown variant `x`, expected one of `read`, `write`, `none`"}, {`+"two":"x"`, "unknown variant `x`, expected `a` or `b`"},
		{`+"only":""`, "unknown variant ``, expected `x`"}, {`+"mode":null`, message{}}, {`+"mode":"write"`, message{Mode: "write"}},
		{`+"follow":false`, message{Pipe: false}}, {`+"follow":0`, "invalid type: number, expected a boolean"},
		{`+"pipe":null`, "invalid type: null, expected a boolean"}, {`+"pipe":true`, message{Pipe: true}},
		{`+"pipe":true,"mode":"none"`, "none and pipe exclude each other"},
		{`+"wait":0`, "the wait must not be 0"}, {`+"wait":18446744073709551616`, "invalid number"}, {`+"wait":1e3`, "invalid number"}, {`+"wait":-1`, "invalid number"},
		{`+"most":18446744073709551615`, message{Most: &four}}, {`+"most":true`, "invalid type: boolean `true`, expected usize"},
		{`+"small":4294967296`, "invalid number"}, {`+"small":4294967295`, message{Small: 1<<32 - 1}},
		{`+"signed":-9223372036854775808`, message{Signed: -1 << 63}}, {`+"signed":9223372036854775808`, "invalid number"},
		{`+"data":"aGk="`, message{Data: []byte("hi")}}, {`+"data":"\u0061Gk="`, message{Data: []byte("hi")}}, {`+"data":"a"`, "Invalid padding"}, {`+"data":"aGl="`, "Invalid padding"},
		{`+"data":"!!\n"`, "Invalid symbol 33, offset 0."}, {`+"data":"aGk=\n"`, "Invalid symbol 10, offset 4."},
		{`+"env":{}`, message{Env: map[string]string{}}}, {`+"env":{"A\t":"1"}`, message{Env: map[string]string{"A\t": "1"}}}, {`+"env":{"A":null}`, "invalid type: null, expected a string"}, {`+"env":[]`, "invalid type: sequence, expected a map"},
		{`+"names":[]`, message{Names: []string{}}}, {"+\"wait\":4\r,\"pipe\":true\t", message{Wait: 4, Pipe: true}}, {"+\"names\":[\r\"a\"\r,\t\"b\"\r]\r", message{Names: []string{"a", "b"}}}, {`+"names": [ "]" , "\"[" ] `, message{Names: []string{"]", `"[`}}}, {`+"names":["a",1]`, "invalid type: number, expected a string"},
		{`+"shades":["dark"]`, message{Shades: []shade{7}}}, {`+"shades":["light"]`, "no shade"},
		{`+"limits":{"most":3,"raw":true}`, message{Limits: &limits{Most: 3, Raw: true}}}, {`+"limits":{"mots":3}`, "unknown field `mots`, expected one of `most`, `raw`"},
		{`+"limits":[]`, "invalid type: sequence, expected struct limits"},
		{`+"raw":{"a":[1,{}]}`, message{Raw: json.RawMessage(`{"a":[1,{}]}`)}}, {`+"raw":null`, message{Raw: json.RawMessage(`null`)}},
		{`+"x":{"id":""},"\u0077ait":4`, message{Wait: 4}},
	} {
		t.Run(test.text, func(t *testing.T) {
			text := test.text
			if rest, ok := strings.CutPrefix(text, "+"); ok {
				text = `{"size":1,"id":"a",` + rest + `}`
			}
			var got message
			err := Decode([]byte(text), &got)
			want, ok := test.want.(message)
			if want.ID = "a"; want.Size == 0 {
				want.Size = 1
			}
			want.Follow = !strings.Contains(text, `"follow":false`)
			if ok && (err != nil || !reflect.DeepEqual(got, want)) {
				t.Errorf("%+v, %v, want %+v", got, err, want)
			}
			if !ok && fmt.Sprint(err) != test.want {
				t.Errorf("%v, want %v", err, test.want)
			}
		})
	}
}

// FuzzMembers: the members of valid JSON are those that encoding/json finds.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{"a":"\\\"","b\u0041":[1,{"x":"]"}], "c" : { } }`,
		`[ 1,"[\"" ,null,{"}":[]}]`, `[]`, `{}`, `["\\"]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		text = []byte(strings.TrimSpace(string(text)))
		if !json.Valid(text) {
			return
		}
		object, list := map[string]json.RawMessage{}, []json.RawMessage{}
		switch text[0] {
		case '{':
			if _, err := Object(text); err != nil || json.Unmarshal(text, &object) != nil {
				return // a name is there twice
			}
		case '[':
			_ = json.Unmarshal(text, &list)
		default:
			return
		}
		n := 0
		for name, value := range Members(text) {
			want, ok := object[string(name)]
			if name == nil {
				want, ok = list[n], true
			}
			if n++; !ok || string(want) != string(value) {
				t.Errorf("%s: %q is %s, want %s", text, name, value, want)
			}
		}
		if n != len(object)+len(list) {
			t.Errorf("%s: %d members, want %d", text, n, len(object)+len(list))
		}
		var m message
		_ = Decode(text, &m)
	})
}
