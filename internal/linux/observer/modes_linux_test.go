// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// modeCalls give a set-gid bit to what is in a directory: d, a directory, f, a file, to-d and to-f,
// links. Each has the error that is wanted, or none.
var modeCalls = []struct {
	name string
	call func() error
	want error
}{
	{"directory", func() error { return chmodAt("d", 0o2755, 0) }, nil},
	{"directory and more bits", func() error { return chmodAt("d/", 0o3777, 0) }, nil},
	{"link to a directory", func() error { return chmodAt("to-d", 0o2775, 0) }, nil},
	{"working directory", func() error { return chmodAt(".", 0o2755, 0) }, nil},
	{"descriptor of a directory", func() error { return chmodFD("d", unix.O_RDONLY) }, nil},
	{"path descriptor of a directory", func() error { return chmodFD("d", unix.O_PATH) }, unix.EBADF},
	{"no descriptor", func() error { return unix.Fchmod(unix.AT_FDCWD, 0o2755) }, unix.EBADF},
	{"directory by /proc", func() error { return chmodByProc("d") }, nil},
	{"empty path", func() error { return chmodEmpty("d") }, nil},
	{"missing", func() error { return chmodAt("none", 0o2755, 0) }, unix.ENOENT},
	{"no path", func() error { return chmodAt("", 0o2755, 0) }, unix.ENOENT},
	{"below a file", func() error { return chmodAt("f/x", 0o2755, 0) }, unix.ENOTDIR},
	{"file", func() error { return chmodAt("f", 0o2755, 0) }, unix.EPERM},
	{"link to a file", func() error { return chmodAt("to-f", 0o2755, 0) }, unix.EPERM},
	{"link itself", func() error { return chmodAt("to-d", 0o2755, noFollow) }, unix.EPERM},
	{"descriptor of a file", func() error { return chmodFD("f", unix.O_RDONLY) }, unix.EPERM},
	{"file by /proc", func() error { return chmodByProc("f") }, unix.EPERM},
	{"set-uid bit of a directory", func() error { return chmodAt("d", 0o6755, 0) }, unix.EPERM},
	{"behind a wall", func() error { return chmodAt("../other", 0o2755, 0) }, unix.EACCES},
}

const noFollow = unix.AT_SYMLINK_NOFOLLOW

// chmodAt calls chmod, or fchmodat2 where there are flags.
func chmodAt(name string, mode uint32, flags int) error {
	if flags != 0 {
		return unix.Fchmodat(unix.AT_FDCWD, name, mode, flags)
	}
	return unix.Chmod(name, mode)
}

func chmodFD(name string, flags int) error {
	fd, err := unix.Open(name, flags, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fchmod(fd, 0o2750)
}

func chmodByProc(name string) error {
	fd, err := unix.Open(name, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), 0o2755)
}

func chmodEmpty(name string) error {
	fd, err := unix.Open(name, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fchmodat(fd, "", 0o2755, unix.AT_EMPTY_PATH)
}

// modes makes the calls in a directory and returns their errors.
func modes(dir string) (string, error) {
	if err := os.Chdir(dir); err != nil {
		return "", err
	}
	var lines []string
	for _, c := range modeCalls {
		lines = append(lines, c.name+": "+outcome(c.call()))
	}
	return strings.Join(lines, "\n"), nil
}

// TestDirectoryModes: the set-gid bit is for directories only, however they are named, and only where
// the walls allow a change.
func TestDirectoryModes(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedSeccomp(t)
	self, err := os.Executable()
	must(t, err)
	above := realTemp(t)
	dir := above + "/ws"
	must(t, os.Mkdir(dir, 0o755))
	must(t, os.Mkdir(above+"/other", 0o755))
	must(t, os.Mkdir(dir+"/d", 0o755))
	must(t, os.WriteFile(dir+"/f", nil, 0o755))
	must(t, os.Symlink("d", dir+"/to-d"))
	must(t, os.Symlink("f", dir+"/to-f"))
	got, _ := observedRun(t, Config{Writable: []string{dir}}, nil, self, "modes", dir)
	var want []string
	for _, c := range modeCalls {
		want = append(want, c.name+": "+outcome(c.want))
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, set := range map[string]bool{"/d": true, "": true, "/f": false, "/../other": false} {
		st, err := os.Stat(dir + name)
		must(t, err)
		if (st.Mode()&os.ModeSetgid != 0) != set {
			t.Errorf("%q has mode %v", name, st.Mode())
		}
	}
}
