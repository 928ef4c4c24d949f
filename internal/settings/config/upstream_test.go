// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/network"
)

// TestUpstream: which layers set the proxy, and that nothing shows its password.
func TestUpstream(t *testing.T) {
	p := newPlace(t)
	const ours = `network.upstream = "http://dev:s3cret@proxy:3128"`
	env := []string{"HTTPS_PROXY=http://dev:s3cret@env:1", "https_proxy_x=y"}
	for _, test := range []struct {
		name  string
		world world
		want  string // part of the error with ":" before it
	}{
		{"nothing", world{}, "none"},
		{"environment", world{environ: env}, "http://***@env:1 for all but plain HTTP"},
		{"user", world{user: ours, environ: env}, "http://***@proxy:3128"},
		{"user: none", world{user: "network.upstream = 'none'", environ: env}, "none"},
		{"a malformed variable", world{environ: []string{"HTTPS_PROXY=ftp://dev:s3cret@x"}}, ":invalid upstream proxy in HTTPS_PROXY: its scheme is not http, https or socks5h; write http://[USER:PASSWORD@]HOST:PORT, socks5h://HOST:PORT, or none, or set network.upstream"},
		{"a malformed variable that does not count", world{user: ours, environ: []string{"HTTPS_PROXY=ftp://x"}}, "http://***@proxy:3128"},
		{"a malformed setting", world{user: `network.upstream = "ftp://dev:s3cret@x"`}, ":config.toml:1:20: "},
		{"project", world{project: ours}, ":a project cannot set network.upstream"},
		{"project, opened", world{project: "[project]\n" + ours}, ":network.upstream"},
		{"managed", world{managed: ours, environ: env}, "http://***@proxy:3128"},
		{"managed over user", world{managed: "network.upstream = 'none'", user: ours}, "none"},
		{"managed with another password", world{managed: `network.upstream = "http://dev:0s3cret@proxy:3128"`, user: ours}, "http://***@proxy:3128"},
		{"managed over user, environment", world{managed: "network.upstream = 'environment'", user: ours, environ: env}, "http://***@env:1 for all but plain HTTP"},
		{"a ceiling that lists other hosts", world{managed: "network.allow = ['example.com']", user: ours}, ":the upstream proxy http://***@proxy:3128 is more than the managed configuration allows"},
		{"and the environment", world{managed: "network.allow = ['example.com']", environ: env}, ":the upstream proxy http://***@env:1 is more"},
		{"another port", world{managed: "network.allow = ['proxy:443']", user: ours}, ":the upstream proxy"},
		{"a ceiling that lists it", world{managed: "network.allow = ['proxy:3128']", user: ours}, "http://***@proxy:3128"},
		{"a ceiling that names it", world{managed: "network.allow = ['example.com']\n" + ours, environ: env}, "http://***@proxy:3128"},
		{"a ceiling without one", world{managed: "network.allow = ['example.com']"}, "none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, err := test.world.resolve(t, p)
			var u *network.Upstream
			var shown string
			if err == nil {
				s := e.Show(true)
				text, jerr := json.Marshal(s)
				explained, xerr := e.Explain(keyUpstream)
				if jerr != nil || xerr != nil {
					t.Fatal(jerr, xerr)
				}
				shown = s.String() + string(text) + explained + strings.Join(e.Notes, " ")
				u, err = e.Upstream()
			}
			got := u.String()
			if err != nil {
				got = ":" + err.Error()
			}
			if want := test.want; want[0] == ':' != (err != nil) || err == nil && got != want ||
				!strings.Contains(got, want[1:]) {
				t.Errorf("%q, want %q", got, want)
			}
			var over *CeilingError
			if strings.Contains(test.want, "ceiling") && !errors.As(err, &over) {
				t.Errorf("%T", err)
			}
			if strings.Contains(shown+got, "s3cret") {
				t.Errorf("the password is shown:\n%s\n%s", shown, got)
			}
		})
	}
}

// TestUpstreamProcess: variables of another program do not choose the proxy.
func TestUpstreamProcess(t *testing.T) {
	c := &Config{in: Input{Environ: []string{"HTTPS_PROXY=http://theirs", "A=b"},
		Proxies: []string{"HTTPS_PROXY=http://ours", "HTTPS_PROXY=http://last"}}}
	if got := c.variable("HTTPS_PROXY"); got != "http://last" {
		t.Error(got)
	}
	c.in.Proxies = []string{}
	if got := c.variable("HTTPS_PROXY"); got != "" {
		t.Error(got)
	}
	c.in.Proxies = nil
	if got := c.variable("HTTPS_PROXY"); got != "http://theirs" {
		t.Error(got)
	}
}
