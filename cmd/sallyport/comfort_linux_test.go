// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/net/access"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// actOwn does what is about a command's own servers: "own ADDRESS" is fetchOwn, and "listen ADDRESS" listens
// there twice, one time after the other.
func actOwn(what string, next func() string) error {
	switch what {
	case "own":
		return fetchOwn(next())
	case "listen":
		at := next()
		for range 2 {
			l, err := net.Listen("tcp", at)
			if err != nil {
				return err
			}
			l.Close()
		}
		return nil
	}
	return errNotMine
}

// fetchOwn serves a word at an address of the command's own loopback interface, and prints what comes by each
// name that the command has, through the proxy.
func fetchOwn(at string) error {
	l, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	defer l.Close()
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "own") })
	go func() { _ = http.Serve(l, answer) }() //nolint:gosec // it ends with the process
	proxy, err := url.Parse(os.Getenv("HTTP_PROXY"))
	if err != nil {
		return err
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	for _, host := range []string{"localhost", "127.0.0.1", "[::1]", "0.0.0.0", name} {
		at := fmt.Sprintf("http://%s:%d/", host, netip.MustParseAddrPort(l.Addr().String()).Port())
		if err := fetch(http.ProxyURL(proxy), at); err != nil {
			return err
		}
	}
	return nil
}

// readGreeting connects to a server that speaks first, as those of SSH do, without the proxy's variables,
// and prints its first line and the answer to one of ours.
func readGreeting(from string) error {
	conn, err := net.Dial("tcp", from)
	var no *net.DNSError
	if errors.As(err, &no) {
		fmt.Println("not found:", no.IsNotFound)
		return nil
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	first, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	fmt.Fprint(conn, "SSH-2.0-client\r\n")
	second, err := r.ReadString('\n')
	fmt.Printf("%q %q\n", first, second)
	return err
}

// TestOwnServers: with one host open a command reaches its own servers by all of its names, also where a
// program asks the proxy for them.
func TestOwnServers(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	s := newManagedStage(t)
	for _, at := range []string{"127.0.0.1:0", "[::1]:0", ":0"} {
		r := s.json(t, "--allow-host", "example.org", "--", "act", "own", at,
			"variable", "NO_PROXY", "variable", "no_proxy")
		hosts := strings.Join(access.OwnHosts(), ",") + "\n"
		want := strings.Repeat("200 own\n", 5) + "NO_PROXY=" + hosts + "no_proxy=" + hosts
		if r.Output != want || len(r.Denials) > 0 {
			t.Errorf("%s: %q, want %q; denials %v", at, r.Output, want, r.Denials)
		}
	}
}

// TestNetworkSuggestions runs commands that fail because of the network, takes the suggestion word by word,
// and runs them again with it.
func TestNetworkSuggestions(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	s := newManagedStage(t)
	origin := originOf(t, "hello")
	_, port, _ := strings.Cut(origin, ":")
	for _, test := range []struct {
		name, script, want string
		flags              []string
	}{
		{"a service of this machine, without a network", "act direct http://127.0.0.1:" + port + "/",
			"(ECONNREFUSED): this machine has a service at port " + port + "; allow with --grant loopback:" + port,
			nil},
		{"a service of this machine, with a host", "act direct http://127.0.0.1:" + port + "/",
			"this machine has a service at port " + port + "; allow with --grant loopback:" + port,
			[]string{"--allow-host", "example.org"}},
		{"by the proxy", "act fetch http://localhost:" + port + "/",
			"blocked: connect to localhost:" + port + ": this machine has a service at port " + port +
				"; allow with --grant loopback:" + port, []string{"--allow-host", "example.org"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			command := func(flags ...string) (string, error) {
				words := append(slices.Concat(test.flags, flags), "--", "sh", "-c",
					test.script+" | grep -q '200 hello'")
				out, err := s.command(t, nil, words...).CombinedOutput()
				return string(out), err
			}
			said, err := command()
			if err == nil {
				t.Fatal("it succeeds without the suggestion")
			}
			_, flags, ok := strings.Cut(strings.TrimSpace(said), "; allow with ")
			if !strings.Contains(said, test.want) || !ok {
				t.Fatalf("%q, want %q", said, test.want)
			}
			if said, err := command(strings.Fields(flags)...); err != nil {
				t.Errorf("with %s: %q, %v", flags, said, err)
			}
		})
	}
}

// TestFailedLookUp: a name that the policy allows and that has no address is told as what it is, and so are
// variables of the caller that the network sets.
func TestFailedLookUp(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	s := newManagedStage(t)
	cmd := s.command(t, nil, "--allow-host", "nosuch.invalid", "-e", "NO_PROXY=x.example", "--", "sh", "-c",
		"act tunnel nosuch.invalid:443; exit 3")
	out, err := cmd.Output()
	exit, ok := err.(*exec.ExitError) //nolint:errorlint // as it is returned
	if !ok || exit.ExitCode() != 3 {
		t.Fatal(err)
	}
	const cause = "cannot resolve nosuch.invalid: "
	said := string(exit.Stderr)
	if string(out) != "502 \n" || !strings.Contains(said, "sallyport: "+cause) ||
		!strings.Contains(said, "(the network policy allows it)\n") ||
		!strings.Contains(said, "the managed network sets NO_PROXY, so the values given are not used") {
		t.Errorf("%q, %q", out, said)
	}
}

// TestListens: a port at which a command listens in its own network is told by an event, once.
func TestListens(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	s := newManagedStage(t)
	port := freePort(t)
	cmd := s.command(t, nil, "--jsonl", "--", "act", "listen", "127.0.0.1:"+port)
	out, err := cmd.Output()
	if n := strings.Count(string(out), `"type":"listening"`); err != nil || n != 1 ||
		!strings.Contains(string(out), `"port":`+port+`}`) {
		t.Errorf("%v, %d events: %s", err, n, out)
	}
}
