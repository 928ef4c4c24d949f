// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// TestDummy: a dummy has the length, the prefix and the classes of characters of its value, and is
// another one.
func TestDummy(t *testing.T) {
	for _, c := range []struct{ name, value, shape, keeps string }{
		{"GitHub", github, "", "ghp_"},
		{"GitHub, fine-grained", "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz012345", "", "github_pat_"},
		{"OpenAI", "sk-proj-abcdefABCDEF0123456789", "", "sk-proj-"},
		{"a shorter prefix", "sk-abcdefABCDEF0123456789", "", "sk-"},
		{"Slack", "xoxb-123456789012-abcdefGHIJKL", "", "xoxb-"},
		{"AWS", "AKIAIOSFODNN7EXAMPLE", "", "AKIA"},
		{"JWT", jwt, "", "eyJ"},
		{"hexadecimal", "0123456789abcdef0123456789abcdef", "", ""},
		{"a password", "pa55w0rd!?&%", "", ""},
		{"the least", "abcdef12", "", ""},
		{"a shape", "acme-live-abcdef123456", "acme-live-", "acme-live-"},
		{"nearly all prefix", "ghp_abcd", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			credential := one(c.value)
			credential.Shape = c.shape
			dummy := dummyOf(t, open(t, credential), "ONE")
			if dummy == c.value || len(dummy) != len(c.value) || !strings.HasPrefix(dummy, c.keeps) {
				t.Fatalf("%q for %q", dummy, c.value)
			}
			for i := range dummy {
				if classOf(dummy[i], false) != classOf(c.value[i], false) ||
					classOf(c.value[i], false) == "" && dummy[i] != c.value[i] {
					t.Errorf("position %d: %q for %q", i, dummy[i], c.value[i])
				}
			}
			if isHex([]byte(c.value)) && !isHex([]byte(dummy)) {
				t.Errorf("%q is not hexadecimal", dummy)
			}
			if again := dummyOf(t, open(t, credentialOf(c.value, c.shape)), "ONE"); again == dummy {
				t.Errorf("%q twice", again)
			}
		})
	}
}

func credentialOf(value, shape string) Credential {
	c := one(value)
	c.Shape = shape
	return c
}

// TestNeverEqual: where a dummy could be the value, another one is made.
func TestNeverEqual(t *testing.T) {
	const value = "000000!!" // one of a million
	e := &entry{name: "one", real: []byte(value)}
	taken := [][]byte{e.real}
	for range 20000 {
		if err := makeDummy(e, "", taken); err != nil || bytes.Equal(e.real, e.dummy) {
			t.Fatalf("%q, %v", e.dummy, err)
		}
	}
	// Every dummy is taken.
	for _, d := range "0123456789" {
		taken = append(taken, []byte{byte(d)})
	}
	var bad *CredentialError
	if err := makeDummy(e, "", taken); !errors.As(err, &bad) {
		t.Errorf("%v", err)
	}
}

