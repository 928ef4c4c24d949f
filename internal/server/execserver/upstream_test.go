// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/network"
)

// TestUpstream: the server's variables name the proxy of a client's process, where the client allows one.
func TestUpstream(t *testing.T) {
	for _, test := range []struct {
		name, variable string
		allow          bool
		want           string
	}{
		{"none", "A=b", true, ""},
		{"one", "HTTPS_PROXY=http://dev:s3cret@proxy:3128", true, "http://***@proxy:3128"},
		{"not wanted", "HTTPS_PROXY=http://proxy:3128", false, ""},
		{"malformed", "HTTPS_PROXY=ftp://dev:s3cret@x", true, "invalid upstream proxy in HTTPS_PROXY"},
		{"malformed, not wanted", "HTTPS_PROXY=ftp://x", false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &Server{opts: Options{Environ: []string{test.variable}}}
			c, err := hostConfig(&wire.NetworkProxy{Proxy: wire.ProxyConfig{AllowUpstream: test.allow,
				Mode: "full"}}, s)
			policy, perr := network.New(c)
			if perr != nil {
				t.Fatal(perr)
			}
			host, herr := network.ParseHost("example.com")
			if herr != nil {
				t.Fatal(herr)
			}
			got := ""
			if u := policy.Upstream(network.Request{Protocol: network.HTTPSConnect, Host: host,
				Port: 443}); u != nil {
				got = u.String()
			}
			if err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, test.want) || test.want == "" && got != "" ||
				strings.Contains(got, "s3cret") {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
