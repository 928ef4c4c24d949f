// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/guard"
	"github.com/sallyport-dev/sallyport/internal/names/protect"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A seam is an attack on what lies where two rules, two runs or two directories meet.
type seam struct {
	name string
	// outside, in the base directory; git DIR TEXT makes a repository
	prepare string
	dir     string                                             // the workspace, below the base directory
	policy  func(base string, p sandbox.Policy) sandbox.Policy // nil: the default one
	// below the base directory; empty for a private one
	tmp     string
	first   string // an earlier command
	attack  string
	control string // the attack as it is done outside; empty for the same
	// what the attack writes "evil" to, below the base directory; empty for x in SEAM, a directory of
	// /tmp
	planted string
}

// withGit is the default policy with the grant.
func withGit(_ string, p sandbox.Policy) sandbox.Policy {
	return p.With(sandbox.Grant{Name: protect.GrantGit})
}

// entry makes a function that adds one entry.
func entry(name string, level sandbox.Level) func(string, sandbox.Policy) sandbox.Policy {
	return func(base string, p sandbox.Policy) sandbox.Policy {
		return p.WithEntries(sandbox.PathEntry(filepath.Join(base, name), level))
	}
}

// makeGit is the start of every preparation.
const makeGit = `set -e
git() { mkdir -p "$1/.git/objects" "$1/.git/refs/heads" "$1/.git/hooks"; echo 'ref: refs/heads/x' >"$1/.git/HEAD"; printf "[core]\n$2" >"$1/.git/config"; }
`

// aroundSeams are about what lies above or beside a writable root.
func aroundSeams() []seam {
	const hook = `mkdir -p hooks; echo evil >hooks/pre-commit`
	return []seam{
		{
			name:    "hooks of the repository around",
			prepare: `git w 'hooksPath = sub/hooks\n'; mkdir -p w/sub/hooks`,
			dir:     "w/sub", attack: hook, planted: "w/sub/hooks/pre-commit",
		},
		{
			name:    "missing hooks of the repository around",
			prepare: `git w 'hooksPath = sub/hooks\n'; mkdir -p w/sub`,
			dir:     "w/sub", attack: hook, planted: "w/sub/hooks/pre-commit",
		},
		{
			name:    "hooks of the repository around, with the grant",
			prepare: `git w 'hooksPath = sub/hooks\n'; mkdir -p w/sub/hooks`,
			dir:     "w/sub", policy: withGit, attack: hook, planted: "w/sub/hooks/pre-commit",
		},
		{
			name:    "hooks of the repository around a nested one",
			prepare: `git w 'hooksPath = sub/hooks\n'; git w/sub ''; mkdir -p w/sub/hooks`,
			dir:     "w/sub", attack: hook, planted: "w/sub/hooks/pre-commit",
		},
		{
			name:    "hooks of the repository around another root",
			prepare: `mkdir x; git w 'hooksPath = sub/hooks\n'; mkdir -p w/sub`,
			dir:     "x", policy: entry("w/sub", sandbox.LevelWrite), attack: `cd ../w/sub; ` + hook,
			planted: "w/sub/hooks/pre-commit",
		},
		{
			name: "the hooks as workspace", prepare: `git w ''`,
			dir: "w/.git/hooks", attack: `echo evil >pre-commit`, planted: "w/.git/hooks/pre-commit",
		},
		{
			name:    "the directory of core.hooksPath as workspace",
			prepare: `git w 'hooksPath = .githooks\n'; mkdir w/.githooks`,
			dir:     "w/.githooks", attack: `echo evil >pre-commit`, planted: "w/.githooks/pre-commit",
		},
		{
			name: "a protected name as workspace", prepare: `git w ''; mkdir w/.sallyport`,
			dir: "w/.sallyport", attack: `echo evil >config.toml`, planted: "w/.sallyport/config.toml",
		},
		{
			name: "below a protected name", prepare: `mkdir -p w/.codex/rules`,
			dir: "w/.codex/rules", attack: `echo evil >x.rules`, planted: "w/.codex/rules/x.rules",
		},
		{
			name:    "hooks of a repository that is readable only",
			prepare: `git w ''; git w/vendor/n 'hooksPath = ../../hooks\n'; mkdir w/hooks`,
			dir:     "w", policy: entry("w/vendor", sandbox.LevelRead), attack: hook,
			planted: "w/hooks/pre-commit",
		},
		{
			name: "a repository in the directory that stands at /tmp", prepare: `mkdir w; git t ''`,
			dir: "w", tmp: "t", attack: `echo evil >/tmp/.git/config`, control: `echo evil >../t/.git/config`,
			planted: "t/.git/config",
		},
		{
			name: "a name in the directory that stands at /tmp", prepare: `mkdir w t`,
			dir: "w", tmp: "t", attack: `mkdir -p /tmp/.codex; echo evil >/tmp/.codex/x`,
			control: `mkdir -p ../t/.codex; echo evil >../t/.codex/x`, planted: "t/.codex/x",
		},
		{
			name:    "the hooks of another repository at /tmp",
			prepare: `mkdir w; git t 'hooksPath = sub\n'; mkdir t/sub`,
			dir:     "w", tmp: "t/sub", attack: `echo evil >/tmp/pre-commit`,
			control: `echo evil >../t/sub/pre-commit`, planted: "t/sub/pre-commit",
		},
		{
			name: "the configuration of the user", prepare: `mkdir -p home; echo >home/.gitconfig`,
			dir: "home", attack: `echo evil >>.gitconfig`, planted: "home/.gitconfig",
		},
		{
			name: "the missing configuration of the user", prepare: `mkdir -p home`,
			dir: "home", attack: `mkdir -p .config/git; echo evil >.config/git/config`,
			planted: "home/.config/git/config",
		},
	}
}

