// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// sshAgent starts a real agent at a path, with one key whose comment is given.
func sshAgent(t *testing.T, path, comment string) {
	t.Helper()
	testenv.NeedProgram(t, "ssh-agent")
	testenv.NeedProgram(t, "ssh-add")
	cmd := exec.Command("ssh-agent", "-D", "-a", path)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	_, err = bufio.NewReader(out).ReadString('\n') // it listens now
	must(t, err)
	key := filepath.Join(t.TempDir(), "key")
	must(t, exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", key).Run())
	add := exec.Command("ssh-add", "-q", key)
	add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+path)
	must(t, add.Run())
}

// granting is the policy of an arena with grants.
func (a *arena) granting(names ...string) *sandbox.Policy {
	p := a.policy()
	for _, n := range names {
		p = p.With(sandbox.Grant{Name: n})
	}
	return &p
}

// inTmp makes a directory in the host's /tmp, which commands do not see.
func inTmp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ssh-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// named has a variable of this process name a service. It returns the environment of a command
// that has it, too.
func named(t *testing.T, name, value string) []string {
	t.Helper()
	t.Setenv(name, value)
	return []string{"PATH=/usr/bin:/bin", name + "=" + value}
}

// TestSSHAgent: with the grant the keys of the agent are listed, wherever its socket is;
// without it the connect is denied, and so is one to another agent beside it.
func TestSSHAgent(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, tt := range []struct {
		name, place  string // of the agent's socket
		first, later string // errors without the grant, before and after a run with it
	}{
		{"in the private /tmp", "tmp", "ENOENT", "ECONNREFUSED"}, // a mount point is left
		{"in the workspace", "ws", "EACCES", "EACCES"},
		{"elsewhere", "out", "EACCES", "EACCES"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newArena(t)
			dir := map[string]string{"tmp": inTmp(t), "ws": a.ws, "out": a.out}[tt.place]
			sshAgent(t, dir+"/agent", "the agent's key")
			sshAgent(t, dir+"/second", "another key")
			env := named(t, "SSH_AUTH_SOCK", dir+"/agent")
			const script = `ssh-add -l; SSH_AUTH_SOCK=$1 ssh-add -l`

			closed := func(errno string) {
				t.Helper()
				var after executor.Exit
				res, err := a.run(t, &job{args: sh(script, dir+"/second"), env: env, after: &after})
				must(t, err)
				if strings.Contains(res.out, "key") {
					t.Errorf("not granted: %+v", res)
				}
				if got, want := told(after), "connect "+dir+"/agent "+errno; !slices.Contains(got, want) {
					t.Errorf("denials %q, want %q", got, want)
				}
			}
			closed(tt.first)
			res, err := a.run(t, &job{args: sh(script, dir+"/second"), policy: a.granting("ssh-agent")})
			must(t, err)
			if !strings.Contains(res.out, "the agent's key") || strings.Contains(res.out, "another key") {
				t.Errorf("granted: %+v", res)
			}
			closed(tt.later)
		})
	}
}

// TestServiceReplaced: a socket that takes the place of a granted one while the command runs
// is denied, also when the same user has made it. So is every other name in that directory.
func TestServiceReplaced(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	sshAgent(t, a.ws+"/agent", "the agent's key")
	sshAgent(t, a.out+"/second", "another key")
	var after executor.Exit
	fifo := a.ws + "/go"
	must(t, exec.Command("mkfifo", fifo).Run())
	res, err := a.run(t, &job{
		args: sh("ssh-add -l; read x <go; ssh-add -l"), env: named(t, "SSH_AUTH_SOCK", a.ws+"/agent"),
		policy: a.granting("ssh-agent"), after: &after,
		during: func(*Child) {
			f, err := os.OpenFile(fifo, os.O_WRONLY, 0) // when the command has come so far
			must(t, err)
			must(t, os.Rename(a.out+"/second", a.ws+"/agent"))
			must(t, f.Close())
		},
	})
	must(t, err)
	if strings.Count(res.out, "key") != 1 || !strings.Contains(res.out, "the agent's key") ||
		after.Broken != nil {
		t.Errorf("%+v, broken: %v", res, after.Broken)
	}
	if got := told(after); !slices.Contains(got, "connect "+a.ws+"/agent EACCES") {
		t.Errorf("denials %q", got)
	}
}

// TestServiceSwappedBeforeLaunch: a socket that takes the place of a granted one after the
// plan was made is not shown.
func TestServiceSwappedBeforeLaunch(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	dir := inTmp(t)
	sshAgent(t, dir+"/agent", "the agent's key")
	sshAgent(t, dir+"/second", "another key")
	res, err := a.run(t, &job{
		args: sh("ssh-add -l"), env: named(t, "SSH_AUTH_SOCK", dir+"/agent"), policy: a.granting("ssh-agent"),
		allow:  []string{"unix"},
		change: func(*plan.Plan) { must(t, os.Rename(dir+"/second", dir+"/agent")) },
	})
	if err == nil {
		t.Errorf("it ran: %+v", res)
	}
}

