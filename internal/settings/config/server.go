// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Server is an exec-server that flags name. The zero Server is none.
type Server struct {
	URL       string
	TokenFile string // holds the token for it; empty for none
	// Cert has the certificate of this client with those between it and the root, and Key its private
	// key; CA has the certificates of which one signed the server's, in place of the system's. All are
	// files in PEM form; empty for none.
	Cert, Key, CA string
	// Creds has the credentials for the hub of a fleet, and Queue is how long a run waits for a free slot
	// there: zero is not at all. Both are for nats:// only.
	Creds string
	Queue time.Duration
}

// A ServerFile is a file of a Server: the flag and its value, which may be empty.
type ServerFile struct{ Flag, Name string }

// Files returns the files with which this client and the server prove who they are.
func (s *Server) Files() []ServerFile {
	return []ServerFile{
		{"--remote-token-file", s.TokenFile}, {"--remote-tls-cert", s.Cert},
		{"--remote-tls-key", s.Key}, {"--remote-tls-ca", s.CA}, {"--creds", s.Creds},
	}
}

// IsFleet reports whether the URL is that of the hub of a fleet, whose nodes are meant: nats://, or tls://
// for one that must have TLS.
func (s *Server) IsFleet() bool {
	scheme, _, _ := strings.Cut(s.URL, ":")
	return strings.EqualFold(scheme, "nats") || strings.EqualFold(scheme, "tls")
}

// Check returns what is wrong with the flags together.
func (s *Server) Check() error {
	for _, f := range s.Files() {
		switch {
		case f.Name == "":
		case s.URL == "":
			return fmt.Errorf("%s is for --remote URL", f.Flag)
		case f.Flag == "--creds" || s.IsFleet() && f.Flag == "--remote-tls-ca":
		case s.IsFleet():
			return fmt.Errorf("%s is not for --remote nats://; use --creds", f.Flag)
		case f.Name != s.TokenFile && !strings.HasPrefix(strings.ToLower(s.URL), "wss:"):
			return fmt.Errorf("%s needs --remote wss://HOST:PORT: other URLs are not encrypted", f.Flag)
		}
	}
	switch {
	case (s.Cert == "") != (s.Key == ""):
		return errors.New("--remote-tls-cert and --remote-tls-key are needed together")
	case s.Creds != "" && !s.IsFleet():
		return errors.New("--creds needs --remote nats://HOST:PORT")
	case s.Queue != 0 && !s.IsFleet():
		return errors.New("--queue needs --remote nats://HOST:PORT")
	}
	return nil
}
