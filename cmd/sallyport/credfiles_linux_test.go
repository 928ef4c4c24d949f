// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// filesStage is a credentialStage with files of tools in the home directory, each with one value of its
// own; the last behind a link or not.
func filesStage(t *testing.T, link bool) (s *credentialStage, values map[string]string) {
	t.Helper()
	s = newCredentialStage(t, "")
	home := filepath.Join(s.root, "home")
	values = map[string]string{}
	var config strings.Builder
	for i, f := range []struct{ path, text, find, form string }{
		{".npmrc", "//registry.example.org/:_authToken=%s\nfund=false\n", `_authToken=(\S+)`, ""},
		{".netrc", "machine api.example.org\n  login me\n  password %s\n", `password (\S+)`, ""},
		{".config/gh/hosts.yml", "github.com:\n    oauth_token: %s\n    user: me\n", `oauth_token: (\S+)`, ""},
		{".docker/config.json", `{"auths":{"registry.example.org":{"auth":"%s"}}}`, `"auth":"([^"]+)"`, "basic"},
		{".pypirc", "[pypi]\nusername = __token__\npassword = %s\n", `^password = (\S+)$`, ""},
		{"dotfiles/linked", "token=%s", `^token=(.*)$`, ""},
	} {
		value := fmt.Sprintf("npm_%dSecretOfAFile%dabcDEF", i, i)
		values[f.path] = value
		if f.form != "" {
			value = base64.StdEncoding.EncodeToString([]byte("me:" + value))
			f.form = "form = \"" + f.form + "\"\n"
		}
		name := filepath.Join(home, f.path)
		must(t, os.MkdirAll(filepath.Dir(name), 0o700))
		must(t, os.WriteFile(name, fmt.Appendf(nil, f.text, value), 0o600))
		if link && strings.HasSuffix(name, "linked") {
			name = filepath.Join(home, ".linked")
			must(t, os.Symlink("dotfiles/linked", name))
		}
		fmt.Fprintf(&config, "[network.credentials.f%d]\nfile = %q\nfind = '''%s'''\n%shosts = [%q]\n", i,
			name, f.find, f.form, s.own.at)
	}
	old, err := os.ReadFile(s.config)
	must(t, err)
	must(t, os.WriteFile(s.config, append(old, config.String()...), 0o600))
	return s, values
}

// copies are the copies that are on the disk.
func (s *credentialStage) copies(t *testing.T) (found []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.root, "state", "sallyport", "tmp", "*", "copy-*"))
	must(t, err)
	return found
}

