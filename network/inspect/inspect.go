// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inspect opens TLS for network policies of programs that use sallyport as a library: for the mode
// [network.Limited], for [network.Config.Rules], and for credentials that a command uses and does not get.
//
// Set [network.Config.Inspector] to [Inspection.Inspector], and, with credentials, the member Runtime of
// sallyport.EnvPolicy to [Inspection.Env]. See docs/network.md for what is opened, how
// programs come to trust it, and what it does not stop.
package inspect

import (
	"os"

	"github.com/sallyport-dev/sallyport/internal/net/intercept"
	"github.com/sallyport-dev/sallyport/network"
)

// A Credential is one that a command uses and does not get: the command has a dummy of the same shape, and
// requests over TLS to the hosts of the credential get the value in its place.
type Credential struct {
	Name string // for people, in denials; not empty
	Env  string // the variable of the command with the dummy; not empty, and of one credential only
	// 8 bytes or more of ASCII without spaces; [New] takes it over, and overwrites it at the end
	Value []byte
	Hosts []string // patterns of hosts that get the value, as those of network.Entry; at least one, not "*"
	// Where lists the places in which the dummy is replaced: header, basic, bearer, query, body. None means
	// the first three.
	Where []string
	// Shape is how the value begins, and the dummy too. Empty means the prefixes of known services.
	Shape string
}

// A CredentialError says what is wrong with a credential. It never has its value.
type CredentialError = intercept.CredentialError

// Options are what TLS is opened with. The zero Options have no credentials, and trust what the system and
// the variables of this process name (SSL_CERT_FILE and others).
type Options struct {
	// ExtraCA are files of certificates (PEM) by which servers are verified, too. They are read when a
	// command needs them first; a start fails with the file that cannot be read.
	ExtraCA     []string
	Credentials []Credential
}

// An Inspection opens TLS with an authority that is made once in this process, whose key never leaves its
// memory. It may be used by several goroutines at once.
type Inspection struct {
	by      *intercept.Interceptor
	secrets *intercept.Credentials // nil for none
}

// New returns an Inspection. The error is a [*CredentialError]; all values have been overwritten then.
func New(o Options) (*Inspection, error) {
	i := &Inspection{by: intercept.Shared(o.ExtraCA, os.Getenv)}
	var list []intercept.Credential
	for _, c := range o.Credentials {
		list = append(list, intercept.Credential{Name: c.Name, Env: c.Env, Value: c.Value, Hosts: c.Hosts,
			Where: c.Where, Shape: c.Shape})
	}
	var err error
	if i.secrets, err = intercept.NewCredentials(list, intercept.IsPublicSuffix); err != nil {
		return nil, err
	}
	if i.secrets != nil {
		i.by = i.by.With(i.secrets)
	}
	return i, nil
}

// Inspector is for [network.Config.Inspector], of one policy or of several.
func (i *Inspection) Inspector() network.Inspector { return i.by }

// Env returns the variables of commands, with dummies, which are new for each Inspection.
func (i *Inspection) Env() map[string]string { return i.secrets.Env() }

// Dummy returns the dummy of a credential, such as for [network.RequestRule.Set]; empty if there is none of
// that name.
func (i *Inspection) Dummy(name string) string { return i.secrets.Dummy(name) }

// Close overwrites the values of the credentials. The commands must have ended; requests that are under way
// fail. It may be called twice.
func (i *Inspection) Close() { i.secrets.Close() }
