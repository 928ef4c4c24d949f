// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// laterNames is the table of names that have a grant.
func laterNames() []grants.ToolName {
	var list []grants.ToolName
	for _, grant := range grants.ToolGrants() {
		for _, name := range grants.Opened(grant) {
			n, _ := grants.FindTool(strings.Replace(name, "*", "x", 1))
			list = append(list, n)
		}
	}
	return list
}

// laterAttacks change what exists at a name that other programs run or obey later, here $1. A
// file in it, or the file itself, is $2. Each prints its number when it has succeeded.
const laterAttacks = `
(echo evil >>"$2") && echo write $1
mkdir -p n && (mv -T n "$1" || (echo evil >n.txt && mv -f n.txt "$1")) && echo over $1
rm -rf "$1" && echo remove $1
[ -e "$1" ] && mv "$1" old && mkdir "$1" && echo replace $1
chmod 700 "$2" && echo mode $1
ln "$2" alias && echo evil >>alias && echo link $1
rm -rf n n.txt old alias
:`

// layLater makes every name in the workspace: directories with a file, and files.
func layLater(t *testing.T, ws string) {
	t.Helper()
	for _, n := range laterNames() {
		write1(t, laterFile(ws, n.Name), "good")
	}
}

// laterDirectories are the names that programs have directories at.
var laterDirectories = []string{
	".agent", ".amazonq", ".augment", ".claude", ".cline", ".clinerules", ".continue", ".cursor", ".factory",
	".gemini", ".github/agents", ".github/hooks", ".github/instructions",
	".junie", ".kilocode", ".kiro", ".opencode", ".qwen", ".roo", ".trae", ".windsurf", ".devcontainer",
	".direnv", ".fleet", ".helix", ".hg", ".husky", ".idea", ".jj",
	".lefthook", ".mise", ".sl", ".vscode", ".zed", "_darcs",
}

func laterFile(ws, name string) string {
	if !slices.Contains(laterDirectories, name) {
		return filepath.Join(ws, name)
	}
	return filepath.Join(ws, name, "hooks", "x")
}

// write1 writes a file and makes the directories above it.
func write1(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	write(t, name, text)
}

// attackLater performs the attacks on every name and returns what has succeeded.
func attackLater(t *testing.T, a *arena, attacks string, j job) string {
	t.Helper()
	var line strings.Builder
	line.WriteString("exec 2>/dev/null\n")
	for _, n := range laterNames() {
		fmt.Fprintf(&line, "set -- %q %q\n%s\n", a.ws+"/"+n.Name, laterFile(a.ws, n.Name), attacks)
	}
	j.args = sh(line.String())
	return strings.ReplaceAll(mustRun(t, a, &j).out, a.ws+"/", "")
}

// TestLaterNames: what exists at a name that other programs run later cannot be written,
// renamed over, replaced or removed; the grant, or an entry, for it opens it and nothing else.
func TestLaterNames(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, level := range []string{plan.LevelNative, plan.LevelBwrap} {
		t.Run(level, func(t *testing.T) {
			a := newArena(t)
			if level == plan.LevelBwrap {
				a = bwrapArena(t)
			}
			layLater(t, a.ws)
			for _, n := range laterNames() {
				unchanged(t, a.ws+"/"+n.Name)
			}
			if got := attackLater(t, a, laterAttacks, job{}); got != "" {
				t.Errorf("succeeded:\n%s", got)
			}
		})
	}
	for _, grant := range grants.ToolGrants() {
		t.Run(grant, func(t *testing.T) {
			a := newArena(t)
			layLater(t, a.ws)
			p := a.policy().With(sandbox.Grant{Name: grant})
			got := attackLater(t, a, `(echo evil >>"$2") && mv "$1" "$1.old" && echo change $1`,
				job{policy: &p})
			for _, n := range laterNames() {
				if strings.Contains(got, "change "+n.Name+"\n") != (n.Grant == grant) {
					t.Errorf("%s:\n%s", n.Name, got)
				}
			}
		})
	}
	t.Run("an entry", func(t *testing.T) {
		a := newArena(t)
		layLater(t, a.ws)
		p := a.policy().WithEntries(sandbox.PathEntry(a.ws+"/.vscode", sandbox.LevelWrite),
			sandbox.PathEntry(a.ws+"/.claude/hooks", sandbox.LevelWrite))
		res := mustRun(t, a, &job{policy: &p,
			args: sh(`exec 2>/dev/null; echo x >.vscode/hooks/x; echo x >.claude/hooks/x; echo evil >.claude/y; echo evil >.envrc; cat .vscode/hooks/x .claude/hooks/x .claude/y .envrc`)})
		if res.out != "x\nx\ngood" {
			t.Errorf("%q", res.out)
		}
	})
	t.Run("without the mounts", func(t *testing.T) {
		a := newArena(t)
		layLater(t, a.ws)
		var at []string
		for _, n := range laterNames() {
			at = append(at, "WS/"+n.Name)
		}
		got := attackLater(t, a, laterAttacks, job{change: func(p *plan.Plan) { dropAt(at...)(a, p) }})
		for _, n := range laterNames() {
			for _, did := range []string{"write ", "over ", "remove "} {
				if !strings.Contains(got, did+n.Name+"\n") {
					t.Errorf("%s%s did not succeed:\n%s", did, n.Name, got)
				}
			}
		}
	})
	t.Run("landlock", func(t *testing.T) {
		a := atLevel(t, plan.LevelLandlock)
		layLater(t, a.ws)
		var weaker []string
		mustRun(t, a, &job{args: sh(`:`), during: func(c *Child) { weaker = c.Sandbox().Weaker }})
		for _, n := range laterNames() {
			if !slices.ContainsFunc(weaker,
				func(w string) bool { return strings.Contains(w, a.ws+"/"+n.Name) }) {
				t.Errorf("%s is not among what can be changed: %q", n.Name, weaker)
			}
		}
	})
}

