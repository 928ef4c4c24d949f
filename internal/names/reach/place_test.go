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
