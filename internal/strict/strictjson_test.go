// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

type embedded struct {
	Inner string `json:"inner"`
	Not   string `json:"-"`
}

type form struct {
	embedded
	Word  string          `json:"word"`
	Count *float64        `json:"count"`
	Raw   json.RawMessage `json:"raw"`
	Lists []struct {
		Name string   `json:"name"`
		More []string `json:"more"`
	} `json:"lists"`
}

func TestUnmarshal(t *testing.T) {
	two := 2.0
	for _, test := range []struct {
		name, text string
		want       form
		says       string // of the error
	}{
		{"exact names", `{"word":"a","count":2,"raw":{"x":1}}`, form{Word: "a", Count: &two, Raw: json.RawMessage(`{"x":1}`)}, ""},
		{"another case", `{"Word":"a","COUNT":2}`, form{}, ""},
		{"both cases", `{"word":"a","Word":"b"}`, form{Word: "a"}, ""},
		{"another case below", `{"lists":[{"name":"a","Name":"b"},{"NAME":"c"}]}`, form{Lists: lists("a", "")}, ""},
		{"a letter that folds to k", `{"\u212aount":1,"word":"a"}`, form{Word: "a"}, ""},
		{"unknown names", `{"Lists2":"a","":"b","x":[]}`, form{}, ""},
		{"members of an embedded struct", `{"inner":"a","Inner":"b","embedded":{"inner":"c"}}`, form{embedded: embedded{Inner: "a"}}, ""},
		{"a member that is none", `{"-":"a","Not":"b"}`, form{}, ""},
		{"null", `{"word":null,"count":null,"lists":null}`, form{}, ""},
		{"space around it", " {}\r\n", form{}, ""},
		{"twice", `{"word":"a","word":"b"}`, form{}, `repeated member "word"`},
		{"twice by an escape", `{"word":"a","\u0077ord":"b"}`, form{}, `repeated member "word"`},
		{"twice below", `{"lists":[{"name":"a","name":"b"}]}`, form{}, `repeated member "name"`},
		{"twice where nothing is read", `{"x":{"y":1,"y":2}}`, form{}, `repeated member "y"`},
		{"two objects", `{}{}`, form{}, "text after the object"},
		{"text after it", `{} x`, form{}, "text after the object"},
		{"nothing", ``, form{}, "unexpected end"},
		{"cut", `{"word":"a"`, form{}, "unexpected end"},
		{"a list", `[]`, form{}, "not an object"},
		{"null alone", `null`, form{}, "not an object"},
		{"bytes", "{\"word\":\"\xff\"}", form{}, "not UTF-8"},
		{"another kind", `{"word":1}`, form{}, "invalid type: number, expected a string"},
		{"another kind below", `{"lists":{"name":"a"}}`, form{}, "invalid type: map, expected a sequence"},
		{"as deep as may be", `{"x":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, form{}, ""},
		{"too deep", `{"x":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}`, form{}, "nested too deeply"},
		{"a number that is too large, where nothing is read", `{"x":1e999}`, form{}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got form
			err := Unmarshal([]byte(test.text), &got)
			switch {
			case test.says == "" && err != nil, test.says != "" &&
				(err == nil || !strings.Contains(err.Error(), test.says)):
				t.Errorf("error %v, want %q", err, test.says)
			case test.says == "" && !reflect.DeepEqual(got, test.want):
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func lists(names ...string) (out []struct {
	Name string   `json:"name"`
	More []string `json:"more"`
}) {
	out = append(out, make([]struct {
		Name string   `json:"name"`
		More []string `json:"more"`
	}, len(names))...)
	for i, name := range names {
		out[i].Name = name
	}
	return out
}

// FuzzUnmarshal: what is accepted is one object that encoding/json reads in the same way, up to
// members whose names only look the same.
func FuzzUnmarshal(f *testing.F) {
	for _, seed := range []string{`{"word":"a","count":2}`, `{"Word":"a"}`, `{"lists":[{"name":"a"}]}`,
		`{"word":"a","word":"b"}`, `{}{}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got form
		if Unmarshal(text, &got) != nil {
			return
		}
		members, err := Object(text)
		if err != nil || !json.Valid(text) {
			t.Fatalf("%q is accepted: %v", text, err)
		}
		var word *string
		if value, ok := members["word"]; ok && json.Unmarshal(value, &word) == nil && word != nil &&
			*word != got.Word {
			t.Errorf("%q: word is %q", text, got.Word)
		}
		if _, ok := members["word"]; !ok && got.Word != "" {
			t.Errorf("%q: word is %q, and there is none", text, got.Word)
		}
	})
}

func TestQuote(t *testing.T) {
	for s, want := range map[string]string{"": `""`, "a<b>&": `"a<b>&"`, "\"\\\n": `"\"\\\n"`,
		"\xff": `"\ufffd"`} {
		if got := Quote(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}
