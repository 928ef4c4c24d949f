// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"encoding/json"
	"strings"
	"testing"
)

// all are one policy of each kind, and granular ones with one question each.
var all = []Policy{
	OnRequest, Untrusted, Never, Granular{}.Policy(), Granular{SandboxApproval: true}.Policy(),
	Granular{Rules: true}.Policy(),
	Granular{SkillApproval: true}.Policy(), Granular{RequestPermissions: true}.Policy(),
	Granular{MCPElicitations: true}.Policy(),
	Granular{true, true, true, true, true}.Policy(),
}

// TestJSON: every policy comes back from its JSON form, and no two have the same.
func TestJSON(t *testing.T) {
	seen := map[string]Policy{}
	for _, p := range all {
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[string(text)]; ok {
			t.Errorf("%d and %d are both %s", p, other, text)
		}
		seen[string(text)] = p
		back := Untrusted
		if err := json.Unmarshal(text, &back); err != nil || back != p {
			t.Errorf("%s: %d, %v; want %d", text, back, err, p)
		}
	}
	for text, want := range map[string]Policy{
		`"on-failure"`:                Granular{true, true, true, true, true}.Policy(),
		` "never"`:                    Never,
		`{"granular":{"rules":true}}`: Granular{Rules: true}.Policy(),
		`{"granular":{}}`:             Granular{}.Policy(),
		`{"reject":{}}`:               Granular{true, true, true, true, true}.Policy(),
		`{"reject":{"rules":true,"mcp_elicitations":true}}`:                                                                          Granular{SandboxApproval: true, SkillApproval: true, RequestPermissions: true}.Policy(),
		`{"reject":{"sandbox_approval":true,"rules":true,"skill_approval":true,"request_permissions":true,"mcp_elicitations":true}}`: Granular{}.Policy(),
	} {
		p := Untrusted
		if err := json.Unmarshal([]byte(text), &p); err != nil || p != want {
			t.Errorf("%s: %d, %v; want %d", text, p, err, want)
		}
	}
}

// TestJSONErrors: what is not known is an error, and changes nothing.
func TestJSONErrors(t *testing.T) {
	for text, want := range map[string]string{
		`"always"`:                         `unknown approval policy "always"`,
		`"granular"`:                       "needs its members",
		`""`:                               "unknown approval policy",
		`{}`:                               "the member granular is missing",
		`{"granular":null}`:                "the member granular is missing",
		`{"reject":{"rulez":true}}`:        "unknown field `rulez`",
		`{"reject":null}`:                  "the member granular is missing",
		`{"granular":{},"reject":{}}`:      "it has granular and reject",
		`{"granular":{"rulez":true}}`:      "unknown field `rulez`",
		`{"granular":{"rules":"yes"}}`:     "expected a boolean",
		`3`:                                "not an object",
		`null`:                             "not an object",
		`{"granular":{"Rules":true}}`:      "unknown field `Rules`",
		`{"Granular":{"rules":true}}`:      "unknown field `Granular`",
		`{"granular":{"rule\u017f":true}}`: "unknown field `rule\u017f`",
		`{"granular":{"rules":false,"rules":true}}`:      `repeated member "rules"`,
		`{"granular":{"rules":false,"\u0072ules":true}}`: `repeated member "rules"`,
		`{"granular":{},"granular":{"rules":true}}`:      `repeated member "granular"`,
		`{"reject":{"rules":true,"rules":false}}`:        `repeated member "rules"`,
		`{"reject":{"rules":true,"RULES":false}}`:        "unknown field `RULES`",
		`{"granular":{"rules":true}, "x"`:                "unexpected end",
	} {
		p := Never
		err := json.Unmarshal([]byte(text), &p)
		if err == nil || !strings.Contains(err.Error(), want) || p != Never {
			t.Errorf("%s: %v, %v; want %q", text, p, err, want)
		}
	}
}

// TestGranular: which questions a policy asks.
func TestGranular(t *testing.T) {
	for _, test := range []struct {
		p    Policy
		want Granular
		is   bool
		text string
	}{
		{OnRequest, Granular{true, true, true, true, true}, false, "on-request"},
		{Untrusted, Granular{true, true, true, true, true}, false, "untrusted"},
		{Never, Granular{}, false, "never"},
		{Granular{Rules: true}.Policy(), Granular{Rules: true}, true, "granular"},
		{Policy(3), Granular{true, true, true, true, true}, false, "untrusted"},
		{Policy(1<<7 | 1<<6), Granular{true, true, true, true, true}, false, "untrusted"},
	} {
		if g, is := test.p.Granular(); g != test.want || is != test.is || test.p.String() != test.text {
			t.Errorf("%d: %+v, %v, %v; want %+v, %v, %s", test.p, g, is, test.p, test.want,
				test.is, test.text)
		}
	}
}

// FuzzJSON: whatever is read is written in a form that means the same.
func FuzzJSON(f *testing.F) {
	for _, p := range all {
		text, err := json.Marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p := Never
		if err := p.UnmarshalJSON(text); err != nil {
			if p != Never {
				t.Errorf("%q: an error, and %v", text, p)
			}
			return
		}
		again, err := json.Marshal(p)
		back := Untrusted
		if err != nil || back.UnmarshalJSON(again) != nil || back != p {
			t.Errorf("%q: %s, %v, %v", text, again, back, err)
		}
	})
}