// TestCredentialFiles: a command sees a copy with a dummy in the place of a file, with which its hosts
// get the value.
func TestCredentialFiles(t *testing.T) {
	t.Parallel()
	s, values := filesStage(t, true)
	for _, c := range []struct{ path, script string }{
		{".npmrc", `v=$(sed -n 's/.*_authToken=//p' ~/.npmrc); grep -qx fund=false ~/.npmrc && curl -sS -H "Authorization: Bearer $v" $OWN`},
		{".netrc", `sed "s/api.example.org/${OWN#https://}/; s/:[0-9]*$//" ~/.netrc >n; curl -sS --netrc-file n $OWN`},
		{".config/gh/hosts.yml", `curl -sS -H "Authorization: token $(sed -n 's/ *oauth_token: //p' ~/.config/gh/hosts.yml)" $OWN`},
		{".docker/config.json", `curl -sS -H "Authorization: Basic $(sed 's/.*"auth":"//; s/".*//' ~/.docker/config.json)" $OWN`},
		{".pypirc", `curl -sS -u "__token__:$(sed -n 's/password = //p' ~/.pypirc)" $OWN`},
		{"dotfiles/linked", `curl -sS -H "Authorization: Bearer $(sed 's/token=//' ~/.linked)" $OWN`},
	} {
		t.Run(c.path, func(t *testing.T) {
			r := s.script(t, c.script+"; stat -c %a ~/"+c.path+"; cat ~/"+c.path)
			if got := s.own.take(); !strings.Contains(got, values[c.path]) {
				t.Errorf("the server got %q: %s", got, r.Output)
			}
			if strings.Contains(r.Output, values[c.path]) || !strings.Contains(r.Output, "400\n") {
				t.Error(r.Output)
			}
		})
	}
	if left := s.copies(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestCredentialFilesClosed: the file itself stays closed, whatever is tried, and the copy stays as it is.
func TestCredentialFilesClosed(t *testing.T) {
	t.Parallel()
	s, values := filesStage(t, false)
	// All mounts of the sandbox and all that the test has made, but not the disk, which may be large.
	const where = `{ find ~/.. /run /tmp /dev /etc /proc/self/root$HOME -name 'copy-*' -exec cat {} +
find / -maxdepth 4 -name 'copy-*' -exec cat {} +; } 2>/dev/null`
	for _, c := range []struct{ name, script string }{
		{"all files", `cd; cat .npmrc .netrc .linked dotfiles/linked .pypirc .config/gh/* .docker/*; base64 -d <<E
$(sed 's/.*"auth":"//; s/".*//' .docker/config.json)
E`},
		{"other names", `cd; ln .npmrc x; ln dotfiles/linked y; cp -al dotfiles d2; cat x y d2/*; grep -rs SecretOfAFile . /proc/self/root$PWD`},
		{"the state", where + `; grep -rs SecretOfAFile ~/.local ~/.cache ~/.config`},
		{"changes", `cd; for f in .npmrc .docker/config.json; do chmod u+w $f; echo x >>$f; rm -f $f; mv $f $f.old; truncate -s0 $f; umount $f; done 2>/dev/null; cat .npmrc; grep -q fund .npmrc && grep -q auths .docker/config.json && echo kept`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.script(t, c.script, "--rw", filepath.Join(s.root, "home"))
			for path, value := range values {
				if strings.Contains(r.Output, value) ||
					strings.Contains(r.Output, base64.StdEncoding.EncodeToString([]byte("me:"+value))) {
					t.Errorf("%s: %s", path, r.Output)
				}
			}
			if c.name == "changes" && !strings.HasSuffix(r.Output, "kept\n") {
				t.Error(r.Output)
			}
		})
	}
	// Without the proxy there is no copy, and the file is closed.
	for _, net := range []string{"none", "host"} {
		r := s.script(t, `cat ~/.npmrc || echo closed`, "--net", net)
		if strings.Contains(r.Output, "_authToken") || !strings.HasSuffix(r.Output, "closed\n") {
			t.Errorf("--net %s: %s", net, r.Output)
		}
	}
}

// TestCredentialFileReplaced: a file that is replaced while the command runs, which removes the copy
// over it, ends the command. What it reads before it is ended is the new file.
func TestCredentialFileReplaced(t *testing.T) {
	t.Parallel()
	s, _ := filesStage(t, false)
	name, started := filepath.Join(s.root, "home", ".npmrc"), filepath.Join(s.root, "w", "started")
	cmd := s.command(t, nil, "--config", s.config, "-c",
		": >started; exec sleep 300")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, cmd.Start())
	for deadline := time.Now().Add(attackBound); time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
		if _, err := os.Stat(started); err == nil {
			break
		}
	}
	must(t, os.WriteFile(name+".new", []byte("_authToken=NEWTOKEN1234\n"), 0o600))
	must(t, os.Rename(name+".new", name))
	if err := cmd.Wait(); err == nil || !strings.Contains(out.String(), "was replaced from outside") {
		t.Errorf("%v: %s", err, out.String())
	}
}

// TestCredentialFilesInvalid: nothing runs where the value is not found, or the file has other names.
func TestCredentialFilesInvalid(t *testing.T) {
	t.Parallel()
	s, _ := filesStage(t, false)
	name := filepath.Join(s.root, "home", ".npmrc")
	for _, c := range []struct {
		name string
		do   func() error
		want string
	}{
		{"another name", func() error { return os.Link(name, name+".old") }, "other names (hard links)"},
		{"two values", func() error {
			return os.WriteFile(name, []byte("_authToken=oneoneone\n_authToken=twotwotwo\n"), 0o600)
		}, "find matches different values in it"},
		{"no value", func() error { return os.WriteFile(name, []byte("fund=false\n"), 0o600) }, "find matches nothing in it"},
		{"a large file", func() error { return os.WriteFile(name, make([]byte, 65<<10), 0o600) }, "larger than 64 KiB"},
		{"no file", func() error { return os.Remove(name) }, "cannot read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			must(t, c.do())
			out, err := s.command(t, []string{"ONE_TOKEN=" + tokenValue}, "--config", s.config, "--", "echo",
				"ran").CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.want) ||
				strings.Contains(string(out), "ran\n") || strings.Contains(string(out), "oneone") {
				t.Errorf("%v: %s", err, out)
			}
			os.Remove(name + ".old")
		})
	}
}
