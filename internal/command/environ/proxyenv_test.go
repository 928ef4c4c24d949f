// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	goflag "flag"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var update = goflag.Bool("update", false, "write the golden file anew")

var at = netip.MustParseAddrPort("127.0.0.1:3128")

// TestGolden compares the variables of an empty environment with those of the golden file.
func TestGolden(t *testing.T) {
	const golden = "testdata/variables.golden"
	got := strings.Join(SetProxy(nil, Proxy{At: at}), "\n") + "\n"
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

// TestPast: the hosts that are reached without the proxy are in each variable that names such, as its readers
// want them.
func TestPast(t *testing.T) {
	env := SetProxy(nil, Proxy{At: at, Past: []string{"localhost", "127.0.0.1", "::1", "box"}})
	for _, name := range []string{"NO_PROXY", "no_proxy", "npm_config_noproxy", "YARN_NO_PROXY"} {
		if !slices.Contains(env, name+"=localhost,127.0.0.1,::1,box") {
			t.Errorf("%s: %q", name, env)
		}
	}
	if java := env[len(env)-1]; !strings.HasSuffix(java, "-Dhttp.nonProxyHosts=localhost|127.0.0.1|[::1]|box") {
		t.Error(java)
	}
	names := slices.Values([]string{"PATH", "no_proxy", "HTTPS_PROXY", "MY_PROXY"})
	if got := Replaced(names); !slices.Equal(got, []string{"HTTPS_PROXY", "no_proxy"}) {
		t.Errorf("replaced: %q", got)
	}
}

// TestTable: every variable has one row, and a reader.
func TestTable(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range proxyTable {
		if seen[r.name] || r.readers == "" || strings.ContainsAny(r.name, "= ") {
			t.Errorf("%+v", r)
		}
		seen[r.name] = true
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "WS_PROXY",
		"WSS_PROXY", "GRPC_PROXY", "NO_PROXY"} {
		if !seen[name] || !seen[strings.ToLower(name)] {
			t.Errorf("%s is not there in both cases", name)
		}
	}
}

// TestStale: what was inherited leads nowhere, and other variables stay as they are.
func TestStale(t *testing.T) {
	env := []string{
		"A=1", "HTTPS_PROXY=http://user:secret@proxy.example:8080", "no_proxy=localhost,10.0.0.0/8",
		"npm_config_noproxy=*",
		"http_proxy", "B=HTTP_PROXY=x", "HTTP_PROXY_X=stays", "SALLYPORT_PROXY_PORT=1",
	}
	before := slices.Clone(env)
	got := SetProxy(env, Proxy{At: at})
	if !slices.Equal(env, before) {
		t.Error("the environment that it was given has changed")
	}
	want := append([]string{"A=1", "B=HTTP_PROXY=x", "HTTP_PROXY_X=stays"}, SetProxy(nil, Proxy{At: at})...)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if text := strings.Join(got, "\n"); strings.Contains(text, "secret") ||
		strings.Contains(text, "10.0.0.0") {
		t.Error("a stale value is left")
	}
	if again := SetProxy(got, Proxy{At: at}); !slices.Equal(again, got) {
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
			got := SetProxy([]string{javaOptions + "=" + c.value}, Proxy{At: at})
			if last := got[len(got)-1]; last != javaOptions+"="+c.want {
				t.Errorf("%q, want %q", last, c.want)
			}
		})
	}
}

