// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// encrypts makes certificates in a directory of the site, and returns the names of its files.
func (s *fleetSite) encrypts(t *testing.T, name string) (file func(string) string) {
	t.Helper()
	dir := filepath.Join(s.root, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	certificates(t, dir)
	return func(name string) string { return filepath.Join(dir, name) }
}

// hubTLS are the flags of a hub, or of a gateway, that encrypts.
func hubTLS(file func(string) string) []string {
	return []string{"--tls-cert", file("server"), "--tls-key", file("server.key")}
}

// TestFleetTLS: a hub with TLS serves nodes, gateways and clients that trust its certificate, and is told of
// tenants while it runs.
func TestFleetTLS(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	var file func(string) string
	var x, n string
	s := newFleet(t, func(s *fleetSite) {
		file = s.encrypts(t, "tls")
		s.hubFlags = hubTLS(file)
		x = s.adds(t, "tenant", "x")
	})
	n = s.adds(t, "node", "n", "--tenant", "x")
	ca := []string{"--tls-ca", file("ca")}
	s.start(t, "n", append([]string{"fleet", "node", "--creds", n}, ca...)...)
	secure := "tls" + strings.TrimPrefix(s.url, "nats")
	g := s.gateway(t, append(append(ca, hubTLS(file)...), "--nats", secure, "--creds", x, "--listen",
		"wss://127.0.0.1:0")...)
	for _, url := range []string{s.url, secure, g.first} {
		words := []string{"run", "--remote", url, "--remote-tls-ca", file("ca")}
		if url != g.first {
			words = append(words, "--creds", x)
		}
		if out := s.prints(t, append(words, "--", "echo", "hello")...); out != "hello" {
			t.Errorf("%s: %q", url, out)
		}
	}
	if nodes := s.lists(t, "nodes", append(ca, "--creds", x)...); len(nodes) != 1 || nodes[0].Name != "n" {
		t.Errorf("%+v", nodes)
	}
	y := s.adds(t, "tenant", "y")
	if nodes := s.lists(t, "nodes", append(ca, "--creds", y)...); len(nodes) != 0 {
		t.Errorf("%+v", nodes)
	}
	s.fails(t, 125, "no node", "run", "--remote", s.url, "--remote-tls-ca", file("ca"), "--creds", y, "--", "true")
}

// TestFleetTLSRefused: who does not trust the certificate of a hub sends it nothing, is told why at once with
// the fix, and ends, also where a hub that is not there would be waited for. So does who asks for TLS and
// finds a hub without.
func TestFleetTLSRefused(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	var file func(string) string
	s := newFleet(t, func(s *fleetSite) {
		file = s.encrypts(t, "tls")
		s.hubFlags = hubTLS(file)
	})
	other := s.encrypts(t, "other")
	s.start(t, "n", "fleet", "node", "--name", "n", "--tls-ca", file("ca"))
	plain := s.start(t, "plain", "fleet", "hub", "--store", filepath.Join(s.root, "plain"),
		"--listen", "127.0.0.1:0")
	s.start(t, "p", "fleet", "node", "--name", "p", "--nats", plain.first)
	named := strings.Replace(s.url, "127.0.0.1", "localhost", 1)
	made := filepath.Join(s.work, "made")
	for _, test := range []struct{ name, url, ca, want, fix string }{
		{"no authority", s.url, "", "unknown authority", "authority by CA\n"},
		{"another authority", s.url, other("ca"), "unknown authority", "authority by CA\n"},
		{"another name", named, file("ca"), "localhost", "use a name or an address"},
		{"no file", s.url, file("none"), "cannot read the certificates of CA", "no such file"},
		{"no PEM", s.url, file("ca.key"), "no certificate in PEM form", "CA names"},
		{"no TLS", plain.first, file("ca"), "no TLS", "start the hub with --tls-cert"},
		{"no TLS by URL", "tls" + strings.TrimPrefix(plain.first, "nats"), "", "no TLS", "leave tls:// and CA out"},
	} {
		for _, verb := range []struct{ name, flag, rest string }{
			{"run", "--remote-tls-ca", "--remote " + test.url + " -C " + s.work + " -- touch " + made},
			{"fleet nodes", "--tls-ca", "--nats " + test.url},
			{"fleet node", "--tls-ca", "--name m --nats " + test.url},
			{"fleet gateway", "--tls-ca", "--nats " + test.url},
		} {
			t.Run(test.name+"/"+verb.name, func(t *testing.T) {
				words := strings.Fields(verb.name)
				if test.ca != "" {
					words = append(words, verb.flag, test.ca)
				}
				words = append(words, strings.Fields(verb.rest)...)
				p := s.client(t, words...)
				code, said := p.code(t), p.log.String()
				for _, want := range []string{test.want, test.fix} {
					if !strings.Contains(said, strings.ReplaceAll(want, "CA", verb.flag)) {
						t.Errorf("no %q", want)
					}
				}
				if code != 125 || strings.Count(said, "\n") != 1 {
					t.Errorf("exit code %d, %q", code, said)
				}
			})
		}
	}
	if _, err := os.Stat(made); err == nil {
		t.Error("a command ran")
	}
}

// TestFleetTLSOnly: a hub with TLS closes a connection that is not encrypted, and says nothing there but that
// it needs TLS, also when it is started anew for its first tenant.
func TestFleetTLSOnly(t *testing.T) {
	t.Parallel()
	s := newFleet(t, func(s *fleetSite) { s.hubFlags = hubTLS(s.encrypts(t, "tls")) })
	for _, tenant := range []string{"", "x"} {
		if tenant != "" {
			s.adds(t, "tenant", tenant)
		}
		c, err := net.Dial("tcp", addressOf(s.url))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(c)
		info, err := r.ReadString('\n')
		if err != nil || !strings.Contains(info, `"tls_required":true`) {
			t.Errorf("%q, %v", info, err)
		}
		if _, err := io.WriteString(c, "CONNECT {\"verbose\":true}\r\nPING\r\nSUB > 1\r\n"); err != nil {
			t.Error(err)
		}
		rest, err := io.ReadAll(r) // it may be reset
		if errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(string(rest), "PONG") ||
			strings.Contains(string(rest), "+OK") {
			t.Errorf("it is served: %q, %v", rest, err)
		}
	}
}
