// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// settingsAttacks try to change the settings in $s, which is in $c below the working directory, or
// to have others read in their place. Each ends with 0 when it has.
var settingsAttacks = []string{
	`mkdir -p "$s/rules" && echo evil >"$s/rules/evil.rules"`,
	`mkdir -p "$s" && echo evil >"$s/config.toml"`,
	`echo evil >>"$s/config.toml"`,
	`echo evil >new.toml && mv new.toml "$s/config.toml"`,
	`echo evil >hard.toml && ln hard.toml "$s/hard.toml"`,
	`ln "$s/config.toml" hard && echo evil >>hard`,
	`ln -s "$PWD/new.toml" "$s/linked.toml"`,
	`test -e "$s/config.toml" && rm "$s/config.toml"`,
	`chmod 777 "$s"`,
	`mv "$s" moved`,
	`rmdir "$s"`,
	`test -e "$s" && rm -rf "$c"`,
	`test -e "$c" && mv "$c" moved2`,
	`mkdir -p staged && echo evil >staged/config.toml && mv -T staged "$s"`,
	`rmdir "$s" "$c"; mkdir -p staged2/sallyport && echo evil >staged2/sallyport/config.toml && mv -T staged2 "$c"`,
	`rmdir "$s" && ln -s "$PWD" "$s"`,
	`rm -r "$c" && ln -s "$PWD" "$c"`,
}

// settingsScript performs attacks on the settings in $1 and names those that have succeeded.
func settingsScript(attacks ...string) string {
	var b strings.Builder
	b.WriteString(`c="$1"; s="$c/sallyport"` + "\n")
	for i, attack := range attacks {
		fmt.Fprintf(&b, "(%s) 2>/dev/null && echo BREACH %d\n", attack, i)
	}
	b.WriteString(`mkdir -p "$c"; echo x >"$c/other" && cat "$c/other"`)
	return b.String()
}

// settingsCase is a place of settings in the workspace.
type settingsCase struct {
	name string
	at   string // the directory around that of the settings, below the workspace
	made string // what exists of it before
	xdg  bool   // XDG_CONFIG_HOME names it, otherwise HOME
	file string // a file of settings that exists
}

var settingsCases = []settingsCase{
	{name: "the home as the workspace", at: ".config", made: ".config/sallyport/rules", file: "config.toml"},
	{name: "no settings yet", at: ".config", made: ".config"},
	{name: "not even a .config", at: ".config"},
	{name: "XDG_CONFIG_HOME in the workspace", at: "etc/deep", made: "etc/deep/sallyport", xdg: true, file: "config.toml"},
	{name: "XDG_CONFIG_HOME that is missing", at: "etc/deep", xdg: true},
}

// place makes the case in a workspace and returns the directory of settings.
func (c *settingsCase) place(t *testing.T, a *arena) string {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(a.ws, c.made), 0o755))
	dir := filepath.Join(a.ws, c.at, "sallyport")
	t.Setenv("HOME", a.ws)
	if c.xdg {
		t.Setenv("XDG_CONFIG_HOME", filepath.Dir(dir))
		t.Setenv("HOME", a.out)
	}
	if c.file != "" {
		write(t, filepath.Join(dir, c.file), "mine\n")
	}
	return dir
}

// intact checks that a directory has nothing but the settings of the case.
func (c *settingsCase) intact(t *testing.T, dir string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && path != filepath.Join(dir, c.file) &&
			(!d.IsDir() || path != dir && d.Name() != "rules") {
			t.Errorf("%s was made", path)
		}
		return err
	}))
	if c.file == "" {
		return
	}
	if b, err := os.ReadFile(filepath.Join(dir, c.file)); err != nil || string(b) != "mine\n" {
		t.Errorf("%s: %q, %v", c.file, b, err)
	}
}