// TestJavaRedirected: where connections are redirected, Java needs no options and prints none.
func TestJavaRedirected(t *testing.T) {
	ours := java("", Proxy{At: at})
	for _, c := range []struct {
		name      string
		env, want []string
	}{
		{"none", nil, nil},
		{"empty", []string{javaOptions + "="}, nil},
		{"others", []string{javaOptions + "=-Xmx1g"}, []string{javaOptions + "=-Xmx1g"}},
		{"a proxy, which would be used", []string{javaOptions + "=-Dhttp.proxyHost=old"},
			[]string{javaOptions + "=-Dhttp.proxyHost=old " + ours}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := SetProxy(c.env, Proxy{At: at, Redirected: true})
			got = slices.DeleteFunc(got, func(e string) bool { return !strings.HasPrefix(e, javaOptions) })
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestUnknownToNpm: npm 11 warns in every command of a variable of its form that it does not know.
func TestUnknownToNpm(t *testing.T) {
	known := []string{"proxy", "https_proxy", "noproxy"}
	for _, e := range SetProxy([]string{"npm_config_http_proxy=http://old:1"}, Proxy{At: at}) {
		name, _, _ := strings.Cut(strings.ToLower(e), "=")
		if rest, ok := strings.CutPrefix(name, "npm_config_"); ok && !slices.Contains(known, rest) {
			t.Errorf("%s is set", name)
		}
	}
}

// TestWithoutLogins: variables that have a password for a proxy go, and others stay.
func TestWithoutLogins(t *testing.T) {
	env := []string{"A=x@y", "HTTP_PROXY=http://u:p@h", "https_proxy=u:p@h:1", "ALL_PROXY=http://h",
		"RSYNC_PROXY=u:p@h:1", "NO_PROXY=a,b", "no=http_proxy=u@h"}
	given := slices.Clone(env)
	want := []string{"A=x@y", "ALL_PROXY=http://h", "NO_PROXY=a,b", "no=http_proxy=u@h"}
	if diff := cmp.Diff(want, WithoutLogins(env)); diff != "" || !slices.Equal(env, given) {
		t.Errorf("%s\n%q", diff, env)
	}
}

// TestLogins: no way in which variables have a password for a proxy gets into a command, with a network or
// without one, and the rest of a variable stays.
func TestLogins(t *testing.T) {
	for _, c := range []struct{ entry, want string }{
		{"JAVA_TOOL_OPTIONS=-Xmx1g -Dhttps.proxyPassword=hunter2 -Dx=y", "JAVA_TOOL_OPTIONS=-Xmx1g -Dx=y"},
		{"_JAVA_OPTIONS=-Dhttp.proxyUser=hunter2", "_JAVA_OPTIONS="},
		{"JDK_JAVA_OPTIONS='-Dhttp.proxyPassword=hunter2 hunter2'  -Xss1m", "JDK_JAVA_OPTIONS=-Xss1m"},
		{`JAVA_OPTS=-Da=b -Dhttp.proxyPassword="hunter2 hunter2" -Dc=d`, "JAVA_OPTS=-Da=b -Dc=d"},
		{`MAVEN_OPTS="-Dhttps.proxyPassword=hunter2`, "MAVEN_OPTS="},
		{`MAVEN_ARGS=-Dhttps.proxyPassword=hunter2\ hunter2 verify`, "MAVEN_ARGS=verify"},
		{"GRADLE_OPTS=-DsystemProp.https.proxyPassword=hunter2 -Djava.net.socks.password=hunter2 -Djava.net.socks.username=hunter2", "GRADLE_OPTS="},
		{"SBT_OPTS=-Dhttp.proxyHost=h -Dhttp.PROXYPASSWORD=hunter2", "SBT_OPTS=-Dhttp.proxyHost=h"},
		{"WHATEVER_OPTS=-Dftp.proxy.password=hunter2\n-Dx=y", "WHATEVER_OPTS=-Dx=y"},
		{"ORG_GRADLE_PROJECT_systemProp.https.proxyPassword=hunter2", ""},
		{"http_proxy_pass=hunter2", ""},
		{"CLOUDSDK_PROXY_PASSWORD=hunter2", ""},
		{"SOCKS5_PASSWD=hunter2", ""},
		{"NPM_CONFIG_HTTPS_PROXY_AUTH_USER=hunter2", ""},
		{"CORP_PROXY_URL=http://u:hunter2@h:1", ""},
		{"GIT_CONFIG_PARAMETERS='http.proxy'='http://u:hunter2@h:1' 'a.b'='http://u:stays@h'", "GIT_CONFIG_PARAMETERS='http.proxy'='http://h:1' 'a.b'='http://u:stays@h'"},
		{"CURL_OPTS=-s --proxy http://u:hunter2@h:1 http://u:stays@h", "CURL_OPTS=-s --proxy http://h:1 http://u:stays@h"},
		{"PIP_INDEX_URL=https://u:stays@h/proxy", "PIP_INDEX_URL=https://u:stays@h/proxy"},
		{"DB_PROXY_USER=stays", "DB_PROXY_USER=stays"},
		{"PROXY_ADMIN=stays@example.org", "PROXY_ADMIN=stays@example.org"},
		{"MAVEN_OPTS=-Dproxy=x -D -Dpassword=stays", "MAVEN_OPTS=-Dproxy=x -D -Dpassword=stays"},
		{"A=-Xproxy  two  blanks", "A=-Xproxy  two  blanks"},
	} {
		t.Run(c.entry, func(t *testing.T) {
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			if diff := cmp.Diff(want, WithoutLogins([]string{c.entry}), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if text := strings.Join(SetProxy([]string{c.entry}, Proxy{At: at}),
				"\n"); strings.Contains(text, "hunter2") {
				t.Error("with a network it is there")
			}
		})
	}
	env := []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_VALUE_0=http://u:hunter2@h:1",
		"GIT_CONFIG_KEY_0=http.proxy", "GIT_CONFIG_VALUE_1=u@h"}
	want := []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_VALUE_0=http://h:1", "GIT_CONFIG_KEY_0=http.proxy",
		"GIT_CONFIG_VALUE_1=u@h"}
	if diff := cmp.Diff(want, WithoutLogins(env)); diff != "" {
		t.Error(diff)
	}
}

// FuzzLogins: nothing of a password is left, and without one nothing changes.
func FuzzLogins(f *testing.F) {
	f.Add("-Xmx1g ", " -Dx=y")
	f.Add("'-Da=b' \"", "\" -Dx=y")
	f.Add("-D", "")
	f.Fuzz(func(t *testing.T, before, after string) {
		if strings.ContainsAny(before, "\"'\\") && !strings.HasSuffix(before, " ") {
			return
		}
		for _, entry := range WithoutLogins([]string{"X_OPTS=" + before +
			" -Dhttp.proxyPassword=Qz7Jx " + after}) {
			if strings.Contains(entry, "Qz7Jx") && !strings.Contains(before+after, "Qz7Jx") {
				t.Errorf("%q", entry)
			}
		}
		if plain := "X_OPTS=" + before + after; !strings.Contains(strings.ToLower(plain), "proxy") &&
			!strings.Contains(strings.ToLower(plain), "socks") {
			if got := WithoutLogins([]string{plain}); len(got) != 1 || got[0] != plain {
				t.Errorf("%q became %q", plain, got)
			}
		}
	})
}
