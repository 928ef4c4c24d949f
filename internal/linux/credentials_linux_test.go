// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// storesIn makes a home directory with three stores of secrets outside of the workspace, one
// of which is a link to a file elsewhere.
func storesIn(t *testing.T, a *arena) string {
	t.Helper()
	home := a.base + "/home"
	must(t, os.MkdirAll(home+"/.aws/sso", 0o755))
	write(t, home+"/.aws/credentials", "secret")
	write(t, home+"/.aws/sso/token", "secret")
	write(t, home+"/dotfiles", "//registry/:_authToken=secret")
	write(t, home+"/.gitconfig", "[user]\n")
	must(t, os.Symlink("dotfiles", home+"/.npmrc"))
	write(t, home+"/.netrc", "machine x login y password secret")
	t.Setenv("HOME", home)
	return home
}

// TestCredentials: stores of secrets in the home directory cannot be read unless they are
// granted or an entry of the policy names them; everything else there can.
func TestCredentials(t *testing.T) {
	testenv.RunAsOrdinary(t)
	const show = `cd "$1"; for f in .aws/credentials .aws/sso/token .npmrc dotfiles .netrc .gitconfig; do grep -q 'secret\|user' $f 2>/dev/null && echo $f; done; :`
	all := ".aws/credentials .aws/sso/token .npmrc dotfiles .netrc .gitconfig"
	for _, level := range []string{plan.LevelNative, plan.LevelBwrap} {
		t.Run(level, func(t *testing.T) {
			for _, tt := range []struct {
				name, want string
				policy     func(p sandbox.Policy, home string) sandbox.Policy
			}{
				{"nothing granted", ".gitconfig", func(p sandbox.Policy, _ string) sandbox.Policy { return p }},
				{"one granted", ".aws/credentials .aws/sso/token .gitconfig", withGrant("credentials:aws")},
				{"another granted", ".npmrc dotfiles .gitconfig", withGrant("credentials:npm")},
				{"all granted", all, withGrant("credentials:all")},
				{"named by the policy", ".netrc .gitconfig", homeEntry(".netrc", sandbox.LevelRead)},
				{"denied by the policy", ".gitconfig", homeEntry(".netrc", sandbox.LevelDeny)},
				{"the home is writable", ".gitconfig", homeEntry("", sandbox.LevelWrite)},
			} {
				t.Run(tt.name, func(t *testing.T) {
					a := atLevel(t, level)
					if level == plan.LevelBwrap {
						a = bwrapArena(t)
					}
					home := storesIn(t, a)
					p := tt.policy(a.policy(), home)
					args := append(sh(show), home)
					res := mustRun(t, a, &job{policy: &p, args: args})
					if got := strings.Join(strings.Fields(res.out), " "); got != tt.want {
						t.Errorf("readable are %q, want %q; %s", got, tt.want, res.err)
					}
				})
			}
		})
	}
}

// TestCredentialsOnly: an entry for something in a store opens that, and nothing else.
func TestCredentialsOnly(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	home := storesIn(t, a)
	p := a.policy().WithEntries(sandbox.PathEntry(home+"/.aws/sso", sandbox.LevelRead))
	var hidden, replaced []string
	res := mustRun(t, a, &job{
		policy: &p, args: append(sh(`cat "$1/.aws/sso/token"; cat "$1/.aws/credentials"`), home),
		during: func(c *Child) { hidden, replaced = c.Sandbox().Hidden, c.Sandbox().Replaced },
	})
	if res.out != "secret" || !strings.Contains(res.err, "credentials") {
		t.Errorf("%q, %q", res.out, res.err)
	}
	for _, want := range []string{"credentials:aws", "credentials:netrc"} {
		if !slices.Contains(hidden, want) {
			t.Errorf("hidden are %q, and not %q", hidden, want)
		}
	}
	if slices.Contains(hidden, "credentials:npm") || !slices.Contains(replaced, home+"/.npmrc") {
		t.Errorf("hidden are %q, replaced are %q", hidden, replaced)
	}
}

