// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package git

import (
	"os"
	"strings"
	"testing"
)

// orderTests have one test for each line of the table in decision 22.
var orderTests = []struct {
	file    string // below .git
	own     []string
	foreign []string
	moved   string // empty: the file
}{
	{
		file: "rebase-merge/git-rebase-todo", moved: "rebase-merge",
		own:     []string{"pick 1234 exec\nbreak\nlabel x\nupdate-ref refs/heads/x\n# exec x\n", ""},
		foreign: []string{"break\nexec evil\n", "x evil"},
	},
	{
		file: "sequencer/todo", moved: "sequencer",
		own: []string{"pick 1234 x\n", "revert 1234 x\n"}, foreign: []string{"exec evil\n"},
	},
	{
		file: "rebase-merge/strategy", own: []string{"ort\n", "recursive", "resolve", "octopus", "ours",
			"subtree", ""},
		foreign: []string{"x/evil", "../../evil\n", "theirs", "ort\nx"},
	},
	{file: "rebase-apply/strategy", own: []string{"ort"}, foreign: []string{"x/evil"}},
	{
		file: "rebase-merge/strategy_opts",
		own: []string{" --ours --patience\n", "--subtree=a/b --find-renames=50%",
			"--diff-algorithm=minimal", "\n"},
		foreign: []string{"--output=x", "x", " --ours x", " --subtree=\"a b\"", "--ours=x"},
	},
	{file: "rebase-apply/strategy_opts", own: []string{" --theirs"}, foreign: []string{"--exec=x"}},
	{file: "rebase-merge/gpg_sign_opt", own: []string{"-S\n", ""}, foreign: []string{"-Skey", "--exec"}},
	{file: "rebase-apply/gpg_sign_opt", own: []string{"-S"}, foreign: []string{"--directory=x", "-Sx"}},
	{
		file: "rebase-apply/apply-opt", moved: "rebase-apply",
		own: []string{"", " '--whitespace=fix' '-C3' '-p0' '--reject'\n", "'--directory=a'\\''b'"},
		foreign: []string{"'--build-fake-ancestor=/x'", "'-C3' '--unsafe-paths'", "--whitespace=fix", "'x",
			"'-p1=x'", "'a'x"},
	},
	{
		file: "sequencer/opts",
		own:  []string{"[options]\n\tstrategy = ort\n\tstrategy-option = ours\n\tmainline = 1\n\tgpg-sign = \"\"\n\tedit = true\n", ""},
		foreign: []string{"[options]\n\tstrategy = x/evil\n", "[options]\nstrategy-option = output=x\n",
			"[options]\ngpg-sign = k\n", "[options"},
	},
	{file: "BISECT_START", own: []string{"main\n"}, foreign: []string{"-f\n", "--orphan=x"}},
	{
		file: "BISECT_TERMS", own: []string{"bad\ngood\n", "v1.2\nv1.1\n", "b/c\nfixed+1\n"},
		foreign: []string{"-x\n", "$(x)\n", "a b\n", "`x`\ngood\n", "a;b\n", "a..b\n"},
	},
	{
		file:    "BISECT_LOG",
		own:     []string{"git bisect start '--term-new=v1.2'\n# status: waiting\ngit bisect v1.2 1234abcd\ngit bisect b/c 1234abcd\n"},
		foreign: []string{"git bisect $(x) 1234\n", "git bisect good; evil\n", "evil\n"},
	},
	{file: "BISECT_NAMES", own: []string{"\n", " 'a' 'b c'\n", " 'it'\\''s'"}, foreign: []string{"; evil\n", " 'a' $(evil)", "a"}},
	{
		file: "MERGE_RR",
		own:  []string{"1234\tfile\x005678.1\ta/b\x00", ""},
		foreign: []string{"1234\t../x\x00", "1234.2\t/x\x00", "12\tok\x0034\ta/../../x\x00",
			"12\t.git/config\x00", "12\t.Git/config"},
	},
	{file: "pid", foreign: []string{"1", "-9 -1\n", ""}},
	{file: "gitweb/lighttpd", foreign: []string{"", "x"}, moved: "gitweb"},
	{file: "gitweb/lighttpd/wrapper.sh", foreign: []string{"x"}, moved: "gitweb"},
	{file: "index", own: []string{namedIndex("a.b", "dir/.github/x", "..x")}, foreign: []string{
		namedIndex("../x"), namedIndex("a", "b/../../x"), namedIndex("/etc/x"), namedIndex(".git/hooks/x"),
		namedIndex("a/.GIT/config"),
	}},
}