// ruleSeams are about rules that meet, and about several runs.
func ruleSeams() []seam {
	return []seam{
		{
			name:    "hooks beside a .git that an entry makes readable",
			prepare: `git w 'hooksPath = .githooks\n'; mkdir w/.githooks`,
			dir:     "w", policy: entry("w/.git", sandbox.LevelRead),
			attack:  `echo evil >.githooks/pre-commit`,
			planted: "w/.githooks/pre-commit",
		},
		{
			name: "hooks beside a denied .git", prepare: `git w 'hooksPath = .githooks\n'; mkdir w/.githooks`,
			dir: "w", policy: entry("w/.git", sandbox.LevelDeny), attack: `echo evil >.githooks/pre-commit`,
			planted: "w/.githooks/pre-commit",
		},
		{
			name: "a denied .git that is missing", prepare: `mkdir w`,
			dir: "w", policy: entry("w/.git", sandbox.LevelDeny),
			attack: `mkdir -p .git; echo evil >.git/config`, planted: "w/.git/config",
		},
		{
			name: "a readable name that is missing", prepare: `mkdir w`,
			dir: "w", policy: entry("w/.codex", sandbox.LevelRead),
			attack: `mkdir -p .codex; echo evil >.codex/x`, planted: "w/.codex/x",
		},
		{
			name:    "the grant over a denied git directory",
			prepare: `git s "worktree = $PWD/w\n"; mkdir w; mv s/.git store; echo "gitdir: $PWD/store" >w/.git`,
			dir:     "w", policy: func(base string, p sandbox.Policy) sandbox.Policy {
				return withGit(base, entry("store", sandbox.LevelDeny)(base, p))
			},
			attack: `echo evil >../store/x`, planted: "store/x",
		},
		{
			name:    "the grant over a readable git directory",
			prepare: `git s "worktree = $PWD/w\n"; mkdir w; mv s/.git store; echo "gitdir: $PWD/store" >w/.git`,
			dir:     "w", policy: func(base string, p sandbox.Policy) sandbox.Policy {
				return withGit(base, entry("store", sandbox.LevelRead)(base, p))
			},
			attack: `echo evil >../store/x`, planted: "store/x",
		},
		{
			name: "the shared directory of another repository", prepare: `git victim ''; mkdir w`, dir: "w",
			policy: withGit,
			first:  `mkdir -p e; echo "gitdir: e" >.git; echo "$PWD/.git" >e/gitdir; echo "${PWD%/w}/victim/.git" >e/commondir; echo "ref: refs/heads/x" >e/HEAD`,
			attack: `echo evil >../victim/.git/refs/heads/x`, planted: "victim/.git/refs/heads/x",
		},
		{
			name:    "a link on the way to hooks that are missing",
			prepare: `git w 'hooksPath = tools/githooks\n'`,
			dir:     "w", attack: `mkdir -p real/githooks; echo evil >real/githooks/pre-commit; ln -s real tools`,
			planted: "w/tools/githooks/pre-commit",
		},
		{
			name: "a directory of /tmp above what an entry denies", prepare: `mkdir w`,
			dir: "w", attack: `echo evil >"$SEAM/x"`,
			policy: func(_ string, p sandbox.Policy) sandbox.Policy {
				return p.WithEntries(sandbox.PathEntry(filepath.Join(os.Getenv("SEAM"), "denied"),
					sandbox.LevelDeny))
			},
		},
		{
			name:    "the directory above hooks moved away",
			prepare: `git w 'hooksPath = tools/githooks\n'; mkdir -p w/tools/githooks`,
			dir:     "w", attack: `mv tools old; mkdir -p tools/githooks; echo evil >tools/githooks/pre-commit`,
			planted: "w/tools/githooks/pre-commit",
		},
	}
}