// TestSettingsCopies: settings with a secret are shown as they are but for the secret, also to later
// commands of the same host and where the home is writable; nothing changes them or leads to the file. In a
// directory that the policy denies, and where they are not understood, they are hidden.
func TestSettingsCopies(t *testing.T) {
	testenv.RunAsOrdinary(t)
	const npmrc = "registry=https://r.example/\n//r.example/:_authToken=abcdefgh12345678\n"
	a := newArena(t)
	home := a.base + "/home"
	write1(t, home+"/.npmrc", npmrc)
	write1(t, home+"/.config/pip/pip.conf",
		"[global]\nindex-url = https://user:longpassword@pip.example/simple\n")
	write1(t, home+"/.m2/settings.xml",
		"<settings><servers><server><id>x</id><password>longpassword</password></server></servers></settings>")
	write1(t, home+"/.gradle/gradle.properties", "signingPassword=long\\\npassword\n")
	t.Setenv("HOME", home)
	write := a.policy().WithEntries(sandbox.PathEntry(home, sandbox.LevelWrite))
	const look = `cd "$1"; cat .npmrc .config/pip/pip.conf .m2/settings.xml .gradle/gradle.properties 2>/dev/null
(echo x >>.npmrc) 2>/dev/null && echo written; mv .npmrc other 2>/dev/null && echo moved; rm -f .npmrc 2>/dev/null && echo removed; ln .npmrc link 2>/dev/null && cat link; :`
	const want = "registry=https://r.example/\n//r.example/:_authToken=hidden-by-sallyport\n" +
		"[global]\nindex-url = https://hidden-by-sallyport@pip.example/simple\n" +
		"<settings><servers><server><id>x</id><password>hidden-by-sallyport</password></server></servers></settings>"
	for _, tt := range []struct {
		name, want string
		policy     sandbox.Policy
	}{
		{"shown", want, a.policy()},
		{"once more", want, a.policy()},
		{"a writable home", want, write},
		{"granted", npmrc + strings.Join(strings.SplitAfter(want, "\n")[2:], ""), a.policy().With(sandbox.Grant{Name: "credentials:npm"})},
		{"in a denied directory", "registry=https://r.example/\n//r.example/:_authToken=hidden-by-sallyport\n" + want[strings.Index(want, "<settings>"):],
			a.policy().WithEntries(sandbox.PathEntry(home+"/.config/pip", sandbox.LevelDeny))},
		{"denied", want[strings.Index(want, "[global]"):], a.policy().WithEntries(sandbox.PathEntry(home+"/.npmrc", sandbox.LevelDeny))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if res := mustRun(t, a, &job{policy: &tt.policy,
				args: append(sh(look), home)}); res.out != tt.want {
				t.Errorf("%q, want %q; %s", res.out, tt.want, res.err)
			}
			if text, err := os.ReadFile(home + "/.npmrc"); err != nil || string(text) != npmrc {
				t.Errorf("outside it is %q, %v", text, err)
			}
		})
	}
}

// TestPrivateFiles: what no table has and holds a key or a token, is hidden, but for the project's own files,
// entries and grants; so is what appears, or changes, between two commands of one host.
func TestPrivateFiles(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	home := a.base + "/home"
	const token = "x = ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789\n"
	private := func(name, text string) {
		write1(t, name, text)
		must(t, os.Chmod(name, 0o600))
	}
	t.Setenv("HOME", home)
	private(home+"/.tool/state", token)
	private(home+"/.config/app/sub/key", "-----BEGIN OPENSSH "+"PRIVATE KEY-----\nx\n")
	private(home+"/keys/deploy.pem", "-----BEGIN RSA "+"PRIVATE KEY-----\nx\n")
	private(home+"/.tool/harmless", "color = true and so on\n")
	private(a.ws+"/.env", token)
	write1(t, home+"/.netrc.bak", "machine x password y")
	write1(t, home+"/.public/token", token)
	const show = `cd "$1"; for f in .tool/state .config/app/sub/key keys/deploy.pem .tool/harmless .netrc.bak .public/token .tool/new; do [ -f $f ] && head -c1 $f >/dev/null 2>&1 && echo $f; done; cat "$2/.env" >/dev/null && echo .env`
	check := func(name, want string, p sandbox.Policy) {
		t.Helper()
		res := mustRun(t, a, &job{policy: &p, args: append(sh(show), home, a.ws)})
		if got := strings.Join(strings.Fields(res.out), " "); got != want {
			t.Errorf("%s: readable are %q, want %q; %s", name, got, want, res.err)
		}
	}
	const open = ".tool/harmless .public/token .env"
	check("none", open, a.policy())
	check("a grant", ".tool/state .config/app/sub/key keys/deploy.pem .tool/harmless .public/token .env",
		a.policy().With(sandbox.Grant{Name: "credentials:other"}))
	check("an entry", ".tool/state .tool/harmless .public/token .env",
		a.policy().WithEntries(sandbox.PathEntry(home+"/.tool/state", sandbox.LevelRead)))
	private(home+"/.tool/new", token)
	check("a new file", open, a.policy())
	write(t, home+"/.tool/harmless", token)
	check("one that changed in its place", ".public/token .env", a.policy())
}

func withGrant(name string) func(sandbox.Policy, string) sandbox.Policy {
	return func(p sandbox.Policy, _ string) sandbox.Policy { return p.With(sandbox.Grant{Name: name}) }
}

