// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/names/protect"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// specialCalls put something into the directory .git, or take it out; link, pipe, file
// and .git/old, a link, exist.
var specialCalls = []struct {
	name   string
	call   func() error
	denied bool
}{
	{"symlinkat", func() error { return unix.Symlinkat("x", unix.AT_FDCWD, ".git/a") }, true},
	{"symlink", func() error { return unix.Symlink("x", ".git/b") }, true},
	{"symlink below", func() error { return unix.Symlink("x", ".git/sub/b") }, true},
	{"symlink beside", func() error { return unix.Symlink("x", "beside") }, false},
	{"symlink where an entry allows it", func() error { return unix.Symlink("x", ".git/opened/x") }, false},
	{"pipe", func() error { return unix.Mkfifo(".git/c", 0o600) }, true},
	{"mknodat of a pipe", func() error { return unix.Mknodat(unix.AT_FDCWD, ".git/d", unix.S_IFIFO|0o600, 0) }, true},
	{"mknodat of a socket", func() error { return unix.Mknodat(unix.AT_FDCWD, ".git/e", unix.S_IFSOCK|0o600, 0) }, true},
	{"mknodat of a file", func() error { return unix.Mknodat(unix.AT_FDCWD, ".git/f", unix.S_IFREG|0o600, 0) }, false},
	{"mknodat without a type", func() error { return unix.Mknodat(unix.AT_FDCWD, ".git/g", 0o600, 0) }, false},
	{"link of a link", func() error { return unix.Link("link", ".git/h") }, true},
	{"link of a pipe", func() error { return unix.Linkat(unix.AT_FDCWD, "pipe", unix.AT_FDCWD, ".git/i", 0) }, true},
	{"link of a file", func() error { return unix.Link("file", ".git/j") }, false},
	{"link of what a link leads to", func() error {
		return unix.Linkat(unix.AT_FDCWD, "link", unix.AT_FDCWD, ".git/k", unix.AT_SYMLINK_FOLLOW)
	}, false},
	{"rename of a link", func() error { return unix.Rename("link", ".git/l") }, true},
	{"rename over a file", func() error { return unix.Renameat(unix.AT_FDCWD, "link", unix.AT_FDCWD, ".git/j") }, true},
	{"exchange", func() error {
		return unix.Renameat2(unix.AT_FDCWD, ".git/f", unix.AT_FDCWD, "link", unix.RENAME_EXCHANGE)
	}, true},
	{"rename of a file", func() error { return unix.Rename("file", ".git/m") }, false},
	{"rename of a link out of it", func() error { return unix.Rename(".git/old", "out") }, false},
	{"bind", func() error { return bind(".git/n") }, true},
	{"mkdir", func() error { return unix.Mkdir(".git/o", 0o700) }, false},
	{"open", func() error { return os.WriteFile(".git/p", nil, 0o600) }, false},
}

func bind(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Bind(fd, &unix.SockaddrUnix{Name: path})
}

// special makes the calls in a directory, and returns what was denied.
func special(dir string) (string, error) {
	if err := os.Chdir(dir); err != nil {
		return "", err
	}
	var lines []string
	for _, c := range specialCalls {
		switch err := c.call(); {
		case errors.Is(err, unix.EPERM):
			lines = append(lines, c.name)
		case err != nil:
			lines = append(lines, c.name+": "+err.Error())
		}
	}
	return strings.Join(lines, "\n"), nil
}

// TestSpecial makes every call that can put something into a git directory that is
// neither a file nor a directory.
func TestSpecial(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedSeccomp(t)
	self, err := os.Executable()
	must(t, err)
	dir := realTemp(t)
	for _, name := range []string{"/.git/sub", "/.git/opened"} {
		must(t, os.MkdirAll(dir+name, 0o755))
	}
	must(t, os.WriteFile(dir+"/file", nil, 0o600))
	must(t, os.Symlink("file", dir+"/link"))
	must(t, os.Symlink("file", dir+"/.git/old"))
	must(t, unix.Mkfifo(dir+"/pipe", 0o600))
	policy, err := sandbox.WorkspaceWrite(dir).Bind(sandbox.Places{Dir: dir, Workspaces: []string{dir},
		SlashTmp: "/tmp"}).Resolve()
	must(t, err)
	judge := protect.NewJudge(&policy, protect.Names{Roots: []string{dir}, Ruled: []string{dir + "/.git"},
		Git: []string{dir + "/.git"}, Opened: []string{dir + "/.git/opened"}})
	got, report := observedRun(t, Config{Judge: judge}, nil, self, "special", dir)
	var want []string
	for _, c := range specialCalls {
		if c.denied {
			want = append(want, c.name)
		}
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), got); diff != "" {
		t.Errorf("denied (-want +got):\n%s", diff)
	}
	for _, d := range report.Denials {
		if d.Errno != "EPERM" {
			t.Errorf("%+v", d)
		}
	}
	if len(report.Denials) != len(want) {
		t.Errorf("%d denials, want %d: %v", len(report.Denials), len(want), report.Denials)
	}
}