// namedIndex returns an index with files.
func namedIndex(names ...string) string {
	var entries [][]byte
	for _, name := range names {
		entries = append(entries, entryBytes(0o100644, name))
	}
	return string(indexBytes(2, uint32(len(names)), entries...))
}

// TestCheckOrders puts values into the files that lead git to programs and paths: git's
// own words, which are not found, and others, which are, unless they were there before.
func TestCheckOrders(t *testing.T) {
	for _, test := range orderTests {
		for _, place := range []string{"/.git/", "/.git/worktrees/w/"} {
			for _, text := range test.own {
				dir := tempDir(t)
				put(t, dir+place+"HEAD", "")
				before := taken(t, dir)
				put(t, dir+place+test.file, text)
				if paths := checked(t, before); len(paths) != 0 {
					t.Errorf("%s with git's own %q: %+v", test.file, text, paths)
				}
			}
			for _, text := range test.foreign {
				dir := tempDir(t)
				put(t, dir+place+"HEAD", "")
				before := taken(t, dir)
				file := dir + place + test.file
				moved := file
				if test.moved != "" {
					moved = dir + place + test.moved
				}
				put(t, file, text)
				if _, ok := find(checked(t, before), moved); !ok {
					t.Errorf("%s with %q was not found", test.file, text)
				}
				again, err := Take(dir, open(t, dir), Outside{}, nil)
				if again == nil {
					t.Fatal(err)
				}
				if paths := checked(t, again); len(paths) != 0 {
					t.Errorf("%s with %q was there before: %+v", test.file, text, paths)
				}
			}
		}
	}
}

// TestCheckOrdersUnreadable: a file that cannot be read counts as a foreign value.
func TestCheckOrdersUnreadable(t *testing.T) {
	dir := tempDir(t)
	put(t, dir+"/.git/HEAD", "")
	before := taken(t, dir)
	put(t, dir+"/.git/rebase-merge/strategy", "ort")
	if err := os.Truncate(dir+"/.git/rebase-merge/strategy", maxOrder+1); err != nil {
		t.Fatal(err)
	}
	want(t, checked(t, before), dir+"/.git/rebase-merge/strategy", "")
}

// TestCheckWorkTreeBack: the git directory of a new linked work tree names a .git that
// names it.
func TestCheckWorkTreeBack(t *testing.T) {
	for _, test := range []struct {
		name, gitdir, back string // TREE stands for the work tree, ADMIN for the git directory
		made, found        bool
	}{
		{name: "as git makes it", gitdir: "TREE/.git\n", back: "gitdir: ADMIN\n", made: true},
		{name: "relative", gitdir: "../../../../tree/.git\n", back: "gitdir: ADMIN\n", made: true},
		{name: "removed", gitdir: "TREE/.git\n"},
		{name: "a directory that is none", gitdir: "TREE/.git\n", made: true, found: true},
		{name: "that of another", gitdir: "TREE/.git\n", back: "gitdir: ADMIN/..\n", made: true, found: true},
		{name: "empty", found: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			top := tempDir(t)
			admin, tree := top+"/ws/.git/worktrees/w", top+"/tree"
			put(t, top+"/ws/.git/HEAD", "")
			before := taken(t, top+"/ws")
			fill := strings.NewReplacer("ADMIN", admin, "TREE", tree)
			put(t, admin+"/gitdir", fill.Replace(test.gitdir))
			if test.made {
				put(t, tree+"/", "")
			}
			if test.back != "" {
				put(t, tree+"/.git", fill.Replace(test.back))
			}
			if _, found := find(checked(t, before), admin); found != test.found {
				t.Errorf("found %v", found)
			}
		})
	}
}

