// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// homeRows are the names in a home directory of all grants.
func homeRows() []string {
	var rows []string
	for _, grant := range grants.ToolGrants() {
		rows = append(rows, grants.OpenedInHome(grant)...)
	}
	return rows
}

// homeArena is an arena whose workspace is the home directory of the user.
func homeArena(t *testing.T, level string) *arena {
	t.Helper()
	a := newArena(t)
	if level == plan.LevelBwrap {
		a = bwrapArena(t)
	}
	t.Setenv("HOME", a.ws)
	t.Setenv("PATH", os.Getenv("PATH")+":"+a.ws+"/bin")
	for _, name := range []string{"XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"} {
		t.Setenv(name, "")
	}
	return a
}

// eachHomeRow performs a script for every name: $1 is its path, $2 its directory, $3 a file in it or itself.
func eachHomeRow(home, script string, deep bool) []string {
	var b strings.Builder
	b.WriteString("exec 2>/dev/null; mkdir n; echo evil >n.txt\n")
	for _, name := range homeRows() {
		file := filepath.Join(home, name)
		if deep {
			file += "/x"
		}
		fmt.Fprintf(&b, "set -- %q %q %q\n%s\n", filepath.Join(home, name),
			filepath.Dir(filepath.Join(home, name)), file, script)
	}
	return sh(b.String())
}

const homeAttacks = `
(echo evil >>"$3") && echo write $1
mv -T n "$1" && echo over $1
mv -f n.txt "$1" && echo over $1
[ -e "$1" ] && mv "$1" old && echo move $1
[ "$2" = "$PWD" ] || { mv "$2" old && echo parent $1; }
ln "$3" alias && echo evil >>alias && echo link $1`

// TestHomeExisting: what programs run later out of a home directory is read-only where it exists, whether
// it is a file or a directory, and the workspace is the home or has it in it.
func TestHomeExisting(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, tt := range []struct {
		name, level string
		deep, above bool
	}{
		{name: "files", level: plan.LevelNative},
		{name: "directories", level: plan.LevelNative, deep: true},
		{name: "the workspace has the home in it", level: plan.LevelNative, above: true},
		{name: "bwrap", level: plan.LevelBwrap},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := homeArena(t, tt.level)
			home := a.ws
			if tt.above {
				home = filepath.Join(a.ws, "users", "me")
				must(t, os.MkdirAll(home, 0o755))
				t.Setenv("HOME", home)
				t.Setenv("PATH", os.Getenv("PATH")+":"+home+"/bin")
			}
			var rows []string
			for _, name := range homeRows() {
				file := filepath.Join(home, name)
				if tt.deep && name != ".gitconfig" {
					file += "/x"
				}
				write1(t, file, "# good\n")
				rows = append(rows, filepath.Join(home, name))
			}
			unchanged(t, rows...)
			if res := mustRun(t, a, &job{args: eachHomeRow(home, homeAttacks, tt.deep)}); res.out != "" {
				t.Errorf("succeeded:\n%s", strings.ReplaceAll(res.out, a.ws+"/", ""))
			}
			const daily = `cd "$1"
for d in . .cache/x .npm/_cacache go/pkg/mod .local/state/x .config/app .local/share/app project/bin; do
	mkdir -p $d && echo x >$d/f && mv $d/f $d/f.2 && rm $d/f.2 || exit 1
done; echo ok`
			if res := mustRun(t, a, &job{args: append(sh(daily), "sh", home)}); res.out != "ok\n" {
				t.Errorf("daily work: %+v", res)
			}
		})
	}
}

// TestHomeMissing: none of the names can be made. What appears because nothing observes the command, or at
// once with its directory, is in quarantine at the end.
func TestHomeMissing(t *testing.T) {
	testenv.RunAsOrdinary(t)
	const attack = `[ -d "$2" ] || mkdir -p "$2"
(echo x >"$1") && echo write $1 && rm -f "$1"
ln -s /bin "$1" && echo link $1 && rm -f "$1"
mv -T n "$1" && echo move $1 && mv "$1" n
echo last >"$1"`
	const planted = `mkdir -p n/bin n2/share/systemd/user; echo evil >n/bin/ls; mv n .deno
echo evil >n2/share/systemd/user/x; mv n2 .local2
mv -T .local2 .local || cp -r .local2/. .local`
	for _, blind := range []bool{false, true} {
		t.Run(fmt.Sprintf("without an observer %v", blind), func(t *testing.T) {
			a := homeArena(t, plan.LevelNative)
			exit := new(executor.Exit)
			res := mustRun(t, a, &job{args: eachHomeRow(a.ws, attack, false), blind: blind, after: exit})
			if !blind && res.out != "" {
				t.Errorf("succeeded:\n%s", strings.ReplaceAll(res.out, a.ws+"/", ""))
			}
			moved := map[string]bool{}
			for _, q := range exit.Quarantined {
				moved[q.Path] = true
			}
			for _, name := range homeRows() {
				at := filepath.Join(a.ws, name)
				if _, err := os.Lstat(at); err == nil && name != ".gitconfig" && name != ".config/git" {
					t.Errorf("%s exists", name)
				}
				if blind && !moved[at] {
					t.Errorf("%s is not in quarantine", name)
				}
			}
		})
	}
	t.Run("with its directory", func(t *testing.T) {
		a := homeArena(t, plan.LevelNative)
		exit := new(executor.Exit)
		mustRun(t, a, &job{args: sh("exec 2>/dev/null\n" + planted), after: exit})
		for _, name := range []string{".deno/bin", ".local/share/systemd"} {
			if _, err := os.Lstat(filepath.Join(a.ws, name)); err == nil {
				t.Errorf("%s exists; quarantined %+v", name, exit.Quarantined)
			}
		}
	})
}