// TestLaterLinks: a link that a command has put at such a name is named, and stays as it is in later runs;
// the grant for it, and no other, lets commands remove it.
func TestLaterLinks(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	exit := new(executor.Exit)
	mustRun(t, a, &job{args: sh(`ln -s dir .vscode`), after: exit})
	if got := newNames(a, exit); got != ".vscode (--grant editor-config)" {
		t.Errorf("new are %s", got)
	}
	agents, editors := a.policy().With(sandbox.Grant{Name: grants.GrantAgents}),
		a.policy().With(sandbox.Grant{Name: grants.GrantEditors})
	for _, p := range []sandbox.Policy{a.policy(), agents} {
		res, err := a.run(t, &job{policy: &p, args: sh(`rm .vscode || ! echo x >dir/x`)})
		if err != nil || res.code != 0 {
			t.Errorf("%+v %v", res, err)
		}
	}
	mustRun(t, a, &job{policy: &editors, args: sh(`echo x >dir/x && rm .vscode`)})
}

// TestLaterTracked: what a link leads to is read-only with it; instructions may be changed where git may
// write, and are then named; environments of Python in a directory of direnv stay writable.
func TestLaterTracked(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	write(t, a.ws+"/doc.md", "good")
	must(t, os.Symlink("doc.md", a.ws+"/AGENTS.md"))
	must(t, os.Symlink("nowhere", a.ws+"/.exrc"))
	write(t, a.ws+"/CLAUDE.md", "good")
	write(t, a.ws+"/x.code-workspace", "good")
	write1(t, a.ws+"/.zed/settings.json", "good")
	write1(t, a.ws+"/.direnv/python-3/pyvenv.cfg", "home = /usr")
	const change = `for f in doc.md AGENTS.md CLAUDE.md x.code-workspace .zed/settings.json .direnv/python-3/lib; do (echo evil >>$f) 2>/dev/null && echo $f; done; echo evil >y.code-workspace`
	exit := new(executor.Exit)
	if res := mustRun(t, a, &job{args: sh(change), after: exit}); res.out != ".direnv/python-3/lib\n" {
		t.Errorf("changed are %q", res.out)
	}
	if got := newNames(a, exit); got != "y.code-workspace (--grant editor-config)" {
		t.Errorf("new are %s", got)
	}
	git := a.policy().With(sandbox.Grant{Name: "git"})
	exit = new(executor.Exit)
	if res := mustRun(t, a, &job{policy: &git, args: sh(change),
		after: exit}); res.out != "doc.md\nAGENTS.md\nCLAUDE.md\n.direnv/python-3/lib\n" {
		t.Errorf("with the grant for git, changed are %q", res.out)
	}
	if got := newNames(a, exit); got != "CLAUDE.md (--grant agent-config)" {
		t.Errorf("with the grant for git, new are %s", got)
	}
}

// TestLaterEnds: what a link at a name leads to and nothing is at yet is named when it is made.
func TestLaterEnds(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	must(t, os.Symlink("shared", a.ws+"/.claude"))
	must(t, os.Symlink(".claude/exrc", a.ws+"/.exrc"))
	for _, c := range []struct{ script, want string }{
		{"true", ""},
		{"echo x >other", ""},
		{"mkdir -p shared/deep && echo x >shared/deep/f",
			"shared/deep/f (--grant agent-config)"},
		{"rm -rf shared; true", ""},
	} {
		exit := new(executor.Exit)
		mustRun(t, a, &job{args: sh(c.script), after: exit})
		if got := newNames(a, exit); got != c.want {
			t.Errorf("%s: new are %q", c.script, got)
		}
	}
}

