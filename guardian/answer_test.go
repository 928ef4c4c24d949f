// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guardian

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestParse: one answer.
func TestParse(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       string // risk/authorization, with + for allow; empty for an error
	}{
		{"all members", `{"outcome":"allow","risk_level":"medium","user_authorization":"high","rationale":"x"}`, "+medium/high"},
		{"allow alone", `{"outcome":"allow"}`, "+low/unknown"},
		{"deny alone", `{"outcome":"deny"}`, "-high/unknown"},
		{"prose around", "x {\"outcome\":\"allow\"} y", "+low/unknown"},
		{"two risks", `{"outcome":"allow","risk_level":"critical","risk_level":"low"}`, ""},
		{"deny, then allow", `{"outcome":"deny","outcome":"allow"}`, ""},
		{"allow, then deny", `{"outcome":"allow","outcome":"deny"}`, ""},
		{"twice by an escape", `{"outcome":"deny","\u006futcome":"allow"}`, ""},
		{"an outcome in two cases", `{"outcome":"deny","OUTCOME":"allow"}`, ""},
		{"a rationale that is null", `{"outcome":"allow","rationale":null}`, ""},
		{"an empty risk", `{"outcome":"allow","risk_level":""}`, ""},
		{"an empty authorization", `{"outcome":"allow","user_authorization":""}`, ""},
		{"no outcome", `{"risk_level":"low"}`, ""},
		{"another word", `{"outcome":"allowed"}`, ""},
		{"another risk", `{"outcome":"allow","risk_level":"none"}`, ""},
		{"another authorization", `{"outcome":"allow","user_authorization":"root"}`, ""},
		{"other letters", `{"Outcome":"allow"}`, ""},
		{"another member", `{"outcome":"allow","note":"x"}`, ""},
		{"a number", `{"outcome":1}`, ""},
		{"an object in it", `{"outcome":{"outcome":"allow"}}`, ""},
		{"two objects", `{"outcome":"deny"} {"outcome":"allow"}`, ""},
		{"an array", `["outcome","allow"]`, ""},
		{"an array around it", `[{"outcome":"allow"}]`, "+low/unknown"},
		{"cut", `{"outcome":"allow"`, ""},
		{"empty", ``, ""},
		{"braces alone", `}{`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, err := parse(test.text, "")
			got := "-"
			if a.allow {
				got = "+"
			}
			if got += string(a.risk) + "/" + string(a.authorization); err != nil {
				got = ""
			}
			if got != test.want {
				t.Errorf("%q, want %q (%v)", got, test.want, err)
			}
		})
	}
}

// TestKeyBeforeCut: the key of the API is replaced before a rationale is cut, wherever it stands.
func TestKeyBeforeCut(t *testing.T) {
	const key = "sk-0123456789abcdefghijklmnopqrstuvwxyz"
	for at := maxRationale - len(key) - 1; at <= maxRationale+1; at++ {
		a, err := parse(`{"outcome":"deny","rationale":"`+strings.Repeat("x", at)+key+`y"}`, key)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(a.rationale, "sk-0") {
			t.Fatalf("with the key at %d it ends with %q", at, a.rationale[len(a.rationale)-60:])
		}
	}
}

// TestThresholds: every risk with every authorization.
func TestThresholds(t *testing.T) {
	for _, test := range []struct {
		name       string
		thresholds Thresholds
		passes     map[Risk]string // the least authorization that passes; "" for none
	}{
		{"default", nil, map[Risk]string{"low": "unknown", "medium": "unknown", "high": "medium", "critical": ""}},
		{"stricter", Thresholds{"medium": "low", "high": "deny"}, map[Risk]string{"low": "unknown", "medium": "low", "high": "", "critical": ""}},
		{"wider", Thresholds{"high": "unknown"}, map[Risk]string{"low": "unknown", "medium": "unknown", "high": "unknown", "critical": ""}},
		{"critical stays denied", Thresholds{"critical": "unknown"}, map[Risk]string{"low": "unknown", "medium": "unknown", "high": "medium", "critical": ""}},
		{"an unknown word", Thresholds{"low": "some"}, map[Risk]string{"low": "", "medium": "unknown", "high": "medium", "critical": ""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, risk := range risks {
				least := test.passes[Risk(risk)]
				for i, authorization := range authorizations {
					a := answer{allow: true, risk: Risk(risk), authorization: Authorization(authorization)}
					want := least != "" && i >= slices.Index(authorizations, least)
					if got := test.thresholds.short(&a) == ""; got != want {
						t.Errorf("%s with %s: %v, want %v", risk, authorization, got, want)
					}
					if a.allow = false; test.thresholds.short(&a) == "" {
						t.Errorf("a denial of %s with %s passes", risk, authorization)
					}
				}
			}
		})
	}
}

func TestParseThreshold(t *testing.T) {
	for text, ok := range map[string]bool{
		"high=medium": true, "low=deny": true, "critical=deny": true, "critical=high": false, "critical=unknown": false,
		"high": false, "": false, "none=low": false, "high=much": false,
	} {
		if _, _, err := ParseThreshold(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzParse: an answer that is read has known words, and no text allows that has no outcome.
func FuzzParse(f *testing.F) {
	for _, text := range []string{allow, deny, `{"outcome":"allow","outcome":"deny"}`,
		`x{"outcome":"allow"}y`, `{"outcome":"deny","rationale":"\u001b[2J\u202e\ud800"}`, "{", "}{",
		`{"outcome":"deny","rationale":"` + strings.Repeat("é", maxRationale) + `"}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parse(text, "")
		if err != nil {
			if a.allow {
				t.Error("an error that allows")
			}
			return
		}
		if !slices.Contains(risks, string(a.risk)) ||
			!slices.Contains(authorizations, string(a.authorization)) {
			t.Errorf("%+v", a)
		}
		if a.rationale == "" || len(a.rationale) > maxRationale+20 || !utf8.ValidString(a.rationale) ||
			strings.ContainsAny(a.rationale, "\x1b\u202e\r") {
			t.Errorf("the rationale is %q", a.rationale)
		}
		// With a denial beside it, it is one.
		if both, err := combine([]string{text, deny}, ""); err != nil || both.allow {
			t.Errorf("%+v, %v", both, err)
		}
	})
}
