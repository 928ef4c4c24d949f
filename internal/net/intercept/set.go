// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/network"
)

// errClosed is the error of all that is done with a Set that was closed.
var errClosed = errors.New("credswap: the credentials were removed, as the command has ended")

// A Credentials is the credentials of one run. It can be used by several goroutines at once. The nil Set has
// none. Printed, logged and marshaled it is the names of its credentials.
type Credentials struct {
	mu      sync.RWMutex // held while values are used; guards closed
	closed  bool
	entries []*entry
	owned   [][]byte // everything to overwrite
	copies  map[string][]byte

	outward map[*entry]*table // dummies of one credential, to the real value
	misuse  map[*entry]*table // dummies of one credential, refused
	inward  *table            // real values, to dummies
}

// NewCredentials makes dummies for credentials. IsPublic is [network.Config.PublicSuffix]. The error is
// an [*Error]; all values have been overwritten then. Without credentials the Set is nil.
func NewCredentials(credentials []Credential, isPublic func(string) bool) (*Credentials, error) {
	if len(credentials) == 0 {
		return nil, nil
	}
	s := &Credentials{outward: map[*entry]*table{}, misuse: map[*entry]*table{}}
	for i := range credentials {
		s.owned = append(s.owned, credentials[i].Value)
		if f := credentials[i].File; f != nil {
			s.owned = append(s.owned, f.Text)
		}
	}
	if err := s.fill(credentials, isPublic); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Credentials) fill(credentials []Credential, isPublic func(string) bool) error {
	for i := range credentials {
		e, err := newEntry(&credentials[i], isPublic)
		if err != nil {
			return err
		}
		for _, o := range s.entries {
			if o.env == e.env && e.env != "" {
				return &CredentialError{e.name, fmt.Sprintf("%q uses the variable %s, too; set another env",
					o.name, e.env)}
			}
			if bytes.Equal(o.real, e.real) {
				return &CredentialError{e.name,
					fmt.Sprintf("%q has the same value; use one credential with the hosts of both", o.name)}
			}
		}
		s.entries = append(s.entries, e)
	}
	var taken [][]byte
	for _, e := range s.entries {
		taken = append(taken, e.real)
	}
	var inward []pair
	for i, e := range s.entries {
		if err := makeDummy(e, credentials[i].Shape, taken); err != nil {
			return err
		}
		taken = append(taken, e.dummy)
		out := s.forms(e.dummy, e.real, e)
		s.outward[e] = newTable(out)
		refused := make([]pair, len(out))
		for n := range out {
			refused[n] = pair{from: out[n].from, entry: e}
		}
		s.misuse[e] = newTable(refused)
		inward = append(append(inward, s.forms(e.real, e.dummy, e)...), s.encoded(e)...)
	}
	s.inward = newTable(inward)
	s.inward.mask = true
	return s.fillCopies(credentials)
}

// own has a copy of a value overwritten at the end.
func (s *Credentials) own(p []byte) []byte {
	s.owned = append(s.owned, p)
	return p
}

// forms returns how one value stands in texts, and another in its place: as it is, in a URL or form,
// and in a string of JSON. Punctuation is the same in both, so that lengths are.
func (s *Credentials) forms(from, to []byte, e *entry) []pair {
	pairs := []pair{{from, to, e}}
	for _, form := range []func(string) string{
		url.QueryEscape, url.PathEscape, smallEscapes, inJSON(true), inJSON(false),
		func(v string) string { return strings.ReplaceAll(v, "/", `\/`) },
	} {
		f, t := form(string(from)), form(string(to))
		if len(f) == len(t) && !slices.ContainsFunc(pairs, func(p pair) bool { return string(p.from) == f }) {
			pairs = append(pairs, pair{s.own([]byte(f)), s.own([]byte(t)), e})
		}
	}
	return pairs
}

// smallEscapes is url.QueryEscape with small letters behind "%".
func smallEscapes(v string) string {
	var b strings.Builder
	for i := range len(v) {
		if text := url.QueryEscape(v[i : i+1]); len(text) > 1 {
			b.WriteString(strings.ToLower(text))
		} else {
			b.WriteString(text)
		}
	}
	return b.String()
}