func TestSeams(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for i, s := range append(aroundSeams(), ruleSeams()...) {
		if !testenv.InShort(i) {
			continue
		}
		t.Run(s.name, func(t *testing.T) { s.try(t, "") })
		t.Run(s.name+", bwrap", func(t *testing.T) { s.try(t, plan.LevelBwrap) })
	}
}

// try performs the attack in a sandbox and then, to see that it is one, outside.
func (s *seam) try(t *testing.T, level string) {
	a := newArena(t)
	a.host.Only = level
	if _, lack := a.host.findBwrap(); level == plan.LevelBwrap && lack != nil {
		testenv.Lack(t, testenv.Programs, lack.Error())
	}
	t.Setenv("HOME", filepath.Join(a.base, "home"))
	t.Setenv("XDG_CONFIG_HOME", "")
	seam, err := os.MkdirTemp("/tmp", "seam")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(seam)) })
	must(t, os.Mkdir(filepath.Join(seam, "denied"), 0o755))
	t.Setenv("SEAM", seam)
	outside := func(dir, script string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
		cmd.Dir = filepath.Join(a.base, dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	outside("", makeGit+s.prepare)
	dir := filepath.Join(a.base, s.dir)
	p := bind(sandbox.WorkspaceWrite(dir), dir)
	if s.policy != nil {
		p = s.policy(a.base, p)
	}
	j := &job{dir: dir, policy: &p, env: append(os.Environ(), "PATH=/usr/bin:/bin")}
	if s.tmp != "" {
		j.tmp = filepath.Join(a.base, s.tmp)
	}
	for _, script := range []string{s.first, s.attack} {
		j.args = sh(script)
		if _, err := a.run(t, j); err != nil {
			t.Logf("refused: %v", err)
		}
	}
	must(t, a.host.Close())
	if s.evil(a) {
		t.Errorf("%s was written to", s.planted)
	}
	if s.control == "" {
		s.control = s.attack
	}
	outside(s.dir, s.control)
	if !s.evil(a) {
		t.Error("the attack is none: it does nothing outside either")
	}
}

// evil reports whether the attack has succeeded.
func (s *seam) evil(a *arena) bool {
	name := filepath.Join(a.base, s.planted)
	if s.planted == "" {
		name = filepath.Join(os.Getenv("SEAM"), "x")
	}
	text, err := os.ReadFile(name)
	return err == nil && strings.Contains(string(text), "evil")
}

// TestForeignDirectory: that the real root cannot reach a directory of another user's in a
// namespace is the directory's fault, and no reason for a weaker level.
func TestForeignDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		return // an ordinary user reaches what he can name
	}
	for _, deny := range []bool{false, true} {
		a := newArena(t)
		dir := a.base + "/theirs/w"
		must(t, os.MkdirAll(dir, 0o700))
		must(t, os.Chown(a.base+"/theirs", 65534, 65534))
		must(t, os.Chmod(a.base+"/theirs", 0o700))
		j := &job{args: sh(`:`), dir: dir}
		p := bind(sandbox.WorkspaceWrite(dir), dir)
		if deny {
			j.dir, p = a.ws, a.policy().WithEntries(sandbox.PathEntry(dir, sandbox.LevelDeny))
		}
		j.policy = &p
		_, err := a.run(t, j)
		var about *executor.RootError
		if !errors.As(err, &about) || about.Path != dir {
			t.Errorf("denied %v: %v", deny, err)
		}
		if lack := a.host.lacks(plan.LevelNative); lack != nil {
			t.Errorf("denied %v: the native level is given up: %v", deny, lack)
		}
	}
}

