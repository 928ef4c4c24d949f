// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestNeeded: what removes, moves or replaces a name needs its directory, and so do databases with a
// journal; a tree that rm was told to remove needs the directory around it.
func TestNeeded(t *testing.T) {
	t.Parallel()
	with := func(name string, change func(*sandbox.Denial)) []sandbox.Denial {
		ds := writes(name)
		change(&ds[0])
		return ds
	}
	unlinks := func(name string) []sandbox.Denial {
		return with(name, func(d *sandbox.Denial) { d.Unlinks, d.Program = true, "/usr/bin/rm" })
	}
	fails := func(name, errno string) []sandbox.Denial {
		return with(name, func(d *sandbox.Denial) { d.Errno = errno })
	}
	tree := unlinks("/srv/data/d/e/a")
	tree[0].Program = "/usr/bin/x"
	ws := sandbox.WorkspaceWrite("/w")
	there := []string{"/srv/data/d/e/a", "/srv/data/a.sqlite", "/h/.config/app/a", "/h/.gitconfig"}
	granted := ws.WithEntries(sandbox.PathEntry("/srv/data/d/e/a", sandbox.LevelWrite))
	home := ws.WithEntries(sandbox.PathEntry("/h", sandbox.LevelWrite))
	for _, test := range []struct {
		name         string
		policy       sandbox.Policy
		args         string
		ds           []sandbox.Denial
		grant, wider string
	}{
		{"a file", ws, "rm x", unlinks("/srv/data/d/e/a"), "--rw /srv/data/d/e", ""},
		{"a file that is granted", granted, "rm x", unlinks("/srv/data/d/e/a"), "--rw /srv/data/d/e", ""},
		{"a tree", ws, "rm -r /srv/data/d", unlinks("/srv/data/d/e/a"), "--rw /srv/data", ""},
		{"a relative tree", ws, "rm -r ../srv/data/d", unlinks("/srv/data/d/e/a"), "--rw /srv/data", ""},
		{"a tree in a script", ws, "sh -c|rm -r /srv/data/d; true", unlinks("/srv/data/d/e/a"),
			"--rw /srv/data", ""},
		{"a tree of another program", ws, "x /srv/data/d", tree, "--rw /srv/data/d/e", ""},
		{"a file of settings", ws, "rm x", unlinks("/h/.config/app/a"), "", "--rw /h/.config/app"},
		{"a database", ws, "x", writes("/srv/data/a.sqlite"), "--rw /srv/data", ""},
		{"another mount", ws, "x", fails("/srv/data/d/e/a", "EXDEV"), "", ""},
		{"a socket", ws, "x", with("", func(d *sandbox.Denial) {
			d.Access = sandbox.Access{Op: sandbox.Bind, Net: "unix", Addr: "/srv/data/new.sock"}
			d.Errno = "EROFS"
		}), "--rw /srv/data", ""},
		{"settings of git", ws, "x", writes("/h/.gitconfig.lock"), "", "--rw /h --rw /h/.gitconfig"},
		{"settings that are held", home, "x", fails("/h/.gitconfig", "EBUSY"), "", "--rw /h/.gitconfig"},
		{"a missing one that is held", home, "x", fails("/h/.hgrc", "EROFS"), "", "--grant home-config"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := runOf(test.policy, there...)
			words, script, _ := strings.Cut(test.args, "|")
			r.Args = append(strings.Fields(words), script)
			r.Complete(test.ds)
			if d := test.ds[0]; d.Grant != test.grant || d.Wider != test.wider {
				t.Errorf("%q and %q, want %q and %q", d.Grant, d.Wider, test.grant, test.wider)
			}
		})
	}
}