// newNames shows what was new.
func newNames(a *arena, exit *executor.Exit) string {
	var out []string
	for _, n := range exit.New {
		text := strings.TrimPrefix(n.Path, a.ws+"/") + " (" + n.Grant + ")"
		if n.Granted {
			text += " granted"
		}
		if n.More > 0 {
			text += fmt.Sprintf(" and %d more", n.More)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// TestNew: missing names can be made, and are named with new repositories. Without an observer
// and in a large workspace, repositories are not searched again.
func TestNew(t *testing.T) {
	testenv.RunAsOrdinary(t)
	const repo = `repo() { mkdir -p "$1/objects" "$1/refs" && echo x >"$1/HEAD"; }; `
	git := func(a *arena) *sandbox.Policy { p := a.policy().With(sandbox.Grant{Name: "git"}); return &p }
	for _, tt := range []struct {
		name, script, want string
		policy             func(*arena) *sandbox.Policy
		large              bool // the workspace is large: only an observer sees it
		blind              bool // also without an observer
	}{
		{name: "nothing", script: `echo x >sub; mkdir d objects`},
		{name: "missing names", script: `for n in .claude .idea; do mkdir $n && echo x >$n/x || exit 1; done; echo x >.mcp.json`,
			want: ".claude/x (--grant agent-config), .mcp.json (--grant agent-config), .idea/x (--grant editor-config)"},
		{name: "removed again", script: `mkdir .vscode && rmdir .vscode; echo x >.envrc && rm .envrc; ` + repo + `repo a/.git; rm -r a`},
		{name: "repositories", script: repo + `repo sub/.git; repo bare.git; mkdir tree; echo gitdir: x >tree/.git`,
			want: "bare.git (--grant git), sub/.git (--grant git), tree/.git (--grant git)", blind: true},
		{name: "moved", script: repo + `repo a/.git; mv a b; repo c/.git; mv c/.git d; mkdir e; mv b e; repo f; mv f g`,
			want: "d (--grant git), e/b/.git (--grant git), g (--grant git)", blind: true},
		{name: "by rename", script: repo + `repo x; mkdir a; mv x a/.git`, want: "a/.git (--grant git)"},
		{name: "in a directory that was removed before", script: repo + `mkdir a; echo x >a/f; rm -r a; repo b/.git; echo x >b/.git/config`, want: "b/.git (--grant git)"},
		{name: "not in a private place", script: repo + `repo /tmp/x/.git; mkdir /tmp/.vscode`},
		{name: "the grant git", script: repo + `repo sub/.git`, want: "sub/.git (--grant git) granted", policy: git},
		{name: "a large workspace", script: repo + `repo sub/.git`, want: "sub/.git (--grant git)", large: true, blind: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, blind := range []bool{false, true}[:1+map[bool]int{true: 1}[tt.blind]] {
				a := newArena(t)
				for i := range cheapDirectories * map[bool]int{true: 1}[tt.large] {
					must(t, os.Mkdir(fmt.Sprintf("%s/d%d", a.ws, i), 0o755))
				}
				j := &job{args: sh(tt.script), after: new(executor.Exit), blind: blind}
				if tt.policy != nil {
					j.policy = tt.policy(a)
				}
				if res := mustRun(t, a, j); res.code != 0 {
					t.Errorf("%+v", res)
				}
				want := tt.want
				if tt.large && blind {
					want = ""
				}
				if got := newNames(a, j.after); got != want {
					t.Errorf("without an observer %v: %q, want %q", blind, got, want)
				}
			}
		})
	}
	t.Run("replaced from outside", func(t *testing.T) {
		a := newArena(t)
		layLater(t, a.ws)
		stdin, tell := pipe(t)
		defer stdin.Close()
		must(t, unix.SetNonblock(int(stdin.Fd()), false)) // or the shell's read would not wait
		j := &job{args: sh(`read go && read end`), stdin: stdin, after: new(executor.Exit),
			during: func(*Child) {
				write(t, a.ws+"/other", "y")
				must(t, os.Rename(a.ws+"/other", a.ws+"/.envrc"))
				must(t, os.Rename(a.ws+"/.husky", a.ws+"/old"))
				_, err := tell.WriteString("go\nend\n")
				must(t, errors.Join(err, tell.Close()))
			}}
		res := mustRun(t, a, j)
		if got := newNames(a, j.after); res.code != 0 || j.after.Broken != nil ||
			got != ".envrc (--grant editor-config)" {
			t.Errorf("%q, %v, %+v", got, j.after.Broken, res)
		}
	})
	t.Run("landlock", func(t *testing.T) {
		a := atLevel(t, plan.LevelLandlock)
		layLater(t, a.ws)
		exit := new(executor.Exit)
		mustRun(t, a, &job{args: sh(repo +
			`repo sub/.git; repo a; mv a b; echo x >other; mv other .mcp.json`), after: exit})
		if got := newNames(a, exit); got != ".mcp.json (--grant agent-config), sub/.git (--grant git)" {
			t.Errorf("%q", got)
		}
	})
}

// cheapDirectories are more than a search at the end of a run may look at.
const cheapDirectories = 130