// TestServiceOwnSocket: a command that puts a socket of its own where a granted one was shown
// reaches only that socket itself, and the next run with it is refused or gets the host's.
func TestServiceOwnSocket(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	dir := inTmp(t)
	sshAgent(t, dir+"/agent", "the agent's key")
	env := named(t, "SSH_AUTH_SOCK", dir+"/agent")
	res, err := a.run(t, &job{
		args: sh(`rm -f "$1/agent"; mv "$1" /tmp/moved; mkdir -p "$1" && ssh-agent -a "$1/agent" >/dev/null && ssh-add -l; ls "$1"`, dir),
		env:  env, policy: a.granting("ssh-agent"),
	})
	must(t, err)
	if strings.Contains(res.out, "the agent's key") {
		t.Errorf("its own agent has the host's key: %+v", res)
	}
	res, err = a.run(t, &job{args: sh("ssh-add -l"), env: env, policy: a.granting("ssh-agent")})
	var root *executor.RootError
	if !strings.Contains(res.out, "the agent's key") && !errors.As(err, &root) {
		t.Errorf("the next run: %+v, %v", res, err)
	}
}

// TestServicesRefused: what cannot be granted, or not enforced, is an error with its reason.
func TestServicesRefused(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	sshAgent(t, a.out+"/agent", "key")
	must(t, os.Symlink(a.out+"/agent", a.ws+"/link"))
	agent := [2]string{"SSH_AUTH_SOCK", a.out + "/agent"}
	for _, tt := range []struct {
		name, grant, level string
		env                [2]string // a variable of this process
		blind              bool
		allow              []string
		deny               string
		want               string // in the error
	}{
		{name: "no variable", grant: "ssh-agent", env: [2]string{"SSH_AUTH_SOCK", ""}, want: "SSH_AUTH_SOCK is not set"},
		{name: "nothing there", grant: "ssh-agent", env: [2]string{"SSH_AUTH_SOCK", a.out + "/none"}, want: "cannot be found"},
		{name: "a relative path", grant: "ssh-agent", env: [2]string{"SSH_AUTH_SOCK", "agent"}, want: "names none"},
		{name: "a file", grant: "ssh-agent", env: [2]string{"SSH_AUTH_SOCK", a.out + "/canary"}, want: "is not a socket"},
		{name: "a directory", grant: "docker", env: [2]string{"DOCKER_HOST", "unix://" + a.out}, want: "is not a socket"},
		{name: "over the network", grant: "docker", env: [2]string{"DOCKER_HOST", "tcp://127.0.0.1:2375"}, want: "names none"},
		{name: "a link in the workspace", grant: "ssh-agent", env: [2]string{"SSH_AUTH_SOCK", a.ws + "/link"}, want: "can be changed by the command"},
		{name: "no agent of GnuPG", grant: "gpg-agent", env: [2]string{"GNUPGHOME", a.out}, want: "cannot be found"},
		{name: "no restricted socket", grant: "gpg-agent", env: [2]string{"GNUPGHOME", a.base + "/gnupg"}, want: "the restricted socket"},
		{name: "denied", grant: "ssh-agent", env: agent, deny: a.out, want: "is denied"},
		{name: "without an observer", grant: "ssh-agent", env: agent, blind: true, want: "the observer is turned off"},
		{name: "bwrap", grant: "ssh-agent", env: agent, level: plan.LevelBwrap, want: "the bwrap level has none"},
		{name: "landlock", grant: "ssh-agent", env: agent, level: plan.LevelLandlock, want: "the landlock level has none"},
		{name: "a port", grant: "loopback:8080", env: agent, want: "only the proxy leads out"},
		{name: "no port", grant: "loopback:PORT", env: agent, want: "does not know it"},
		{name: "port 0", grant: "loopback:0", env: agent, want: "does not know it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := atLevel(t, tt.level)
			t.Setenv(tt.env[0], tt.env[1])
			if tt.level == plan.LevelBwrap {
				testenv.NeedProgram(t, "bwrap")
			}
			if strings.HasSuffix(tt.env[1], "/gnupg") {
				must(t, os.MkdirAll(a.base+"/gnupg", 0o700))
				_ = os.Remove(a.base + "/gnupg/S.gpg-agent")
				sshAgent(t, a.base+"/gnupg/S.gpg-agent", "key")
			}
			p := bind(sandbox.WorkspaceWrite(a.ws), a.ws)
			if tt.deny != "" {
				p = p.WithEntries(sandbox.PathEntry(tt.deny, sandbox.LevelDeny))
			}
			p = p.With(sandbox.Grant{Name: tt.grant})
			res, err := b.run(t, &job{args: sh("true"), dir: a.ws, policy: &p, blind: tt.blind,
				allow: tt.allow})
			var no *sandbox.UnsupportedError
			if !errors.As(err, &no) || !strings.Contains(err.Error(), tt.want) || no.Hint == "" {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
}

// TestServicesOfOthers: root is not given the agent of another user by mistake.
func TestServicesOfOthers(t *testing.T) {
	testenv.NeedRoot(t)
	a := newArena(t)
	sshAgent(t, a.out+"/agent", "key")
	must(t, os.Chown(a.out+"/agent", 12345, 12345))
	named(t, "SSH_AUTH_SOCK", a.out+"/agent")
	named(t, "DOCKER_HOST", "unix://"+a.out+"/agent")
	for _, grant := range []string{"ssh-agent", "docker"} {
		_, err := a.run(t, &job{args: sh("true"), policy: a.granting(grant)})
		var no *sandbox.UnsupportedError
		if !errors.As(err, &no) || !strings.Contains(err.Error(), "12345") {
			t.Errorf("%s: %v", grant, err)
		}
	}
}

// TestDocker: the socket that DOCKER_HOST names is reached, and the result warns.
func TestDocker(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	dir := inTmp(t)
	sshAgent(t, dir+"/docker.sock", "at the socket") // any server does
	var after executor.Exit
	res, err := a.run(t, &job{
		args:   sh(`SSH_AUTH_SOCK=${DOCKER_HOST#unix://} ssh-add -l`),
		env:    named(t, "DOCKER_HOST", "unix://"+dir+"/docker.sock"),
		policy: a.granting("docker"), after: &after,
	})
	must(t, err)
	if !strings.Contains(res.out, "at the socket") {
		t.Errorf("%+v", res)
	}
	if w := strings.Join(after.Sandbox.Warnings, "\n"); !strings.Contains(w, "root on this machine") {
		t.Errorf("warnings %q", w)
	}
}

// TestGPGAgent: the agent signs, and neither gives away keys nor lets them be read as files.
func TestGPGAgent(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, "gpg")
	testenv.NeedProgram(t, "gpgconf")
	a := newArena(t)
	home := a.base + "/h"
	t.Setenv("HOME", home)
	t.Setenv("GNUPGHOME", "")
	must(t, os.MkdirAll(home+"/.gnupg", 0o700))
	env := []string{"PATH=/usr/bin:/bin", "HOME=" + home}
	outside := func(args ...string) string {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = env
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return string(out)
	}
	t.Cleanup(func() { outside("gpgconf", "--kill", "gpg-agent") })
	outside("gpg", "--batch", "--quiet", "--passphrase", "", "--quick-gen-key", "a@example.org",
		"default", "default")
	const export = `gpg --batch --pinentry-mode loopback --passphrase "" --export-secret-keys`
	if outside("sh", "-c", export) == "" {
		t.Fatal("outside no key is exported either")
	}
	const script = `echo hello | gpg --batch --clearsign || exit; ` + export +
		` | wc -c; cat $HOME/.gnupg/private-keys-v1.d/*`
	res, err := a.run(t, &job{args: sh(script), env: env, policy: a.granting("gpg-agent")})
	must(t, err)
	if !strings.Contains(res.out, "BEGIN PGP SIGNATURE") || !strings.HasSuffix(res.out, "\n0\n") {
		t.Errorf("%+v", res)
	}
	if res, err = a.run(t, &job{args: sh(script), env: env}); err != nil ||
		strings.Contains(res.out, "SIGNATURE") {
		t.Errorf("without the grant: %+v, %v", res, err)
	}
}

// TestServiceOfCommand: a command's own environment does not choose what a grant opens.
func TestServiceOfCommand(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	sshAgent(t, a.out+"/agent", "the agent's key")
	sshAgent(t, a.out+"/second", "another key")
	env := named(t, "SSH_AUTH_SOCK", a.out+"/second")
	t.Setenv("SSH_AUTH_SOCK", a.out+"/agent")
	res, err := a.run(t, &job{args: sh(`ssh-add -l; SSH_AUTH_SOCK=$1 ssh-add -l`, a.out+"/second"), env: env,
		policy: a.granting("ssh-agent")})
	must(t, err)
	if !strings.Contains(res.out, "the agent's key") || strings.Contains(res.out, "another key") {
		t.Errorf("%+v", res)
	}
}

// TestServicesWithAllSockets: where all sockets are allowed, a granted one is shown at every
// level and its variable is set.
func TestServicesWithAllSockets(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, tt := range []struct {
		level string
		blind bool
	}{{plan.LevelNative, false}, {plan.LevelNative, true}, {plan.LevelBwrap, false},
		{plan.LevelLandlock, false}} {
		t.Run(tt.level, func(t *testing.T) {
			if tt.level == plan.LevelBwrap {
				testenv.NeedProgram(t, "bwrap")
			}
			a := atLevel(t, tt.level)
			dir := inTmp(t)
			sshAgent(t, dir+"/agent", "the agent's key")
			named(t, "SSH_AUTH_SOCK", dir+"/agent")
			res, err := a.run(t, &job{args: sh("ssh-add -l"), policy: a.granting("ssh-agent"),
				allow: []string{"unix"}, blind: tt.blind})
			must(t, err)
			if !strings.Contains(res.out, "the agent's key") {
				t.Errorf("%+v", res)
			}
		})
	}
}
