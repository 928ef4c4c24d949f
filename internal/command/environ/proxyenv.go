// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"iter"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// A form is how a variable names the proxy.
type form uint8

const (
	past     form = iota // hosts that are reached without the proxy
	web                  // http://HOST:PORT
	socks                // socks5h://HOST:PORT, with names resolved by the proxy
	address              // HOST:PORT
	host                 // HOST
	port                 // PORT
	yes                  // 1
	enabled              // true
	scheme               // http
	pastJava             // past, as Java wants it
	unset                // removed, because a program warns of a name that it does not know
)

// A row is one variable, with who reads it.
type row struct {
	name    string
	form    form
	readers string
}

// proxyTable lists the variables. JAVA_TOOL_OPTIONS has options of the user too and is not among them.
var proxyTable = []row{
	{"HTTP_PROXY", web, "python, go, cargo, gh, aws, docker"},
	{"http_proxy", web, "curl, wget, apt, python"},
	{"HTTPS_PROXY", web, "curl, git, pip, npm, python, go"},
	{"https_proxy", web, "wget, curl, git"},
	{"ALL_PROXY", web, "curl, git; httpx fails on the form for SOCKS without an extra package"},
	{"all_proxy", web, "curl, git"},
	{"FTP_PROXY", socks, "curl"},
	{"ftp_proxy", socks, "curl"},
	{"WS_PROXY", web, "libraries for websockets"},
	{"ws_proxy", web, "the same"},
	{"WSS_PROXY", web, "the same"},
	{"wss_proxy", web, "the same"},
	{"GRPC_PROXY", web, "gRPC"},
	{"grpc_proxy", web, "gRPC"},

	{"NO_PROXY", past, "all"},
	{"no_proxy", past, "all"},
	{"npm_config_noproxy", past, "npm"},
	{"NPM_CONFIG_NOPROXY", past, "npm"},
	{"YARN_NO_PROXY", past, "yarn"},
	{"BUNDLE_NO_PROXY", past, "bundler"},

	{"NODE_USE_ENV_PROXY", yes, "node: fetch and http"},
	{"ELECTRON_GET_USE_PROXY", enabled, "the download of electron"},
	{"GLOBAL_AGENT_HTTP_PROXY", web, "global-agent"},
	{"GLOBAL_AGENT_HTTPS_PROXY", web, "global-agent"},
	{"npm_config_proxy", web, "npm, pnpm"},
	{"NPM_CONFIG_PROXY", web, "npm, pnpm"},
	{"npm_config_http_proxy", unset, "pnpm, which reads the others too; npm 11 warns"},
	{"NPM_CONFIG_HTTP_PROXY", unset, "pnpm, which reads the others too; npm 11 warns"},
	{"npm_config_https_proxy", web, "npm, pnpm"},
	{"NPM_CONFIG_HTTPS_PROXY", web, "npm, pnpm"},
	{"YARN_HTTP_PROXY", web, "yarn"},
	{"YARN_HTTPS_PROXY", web, "yarn"},
	{"BUNDLE_HTTP_PROXY", web, "bundler"},
	{"BUNDLE_HTTPS_PROXY", web, "bundler"},
	{"PIP_PROXY", web, "pip"},
	{"CARGO_HTTP_PROXY", web, "cargo"},
	{"DOCKER_HTTP_PROXY", web, "docker"},
	{"DOCKER_HTTPS_PROXY", web, "docker"},
	{"CLOUDSDK_PROXY_TYPE", scheme, "gcloud"},
	{"CLOUDSDK_PROXY_ADDRESS", host, "gcloud"},
	{"CLOUDSDK_PROXY_PORT", port, "gcloud"},
	{"RSYNC_PROXY", address, "rsync"},

	{"SALLYPORT_PROXY", web, "scripts"},
	{"SALLYPORT_PROXY_PORT", port, "scripts"},
}

// javaOptions is the variable whose options every Java program reads.
const javaOptions = "JAVA_TOOL_OPTIONS"

// javaProperties are the properties that name a proxy to Java.
var javaProperties = []struct {
	name string
	form form
}{
	{"http.proxyHost", host},
	{"http.proxyPort", port},
	{"https.proxyHost", host},
	{"https.proxyPort", port},
	{"http.nonProxyHosts", pastJava},
}

// value is how a variable of this form names the proxy.
func (f form) value(to Proxy) string {
	at := to.At
	switch f {
	case past:
		return strings.Join(to.Past, ",")
	case pastJava:
		return strings.ReplaceAll(strings.Join(to.Past, "|"), "::1", "[::1]")
	case web:
		return "http://" + at.String()
	case socks:
		return "socks5h://" + at.String()
	case address:
		return at.String()
	case host:
		return at.Addr().String()
	case port:
		return strconv.Itoa(int(at.Port()))
	case yes:
		return "1"
	case enabled:
		return "true"
	case scheme:
		return "http"
	}
	return ""
}

// A Proxy is where programs are led.
type Proxy struct {
	At netip.AddrPort
	// Redirected says that connections lead there whatever a program knows of the proxy. Java then gets no
	// options for it, which every start of it would print.
	Redirected bool
	// Past are the hosts that programs reach without it: names and addresses, none of them a pattern.
	Past []string
}

// Replaced returns those of some names of variables that [SetProxy] sets, sorted.
func Replaced(names iter.Seq[string]) []string {
	var out []string
	for name := range names {
		if slices.ContainsFunc(proxyTable, func(r row) bool { return r.name == name }) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// SetProxy returns the environment env, "K=V", with the variables that lead programs to a proxy. What
// env has of these variables is removed, and so are logins for other proxies, as by [WithoutLogins].
// JAVA_TOOL_OPTIONS keeps its other options, and stays as it is where connections are redirected, unless
// it names a proxy. It does not change env.
func SetProxy(env []string, to Proxy) []string {
	env = WithoutLogins(env)
	ours := make(map[string]bool, len(proxyTable))
	for _, r := range proxyTable {
		ours[r.name] = true
	}
	out := make([]string, 0, len(env)+len(proxyTable)+1)
	options := ""
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case name == javaOptions:
			options = value
		case !ours[name]:
			out = append(out, entry)
		}
	}
	for _, r := range proxyTable {
		if r.form != unset {
			out = append(out, r.name+"="+r.form.value(to))
		}
	}
	switch named := strings.Contains(options, "roxyHost"); {
	case to.Redirected && options == "":
		return out
	case to.Redirected && !named:
		return append(out, javaOptions+"="+options)
	}
	return append(out, javaOptions+"="+java(options, to))
}

// java returns options of Java with those that name the proxy at the end, where they win.
func java(options string, to Proxy) string {
	ours := make([]string, len(javaProperties))
	for i, p := range javaProperties {
		ours[i] = "-D" + p.name + "=" + p.form.value(to)
	}
	last := strings.Join(ours, " ")
	options = strings.TrimSpace(strings.TrimSuffix(options, last))
	return strings.TrimSpace(options + " " + last)
}
