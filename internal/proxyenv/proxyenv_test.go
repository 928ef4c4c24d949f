// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxyenv

import (
	goflag "flag"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = goflag.Bool("update", false, "write the golden file anew")

var at = netip.MustParseAddrPort("127.0.0.1:3128")

// TestGolden compares the variables of an empty environment with those of the golden file.
func TestGolden(t *testing.T) {
	const golden = "testdata/variables.golden"
	got := strings.Join(Set(nil, Proxy{At: at}), "\n") + "\n"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("run with -update after a look at this:\n%s", diff)
	}
}

// TestTable: every variable has one row, and a reader.
func TestTable(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range table {
		if seen[r.name] || r.readers == "" || strings.ContainsAny(r.name, "= ") {
			t.Errorf("%+v", r)
		}
		seen[r.name] = true
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "WS_PROXY", "WSS_PROXY", "GRPC_PROXY", "NO_PROXY"} {
		if !seen[name] || !seen[strings.ToLower(name)] {
			t.Errorf("%s is not there in both cases", name)
		}
	}
}

// TestStale: what was inherited leads nowhere, and other variables stay as they are.
func TestStale(t *testing.T) {
	env := []string{
		"A=1", "HTTPS_PROXY=http://user:secret@proxy.example:8080", "no_proxy=localhost,10.0.0.0/8", "npm_config_noproxy=*",
		"http_proxy", "B=HTTP_PROXY=x", "HTTP_PROXY_X=stays", "SALLYPORT_PROXY_PORT=1",
	}
	before := slices.Clone(env)
	got := Set(env, Proxy{At: at})
	if !slices.Equal(env, before) {
		t.Error("the environment that it was given has changed")
	}
	want := append([]string{"A=1", "B=HTTP_PROXY=x", "HTTP_PROXY_X=stays"}, Set(nil, Proxy{At: at})...)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if text := strings.Join(got, "\n"); strings.Contains(text, "secret") || strings.Contains(text, "10.0.0.0") {
		t.Error("a stale value is left")
	}
	if again := Set(got, Proxy{At: at}); !slices.Equal(again, got) {
		t.Errorf("set twice it changes: %s", cmp.Diff(got, again))
	}
}

// TestJava: options of the user stay as they are, and ours come last, where they win.
func TestJava(t *testing.T) {
	const ours = "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 -Dhttp.nonProxyHosts="
	for _, c := range []struct{ name, value, want string }{
		{"none", "", ours},
		{"others", "-Xmx1g  '-Dx=y  z'", "-Xmx1g  '-Dx=y  z' " + ours},
		{"a proxy", "-Dhttp.proxyHost=old", "-Dhttp.proxyHost=old " + ours},
		{"ours", ours, ours},
		{"others and ours", "-Xmx1g " + ours, "-Xmx1g " + ours},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Set([]string{javaOptions + "=" + c.value}, Proxy{At: at})
			if last := got[len(got)-1]; last != javaOptions+"="+c.want {
				t.Errorf("%q, want %q", last, c.want)
			}
		})
	}
}

// TestWithoutLogins: variables that have a password for a proxy go, and others stay.
func TestWithoutLogins(t *testing.T) {
	env := []string{"A=x@y", "HTTP_PROXY=http://u:p@h", "https_proxy=u:p@h:1", "ALL_PROXY=http://h", "RSYNC_PROXY=u:p@h:1", "NO_PROXY=a,b", "no=http_proxy=u@h"}
	given := slices.Clone(env)
	want := []string{"A=x@y", "ALL_PROXY=http://h", "NO_PROXY=a,b", "no=http_proxy=u@h"}
	if diff := cmp.Diff(want, WithoutLogins(env)); diff != "" || !slices.Equal(env, given) {
		t.Errorf("%s\n%q", diff, env)
	}
}
