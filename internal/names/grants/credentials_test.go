// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

const key = "-----BEGIN OPENSSH " + "PRIVATE KEY-----\n"

// home makes a home directory with files; a name that ends with a slash is a directory.
func home(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o700)
		} else {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestFind finds what holds secrets, and not what lies beside it.
func TestFind(t *testing.T) {
	dir := home(t, map[string]string{
		".ssh/id_ed25519": key, ".ssh/id_ed25519.pub": "ssh-ed25519 AAAA", ".ssh/known_hosts": "h", ".ssh/config": "Host *", ".ssh/work": key,
		".aws/": "", ".config/gh/hosts.yml": "t", ".config/other/x": "", ".npmrc": "//r/:_authToken=x", ".yarnrc": "strict-ssl true", ".gnupg/pubring.kbx": "",
		".gnupg/private-keys-v1.d/": "", ".docker/config.json": `{"auths":{"r":{"auth":"dXNlcjpzZWNyZXQ="}}}`, ".docker/contexts/": "", ".pypirc": "[distutils]\n", ".bash_history": "ls",
		".m2/settings.xml": "<settings><server><password>x</password></server></settings>", ".gradle/gradle.properties": "org.gradle.jvmargs=-Xmx1g", ".codex/config.toml": "[mcp_servers.x]\nenv = { API_KEY = \"abcdefgh\" }\n", ".mcp.json": "{}",
	})
	want := []string{
		"agent .codex/config.toml", "aws .aws", "docker .docker/config.json", "gh .config/gh",
		"gnupg .gnupg/private-keys-v1.d", "history .bash_history",
		"maven .m2/settings.xml", "npm .npmrc", "ssh .ssh/id_ed25519", "ssh .ssh/work",
	}
	found := func(granted ...string) []string {
		var got []string
		for _, s := range FindStores([]string{dir}, granted) {
			got = append(got, s.Name+" "+strings.TrimPrefix(s.Path, dir+"/"))
		}
		slices.Sort(got)
		return got
	}
	if got := found(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := found("credentials:ssh", "credentials:aws", "git"); !slices.Equal(got,
		slices.Concat(want[:1], want[2:8])) {
		t.Errorf("with two grants: %q", got)
	}
	if got := found(AllCredentials); got != nil {
		t.Errorf("with the grant for all: %q", got)
	}
}

// TestStrangeStores: what cannot be looked into counts as a store, and nothing is waited for.
func TestStrangeStores(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedOrdinaryUser(t)
	dir := home(t, map[string]string{".npmrc": "x", ".ssh/id_rsa": "x", ".ssh/note": "x"})
	for _, name := range []string{".npmrc", ".ssh/id_rsa"} {
		if err := os.Chmod(filepath.Join(dir, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, ".yarnrc.yml")); err != nil {
		t.Fatal(err)
	}
	got := FindStores([]string{dir}, nil)
	if len(got) != 2 || got[0].Name != "npm" || got[1].Path != filepath.Join(dir, ".ssh/id_rsa") {
		t.Errorf("%+v", got)
	}
}

// TestConfig: a store in .config is found however the directory is.
func TestConfig(t *testing.T) {
	testenv.RunAsOrdinary(t) // root lists what cannot be listed
	check := func(name, dir string, want int) {
		t.Helper()
		if got := FindStores([]string{dir}, nil); len(got) != want || want > 0 &&
			got[0].Path != filepath.Join(dir, ".config/gh") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	dir := home(t, map[string]string{".config/gh/hosts.yml": "t"})
	check("plain", dir, 1)
	if err := os.Chmod(filepath.Join(dir, ".config"), 0o311); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, ".config"), 0o700) }) // so that it can be removed
	check("it cannot be listed", dir, 1)
	linked := home(t, nil)
	if err := os.Symlink(filepath.Join(dir, ".config"), filepath.Join(linked, ".config")); err != nil {
		t.Fatal(err)
	}
	check("a link", linked, 1)
	many := map[string]string{}
	for i := range 1500 {
		many[fmt.Sprintf(".config/x%d", i)] = ""
	}
	full := home(t, many)
	check("many names", full, 0)
	// in any order among them
	names := []string{"azure", "doctl", "fly", "gcloud", "gh", "hcloud", "heroku", "op", "tea"}
	for _, name := range names {
		if err := os.Mkdir(filepath.Join(full, ".config", name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if got := FindStores([]string{full}, nil); len(got) != len(names) {
		t.Errorf("%d stores among many names, want %d", len(got), len(names))
	}
	check("no .config", home(t, map[string]string{"x": ""}), 0)
	check("a file", home(t, map[string]string{".config": ""}), 0)
}

// TestCredentialTable: every name is a grant once, every path is relative and clean.
func TestCredentialTable(t *testing.T) {
	seen := map[string]bool{"all": true}
	for _, k := range kinds {
		if seen[k.name] || k.what == "" || CredentialsOf(CredentialPrefix+k.name) != k.what ||
			!slices.Contains(CredentialGrants(), CredentialPrefix+k.name) {
			t.Errorf("%q", k.name)
		}
		seen[k.name] = true
		paths := slices.Concat(k.paths, k.keys)
		for _, f := range k.files {
			paths = append(paths, f.path)
			if len(f.words) == 0 && f.form == none {
				t.Errorf("%s is no store with any content", f.path)
			}
		}
		for _, p := range paths {
			if filepath.IsAbs(p) || filepath.Clean(p) != p || strings.HasPrefix(p, "..") || p == "." {
				t.Errorf("path %q", p)
			}
		}
	}
	if CredentialsOf("credentials:none") != "" || CredentialsOf(AllCredentials) == "" {
		t.Error("a name that is no grant has a text, or that for all has none")
	}
}

func TestHomeOf(t *testing.T) {
	const users = "root:x:0:0:root:/root:/bin/sh\nbroken\nu:x:1000:1000:U:/home/u:/bin/sh\n"
	for uid, want := range map[string]string{"0": "/root", "1000": "/home/u", "7": "", "": ""} {
		if got := homeOf(users, uid); got != want {
			t.Errorf("uid %q: %q, want %q", uid, got, want)
		}
	}
	t.Setenv("HOME", "/somewhere/")
	if got := Homes(); got[0] != "/somewhere" || slices.Contains(got, "/") {
		t.Errorf("%q", got)
	}
}
