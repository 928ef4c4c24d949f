// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/network"
)

// A Credential says what a command uses and does not get.
type Credential struct {
	Name string // for people; not empty
	// Env is the variable in which the command gets the dummy; empty for none, with a File.
	Env string
	// File is where the value is from, and the command sees the dummy; nil for no file.
	File *CredentialFile
	// Value is the real value. [NewCredentials] takes it over: it is overwritten when the Set is closed.
	Value []byte
	// Hosts are patterns of hosts that get the real value; at least one. "*" is refused.
	Hosts []string
	// Where lists the places in which the dummy is replaced, of [CredentialPlaces]. None means header, basic
	// and bearer.
	Where []string
	// Shape is how the value begins, and the dummy too. Empty means the prefixes of known services.
	Shape string
}

// A place is a part of a request.
type place uint8

const (
	inHeader place = 1 << iota // every value of a header
	inBasic                    // the user and password of Authorization: Basic
	inBearer                   // Authorization: Bearer
	inQuery
	inBody
)

// CredentialPlaces are the words of [Credential.Where].
var CredentialPlaces = []string{"header", "basic", "bearer", "query", "body"}

const (
	// minSecret is the least length of a value, in bytes: a shorter one is found by chance in what has
	// nothing to do with it.
	minSecret = 8
	// maxSecret bounds what a stream has to keep back, in bytes.
	maxSecret = 16 << 10
)

// A CredentialError is what is wrong with a credential. It never has its value.
type CredentialError struct {
	Name   string // of the credential
	Reason string // a clause, with the fix
}

// Error returns the name and the reason.
func (e *CredentialError) Error() string { return fmt.Sprintf("credential %q: %s", e.Name, e.Reason) }

// A CredentialMisuseError says that the dummy of a credential was sent where it does not belong.
type CredentialMisuseError struct {
	Name  string // of the credential
	Host  string // with the port, where the request was going
	Plain bool   // the request was not encrypted
}

// Error returns the name, the host and the fix.
func (e *CredentialMisuseError) Error() string {
	if e.Plain {
		return fmt.Sprintf("the credential %q was sent to %s over plain HTTP; use https", e.Name, e.Host)
	}
	return fmt.Sprintf("the credential %q was sent to %s, which is not one of its hosts; add the host to network.credentials.%s.hosts if it may have it", e.Name, e.Host, e.Name)
}

// Credential returns its name.
func (e *CredentialMisuseError) Credential() string { return e.Name }

// An entry is a credential that is in use.
type entry struct {
	name, env   string
	where       place
	hosts       *network.Policy
	real, dummy []byte
}

// newEntry checks a credential. It has no dummy yet.
func newEntry(c *Credential, isPublic func(string) bool) (*entry, error) {
	fail := func(format string, args ...any) (*entry, error) {
		return nil, &CredentialError{c.Name, fmt.Sprintf(format, args...)}
	}
	e := &entry{name: c.Name, env: c.Env, real: c.Value}
	switch {
	case c.Name == "" || c.Env == "" && c.File == nil:
		return fail("it needs a name and a variable; set env")
	case len(c.Value) < minSecret:
		return fail("its value has %d bytes, and the minimum is %d; a shorter one cannot be told from other text",
			len(c.Value), minSecret)
	case len(c.Value) > maxSecret:
		return fail("its value has %d bytes, and the maximum is %d", len(c.Value), maxSecret)
	case slices.ContainsFunc(c.Value, func(b byte) bool { return b <= ' ' || b > '~' }):
		return fail("its value has characters that are not printable ASCII, or spaces; only values that fit into a header can be replaced")
	case c.Shape != "" && !strings.HasPrefix(string(c.Value), c.Shape):
		return fail("its value does not begin with its shape %q; correct or remove shape", c.Shape)
	case len(c.Hosts) == 0:
		return fail("no host may get it; set hosts")
	}
	for _, word := range c.Where {
		i := slices.Index(CredentialPlaces, word)
		if i < 0 {
			return fail("%q is not a place (%s)", word, strings.Join(CredentialPlaces, ", "))
		}
		e.where |= 1 << i
	}
	if e.where == 0 {
		e.where = inHeader | inBasic | inBearer
	}
	var err error
	e.hosts, err = CheckCredentialHosts(c.Hosts, isPublic)
	if err != nil {
		return fail("%v", err)
	}
	return e, nil
}

// CheckCredentialHosts returns a policy that allows the hosts of a credential. IsPublic is
// [network.Config.PublicSuffix].
func CheckCredentialHosts(patterns []string, isPublic func(string) bool) (*network.Policy, error) {
	c := network.Config{Mode: network.Full, PublicSuffix: isPublic}
	for _, p := range patterns {
		if name, _, _ := strings.Cut(p, ":"); name == "*" {
			return nil, fmt.Errorf("hosts: %q is every host; name the hosts that may get it", p)
		}
		c.Entries = append(c.Entries, network.Entry{Pattern: p})
	}
	policy, err := network.New(c)
	var bad *network.EntryError
	if errors.As(err, &bad) {
		return nil, fmt.Errorf("hosts: %q: %s", bad.Entry.Pattern, bad.Reason)
	}
	return policy, err
}

// isFor reports whether a host may get the credential.
func (e *entry) isFor(host network.Host, port uint16) bool {
	return e.hosts.Decide(network.Request{Protocol: network.HTTPSConnect, Host: host,
		Port: port}).Ruling == network.Allow
}
