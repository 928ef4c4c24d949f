// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package grants

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

const token = "t = ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789\n"

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func shown(stores []Store, dir string) string {
	var out []string
	for _, s := range stores {
		out = append(out, s.Name+" "+strings.TrimPrefix(s.Path, dir+"/"))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// TestKeys: private keys are found four levels deep and behind links, and nothing else is hidden.
func TestKeys(t *testing.T) {
	dir := home(t, map[string]string{
		".ssh/a/b/c/key": key, ".ssh/a/b/c/d/key": key, ".ssh/a/config": "Host *", ".ssh/a/k.pub": key, "elsewhere/key": key, "elsewhere/note": "x", ".ssh/.git/HEAD": "x", ".ssh/wg/x.conf": "[Interface]\nPrivateKey = x\n",
	})
	for link, to := range map[string]string{"linked": "../elsewhere", "loop": ".", "up": "..", "root": "/",
		"file": "../elsewhere/key", "gone": "nowhere"} {
		mustDo(t, os.Symlink(to, filepath.Join(dir, ".ssh", link)))
	}
	real, err := filepath.EvalSymlinks(dir)
	mustDo(t, err)
	got := shown(FindStores([]string{dir}, []string{"credentials:other"}), dir)
	want := "ssh .ssh/.git, ssh .ssh/a/b/c/d, ssh .ssh/a/b/c/key, ssh .ssh/file, ssh .ssh/wg/x.conf, ssh " +
		strings.TrimPrefix(real+"/elsewhere/key", dir+"/")
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	many := map[string]string{}
	for i := range mostKeys + 1 {
		many[fmt.Sprintf(".ssh/%d", i)] = "x"
	}
	full := home(t, many)
	if got := shown(FindStores([]string{full}, nil), full); got != "ssh .ssh" {
		t.Errorf("many names: %.200s", got)
	}
}

// TestTools: tools of each kind have a line.
func TestTools(t *testing.T) {
	for path, kind := range map[string]string{
		".codex/.credentials.json": "agent", ".aider/oauth-keys.env": "agent", ".claude/settings.json": "agent", ".awsvault": "aws", ".jfrog": "cloud", ".config/configstore/snyk.json": "cloud", ".sfdx": "cloud", ".cdsapirc": "cloud",
		".semgrep/settings.yml": "cloud", ".mysql/workbench": "database", ".docker/trust/private": "docker", ".python-gitlab.cfg": "gh", ".gitcookies": "git", ".config/GitHub Desktop": "git", ".claude/backups": "history", ".local/state/warp-terminal": "history",
		".hivehistory": "history", ".vim/undodir": "history", ".local/share/Trash": "history", ".config/borg": "keyring", ".httpie/sessions": "keyring", ".config/Lens": "docker", ".devpi/client": "pypi", ".cursor/mcp.json": "agent",
	} {
		if table()[path] != kind {
			t.Errorf("%s is %q, want %q", path, table()[path], kind)
		}
	}
}

// TestVariables: stores are found where the variables of tools say that they are, as far as they are
// files that the tools would read.
func TestVariables(t *testing.T) {
	dir := home(t, map[string]string{
		"c/gh/hosts.yml": "t", "c/pip/pip.conf": "[global]\nindex-url = https://user:longpassword@x/\n", "g/private-keys-v1.d/x": key, "kube": "x", "kube2": "x", "hist": "ls", "w/creds": "x",
		"az/token": "x", "d/config.json": `{"auths":{"r":{"auth":"dXNlcjpzZWNyZXQ="}}}`, "claude/.credentials.json": "x", "rc": "_authToken=abcdefgh\n", "harmless": "registry=https://x/\n", "gm/.gemini/.env": "K=x", "jf/jfrog-cli.conf.v6": "x", "oc": `{"apiKey":"x"}`, "store": "https://u:p@h", ".gitconfig": "[credential]\n\thelper = store --file ~/store\n",
	})
	for _, tt := range []struct{ set, want string }{
		{"", ""},
		{"XDG_CONFIG_HOME=H/c", "gh c/gh, pypi c/pip/pip.conf (copy)"},
		{"GNUPGHOME=H/g", "gnupg g/private-keys-v1.d"},
		{"KUBECONFIG=H/kube:kube2:~/kube:H/gone", "kube kube, kube kube2"},
		{"HISTFILE=H/hist", "history hist"},
		{"HISTFILE=/dev/null", ""},
		{"PGPASSFILE=H/az", ""},
		{"AWS_SHARED_CREDENTIALS_FILE=w/creds", "aws w/creds"},
		{"AZURE_CONFIG_DIR=H/az", "azure az"},
		{"AZURE_CONFIG_DIR=H", ""},
		{"PASSWORD_STORE_DIR=/", ""},
		{"DOCKER_CONFIG=H/d", "docker d/config.json (copy)"},
		{"CLAUDE_CONFIG_DIR=H/claude", "agent claude/.credentials.json"},
		{"NPM_CONFIG_USERCONFIG=H/rc", "npm rc (copy)"},
		{"NPM_CONFIG_USERCONFIG=H/harmless", ""},
		{"GEMINI_CLI_HOME=H/gm", "agent gm/.gemini/.env"},
		{"JFROG_CLI_HOME_DIR=H/jf", "cloud jf"},
		{"OPENCODE_CONFIG=H/oc", "agent oc"},
		{"RESTIC_PASSWORD_FILE=H/kube2", "keyring kube2"},
	} {
		name, value, _ := strings.Cut(tt.set, "=")
		value = strings.ReplaceAll(value, "H", dir)
		s := SecretSearch{Homes: []string{dir}, Dir: dir,
			Env: func(n string) string { return map[string]string{name: value}[n] }}
		var got []string
		for _, found := range s.Find() {
			text := found.Name + " " + strings.TrimPrefix(found.Path, dir+"/")
			if found.Copy != nil {
				text += " (copy)"
			}
			if text != "git store" { // which is in all of them
				got = append(got, text)
			}
		}
		slices.Sort(got)
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s: %q, want %q", tt.set, got, tt.want)
		}
	}
	if got := shown(FindStores([]string{dir}, nil), dir); !strings.Contains(got, "git store") {
		t.Errorf("git's store is not found: %s", got)
	}
}

// TestKnownSecrets: what the search by content finds, when it looks again, and what it remembers.
func TestKnownSecrets(t *testing.T) {
	testenv.RunAsOrdinary(t)
	dir := home(t, map[string]string{
		".tool/a/token": token, ".tool/a/b/token": token, ".config/app/sub/key": key, "keys/k.pem": key, "keys/sub/k.pem": key, ".netrc~": "x", "..netrc.swp": "x", ".docker/x": "x", ".git-credentials.bak": "x", "#.pgpass#": "x",
		".plain": "nothing in it at all\n", ".cache/x/token": token, ".aws/credentials": token, ".m2/settings.xml.orig": "<x/>",
		".claude.json.backup.1732":      "x",
		".claude.json.sallyport-backup": "x", ".claude.json.sallyport-new": "x",
		".netrc,v": "x", ".docker/config.json~": "x", ".kube.old/config": "x", ".vimrc.1": "x",
	})
	mustDo(t, os.Chmod(filepath.Join(dir, "keys/k.pem"), 0o644))
	const want = "agent .claude.json.backup.1732, agent .claude.json.sallyport-backup, agent .claude.json.sallyport-new, database #.pgpass#, docker .docker/config.json~, git .git-credentials.bak, kube .kube.old, " +
		"maven .m2/settings.xml.orig, netrc ..netrc.swp, netrc .netrc,v, netrc .netrc~, other .config/app/sub/key, other .tool/a/token"
	k := new(KnownSecrets)
	check := func(what, want string) {
		t.Helper()
		found, complete := k.Search(dir)
		if got := shown(found, dir); got != want || !complete {
			t.Errorf("%s: %s, %v\nwant %s", what, got, complete, want)
		}
		k = ReadKnownSecrets(k.Bytes())
		if k.home == nil {
			t.Errorf("%s: what is known is not read", what)
		}
	}
	check("first", want)
	check("again", want)
	mustDo(t, os.WriteFile(filepath.Join(dir, ".plain"), []byte(token), 0o600))
	check("changed in its place", want[:strings.LastIndex(want, ", ")]+", other .plain"+
		want[strings.LastIndex(want, ", "):])
	mustDo(t, os.Remove(filepath.Join(dir, ".plain")))
	mustDo(t, os.RemoveAll(filepath.Join(dir, ".tool")))
	check("removed", want[:strings.LastIndex(want, ", ")])
	mustDo(t, os.Chmod(filepath.Join(dir, "keys/k.pem"), 0o600))
	k.since -= int64(2 * maxAge)
	check("another mode, later", want[:strings.LastIndex(want, ", ")]+", other keys/k.pem")
	b := k.Bytes()
	for i := range b {
		if ReadKnownSecrets(b[:i]).home != nil {
			t.Fatalf("the first %d of %d bytes are read", i, len(b))
		}
	}
	if found, complete := new(KnownSecrets).Search(dir + "/gone"); found != nil || !complete {
		t.Errorf("no home: %v, %v", found, complete)
	}
}

// FuzzReadKnown: whatever the file has, reading ends.
func FuzzReadKnown(f *testing.F) {
	k := new(KnownSecrets)
	k.Search(f.TempDir())
	f.Add(k.Bytes())
	f.Fuzz(func(_ *testing.T, b []byte) { ReadKnownSecrets(b) })
}

// TestShut: a directory that its owner has closed is hidden as a whole, as it can be opened again.
func TestShut(t *testing.T) {
	testenv.RunAsOrdinary(t)
	if os.Geteuid() == 0 {
		return // nothing is closed to root
	}
	dir := t.TempDir()
	shut := func(name string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600),
			os.Chmod(filepath.Dir(path), mode)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(filepath.Dir(path), 0o700) })
	}
	shut("home/.aws/credentials", 0)
	shut("home/.docker/config.json", 0o600)
	shut("home/.tool/key", 0)
	shut("kube/config", 0)
	shut("moved/gh/hosts.yml", 0)
	home := filepath.Join(dir, "home")
	s := &SecretSearch{Homes: []string{home}, Dir: home, Env: func(name string) string {
		return map[string]string{"KUBECONFIG": dir + "/kube/config", "GH_CONFIG_DIR": dir + "/moved/gh"}[name]
	}}
	var got []string
	for _, found := range s.Find() {
		got = append(got, strings.TrimPrefix(found.Path, dir+"/"))
	}
	found, _ := new(KnownSecrets).Search(home)
	for _, f := range found {
		if f.Name == other {
			got = append(got, "search "+strings.TrimPrefix(f.Path, dir+"/"))
		}
	}
	for _, want := range []string{"home/.aws", "home/.docker", "kube", "moved/gh", "search home/.tool"} {
		if n := len(slices.DeleteFunc(slices.Clone(got), func(g string) bool { return g != want })); n != 1 {
			t.Errorf("%s is there %d times: %q", want, n, got)
		}
	}
}