func TestRefused(t *testing.T) {
	fine := one(github)
	for _, c := range []struct {
		name   string
		change func(*Credential)
		want   string
	}{
		{"short", func(c *Credential) { c.Value = []byte("abc1234") }, "7 bytes, and the minimum is 8"},
		{"empty", func(c *Credential) { c.Value = nil }, "0 bytes"},
		{"huge", func(c *Credential) { c.Value = bytes.Repeat([]byte("a1"), maxSecret) }, "the maximum is"},
		{"lines", func(c *Credential) { c.Value = []byte("abcdefgh\nabcd") }, "not printable"},
		{"punctuation", func(c *Credential) { c.Value = []byte("----------ab") }, "too few letters"},
		{"all shape", func(c *Credential) { c.Shape = github[:36] }, "too few letters"},
		{"another shape", func(c *Credential) { c.Shape = "sk-" }, "does not begin with its shape"},
		{"no host", func(c *Credential) { c.Hosts = nil }, "set hosts"},
		{"every host", func(c *Credential) { c.Hosts = []string{"*"} }, "every host"},
		{"every host of a port", func(c *Credential) { c.Hosts = []string{"*:443"} }, "every host"},
		{"a wide wildcard", func(c *Credential) { c.Hosts = []string{"*.com"} }, "*.com"},
		{"no pattern", func(c *Credential) { c.Hosts = []string{"https://x"} }, "no scheme"},
		{"a place", func(c *Credential) { c.Where = []string{"path"} }, "not a place"},
		{"no variable", func(c *Credential) { c.Env = "" }, "set env"},
	} {
		t.Run(c.name, func(t *testing.T) {
			one := fine
			one.Value = []byte(github)
			c.change(&one)
			value := one.Value
			s, err := NewCredentials([]Credential{one}, func(name string) bool { return name == "com" })
			var bad *CredentialError
			if s != nil || !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, %v", s, err)
			}
			if len(value) > 0 && (strings.Contains(err.Error(), string(value)) || !zero(value)) {
				t.Errorf("%v, %q", err, value)
			}
		})
	}
	for name, second := range map[string]Credential{
		"the same variable": {Name: "two", Env: "ONE", Value: []byte("abcdefgh1"), Hosts: []string{"b.example.com"}},
		"the same value":    {Name: "two", Env: "TWO", Value: []byte(github), Hosts: []string{"b.example.com"}},
	} {
		if _, err := NewCredentials([]Credential{one(github), second}, nil); err == nil ||
			!strings.Contains(err.Error(), `"one"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func zero(p []byte) bool { return len(bytes.Trim(p, "\x00")) == 0 }

// TestClose: nothing of a value is left, and nothing is done any more.
func TestClose(t *testing.T) {
	value := []byte("p&ss/w?rd" + github)
	s, err := NewCredentials([]Credential{{Name: "one", Env: "ONE", Value: value,
		Hosts: []string{"api.example.com"}, Where: CredentialPlaces}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := string(value)
	src := pieces{[]byte("a"), []byte(kept)}
	in := newStream(s, &src, s.inward)
	if _, err := in.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.Close()
	for _, table := range []*table{s.inward, s.outward[s.entries[0]], s.misuse[s.entries[0]]} {
		for _, p := range table.pairs {
			if strings.Contains(string(p.from)+string(p.to), github[4:20]) {
				t.Errorf("%q to %q", p.from, p.to)
			}
		}
	}
	for _, p := range s.owned {
		if !zero(p) {
			t.Errorf("%q", p)
		}
	}
	if out, err := io.ReadAll(in); !errors.Is(err, errClosed) || len(out) > 0 {
		t.Errorf("%q, %v", out, err)
	}
	r, _ := http.NewRequest("GET", "https://api.example.com/", nil)
	if err := s.Request(host(t, "api.example.com"), 443, false, r); !errors.Is(err, errClosed) {
		t.Errorf("%v", err)
	}
	if err := s.Response(host(t, "api.example.com"), 443, false,
		new(http.Response)); !errors.Is(err, errClosed) {
		t.Errorf("%v", err)
	}
	if err := s.Plain("x:80", "y"); !errors.Is(err, errClosed) {
		t.Errorf("%v", err)
	}
}

// TestPrinted: no way of printing a Set, or what holds one, shows a value.
func TestPrinted(t *testing.T) {
	s := open(t, one(github))
	holder := struct {
		S *Credentials
		I any
	}{s, s}
	var b bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%X", "%T"} {
		fmt.Fprintf(&b, verb+" "+verb+"\n", s, holder)
	}
	log := slog.New(slog.NewJSONHandler(&b, nil))
	log.Info("x", "set", s, "holder", holder)
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "set", s, "holder", holder)
	_ = json.NewEncoder(&b).Encode(holder)
	b.WriteString(s.String() + s.GoString())
	text := b.String()
	for _, v := range []string{github, dummyOf(t, s, "ONE"), fmt.Sprintf("%x", github),
		fmt.Sprintf("%X", github), strings.Trim(fmt.Sprintf("%d", []byte(github)), "[]")} {
		if strings.Contains(text, v) {
			t.Errorf("%q is in %s", v, text)
		}
	}
	if !strings.Contains(text, "credentials(one)") {
		t.Error(text)
	}
	var none *Credentials
	if none.String() != "credentials()" || len(none.Env()) > 0 || none.Intercepts(host(t, "x.example"), 443) {
		t.Errorf("%v", none)
	}
	none.Close()
}