func homeEntry(name string, level sandbox.Level) func(sandbox.Policy, string) sandbox.Policy {
	return func(p sandbox.Policy, home string) sandbox.Policy {
		return p.WithEntries(sandbox.PathEntry(filepath.Join(home, name), level))
	}
}

// TestStateCannotBePlanted: a state directory that later runs without XDG_STATE_HOME would use,
// and that is missing in a writable place, cannot be filled by a command: it is made before, or
// quarantined where the directory for it is missing as well.
func TestStateCannotBePlanted(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, place := range []string{".local/state", ".local"} {
		for _, blind := range []bool{false, true} {
			a := newArena(t)
			t.Setenv("HOME", a.ws)
			must(t, os.MkdirAll(filepath.Join(a.ws, place), 0o755))
			res := mustRun(t, a, &job{blind: blind,
				args: sh(`mkdir -p .local/state/other; mkdir -m 700 .local/state/sallyport; mkdir .local/state/sallyport/tmp; :`)})
			names, err := os.ReadDir(a.ws + "/.local/state/sallyport")
			if made := err == nil; made != (place == ".local/state") || len(names) > 0 {
				t.Errorf("%s, without an observer: %v: %v, %v, %+v", place, blind, names, err, res)
			}
			if _, err := os.Lstat(a.ws + "/.local/state/other"); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestStateBehindLink: a link on the way to the state directory that a command could replace
// stops the start, or the next run would take a directory of the command's for sallyport's own.
func TestStateBehindLink(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, made := range []string{".local/state", ".local/state/sallyport"} {
		a := newArena(t)
		t.Setenv("HOME", a.ws)
		must(t, os.Symlink(a.out, a.ws+"/.local"))
		must(t, os.MkdirAll(filepath.Join(a.ws, made), 0o700))
		_, err := a.run(t, &job{args: sh(`rm .local; mkdir -p .local/state && mkdir -m 700 .local/state/sallyport`)})
		var no *sandbox.UnsupportedError
		if !errors.As(err, &no) || !strings.Contains(no.Have, a.ws+"/.local") {
			t.Errorf("%s: %v, want the link named", made, err)
		}
		if info, err := os.Lstat(a.ws + "/.local"); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s: the link was replaced: %v, %v", made, info, err)
		}
	}
}

// TestDevicesStayClosed: a link that an earlier command left at the name of a file that a start
// reads leads to no device: to open one can start something. A named pipe stands for it, which
// reports that it was opened.
func TestDevicesStayClosed(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedInotify(t)
	a := newArena(t)
	home := a.base + "/home"
	t.Setenv("HOME", home)
	pipe := a.base + "/pipe"
	must(t, unix.Mkfifo(pipe, 0o600))
	must(t, os.Mkdir(home, 0o700))
	must(t, os.MkdirAll(a.ws+"/sub/.git", 0o755))
	for _, name := range []string{home + "/.npmrc", home + "/.gitconfig", a.ws + "/sub/.git/HEAD", a.ws +
		"/sub/.git/config", a.ws + "/sub/.git/commondir"} {
		must(t, os.Symlink(pipe, name))
	}
	events, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	must(t, err)
	defer unix.Close(events)
	_, err = unix.InotifyAddWatch(events, pipe, unix.IN_OPEN)
	must(t, err)
	mustRun(t, a, &job{args: sh(":")})
	if n, err := unix.Read(events, make([]byte, 1<<10)); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("it was opened: %d bytes of events, %v", n, err)
	}
}

// TestStateOfAnotherRun: a state directory that is missing and that the command could make is made
// before it begins: a run that comes later and uses it, as one without XDG_STATE_HOME, keeps it.
func TestStateOfAnotherRun(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	t.Setenv("HOME", a.ws)
	must(t, os.MkdirAll(a.ws+"/.local/state", 0o700))
	state := a.ws + "/.local/state/sallyport"
	j := job{args: sh(`mkdir .local/state/sallyport && echo made; ls .local/state/sallyport && echo seen; read line; rmdir .local/state/sallyport && echo removed; echo end`)}
	in, out, err := os.Pipe()
	must(t, err)
	defer in.Close()
	j.stdin, j.after = in, new(executor.Exit)
	j.during = func(*Child) {
		must(t, os.Mkdir(state+"/tmp", 0o700))
		must(t, out.Close())
	}
	res := mustRun(t, a, &j)
	if res.out != "end\n" || len(j.after.Quarantined) > 0 {
		t.Errorf("%+v, quarantined %+v", res, j.after.Quarantined)
	}
	if err := safefile.CheckOwn(state); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(state + "/tmp"); err != nil {
		t.Errorf("the other run has lost its directory: %v", err)
	}
}
