// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package git

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// protected returns what must not change, without an error.
func protected(t testing.TB, r *Repository, o Outside) []Path {
	t.Helper()
	paths, err := r.Protected(o)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func shut(t testing.TB, r *Repository, o Outside) []Path {
	t.Helper()
	paths, err := r.Shut(o)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestProtectedPlain(t *testing.T) {
	dir := tempDir(t)
	plainRepository(t, dir)
	r := open(t, dir)
	if diff := cmp.Diff([]Path{{Path: dir + "/.git", IsDir: true, Why: "git directory"}},
		protected(t, r, Outside{})); diff != "" {
		t.Error(diff)
	}
	remove(t, dir+"/.git/hooks")
	remove(t, dir+"/.git/branches")
	paths := shut(t, r, Outside{})
	for path, marks := range map[string]string{
		"config": "", "hooks": "m", "info": "f", "modules": "m", "branches": "m", "remotes": "m",
		"commondir": "m", "gitdir": "m", "config.worktree": "m",
	} {
		want(t, paths, dir+"/.git/"+path, marks)
	}
	if _, ok := find(paths, dir+"/.git"); ok {
		t.Error("the whole git directory is shut")
	}
}

// TestProtectedHooks names directories of hooks in every configuration that git reads.
func TestProtectedHooks(t *testing.T) {
	dir, home := tempDir(t), tempDir(t)
	plainRepository(t, dir+"/work")
	put(t, dir+"/work/.git/config", "[core]\nhooksPath = .hooks/in\n[include]\npath=../more.config\n"+
		"[includeIf \"onbranch:never\"]\npath = ~/conditional\n[include]\npath=/"+
		strings.TrimPrefix(dir, "/")+"/way/absolute\n")
	put(t, dir+"/work/.git/config.worktree", "[CORE]HOOKSPATH=~/home-hooks")
	put(t, dir+"/work/more.config", "[core]\nhooksPath=\""+dir+"/outside\"\n[include]path=deep/er\n")
	put(t, dir+"/work/deep/er", "[core]hooksPath=from-deep\n[include]path=er\n[include]path=gone/x\n")
	put(t, dir+"/outside/pre-commit", "")
	link(t, "../work/script", dir+"/outside/post-commit")
	link(t, "work/inc", dir+"/way")
	put(t, dir+"/work/inc/absolute", "")
	put(t, home+"/conditional", "[core]hooksPath=.husky/_\n")
	put(t, dir+"/work/.husky/_/h", "")
	put(t, home+"/.gitconfig", "[core]hooksPath=global\n")
	link(t, "../gone-script", dir+"/work/.git/hooks/pre-push")
	o := Surroundings(func(name string) (string, bool) { return home, name == "HOME" })
	paths := protected(t, open(t, dir+"/work"), o)
	for path, marks := range map[string]string{
		dir + "/work/.git":                "f",
		dir + "/work/.hooks/in":           "m",
		dir + "/work/from-deep":           "m",
		dir + "/work/global":              "m",
		dir + "/work/.husky":              "f",
		dir + "/work/.husky/_":            "f",
		home + "/home-hooks":              "m",
		home + "/conditional":             "",
		home + "/.gitconfig":              "",
		home + "/.config/git/config":      "m",
		dir + "/outside":                  "f",
		dir + "/outside/post-commit":      "s",
		dir + "/work/script":              "m",
		dir + "/work/.git/hooks/pre-push": "s",
		dir + "/work/more.config":         "",
		dir + "/work/deep/er":             "",
		dir + "/work/deep/gone/x":         "m",
		dir + "/way":                      "s",
		dir + "/work/inc/absolute":        "",
	} {
		want(t, paths, path, marks)
	}
	paths = shut(t, open(t, dir+"/work"), o)
	want(t, paths, dir+"/work/.git/gone-script", "m")
	want(t, paths, dir+"/work/.git/.hooks/in", "m") // a push into the work tree runs them
}

func TestProtectedBroken(t *testing.T) {
	tests := []struct{ name, config, index string }{
		{name: "config", config: "[core\n"},
		{name: "included", config: "[include]path=other\n"},
		{name: "index", index: "nonsense"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := tempDir(t)
			put(t, dir+"/.git/config", test.config)
			put(t, dir+"/.git/other", "broken!\n")
			if test.index != "" {
				put(t, dir+"/.git/index", test.index)
			}
			_, err := open(t, dir).Protected(Outside{})
			var config *ConfigError
			var index *IndexError
			if errors.As(err, &config) == (test.index != "") || errors.As(err, &index) != (test.index != "") {
				t.Errorf("error %v", err)
			}
			if _, err := open(t, dir).Shut(Outside{}); err == nil {
				t.Error("no error with the grant")
			}
		})
	}
}

// TestProtectedDeep includes files that include files, and one that never ends.
func TestProtectedDeep(t *testing.T) {
	dir := tempDir(t)
	for i := range 13 {
		put(t, dir+"/.git/"+strings.Repeat("x", i), "[include]path="+strings.Repeat("x", i+1)+"\n")
		if i == 0 {
			put(t, dir+"/.git/config", "[include]path=x\n")
		}
	}
	var config *ConfigError
	if paths, err := open(t, dir).Protected(Outside{}); !errors.As(err, &config) {
		t.Errorf("error %v, paths %v", err, paths)
	}
	put(t, dir+"/.git/xxxxxxxxx", "")
	if _, err := open(t, dir).Protected(Outside{}); err != nil {
		t.Error(err)
	}
}

// TestWorktrees looks at linked work trees from both sides.
func TestWorktrees(t *testing.T) {
	dir := tempDir(t)
	plainRepository(t, dir+"/work")
	git(t, dir+"/work", "worktree", "add", "-q", "../linked")
	git(t, dir+"/work", "worktree", "add", "-q", "../other")
	main, linked := open(t, dir+"/work"), open(t, dir+"/linked")
	side := dir + "/work/.git/worktrees/"
	if linked.Dir != side+"linked" || linked.Common != main.Dir || !linked.Pointer {
		t.Errorf("linked work tree: %+v", linked)
	}
	paths := protected(t, linked, Outside{})
	want(t, paths, dir+"/linked/.git", "")
	want(t, paths, linked.Dir, "f")
	want(t, paths, main.Dir, "f")
	for _, r := range []*Repository{main, linked} {
		paths := shut(t, r, Outside{})
		for _, name := range []string{"linked", "other"} {
			want(t, paths, side+name+"/commondir", "")
			want(t, paths, side+name+"/gitdir", "")
			want(t, paths, side+name+"/config.worktree", "m")
		}
		want(t, paths, main.Dir+"/config", "")
		want(t, paths, main.Dir+"/hooks", "f")
		want(t, paths, main.Dir+"/commondir", "m")
	}
	want(t, shut(t, linked, Outside{}), dir+"/linked/.git", "")
	want(t, shut(t, linked, Outside{}), side+"linked/modules", "m")
}

// TestSubmodules looks at submodules whose git directory was absorbed, at old ones, and
// at ones that are not populated.
func TestSubmodules(t *testing.T) {
	testenv.NeedProgram(t, "sed") // git submodule is a script
	dir := tempDir(t)
	plainRepository(t, dir+"/lib")
	plainRepository(t, dir+"/work")
	git(t, dir+"/work", "submodule", "add", "-q", dir+"/lib", "absorbed")
	plainRepository(t, dir+"/work/old")
	git(t, dir+"/work", "-c", "advice.addEmbeddedRepo=false", "add", "old")
	head := strings.TrimSpace(git(t, dir+"/work", "rev-parse", "HEAD"))
	git(t, dir+"/work", "update-index", "--add", "--cacheinfo", "160000,"+head+",not/yet")
	r := open(t, dir+"/work")
	populated, err := r.populated(nil, sha1Size)
	if diff := cmp.Diff([]string{dir + "/work/absorbed/.git", dir + "/work/old/.git"},
		populated); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	want(t, protected(t, r, Outside{}), dir+"/work/not/yet/.git", "m")
	want(t, shut(t, r, Outside{}), dir+"/work/not/yet/.git", "m")
	if absorbed := open(t, dir+"/work/absorbed"); absorbed.Dir != r.Dir+"/modules/absorbed" {
		t.Errorf("absorbed: %+v", absorbed)
	}
	if old := open(t, dir+"/work/old"); old.Dir != dir+"/work/old/.git" {
		t.Errorf("old: %+v", old)
	}
}

func TestSeparateGitDir(t *testing.T) {
	dir := tempDir(t)
	git(t, dir, "init", "-q", "--separate-git-dir", dir+"/store", dir+"/work")
	r := open(t, dir+"/work")
	if r.Dir != dir+"/store" || r.Common != r.Dir || !r.Pointer {
		t.Errorf("%+v", r)
	}
	paths := protected(t, r, Outside{})
	want(t, paths, dir+"/work/.git", "")
	want(t, paths, dir+"/store", "f")
	want(t, shut(t, r, Outside{}), dir+"/work/.git", "")
	link(t, "store", dir+"/way")
	put(t, dir+"/work/.git", "gitdir: ../way\n")
	want(t, protected(t, open(t, dir+"/work"), Outside{}), dir+"/way", "s")
}

// TestLinksInGitDir has directories that git obeys lie elsewhere.
func TestLinksInGitDir(t *testing.T) {
	dir := tempDir(t)
	for _, name := range []string{"hooks", "info", "modules", "branches", "remotes"} {
		link(t, "../shared-"+name, dir+"/.git/"+name)
		put(t, dir+"/shared-"+name+"/x", "")
	}
	link(t, "../config", dir+"/.git/config")
	put(t, dir+"/config", "[core]hooksPath=h\n")
	paths := protected(t, open(t, dir), Outside{})
	for _, name := range []string{"hooks", "info", "modules", "branches", "remotes"} {
		want(t, paths, dir+"/.git/"+name, "s")
		want(t, paths, dir+"/shared-"+name, "f")
	}
	want(t, paths, dir+"/.git/config", "s")
	want(t, paths, dir+"/config", "")
	want(t, paths, dir+"/h", "m")
}

func TestSurroundings(t *testing.T) {
	values := map[string]string{
		"HOME": "/h", "XDG_CONFIG_HOME": "/x", "GIT_CONFIG_GLOBAL": "/g", "GIT_CONFIG_SYSTEM": "relative",
	}
	got := Surroundings(func(name string) (string, bool) { value, ok := values[name]; return value, ok })
	want := Outside{Home: "/h", System: []string{"/etc/gitconfig", "/usr/local/etc/gitconfig",
		"/opt/homebrew/etc/gitconfig"},
		Configs: []string{"/h/.gitconfig", "/x/git/config", "/h/.config/git/config", "/g"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Outside{})); diff != "" {
		t.Error(diff)
	}
	got = Surroundings(func(name string) (string, bool) { return "/s", name == "GIT_CONFIG_SYSTEM" })
	if !slices.Equal(got.System, append(want.System, "/s")) {
		t.Errorf("%q", got.System)
	}
}

// TestManyWorktrees has very many linked work trees.
func TestManyWorktrees(t *testing.T) {
	dir := tempDir(t)
	const many = 5000
	for i := range many {
		side := dir + "/.git/worktrees/w" + strconv.Itoa(i)
		put(t, side+"/", "")
		if i%1000 == 0 {
			put(t, side+"/config.worktree", "")
		}
	}
	paths := shut(t, open(t, dir), Outside{})
	missing := 0
	for _, p := range paths {
		if strings.HasSuffix(p.Path, "/config.worktree") && p.Missing {
			missing++
		}
	}
	if missing != many-many/1000+1 {
		t.Errorf("%d configurations are missing", missing)
	}
}

func TestHugeConfig(t *testing.T) {
	dir := tempDir(t)
	var text strings.Builder
	for i := range 100_000 {
		text.WriteString("[branch \"b" + strconv.Itoa(i) + "\"]\n\tremote = origin\n")
	}
	text.WriteString("[core]hooksPath=last\n")
	put(t, dir+"/.git/config", text.String())
	want(t, protected(t, open(t, dir), Outside{}), dir+"/last", "m")
	put(t, dir+"/.git/config", strings.Repeat("#", maxConfig+1))
	var config *ConfigError
	if _, err := open(t, dir).Protected(Outside{}); !errors.As(err, &config) {
		t.Errorf("error %v", err)
	}
}

// TestWritable compares names with what Shut keeps in a repository that has all of
// them.
func TestWritable(t *testing.T) {
	for _, test := range []struct {
		name string
		want bool
	}{
		{"index", true}, {"index.lock", true}, {"HEAD", true}, {"objects/ab/cd", true}, {"refs/heads/info", true},
		{"logs/HEAD", true}, {"config.lock", true}, {"worktrees/a/index", true}, {"worktrees/a", true}, {"rebase-merge/done", true},
		{"", false}, {"config", false}, {"config.worktree", false}, {"hooks", false}, {"hooks/pre-commit", false}, {"info/attributes", false},
		{"modules/m/config", false}, {"modules/m/index.lock", true}, {"modules/a/b/modules/c/objects/ab/cd", true},
		{"modules/m/config.lock", false}, {"modules/a/b/hooks/x", false}, {"modules/m", false}, {"branches/x", false}, {"remotes/x", false}, {"commondir", false}, {"gitdir", false},
		{"worktrees/a/gitdir", false}, {"worktrees/a/commondir", false}, {"worktrees/a/config.worktree", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Writable(test.name); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

// TestPasswdHome finds homes as passwd(5) has them.
func TestPasswdHome(t *testing.T) {
	const text = "# users\nroot:x:0:0:root:/root:/bin/sh\nanna:x:7:7::/home/anna:\r\nshort:x:1\nempty:x:8:8:::/bin/sh\nlast:x:9:9::/home/last:/bin/sh"
	for name, want := range map[string]string{"root": "/root", "anna": "/home/anna", "last": "/home/last",
		"empty": "", "short": "", "nobody": "", "": ""} {
		if got, ok := passwdHome([]byte(text), name); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v; want %q", name, got, ok, want)
		}
	}
}
