// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestManagedTools: programs that people use reach an allowed host by the variables alone, and the
// line about a refused one names it.
func TestManagedTools(t *testing.T) {
	t.Parallel()
	s := newManagedStage(t)
	origin := originOf(t, "hello")
	for _, tool := range []struct {
		name  string
		words []string // the URL comes last
	}{
		{"curl", []string{"curl", "-sSf"}},
		{"wget", []string{"wget", "-qO-"}},
		{"python3", []string{"python3", "-c", "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode(), end='')"}},
	} {
		t.Run(tool.name, func(t *testing.T) {
			testenv.NeedPeer(t, tool.name)
			run := func(url string) (string, string, error) {
				words := append([]string{"--allow-host", origin, "--"},
					append(slices.Clone(tool.words), url)...)
				cmd := s.command(t, nil, words...)
				cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"))
				var errs strings.Builder
				cmd.Stderr = &errs
				out, err := cmd.Output()
				return string(out), errs.String(), err
			}
			if out, errs, err := run("http://" + origin + "/x"); out != "hello" || errs != "" || err != nil {
				t.Errorf("%q, %q, %v", out, errs, err)
			}
			const line = "sallyport: blocked: connect to refused.example:80; allow with --allow-host refused.example:80\n"
			if out, errs, err := run("http://refused.example/"); out != "" ||
				!strings.HasSuffix(errs, line) || err == nil {
				t.Errorf("%q, %q, %v", out, errs, err)
			}
			const tls = "sallyport: blocked: connect to refused.example:443; allow with --allow-host refused.example:443\n"
			if out, errs, err := run("https://refused.example/"); out != "" ||
				!strings.HasSuffix(errs, tls) || err == nil {
				t.Errorf("%q, %q, %v", out, errs, err)
			}
		})
	}
}

// TestManagedGit clones over HTTP.
func TestManagedGit(t *testing.T) {
	t.Parallel()
	testenv.NeedProgram(t, "git")
	at, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	testenv.NeedPeer(t, filepath.Join(strings.TrimSpace(string(at)), "git-remote-http"))
	s := newManagedStage(t)
	repository := filepath.Join(s.root, "r.git")
	for _, words := range [][]string{
		{"init", "-q", "--bare", repository}, {"-C", repository, "update-server-info"},
	} {
		if out, err := exec.Command("git", words...).CombinedOutput(); err != nil {
			t.Fatalf("%s, %v", out, err)
		}
	}
	files := httptest.NewServer(http.FileServer(http.Dir(s.root)))
	t.Cleanup(files.Close)
	_, port, err := net.SplitHostPort(files.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	url := "http://localhost:" + port + "/r.git"
	if out, err := s.command(t, nil, "--allow-host", "localhost:"+port, "--", "git", "ls-remote",
		url).CombinedOutput(); len(out) > 0 || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	out, err := s.command(t, nil, "--net", "proxy", "--", "git", "ls-remote", url).CombinedOutput()
	if !strings.Contains(string(out), ": this machine has a service at port "+port+
		"; allow with --grant loopback:"+port) || err == nil {
		t.Errorf("%q, %v", out, err)
	}
}