// TestSettings: no command changes the settings that later runs read, or makes some, where the
// directory around them is writable. Beside them it may write.
func TestSettings(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, level := range []string{plan.LevelNative, plan.LevelBwrap} {
		t.Run(level, func(t *testing.T) {
			for _, c := range settingsCases {
				t.Run(c.name, func(t *testing.T) {
					a := atLevel(t, level)
					if level == plan.LevelBwrap {
						a = bwrapArena(t)
					}
					dir := c.place(t, a)
					policies := map[string]*sandbox.Policy{"ordinary root": ptr(a.policy())}
					if level == plan.LevelNative {
						policies["minimal root"] = a.minimal()
					}
					if c.made != "" {
						around := a.policy().WithEntries(sandbox.PathEntry(filepath.Dir(dir),
							sandbox.LevelWrite))
						policies["a root around"] = &around
					}
					for name, policy := range policies {
						for _, blind := range []bool{true, false} {
							res := mustRun(t, a, &job{args: sh(settingsScript(settingsAttacks...), c.at),
								policy: policy, blind: blind})
							if res.out != "x\n" {
								t.Errorf("%s: %+v", name, res)
							}
							c.intact(t, dir)
						}
					}
				})
			}
		})
	}
}

// TestSettingsCanFail: where the mounts are removed from the plan, each attack succeeds somewhere.
func TestSettingsCanFail(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, attack := range settingsAttacks {
		t.Run(attack, func(t *testing.T) {
			for _, c := range settingsCases {
				a := newArena(t)
				dir := c.place(t, a)
				drop := func(p *plan.Plan) {
					for at := dir; at != a.ws; at = filepath.Dir(at) {
						dropAt("WS"+strings.TrimPrefix(at, a.ws))(a, p)
					}
				}
				res := mustRun(t, a, &job{args: sh(settingsScript(attack), c.at), change: drop})
				if strings.Contains(res.out, "BREACH") || res.signal != 0 {
					// the watch ends a run that has replaced them
					return
				}
			}
			t.Error("it succeeds nowhere")
		})
	}
}

// settingsRefusals are settings that nothing can cover.
var settingsRefusals = []struct {
	name, level, want string
	prepare           func(t *testing.T, a *arena) []string // returns more writable roots
}{
	{"the directory as a root", plan.LevelNative, "leave it out of the policy", func(t *testing.T, a *arena) []string {
		must(t, os.MkdirAll(a.out+"/.config/sallyport", 0o755))
		t.Setenv("HOME", a.out)
		return []string{a.out + "/.config/sallyport"}
	}},
	{"a root in it", plan.LevelNative, "leave it out of the policy", func(t *testing.T, a *arena) []string {
		must(t, os.MkdirAll(a.ws+"/.config/sallyport/rules", 0o755))
		return []string{a.ws + "/.config/sallyport/rules"}
	}},
	{"a file in it as a root", plan.LevelNative, "leave it out of the policy", func(t *testing.T, a *arena) []string {
		must(t, os.MkdirAll(a.ws+"/.config/sallyport", 0o755))
		write(t, a.ws+"/.config/sallyport/config.toml", "")
		return []string{a.ws + "/.config/sallyport/config.toml"}
	}},
	{"a loop", plan.LevelNative, "too many levels of symbolic links", func(t *testing.T, a *arena) []string {
		must(t, os.Symlink(".config", a.ws+"/.config"))
		return nil
	}},
	{"a named pipe", plan.LevelNative, "is neither a directory", func(t *testing.T, a *arena) []string {
		must(t, os.Mkdir(a.ws+"/.config", 0o755))
		must(t, unix.Mkfifo(a.ws+"/.config/sallyport", 0o600))
		return nil
	}},
	{"a file on the way", plan.LevelNative, "cannot be created", func(t *testing.T, a *arena) []string {
		write(t, a.ws+"/.config", "")
		return nil
	}},
	{"settings behind a link that are missing", plan.LevelNative, "it is missing", func(t *testing.T, a *arena) []string {
		must(t, os.MkdirAll(a.ws+"/.config/sallyport", 0o755))
		must(t, os.Symlink(a.ws+"/none.toml", a.ws+"/.config/sallyport/config.toml"))
		return nil
	}},
	{"SALLYPORT_CONFIG that is missing", plan.LevelNative, "it is missing", func(t *testing.T, a *arena) []string {
		t.Setenv("SALLYPORT_CONFIG", a.ws+"/none.toml")
		return nil
	}},
	{"no mounts", plan.LevelLandlock, "out of reach", func(t *testing.T, a *arena) []string {
		must(t, os.MkdirAll(a.ws+"/.config/sallyport", 0o755))
		return nil
	}},
	{"no mounts, no settings yet", plan.LevelLandlock, "out of reach", func(*testing.T, *arena) []string { return nil }},
}

