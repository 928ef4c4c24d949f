// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"testing"

	"github.com/sallyport-dev/sallyport/network"
)

// Values are no real ones.
const (
	github = "ghp_" + "9aB3cD4eF5gH6iJ7kL8mN9oP0qR1sT2uV3wX"
	jwt    = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
)

// open makes a Set, which is closed at the end.
func open(t testing.TB, credentials ...Credential) *Credentials {
	t.Helper()
	s, err := NewCredentials(credentials, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// one returns a credential for api.example.com.
func one(value string, where ...string) Credential {
	return Credential{Name: "one", Env: "ONE", Value: []byte(value),
		Hosts: []string{"api.example.com"}, Where: where}
}

func host(t testing.TB, name string) network.Host {
	t.Helper()
	h, err := network.ParseHost(name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// dummyOf returns the dummy of a variable.
func dummyOf(t testing.TB, s *Credentials, env string) string {
	t.Helper()
	d := s.Env()[env]
	if d == "" {
		t.Fatalf("no dummy for %s", env)
	}
	return d
}

// pieces is a reader that returns given pieces, one a read.
type pieces [][]byte

func (p *pieces) Read(b []byte) (int, error) {
	for len(*p) > 0 && len((*p)[0]) == 0 {
		*p = (*p)[1:]
	}
	if len(*p) == 0 {
		return 0, errEnd
	}
	n := copy(b, (*p)[0])
	(*p)[0] = (*p)[0][n:]
	return n, nil
}

func (*pieces) Close() error { return nil }

// wholly is what a table makes of a text, without the machinery of streams.
func wholly(t *table, text []byte) []byte {
	out := []byte{}
	for i := 0; i < len(text); {
		best := -1
		for n := range t.pairs {
			if bytes.HasPrefix(text[i:], t.pairs[n].from) &&
				(best < 0 || len(t.pairs[n].from) > len(t.pairs[best].from)) {
				best = n
			}
		}
		if best < 0 {
			out = append(out, text[i])
			i++
			continue
		}
		out = append(out, t.pairs[best].to...)
		i += len(t.pairs[best].from)
	}
	return out
}
