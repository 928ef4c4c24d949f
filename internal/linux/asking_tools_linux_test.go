// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestAskingTools: what usual programs do beside their files works after a yes.
func TestAskingTools(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, tt := range []struct{ name, line, look, want string }{
		{"redirection", `echo x >"$1/new"`, `cat "$1/new"`, "x"},
		{"second redirection", `echo x >"$1/new"; echo y >>"$1/new"`, `cat "$1/new"`, "x\ny"},
		{"mkdir -p", `mkdir -p "$1/a/b/c"`, `ls -d "$1/a/b/c" >/dev/null && echo dir`, "dir"},
		{"mv out", `mv file "$1/moved"`, `cat "$1/moved"; test -e file || echo gone`, "hellogone"},
		{"mv in", `mv "$1/other" here`, `cat here; test -e "$1/other" || echo gone`, "othergone"},
		{"mv directory out", `echo deep >dir/deep; mv dir "$1/moved"`,
			`cat "$1/moved/deep"; ls -d "$1/moved" >/dev/null; test -e dir || echo gone`, "deep\ngone"},
		{"mv outside", `mv "$1/dir" "$1/renamed"`, `cat "$1/renamed/deep"`, "deep"},
		{"cp", `cp -p file "$1/copy"`, `cat "$1/copy"`, "hello"},
		{"rm -r", `rm -r "$1/dir"`, `test -e "$1/dir" || echo gone`, "gone"},
		{"ln", `ln "$1/other" "$1/hard"`, `cat "$1/hard"`, "other"},
		{"ln -s", `ln -s other "$1/soft"`, `cat "$1/soft"`, "other"},
		{"chmod", `chmod 600 "$1/other"`, `ls -l "$1/other" | cut -c1-10`, "-rw-------"},
		{"touch", `touch -d @1000 "$1/other"; touch "$1/made"`,
			`ls "$1/made" >/dev/null && date -r "$1/other" +%s`, "1000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newArena(t)
			p := says(true)
			res, err := a.run(t, &job{ask: p.ask, args: sh(tt.line, a.out)})
			must(t, err)
			cmd := exec.Command("/bin/sh", "-c", tt.look, "sh", a.out)
			cmd.Dir = a.ws
			got, err := cmd.CombinedOutput()
			if strings.TrimSpace(string(got)) != tt.want || err != nil || res.code != 0 || res.err != "" {
				t.Errorf("%q, %v; %+v; asked %+v", got, err, res, p.asked)
			}
			if len(p.asked) == 0 {
				t.Error("nothing was asked")
			}
		})
	}
}

// TestAskingSQLite: a database outside of the sandbox, with the journal that SQLite makes beside it.
func TestAskingSQLite(t *testing.T) {
	testenv.RunAsOrdinary(t)
	sqlite := testenv.NeedProgram(t, "sqlite3")
	a := newArena(t)
	p := says(true)
	res, err := a.run(t, &job{ask: p.ask, args: []string{sqlite, a.out + "/db",
		"create table t(x); insert into t values(1); insert into t values(2); select sum(x) from t;"}})
	must(t, err)
	if strings.TrimSpace(res.out) != "3" || res.code != 0 {
		t.Errorf("%+v, asked %+v", res, p.asked)
	}
	out, err := exec.Command(sqlite, a.out+"/db",
		"pragma integrity_check; select count(*) from t").CombinedOutput()
	if strings.TrimSpace(string(out)) != "ok\n2" || err != nil {
		t.Errorf("%s, %v", out, err)
	}
	var paths []string
	for _, q := range p.asked {
		paths = append(paths, q.Paths...)
	}
	if !slices.Contains(paths, a.out+"/db") || !slices.Contains(paths, a.out+"/db-journal") {
		t.Errorf("asked about %q", paths)
	}
}

// TestAskingGit: a commit in a linked work tree, whose repository is outside of the sandbox.
func TestAskingGit(t *testing.T) {
	testenv.RunAsOrdinary(t)
	program := testenv.NeedProgram(t, "git")
	a := newArena(t)
	home := a.base + "/home"
	must(t, os.Mkdir(home, 0o755))
	t.Setenv("HOME", home)
	env := append(testenv.Environ(), "HOME="+home, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "GIT_CONFIG_NOSYSTEM=1")
	main, tree := a.base+"/main", a.base+"/tree"
	git := func(dir string, args ...string) string {
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %s, %v", args, out, err)
		}
		return strings.TrimSpace(string(out))
	}
	git(a.base, "init", "-q", main)
	git(main, "commit", "-q", "--allow-empty", "-m", "first")
	git(main, "worktree", "add", "-q", tree)
	policy := bind(sandbox.WorkspaceWrite(tree), tree)
	p := says(true)
	res, err := a.run(t, &job{ask: p.ask, dir: tree, env: env, policy: &policy,
		args: sh(`echo x >file && "$1" add file && "$1" commit -q -m second`, program)})
	must(t, err)
	if got := git(tree, "log", "--format=%s"); got != "second\nfirst" || res.code != 0 {
		t.Errorf("%q, %+v", got, res)
	}
	git(main, "fsck", "--strict")
	for _, q := range p.asked {
		for _, name := range q.Paths {
			if rel, err := filepath.Rel(main+"/.git", name); err != nil || strings.HasPrefix(rel, "..") {
				t.Errorf("asked about %s", name)
			}
		}
	}
	if len(p.asked) == 0 {
		t.Error("nothing was asked")
	}
}