// TestHomeOpened: the grant opens the names and no others, an entry what it names; what is denied stays
// hidden; a link stays as it is, and what it leads to is read-only.
func TestHomeOpened(t *testing.T) {
	testenv.RunAsOrdinary(t)
	const all = `exec 2>/dev/null
for f in .profile .ssh/config .vimrc bin/x .config/nvim/init; do (echo x >>"$f") && echo "$f"; done; :`
	lay := func(t *testing.T) *arena {
		a := homeArena(t, plan.LevelNative)
		for _, name := range []string{".ssh/config", ".vimrc", "bin/x", ".config/nvim/init"} {
			write1(t, filepath.Join(a.ws, name), "good\n")
		}
		return a
	}
	for _, tt := range []struct {
		name, want string
		policy     func(*arena) sandbox.Policy
	}{
		{"nothing", "", func(a *arena) sandbox.Policy { return a.policy() }},
		{"the grant", ".profile\n.ssh/config\nbin/x\n", func(a *arena) sandbox.Policy {
			return a.policy().With(sandbox.Grant{Name: grants.GrantHome})
		}},
		{"the grant for editors", ".vimrc\n.config/nvim/init\n", func(a *arena) sandbox.Policy {
			return a.policy().With(sandbox.Grant{Name: grants.GrantEditors})
		}},
		{"entries", ".ssh/config\n.config/nvim/init\n", func(a *arena) sandbox.Policy {
			return a.policy().WithEntries(sandbox.PathEntry(a.ws+"/.ssh/config", sandbox.LevelWrite),
				sandbox.PathEntry(a.ws+"/.config/nvim", sandbox.LevelWrite))
		}},
		{"another entry", "", func(a *arena) sandbox.Policy {
			return a.policy().WithEntries(sandbox.PathEntry(a.ws+"/.config", sandbox.LevelWrite))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := lay(t)
			p := tt.policy(a)
			if res := mustRun(t, a, &job{policy: &p, args: sh(all)}); res.out != tt.want {
				t.Errorf("opened %q, want %q", res.out, tt.want)
			}
		})
	}
	t.Run("denied", func(t *testing.T) {
		a := lay(t)
		p := a.policy().WithEntries(sandbox.PathEntry(a.ws+"/.config", sandbox.LevelDeny))
		const read = `exec 2>/dev/null; cat .config/nvim/init; ls .config; :`
		if res := mustRun(t, a, &job{policy: &p, args: sh(read)}); res.out != "" {
			t.Errorf("%q", res.out)
		}
	})
	t.Run("links", func(t *testing.T) {
		a := homeArena(t, plan.LevelNative)
		for _, name := range []string{"dot/profile", "dot/config/nvim/init"} {
			write1(t, filepath.Join(a.ws, name), "good\n")
		}
		must(t, os.Symlink("dot/profile", a.ws+"/.profile"))
		must(t, os.Symlink("dot/config", a.ws+"/.config"))
		must(t, os.Symlink("/nonexistent", a.ws+"/.bashrc"))
		unchanged(t, a.ws+"/dot/profile", a.ws+"/dot/config/nvim")
		exit := new(executor.Exit)
		res := mustRun(t, a, &job{after: exit, args: sh(`exec 2>/dev/null
for f in dot/profile .profile dot/config/nvim/init .config/nvim/init .config/autostart dot/config/fish \
	.bashrc; do (echo x >>"$f") && echo "$f"; done
rm .profile || mv .config c || rm .bashrc && echo removed; mkdir -p .config/app && echo app`)})
		if res.out != "app\n" || len(exit.Quarantined) > 0 {
			t.Errorf("%q, %+v", res.out, exit.Quarantined)
		}
	})
	t.Run("odd entries", func(t *testing.T) {
		a := homeArena(t, plan.LevelNative)
		must(t, os.WriteFile(a.ws+"/.local", nil, 0o600)) // where a directory would be
		must(t, os.Symlink(".bashrc", a.ws+"/.bashrc"))
		must(t, syscall.Mkfifo(a.ws+"/.forward", 0o600))
		if res := mustRun(t, a, &job{args: sh(`echo ok`)}); res.out != "ok\n" {
			t.Errorf("%+v", res)
		}
	})
}

// TestHomeNew: what another program puts in the place of a protected file meanwhile is named, and does not
// end the run.
func TestHomeNew(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := homeArena(t, plan.LevelNative)
	write(t, a.ws+"/.bashrc", "good")
	stdin, tell := pipe(t)
	defer stdin.Close()
	exit := new(executor.Exit)
	res := mustRun(t, a, &job{args: sh(`read go; :`), stdin: stdin, after: exit, during: func(*Child) {
		write(t, a.ws+"/other", "edited")
		must(t, os.Rename(a.ws+"/other", a.ws+"/.bashrc"))
		must(t, tell.Close())
	}})
	got := newNames(a, exit)
	if res.code != 0 || exit.Broken != nil || got != ".bashrc (--grant home-config)" {
		t.Errorf("%q, %v, %+v", got, exit.Broken, res)
	}
	if !slices.Contains(grants.ToolGrants(), grants.GrantHome) {
		t.Error("the grant is not listed")
	}
}