// TestReplacedOutside: a program outside that replaces what a wall stands over, as
// editors do when they save, takes the wall away; the command is ended.
func TestReplacedOutside(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedInotify(t)
	cases := []struct {
		name, file string
		level      sandbox.Level
		outside    string // with the file's name
		broken     bool
	}{
		{"a denied file replaced", "secret", sandbox.LevelDeny, `echo new >"$1.new"; mv "$1.new" "$1"`, true},
		{"a readable file replaced", "config", sandbox.LevelRead, `echo new >"$1.new"; mv "$1.new" "$1"`, true},
		{"a denied directory replaced", "directory", sandbox.LevelDeny, `mv "$1" "$1.old"; mkdir "$1"`, true},
		{"a file removed and made anew", "config", sandbox.LevelRead, `rm "$1"; echo new >"$1"`, true},
		{"a file removed", "config", sandbox.LevelRead, `rm "$1"`, false},
		{"a file written to in its place", "config", sandbox.LevelRead, `echo new >"$1"`, false},
		{"a nested repository made anew", "nested", sandbox.LevelWrite, `rm -r "$1"; mkdir -p "$1/.git"`, false},
		{"a file beside it", "config", sandbox.LevelRead, `echo new >"$1.new"`, false},
	}
	for _, level := range []string{"", plan.LevelBwrap} {
		for _, c := range cases {
			t.Run(c.name+" "+level, func(t *testing.T) {
				a := atLevel(t, level)
				if _, lack := a.host.findBwrap(); level == plan.LevelBwrap && lack != nil {
					testenv.Lack(t, testenv.Programs, lack.Error())
				}
				write(t, a.ws+"/secret", "secret")
				write(t, a.ws+"/config", "config")
				must(t, os.Mkdir(a.ws+"/directory", 0o755))
				must(t, os.MkdirAll(a.ws+"/nested/.git/objects", 0o755))
				must(t, os.Mkdir(a.ws+"/nested/.git/refs", 0o755))
				write(t, a.ws+"/nested/.git/HEAD", "ref: refs/heads/x\n")
				p := a.policy()
				if c.level != sandbox.LevelWrite {
					p = p.WithEntries(sandbox.PathEntry(a.ws+"/"+c.file, c.level))
				}
				in, hand := waiting(t)
				defer in.Close()
				must(t, unix.SetNonblock(int(in.Fd()), false)) // or the shell's read would not wait
				up, told := pipe(t)
				defer up.Close()
				defer told.Close()
				var after executor.Exit
				late := time.AfterFunc(patience/4, func() { _ = hand.Close() }) // nothing has ended it
				defer late.Stop()
				res, err := a.run(t, &job{args: sh(`echo up; read go; exit 0`), policy: &p, stdin: in,
					stdout: told, after: &after, during: func(*Child) {
						_ = up.SetReadDeadline(time.Now().Add(patience))
						if _, err := up.Read(make([]byte, 8)); err != nil {
							t.Error(err)
						}
						out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", c.outside,
							"sh", a.ws+"/"+
								c.file).CombinedOutput()
						if err != nil {
							t.Errorf("%s", out)
						}
						if !c.broken {
							must(t, hand.Close())
						}
					}})
				_ = hand.Close() // or the end of the wall has ended it
				if err != nil {
					t.Fatal(err)
				}
				var broken *guard.BrokenError
				if got := errors.As(after.Broken, &broken); got != c.broken || got && res.code == 0 {
					t.Errorf("broken: %v, %+v", after.Broken, res)
				}
			})
		}
	}
}

