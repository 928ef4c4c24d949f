// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
)

// fileOf is a File with a text.
func fileOf(t testing.TB, text, find string, basic bool) *CredentialFile {
	t.Helper()
	re, err := CheckCredentialFind(find)
	if err != nil {
		t.Fatal(err)
	}
	return &CredentialFile{Path: "/f", Text: []byte(text), Find: re, Basic: basic}
}

// TestFileValue: the value is what one group finds, and nothing is guessed.
func TestFileValue(t *testing.T) {
	auth := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for _, tt := range []struct {
		name, text, find string
		basic            bool
		want             string
		err              error
	}{
		{"a line", "a=1\ntoken=secret12\nb=2\n", `^token=(.*)$`, false, "secret12", nil},
		{"twice the same", "t=secret12\nt=secret12\n", `t=(\S+)`, false, "secret12", nil},
		{"twice", "t=secret12\nt=secret13\n", `t=(\S+)`, false, "", errMatches},
		{"none", "a=1\n", `t=(\S+)`, false, "", errNoMatch},
		{"empty", "t=\n", `t=(\S*)`, false, "", errNoMatch},
		{"basic", `{"auth":"` + auth("me:secret:12") + `"}`, `"auth":"([^"]*)"`, true, "secret:12", nil},
		{"basic without a user", `{"auth":"` + auth("secret12") + `"}`, `"auth":"([^"]*)"`, true, "", errNotBasic},
		{"no base64", `{"auth":"me:secret12"}`, `"auth":"([^"]*)"`, true, "", errNotBasic},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := fileOf(t, tt.text, tt.find, tt.basic).Value()
			if string(got) != tt.want || err != tt.err { //nolint:errorlint // these are not wrapped
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	for _, find := range []string{"t=", "(a)(b)", "(", "(?:a)"} {
		if _, err := CheckCredentialFind(find); err == nil {
			t.Errorf("%q is taken", find)
		}
	}
}

// TestCopies: of two values in one file neither is in the copy, nor that of a variable, in any form.
func TestCopies(t *testing.T) {
	const one, two, three = "npm_oneSecret123456", "twoSecret-654321", "ofAVariable9876"
	text := "a " + one + "\nb " + base64.StdEncoding.EncodeToString([]byte("u:"+two)) + "\nagain " + one +
		" " + three + "\n"
	makeFile := func(find string, basic bool) (*CredentialFile, []byte) {
		f := fileOf(t, text, find, basic)
		value, err := f.Value()
		if err != nil {
			t.Fatal(err)
		}
		return f, value
	}
	first, v1 := makeFile(`^a (\S+)`, false)
	second, v2 := makeFile(`^b (\S+)`, true)
	hosts := []string{"api.example.com"}
	s := open(t, Credential{Name: "one", Value: v1, Hosts: hosts, File: first},
		Credential{Name: "two", Value: v2, Hosts: hosts, File: second},
		Credential{Name: "three", Env: "T", Value: []byte(three), Hosts: hosts})
	got := string(s.Copies()["/f"])
	if len(s.Copies()) != 1 || len(got) != len(text) || len(s.Env()) != 1 {
		t.Errorf("%q, %v", s.Copies(), s.Env())
	}
	for _, secret := range []string{one, two, three, base64.StdEncoding.EncodeToString([]byte("u:" + two))} {
		if strings.Contains(got, secret) {
			t.Errorf("%q has %q", got, secret)
		}
	}
	d1, d2 := string(s.entries[0].dummy),
		base64.StdEncoding.EncodeToString([]byte("u:"+string(s.entries[1].dummy)))
	if strings.Count(got, d1) != 2 || !strings.Contains(got, "b "+d2+"\n") {
		t.Errorf("%q does not have %q and %q", got, d1, d2)
	}
	s.Close()
	if !bytes.Equal(first.Text, make([]byte, len(text))) {
		t.Errorf("the text is still there: %q", first.Text)
	}
}

// FuzzCopies: whatever a file has and however the value is found, it is not in the copy, and nothing
// ends the process.
func FuzzCopies(f *testing.F) {
	f.Add("a=secret1234\n", `a=(\S+)`, false)
	f.Add(`{"auth":"bWU6c2VjcmV0MTIzNA=="} secret1234`, `"auth":"([^"]+)"`, true)
	f.Add("secret1234secret1234", `(secret1234)`, false)
	f.Fuzz(func(t *testing.T, text, find string, basic bool) {
		re, err := CheckCredentialFind(find)
		if err != nil {
			return
		}
		file := &CredentialFile{Path: "/f", Text: []byte(text), Find: re, Basic: basic}
		value, err := file.Value()
		if err != nil {
			return
		}
		real := string(value)
		s, err := NewCredentials([]Credential{{Name: "n", Value: value, Hosts: []string{"api.example.com"},
			File: file}}, nil)
		if err != nil {
			return
		}
		defer s.Close()
		if got := string(s.Copies()["/f"]); strings.Contains(got, real) || len(got) != len(text) {
			t.Errorf("%q has %q", got, real)
		}
	})
}