// TestOpensMore: a directory says that it opens more where paths in it would have been enough.
func TestOpensMore(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, flags, paths string
		want               bool
	}{
		{"a file", "--rw /srv/a", "/srv/a", false},
		{"a new file", "--rw /srv", "/srv/a", false},
		{"new directories", "--rw /srv", "/srv/a/b", false},
		{"three files", "--rw /srv", "/srv/a /srv/b /srv/c", false},
		{"four files", "--rw /srv", "/srv/a /srv/b /srv/c /srv/d", true},
		{"a dated file", "--rw /srv", "/srv/log-2026-11-27", true},
		{"two grants", "--rw /srv --rw /x", "/srv/2026-11-27", false},
		{"a name", "--grant git", "/srv/.git/index.lock", false},
	} {
		if got := OpensMore(test.flags, strings.Fields(test.paths)); (got != "") != test.want {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}

// TestDatabase: only a file that begins as SQLite's do is one; nothing waits for a pipe.
func TestDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"db": "SQLite format 3\x00more", "text": "SQLite format 3 is a format", "short": "SQLite", "none": "",
	} {
		at := filepath.Join(dir, name)
		if name != "none" {
			if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := (local{}).database(at); got != (name == "db") {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestHiddenByWords: a store that the words of a failed command name is a guess, also where its output is
// not known.
func TestHiddenByWords(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	at := filepath.Join(home, ".aws/credentials")
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte("aws_secret_access_key = x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args string
		exit int
		want int
	}{
		{"cat " + at, 1, 1},
		{"cat " + at, 0, 0},
		{"sh -c|grep x <$HOME/.aws/credentials", 1, 1},
		{"sh -c|grep x ~/.aws/credentials", 1, 1},
		{"cat " + home, 1, 0},
		{"cat /etc/hosts", 1, 0},
	} {
		r := runOf(sandbox.WorkspaceWrite("/w"))
		r.Local, r.Env = true, []string{"HOME=" + home}
		words, script, _ := strings.Cut(test.args, "|")
		r.Args = append(strings.Fields(words), script)
		if ds := r.Hidden(test.exit, nil, nil); len(ds) != test.want {
			t.Errorf("%s: %v", test.args, ds)
		}
	}
}

// TestHiddenFromSSH: what a failed command reaches by ssh, by its words or by the remotes of its repository,
// needs a key, also where its output is not known.
func TestHiddenFromSSH(t *testing.T) {
	home, work := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	for name, content := range map[string]string{
		home + "/.ssh/id_ed25519": "-----BEGIN OPENSSH PRIVATE KEY-----\n",
		home + "/.ssh/id_rsa":     "-----BEGIN OPENSSH PRIVATE KEY-----\n",
		work + "/ssh/.git/config": "[remote \"origin\"]\n\turl = git@example.org:a/b\n",
		work + "/ssh/sub/file":    "",
		work + "/web/.git/config": "[remote \"origin\"]\n\turl = https://example.org/a/b\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		args, dir, env string
		exit, want     int
	}{
		{"git clone ssh://git@example.org:2222/a/b", "", "", 128, 1},
		{"git clone git@example.org:a/b", "", "", 128, 1},
		{"git clone git@example.org:a/b", "", "", 0, 0},
		{"git clone git@example.org:a/b", "", "SSH_AUTH_SOCK=/run/agent", 128, 0},
		{"git clone https://example.org/a/b", "", "", 128, 0},
		{"git clone https://git@example.org:8443/a/b", "", "", 128, 0},
		{"npm install git+ssh://git@example.org/a/b", "", "", 1, 1},
		{"npm install left-pad@1:2", "", "", 1, 0},
		{"sh -c|git fetch && make", "ssh", "", 128, 1},
		{"git push", "ssh/sub", "", 128, 1},
		{"git commit", "ssh", "", 128, 0},
		{"git push", "web", "", 128, 0},
		{"git push", "", "", 128, 0},
		{"/usr/bin/ssh example.org make", "", "", 255, 1},
		{"ssh example.org make", "", "", 2, 0},
		{"scp me@example.org:file .", "", "", 255, 1},
		{"scp me@10.0.0.1:/etc/hosts .", "", "", 255, 1},
		{"rsync -a me@example.org:dir/ dir", "", "", 12, 1},
		{"curl me@example.org:80", "", "", 7, 0},
		{"sftp example.org", "", "", 255, 1},
		{"make test", "ssh", "", 2, 0},
	} {
		r := runOf(sandbox.WorkspaceWrite("/w"))
		r.Local, r.Env, r.Dir = true, []string{"HOME=" + home, test.env}, filepath.Join(work, test.dir)
		words, script, _ := strings.Cut(test.args, "|")
		if r.Args = strings.Fields(words); script != "" {
			r.Args = append(r.Args, script)
		}
		ds := r.Hidden(test.exit, nil, nil)
		if len(ds) != test.want || len(ds) == 1 && ds[0].Grant != "--grant credentials:ssh" {
			t.Errorf("%s in %q, exit %d, %s: %v", test.args, test.dir, test.exit, test.env, ds)
		}
	}
}