// TestGitTakesOrders sees git itself follow what only this package tests.
func TestGitTakesOrders(t *testing.T) {
	t.Run("MERGE_RR", func(t *testing.T) {
		top := tempDir(t)
		dir, id := top+"/ws", strings.Repeat("1", 40)
		plainRepository(t, dir)
		put(t, top+"/outside", "text\n")
		put(t, dir+"/.git/rr-cache/"+id+"/preimage", "text\n")
		put(t, dir+"/.git/rr-cache/"+id+"/postimage", "evil\n")
		put(t, dir+"/.git/MERGE_RR", id+".-1\t../outside\x00")
		out := git(t, dir, "rerere")
		text, err := os.ReadFile(top + "/outside")
		if err != nil || string(text) == "text\n" {
			t.Errorf("%q, %v\n%s", text, err, out)
		}
	})
	t.Run("BISECT_START", func(t *testing.T) {
		dir := tempDir(t)
		plainRepository(t, dir)
		put(t, dir+"/file", "changed\n")
		put(t, dir+"/.git/BISECT_START", "-f\n")
		out, _ := gitWorks(t, dir, "bisect", "reset")
		if text, err := os.ReadFile(dir + "/file"); err != nil || string(text) == "changed\n" {
			t.Errorf("%q, %v\n%s", text, err, out)
		}
	})
	t.Run("worktrees/*/gitdir", func(t *testing.T) {
		top := tempDir(t)
		dir := top + "/ws"
		plainRepository(t, dir)
		put(t, top+"/outside/", "")
		git(t, dir, "worktree", "add", "-q", "linked")
		put(t, dir+"/.git/worktrees/linked/gitdir", top+"/outside/.git\n")
		out, _ := gitWorks(t, dir, "worktree", "repair")
		if !exists(top + "/outside/.git") {
			t.Error(out)
		}
	})
}

// TestCheckStopped has git stop in the middle of its work, with options of its own. What
// it writes then is not found.
func TestCheckStopped(t *testing.T) {
	const side, main = "side", "main"
	commit := func(dir, text string) {
		t.Helper()
		put(t, dir+"/file", text)
		git(t, dir, "commit", "-qam", text)
	}
	for _, test := range [][]string{
		{"rebase", "-q", "-Xpatience", "-s", "recursive", main},
		{"rebase", "-q", "--apply", "--whitespace=fix", "-C1", main},
		{"rebase", "-q", "-i", "-Xfind-renames=40%", "-Xignore-space-change", main},
		{"cherry-pick", "-Xpatience", "--strategy=ort", "main~1", main},
		{"revert", "--no-edit", "main~1", main},
		{"am", "-q", "--whitespace=fix", "-p1", "-C2", "--directory=./", "../patches/0001-s.patch"},
		{"merge", "-Xignore-all-space", main},
		{"bisect", "start", "HEAD", "HEAD~1", "--", "file"},
		{"bisect", "start", "--term-new=v1.2", "--term-old=a/fixed+1", "HEAD", "HEAD~2"},
		{"-c", "rerere.enabled=true", "merge", main},
	} {
		t.Run(strings.Join(test, " "), func(t *testing.T) {
			top := tempDir(t)
			dir := top + "/ws"
			plainRepository(t, dir)
			git(t, dir, "checkout", "-q", "-b", side)
			commit(dir, "s")
			commit(dir, "s2")
			git(t, dir, "checkout", "-q", main)
			commit(dir, "m")
			commit(dir, "m2")
			git(t, dir, "format-patch", "-q", "-o", "../patches", "main..side")
			git(t, dir, "checkout", "-q", side)
			if test[0] == "am" {
				git(t, dir, "checkout", "-q", main)
			}
			before := taken(t, dir)
			out, _ := gitWorks(t, dir,
				append([]string{"-c", "core.editor=true", "-c", "sequence.editor=true"}, test...)...)
			stopped := false
			for _, name := range []string{"rebase-merge", "rebase-apply", "sequencer", "MERGE_HEAD",
				"BISECT_START"} {
				stopped = stopped || exists(dir+"/.git/"+name)
			}
			if paths := checked(t, before); len(paths) != 0 || !stopped {
				t.Errorf("stopped %v: %+v\n%s", stopped, paths, out)
			}
		})
	}
}

// TestCheckHardLink: a file of state with a second name is found, whatever it says.
func TestCheckHardLink(t *testing.T) {
	dir := tempDir(t)
	put(t, dir+"/.git/HEAD", "ref: refs/heads/main\n")
	before := taken(t, dir)
	put(t, dir+"/.git/sequencer/head", "12345678\n")
	if err := os.Link(dir+"/.git/sequencer/head", dir+"/.git/objects"); err != nil {
		t.Fatal(err)
	}
	want(t, checked(t, before), dir+"/.git/sequencer/head", "")
}