// inJSON returns how a value stands in a string of JSON.
func inJSON(html bool) func(string) string {
	return func(v string) string {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		_ = enc.Encode(v) // a string can always be encoded
		text := strings.TrimSuffix(b.String(), "\n")
		return text[1 : len(text)-1]
	}
}

// encoded returns the real value as it stands inside base64, behind any number of other bytes: what
// comes of a Basic that a server repeats. Characters at its ends that hold bits of other bytes, too, are
// left out but for those of an end.
func (s *Credentials) encoded(e *entry) (pairs []pair) {
	for skip := range 3 {
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			whole := (len(e.real) - skip) / 3 * 3
			for _, end := range []int{skip + whole, len(e.real)} {
				f, t := enc.EncodeToString(e.real[skip:end]), enc.EncodeToString(e.dummy[skip:end])
				// Without the padding, the last character is the same where it is left out.
				f, t = strings.TrimRight(f, "="), strings.TrimRight(t, "=")
				if len(f) >= minSecret && !slices.ContainsFunc(pairs,
					func(p pair) bool { return string(p.from) == f }) {
					pairs = append(pairs, pair{s.own([]byte(f)), s.own([]byte(t)), e})
				}
			}
		}
	}
	return pairs
}

// Env returns the variables of the command, with dummies.
func (s *Credentials) Env() map[string]string {
	env := map[string]string{}
	if s != nil {
		for _, e := range s.entries {
			if e.env != "" {
				env[e.env] = string(e.dummy)
			}
		}
	}
	return env
}

// Dummy returns the dummy of a credential; empty if there is none of that name.
func (s *Credentials) Dummy(name string) string {
	if s != nil {
		for _, e := range s.entries {
			if e.name == name {
				return string(e.dummy)
			}
		}
	}
	return ""
}

// Intercepts reports whether a host gets a credential, so that its TLS is to be looked into.
func (s *Credentials) Intercepts(host network.Host, port uint16) bool {
	return s != nil && len(s.forHost(host, port)) > 0
}

// Guards reports whether a host gets a credential at any port, so that it can give the value back at each.
func (s *Credentials) Guards(host network.Host) bool {
	return s != nil && slices.ContainsFunc(s.entries,
		func(e *entry) bool { return e.hosts.DecideName(host).Ruling == network.Allow })
}

// Names returns the hosts that are named as such, and not by a wildcard, to get a credential.
func (s *Credentials) Names() (names []network.Host) {
	if s != nil {
		for _, e := range s.entries {
			names = append(names, e.hosts.Names()...)
		}
	}
	return names
}

// forHost returns the credentials that a host may get.
func (s *Credentials) forHost(host network.Host, port uint16) (own []*entry) {
	for _, e := range s.entries {
		if e.isFor(host, port) {
			own = append(own, e)
		}
	}
	return own
}

// enter reports whether values may be used, until mu is unlocked for reading.
func (s *Credentials) enter() bool {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return false
	}
	return true
}

// Close overwrites all values. What is under way fails. It can be called more than once.
func (s *Credentials) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, p := range s.owned {
		clear(p)
	}
}

// names is the Set for people.
func (s *Credentials) names() string {
	var names []string
	if s != nil {
		for _, e := range s.entries {
			names = append(names, e.name)
		}
	}
	return "credentials(" + strings.Join(names, ", ") + ")"
}

// String returns the names of the credentials.
func (s *Credentials) String() string { return s.names() }

// GoString returns the names of the credentials.
func (s *Credentials) GoString() string { return s.names() }

// Format writes the names of the credentials, whatever the verb.
func (s *Credentials) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.names()) }

// LogValue implements slog.LogValuer with the names of the credentials.
func (s *Credentials) LogValue() slog.Value { return slog.StringValue(s.names()) }

// MarshalJSON implements json.Marshaler with the names of the credentials.
func (s *Credentials) MarshalJSON() ([]byte, error) { return json.Marshal(s.names()) }