// waiting is a pipe whose reader, a command, waits.
func waiting(t *testing.T) (in, hand *os.File) {
	t.Helper()
	in, hand = pipe(t)
	must(t, syscall.SetNonblock(int(in.Fd()), false))
	return in, hand
}

// TestDenyPatternLimit: a pattern that matches more than can be masked is an error,
// and nothing runs.
func TestDenyPatternLimit(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	must(t, os.Mkdir(a.ws+"/many", 0o755))
	for i := range 8193 {
		must(t, os.Link(a.ws+"/file", fmt.Sprintf("%s/many/%d.key", a.ws, i)))
	}
	deny := func(pattern string) *sandbox.Policy {
		p := a.policy().WithEntries(sandbox.GlobEntry(a.ws + pattern))
		return &p
	}
	beside := deny("/**/*.key").WithEntries(sandbox.GlobEntry(a.ws + "/**/*.pem"))
	for _, policy := range []*sandbox.Policy{deny("/**/*.key"), &beside} {
		_, err := a.run(t, &job{policy: policy, args: sh(`touch ran`)})
		var root *executor.RootError
		if !errors.As(err, &root) || !strings.Contains(root.Error(), "*.key matches more than 8192 files") ||
			root.Fix == "" {
			t.Errorf("%v", err)
		}
	}
	if _, err := os.Lstat(a.ws + "/ran"); err == nil {
		t.Error("it ran")
	}
	res := mustRun(t, a, &job{policy: deny("/many/1??.key"),
		args: sh(`cat many/100.key many/199.key 2>/dev/null && echo BREACH; cat many/200.key; ls many | wc -l`)})
	if res.out != "hello8193\n" {
		t.Errorf("%+v", res)
	}
}

// TestClosedThenOpened: protected names are missing in a directory of this user's that is closed at the
// start. The command can open it, and makes none of them all the same.
func TestClosedThenOpened(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedOrdinaryUser(t) // nothing is closed to root
	a := newArena(t)
	nested := a.ws + "/frozen"
	must(t, os.Mkdir(nested, 0o755))
	must(t, os.Chmod(nested, 0o555))
	t.Cleanup(func() { must(t, os.Chmod(nested, 0o755)) })
	policy := a.policy().WithEntries(sandbox.PathEntry(nested, sandbox.LevelWrite))
	for _, blind := range []bool{false, true} {
		res := mustRun(t, a, &job{policy: &policy, blind: blind,
			args: sh(`chmod 755 frozen && touch frozen/mine && mkdir frozen/.codex; test -e frozen/mine`)})
		_, err := os.Lstat(nested + "/.codex")
		if res.code != 0 || !os.IsNotExist(err) {
			t.Errorf("blind %v: %+v, %v", blind, res, err)
		}
		must(t, os.Remove(nested+"/mine"))
		must(t, os.Chmod(nested, 0o555))
	}
}