// TestSettingsRefused: settings that nothing can cover stop the start.
func TestSettingsRefused(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, c := range settingsRefusals {
		t.Run(c.name, func(t *testing.T) {
			a := atLevel(t, c.level)
			t.Setenv("HOME", a.ws)
			p := a.policy()
			for _, root := range c.prepare(t, a) {
				p = p.WithEntries(sandbox.PathEntry(root, sandbox.LevelWrite))
			}
			_, err := a.run(t, &job{args: sh(`echo ran >ran`), policy: &p})
			var no *sandbox.UnsupportedError
			var root *executor.RootError
			if !errors.As(err, &no) && !errors.As(err, &root) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if _, err := os.Lstat(a.ws + "/ran"); err == nil {
				t.Error("it ran")
			}
		})
	}
}

// TestSettingsBehindLinks: links on the way to the settings stay as they are, and so do the settings.
func TestSettingsBehindLinks(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, c := range []struct{ name, link, target, settings string }{
		{"on the way", ".config", "OUT/dir", "OUT/dir/sallyport"},
		{"on the way, in the workspace", ".config", "dir", "WS/dir/sallyport"},
		{"at its name", ".config/sallyport", "OUT/dir", "OUT/dir"},
		{"leading nowhere", ".config/sallyport", "none", "WS/.config/none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newArena(t)
			t.Setenv("HOME", a.ws)
			r := strings.NewReplacer("OUT", a.out, "WS", a.ws)
			must(t, os.MkdirAll(filepath.Dir(a.ws+"/"+c.link), 0o755))
			must(t, os.Symlink(r.Replace(c.target), a.ws+"/"+c.link))
			mustRun(t, a, &job{args: sh(`rm -f "$1"; mv "$1" x; ln -sfn /tmp "$1"; rm -rf .config; mv .config y
				mkdir -p "$2"; echo evil >"$2/config.toml"; true`, c.link, r.Replace(c.settings))})
			if got, err := os.Readlink(a.ws + "/" + c.link); err != nil || got != r.Replace(c.target) {
				t.Errorf("the link leads to %q: %v", got, err)
			}
			if _, err := os.Lstat(r.Replace(c.settings) + "/config.toml"); err == nil {
				t.Error("settings were made")
			}
		})
	}
}

// TestWayClosed: a command cannot keep the next start from seeing the settings, or sallyport's own
// state, by the mode of a directory around them, and write there then.
func TestWayClosed(t *testing.T) {
	if os.Geteuid() == 0 {
		testenv.RunAsOrdinary(t) // root looks into every directory
		return
	}
	for _, c := range []struct{ name, around, close, open string }{
		{"settings", ".config", "chmod 000 .config", "chmod 700 .config"},
		{"state", ".local/state", "chmod 000 .local/state", "chmod 700 .local/state"},
		{"a directory above the state", ".local", "chmod 000 .local", "chmod 700 .local"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newArena(t)
			t.Setenv("HOME", a.ws)
			dir := filepath.Join(a.ws, c.around)
			must(t, os.MkdirAll(dir, 0o755))
			must(t, os.MkdirAll(a.ws+"/.local/state/sallyport", 0o700))
			mustRun(t, a, &job{args: sh(c.close)})
			plant := c.open + ` && mkdir -p .config/sallyport .local/state/sallyport; for d in .config .local/state; do echo evil >$d/sallyport/planted; done`
			res, err := a.run(t, &job{args: sh(plant)})
			if err == nil && res.code == 0 { // it does not start, or with the directory read-only
				t.Errorf("%+v", res)
			}
			must(t, os.Chmod(dir, 0o755))
			for _, d := range []string{".config", ".local/state"} {
				if _, err := os.Lstat(filepath.Join(a.ws, d, "sallyport/planted")); err == nil {
					t.Errorf("%s was planted", d)
				}
			}
		})
	}
}

