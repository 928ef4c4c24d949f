// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"slices"
	"strconv"
	"strings"
)

// HostPrefix begins the names of the grants of the table.
const HostPrefix = "net:"

// HostLoopbackPrefix begins the names of grants for one port of this machine's loopback, such as
// "loopback:3000". They are not in the table.
const HostLoopbackPrefix = "loopback:"

// These begin the rules of denials of connections to the command's own loopback interface, before the port.
const (
	ServiceRule = "this machine has a service at port "
	SilentRule  = "nothing listens at port " // neither of the command nor on this machine
)

// A HostGrant is one row of the table.
type HostGrant struct {
	Name  string
	Hosts []string // patterns of package network: one host with one port each, no wildcards
	Opens string   // for people
	Keeps string   // what stays closed, for people
	// Registry says that it is one of packages, whose tools need every host of the grant.
	Registry bool
	Warning  string // how data can leave by these hosts, for people; empty where only names of files can
}

// HostGrants returns the table. The slices are the caller's own.
func HostGrants() []HostGrant {
	return []HostGrant{
		{
			// The default of the setting "registry": docs.npmjs.com/cli/using-npm/config. The
			// archives of the packages are on the same host. Yarn and pnpm have it as well
			// (registry.yarnpkg.com is another name that Yarn 1 uses).
			Name: HostPrefix + "npm", Hosts: []string{"registry.npmjs.org:443"}, Registry: true,
			Opens:   "fetching npm, pnpm and Yarn packages from the npm registry",
			Keeps:   "other registries, packages from git, and files that install scripts fetch elsewhere",
			Warning: "the registry takes packages from anyone with a token: a command with one can publish what it has read",
		},
		{
			// pip._internal.models.index.PyPI names both. Uploads go to upload.pypi.org.
			Name: HostPrefix + "pypi", Registry: true,
			Hosts: []string{"pypi.org:443", "files.pythonhosted.org:443"},
			Opens: "fetching Python packages from PyPI with pip, uv or Poetry",
			Keeps: "publishing (upload.pypi.org), and other indexes",
		},
		{
			// The defaults of GOPROXY and GOSUMDB: go.dev/ref/mod#environment-variables. The
			// proxy redirects some large modules to storage.googleapis.com, where all buckets
			// of all users are: that host is left out.
			Name: HostPrefix + "go", Registry: true,
			Hosts:   []string{"proxy.golang.org:443", "sum.golang.org:443"},
			Opens:   "fetching Go modules and toolchains from the module mirror and checksum database",
			Keeps:   "repositories (GOPROXY=direct, GOPRIVATE), and large modules that the mirror redirects to storage.googleapis.com",
			Warning: "the mirror contacts the server that a module path names: a command can send data in such paths",
		},
		{
			// The sparse index is the default since Cargo 1.70; "dl" in its config.json names
			// static.crates.io: doc.rust-lang.org/cargo/reference/registry-index.html.
			// Publishing and searching use crates.io.
			Name: HostPrefix + "crates", Registry: true,
			Hosts: []string{"index.crates.io:443", "static.crates.io:443"},
			Opens: "fetching Rust crates from crates.io with Cargo 1.70 or later",
			Keeps: "publishing and searching (crates.io), toolchains (static.rust-lang.org), and git dependencies",
		},
		{ // the super POM of Maven and mavenCentral() of Gradle and sbt; publishing uses another host
			Name: HostPrefix + "maven", Hosts: []string{"repo.maven.apache.org:443"}, Registry: true,
			Opens: "fetching libraries and plugins of Java from Maven Central, with Maven, Gradle or sbt",
			Keeps: "publishing, other repositories, plugins of Gradle's portal, and Gradle itself (gradlew)",
		},
		{
			// What sources.list names (wiki.debian.org/SourcesList). Apt uses http, and checks signatures.
			Name: HostPrefix + "debian", Hosts: []string{"deb.debian.org:80", "deb.debian.org:443",
				"security.debian.org:80", "security.debian.org:443"}, Registry: true,
			Opens: "fetching Debian packages and security updates with apt",
			Keeps: "other mirrors, snapshots, and other distributions",
		},
		{
			// api.github.com/meta lists the domains. Git over https and links to releases and
			// archives begin at github.com; archives redirect to codeload, files of releases
			// to release-assets, until 2025 to objects. Uploads of releases go to
			// uploads.github.com, pages and raw files are on other hosts.
			Name: HostPrefix + "github",
			Hosts: []string{
				"github.com:443", "api.github.com:443", "codeload.github.com:443",
				"objects.githubusercontent.com:443", "release-assets.githubusercontent.com:443",
			},
			Opens:   "git over https, the GitHub API, archives and release files",
			Keeps:   "git over SSH, uploads of release files, raw files, pages, packages and container images",
			Warning: "GitHub takes data from anyone with a token: a command with one can push what it has read, or put it into issues and gists",
		},
	}
}

// Hosts returns the hosts of a grant: of one of the table, or of a port of this machine's loopback.
// It returns nil for every other name.
func Hosts(name string) []string {
	if port, ok := loopback(name); ok {
		return []string{"localhost:" + port, "127.0.0.1:" + port, "[::1]:" + port}
	}
	for _, g := range HostGrants() {
		if g.Name == name {
			return g.Hosts
		}
	}
	return nil
}

// loopback returns the port of a grant for one, which is written as numbers usually are.
func loopback(name string) (port string, ok bool) {
	port, ok = strings.CutPrefix(name, HostLoopbackPrefix)
	n, err := strconv.ParseUint(port, 10, 16)
	return port, ok && err == nil && n > 0 && strconv.FormatUint(n, 10) == port
}

// RegistryOf returns the grant for the registry of packages that has a host, written "host:port", or "host"
// where it is not known what for; empty if there is none.
func RegistryOf(host string) string {
	for _, g := range HostGrants() {
		if g.Registry && host != "" && slices.ContainsFunc(g.Hosts, func(h string) bool {
			return h == host || strings.HasPrefix(h, host+":")
		}) {
			return g.Name
		}
	}
	return ""
}

// GrantOfHost returns the grant that has a host, written "host:port"; false if none has.
func GrantOfHost(host string) (HostGrant, bool) {
	for _, g := range HostGrants() {
		if slices.Contains(g.Hosts, host) {
			return g, true
		}
	}
	name := HostLoopbackPrefix + host[strings.LastIndexByte(host, ':')+1:]
	if hosts := Hosts(name); slices.Contains(hosts, host) {
		return HostGrant{Name: name, Hosts: hosts,
			Opens: "the service at that loopback port of this machine"}, true
	}
	return HostGrant{}, false
}
