// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// tokenVariable holds the token for a remote server.
const tokenVariable = "SALLYPORT_REMOTE_TOKEN"

// remote returns the server that flags name, with what its files hold.
func (o *Options) remote(env *Env) (target wire.ClientTarget, err error) {
	target.URL = o.target.URL
	in := reach.New(reach.Area{Workspace: env.Dir, HostTmp: true})
	files := append(o.target.Files(), config.ServerFile{Flag: args.CredsVariable, Name: credentials(env, &o.target)})
	for _, f := range files {
		if f.Name != "" {
			if err := in.Decides(f.Flag, absolute(env, f.Name)); err != nil {
				return target, err
			}
		}
	}
	if o.target.IsFleet() {
		return target, nil
	}
	if target.Token, err = token(env, o.target.TokenFile); err == nil {
		target.TLS, err = encryption(env, &o.target)
	}
	return target, err
}

// token returns the token for a server; empty for none.
func token(env *Env, file string) (string, error) {
	if file == "" {
		return env.Variable(tokenVariable), nil
	}
	s, err := os.ReadFile(absolute(env, file))
	if err != nil {
		return "", explain.NewError("cannot read the token: %v", err)
	}
	token := strings.TrimSpace(string(s))
	if token == "" {
		return "", explain.NewError("--remote-token-file %s is empty", text.Word(file))
	}
	return token, nil
}

// encryption returns the configuration that the files of a server make; nil for none of them.
func encryption(env *Env, s *config.Server) (*tls.Config, error) {
	if s.Cert == "" && s.CA == "" {
		return nil, nil //nolint:nilnil // that of the system
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.Cert != "" {
		pair, err := tls.LoadX509KeyPair(absolute(env, s.Cert), absolute(env, s.Key))
		if err != nil {
			return nil, explain.NewError("cannot use the certificate of --remote-tls-cert with the key of --remote-tls-key: %v", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if s.CA != "" {
		txt, err := os.ReadFile(absolute(env, s.CA))
		if err != nil {
			return nil, explain.NewError("cannot read the certificates of --remote-tls-ca: %v", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(txt) {
			return nil, explain.NewError("%s has no certificate in PEM form; --remote-tls-ca names the certificate that signs the server's", text.Word(s.CA))
		}
	}
	return c, nil
}

func absolute(env *Env, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(env.Dir, name)
}

// secrets returns the files with the secrets of the connection, where the server may be on this machine:
// a command in a sandbox there must not read them.
func secrets(env *Env, s *config.Server) []string {
	var files []string
	for _, name := range []string{s.Key, s.TokenFile, credentials(env, s)} {
		// a node of a fleet may be on this machine wherever the hub is
		if name == "" || !isHere(s.URL) && !s.IsFleet() {
			continue
		}
		name = absolute(env, name)
		if real, err := filepath.EvalSymlinks(name); err == nil {
			// one that is not there cannot be used either
			name = real
		}
		files = append(files, name)
	}
	return files
}

// isHere reports whether a URL leads to this machine, as far as it says so.
func isHere(target string) bool {
	u, err := url.Parse(target)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "unix" || strings.EqualFold(u.Hostname(), "localhost") || err == nil &&
		ip.Unmap().IsLoopback()
}
