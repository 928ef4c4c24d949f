// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestCoveredWorkingDirectory: a command that may read its working directory sees it, and no more than that,
// where a directory of the sandbox's own stands over it. Without the rule of showDir it does not start.
func TestCoveredWorkingDirectory(t *testing.T) {
	testenv.RunAsOrdinary(t)
	read := sandbox.ReadOnly()
	entries := func(es ...sandbox.Entry) *sandbox.Policy {
		p, err := sandbox.New(sandbox.Managed, sandbox.NetworkNone, es...)
		must(t, err)
		return &p
	}
	for _, c := range []struct {
		name, below string
		policy      func(dir string) *sandbox.Policy
		link        bool // the working directory is named by a link
	}{
		{name: "read-only in /tmp", below: "/tmp"},
		{name: "read-only in /dev/shm", below: "/dev/shm"},
		{name: "read-only, by a link in /tmp", below: "/tmp", link: true},
		{name: "only /tmp writable", below: "/tmp", policy: func(string) *sandbox.Policy {
			return entries(sandbox.SpecialEntry(sandbox.TokenRoot, sandbox.LevelRead),
				sandbox.SpecialEntry(sandbox.TokenSlashTmp, sandbox.LevelWrite))
		}},
		{name: "listed paths", below: "/tmp", policy: func(dir string) *sandbox.Policy {
			return entries(sandbox.SpecialEntry(sandbox.TokenMinimal, sandbox.LevelRead),
				sandbox.PathEntry(dir, sandbox.LevelRead))
		}},
		{name: "a denied file in it", below: "/tmp", policy: func(dir string) *sandbox.Policy {
			return entries(sandbox.SpecialEntry(sandbox.TokenRoot, sandbox.LevelRead),
				sandbox.PathEntry(dir+"/denied", sandbox.LevelDeny))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newArena(t)
			outer := scratch(t, c.below)
			dir := outer + "/w"
			must(t, os.Mkdir(dir, 0o755))
			write(t, dir+"/file", "hello")
			write(t, dir+"/denied", "secret")
			write(t, outer+"/secret", "secret")
			policy, from := &read, dir
			if c.policy != nil {
				policy = c.policy(dir)
			}
			if c.link {
				from = outer + "/link"
				must(t, os.Symlink("w", from))
			}
			p := policy.Bind(sandbox.Places{Dir: from, SlashTmp: "/tmp", Minimal: []string{"/bin", "/usr",
				"/lib", "/lib64", "/etc"}})
			res, err := a.run(t, &job{dir: from, policy: &p, args: sh(`cat file; echo; /bin/pwd
(echo x >new) 2>/dev/null && echo BREACH; (echo x >file) 2>/dev/null && echo BREACH
cat "$1/secret" 2>/dev/null; [ "$2" = "" ] || cat denied 2>/dev/null; :`,
				outer, map[bool]string{true: "denied"}[strings.HasPrefix(c.name, "a denied")])})
			must(t, err)
			if res.out != "hello\n"+dir+"\n" || res.code != 0 {
				t.Errorf("%+v", res)
			}
		})
	}
}

// TestHiddenWorkingDirectory: one that the policy does not show is called that, and not missing.
func TestHiddenWorkingDirectory(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	dir := scratch(t, "/tmp")
	var zero sandbox.Policy
	p := bind(zero, dir).Bind(sandbox.Places{Minimal: []string{"/bin", "/usr", "/lib", "/lib64", "/etc"}})
	_, err := a.run(t, &job{dir: dir, policy: &p, args: sh(`:`)})
	var at *executor.DirError
	var hidden *sandbox.HiddenError
	if !errors.As(err, &at) || !errors.As(err, &hidden) || hidden.Path != dir {
		t.Errorf("%v", err)
	}
	must(t, testenv.WriteProgram(dir+"/run", "#!/none/such\n"))
	read := bind(sandbox.ReadOnly(), dir)
	_, err = a.run(t, &job{dir: dir, policy: &read, args: []string{"./run"}})
	if err == nil || errors.Is(err, executor.ErrPrivateTmp) {
		t.Errorf("a program in the working directory: %v", err)
	}
}

// TestCoveredWorkingDirectoryBwrap is the same where the system's bubblewrap builds the sandbox.
func TestCoveredWorkingDirectoryBwrap(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := bwrapArena(t)
	dir := scratch(t, "/tmp")
	write(t, dir+"/file", "hello")
	p := bind(sandbox.ReadOnly(), dir)
	res, err := a.run(t, &job{dir: dir, policy: &p,
		args: sh(`cat file; echo x >new 2>/dev/null && echo BREACH; :`)})
	must(t, err)
	if res.out != "hello" {
		t.Errorf("%+v", res)
	}
}
