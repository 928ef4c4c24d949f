// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package intercept opens the TLS of a command's connections, so that each request in them is judged.
//
// To the client it is the server, with a certificate of its own authority; to the server it is a client
// that verifies as the parent of sallyport would. The key of the authority is in the memory of this process
// only. The package judges nothing itself: package netproxy decides about each request.
//
// [Credentials] keep real credentials from a command that uses them. The command gets a dummy; in
// its requests to the hosts of the credential the dummy is replaced by the real value, and in their
// responses the real value by the dummy. No real value is written anywhere but into a request.
//
// [IsPublicSuffix] knows the public suffixes of names.
package intercept

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/net/proxy"
)

// An Interceptor opens TLS with one authority. It costs nothing before it is used. Its methods may be called
// by several goroutines at once.
type Interceptor struct {
	extra  []string
	getenv func(string) string
	system []string // names of the system's bundle, the first that exists counts

	rewriter Rewriter // nil for none

	authority func() (*authority, error)
	roots     func() (*roots, error)
}

var (
	sharing sync.Mutex
	shared  = map[string]*Interceptor{}
)

// Shared returns the Interceptor of this process that trusts the certificates in the files extra beside
// those of the system and of the variables that getenv knows. The files are read when it is used first.
func Shared(extra []string, getenv func(string) string) *Interceptor {
	key := strings.Join(extra, "\x00")
	sharing.Lock()
	defer sharing.Unlock()
	i := shared[key]
	if i == nil {
		i = newInterceptor(slices.Clone(extra), getenv, systemBundles)
		shared[key] = i
	}
	return i
}

func newInterceptor(extra []string, getenv func(string) string, system []string) *Interceptor {
	i := &Interceptor{extra: extra, getenv: getenv, system: system}
	i.authority = sync.OnceValues(newAuthority)
	i.roots = sync.OnceValues(i.readRoots)
	return i
}

// With returns an Interceptor with the same authority that has requests changed.
func (i *Interceptor) With(r Rewriter) *Interceptor {
	other := *i
	other.rewriter = r
	return &other
}

// Rewriter implements [proxy.Interceptor].
func (i *Interceptor) Rewriter() proxy.Rewriter {
	if i.rewriter == nil {
		return nil
	}
	return i.rewriter
}

// InspectsTLS implements [network.Inspector].
func (i *Interceptor) InspectsTLS() {}

// Bundle implements [proxy.Interceptor]: what servers are verified by, and the authority. An error
// says which file cannot be read.
func (i *Interceptor) Bundle() (*proxy.Bundle, error) {
	r, err := i.roots()
	if err != nil {
		return nil, err
	}
	a, err := i.authority()
	if err != nil {
		return nil, err
	}
	store, err := trustStore(append(slices.Clone(r.raw), a.cert.Raw))
	if err != nil {
		return nil, err
	}
	return &proxy.Bundle{PEM: append(slices.Clone(r.text), encode(a.cert.Raw)...), PKCS12: store}, nil
}

// serverConfig is TLS towards a client that has asked for a host.
func (i *Interceptor) serverConfig(host string) (*tls.Config, error) {
	a, err := i.authority()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.leaf(host) },
	}, nil
}

// clientConfig is TLS towards the server of a host. Nothing turns its verification off.
func (i *Interceptor) clientConfig(host string) (*tls.Config, error) {
	r, err := i.roots()
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host, RootCAs: r.pool}, nil
}

// roots are the authorities that servers are verified by.
type roots struct {
	pool *x509.CertPool
	raw  [][]byte // the same, each for itself
	text []byte   // and as PEM
}