// TestSettingsElsewhere: what a link in the settings leads to, and a file that SALLYPORT_CONFIG
// names, are settings, too.
func TestSettingsElsewhere(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	t.Setenv("HOME", a.out)
	must(t, os.MkdirAll(a.ws+"/dotfiles/rules", 0o755))
	must(t, os.MkdirAll(a.out+"/.config/sallyport/more", 0o755))
	t.Setenv("SALLYPORT_CONFIG", a.ws+"/named.toml")
	for name, link := range map[string]string{
		"/dotfiles/config.toml": "config.toml", "/dotfiles/rules/own.rules": "", "/dotfiles/one.rules": "more/one.rules", "/named.toml": "",
	} {
		write(t, a.ws+name, "mine\n")
		if link != "" {
			must(t, os.Symlink(a.ws+name, a.out+"/.config/sallyport/"+link))
		}
	}
	must(t, os.Symlink(a.ws+"/dotfiles/rules", a.out+"/.config/sallyport/rules"))
	res := mustRun(t, a, &job{args: sh(`for f in dotfiles/config.toml dotfiles/rules/own.rules dotfiles/rules/new.rules dotfiles/one.rules named.toml; do
(echo evil >$f) 2>/dev/null && echo "BREACH: write $f"; (echo evil >new && mv new $f) 2>/dev/null && echo "BREACH: move $f"; rm -f $f 2>/dev/null && test ! -e $f && test $f != dotfiles/rules/new.rules && echo "BREACH: remove $f"; done
mv dotfiles/rules r 2>/dev/null && echo BREACH; mv dotfiles d 2>/dev/null && echo BREACH; echo x >dotfiles/other; cat dotfiles/other`)})
	if res.out != "x\n" {
		t.Errorf("%+v", res)
	}
}

// TestSettingsUntouched: where no command can write around the settings, nothing is made.
func TestSettingsUntouched(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, level := range []string{plan.LevelNative, plan.LevelLandlock} {
		a := atLevel(t, level)
		home := a.base + "/home"
		must(t, os.Mkdir(home, 0o755))
		t.Setenv("HOME", home)
		unchanged(t, home)
		mustRun(t, a, &job{args: sh(":")})
	}
}

// TestSettingsRights: a directory of settings that is made has the owner and the rights to read
// of the one around it: it is for the same users.
func TestSettingsRights(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	t.Setenv("HOME", a.ws)
	must(t, os.Chmod(a.ws, 0o711))
	if os.Geteuid() == 0 {
		must(t, os.Chown(a.ws, 12345, 12345))
	}
	mustRun(t, a, &job{args: sh(":")})
	var ws, st unix.Stat_t
	must(t, unix.Lstat(a.ws, &ws))
	for _, dir := range []string{"/.config", "/.config/sallyport"} {
		must(t, unix.Lstat(a.ws+dir, &st))
		if st.Mode != ws.Mode || st.Uid != ws.Uid || st.Gid != ws.Gid {
			t.Errorf("%s: mode %o of %d:%d, want %o of %d:%d", dir, st.Mode, st.Uid, st.Gid, ws.Mode,
				ws.Uid, ws.Gid)
		}
	}
}

// TestSettingsManaged: the administrator's settings stay as they are where the policy opens /etc.
func TestSettingsManaged(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	for _, made := range []string{"/etc", "/etc/sallyport/managed.d"} {
		t.Run(made, func(t *testing.T) {
			a := newArena(t)
			mountAt(t, "tmpfs", "/etc", "tmpfs", 0, "")
			must(t, os.MkdirAll(made, 0o755))
			p := a.policy().WithEntries(sandbox.PathEntry("/etc", sandbox.LevelWrite))
			res := mustRun(t, a, &job{policy: &p, args: sh(`cd /etc; mkdir -p sallyport/managed.d; echo evil >sallyport/managed.toml && echo BREACH
echo evil >sallyport/managed.d/x.toml && echo BREACH; mv sallyport moved && echo BREACH; echo x >other; cat other`)})
			if res.out != "x\n" {
				t.Errorf("%+v", res)
			}
			if info, err := os.Stat("/etc/sallyport"); err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("other users cannot read it: %v, %v", info, err)
			}
		})
	}
}
