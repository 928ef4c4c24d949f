// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package perform

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// at judges a path as an observer does.
func at(t *testing.T, name string) Place {
	t.Helper()
	id := func(name string) ID {
		fd, errno := openat2(unix.AT_FDCWD, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if errno != 0 {
			return ID{}
		}
		defer unix.Close(fd)
		got, _, errno := identify(fd)
		if errno != 0 {
			t.Fatal(errno)
		}
		return got
	}
	return Place{Path: name, Parent: id(filepath.Dir(name)), File: id(name)}
}

// tree makes a directory with two others that have the same names.
func tree(t *testing.T) string {
	t.Helper()
	dir := testenv.RealTemp(t)
	for _, d := range []string{"/yes/dir", "/no/dir"} {
		must(t, os.MkdirAll(dir+d, 0o755))
	}
	for _, f := range []string{"/yes/file", "/no/file"} {
		must(t, os.WriteFile(dir+f, []byte("text"), 0o644))
	}
	return dir
}

// calls returns a call of each kind on what is in a directory.
func calls(t *testing.T, dir string) map[string]*Call {
	t.Helper()
	file, sub, missing := at(t, dir+"/file"), at(t, dir+"/dir"), at(t, dir+"/new")
	return map[string]*Call{
		"open":        {Op: Open, At: file, Flags: unix.O_WRONLY | unix.O_TRUNC},
		"create":      {Op: Open, At: missing, Flags: unix.O_WRONLY | unix.O_CREAT, Mode: 0o600},
		"mkdir":       {Op: Mkdir, At: missing, Mode: 0o700},
		"mknod":       {Op: Mknod, At: missing, Mode: unix.S_IFREG | 0o600},
		"symlink":     {Op: Symlink, At: missing, Text: "nowhere"},
		"unlink":      {Op: Unlink, At: file},
		"rmdir":       {Op: Rmdir, At: sub},
		"rename":      {Op: Rename, At: file, To: missing},
		"link":        {Op: Link, At: file, To: missing},
		"truncate":    {Op: Truncate, At: file, Size: 1},
		"chmod":       {Op: Chmod, At: file, Mode: 0o600},
		"chown":       {Op: Chown, At: file, Owner: os.Getuid(), Group: os.Getgid()},
		"times":       {Op: SetTimes, At: file, Times: []unix.Timespec{{Sec: 1}, {Sec: 1}}},
		"setxattr":    {Op: SetXattr, At: file, Text: "user.x", Value: []byte("1")},
		"removexattr": {Op: RemoveXattr, At: file, Text: "user.x"},
	}
}

func do(c *Call) syscall.Errno {
	fd, errno := c.Do()
	if fd >= 0 {
		unix.Close(fd)
	}
	return errno
}

// TestChanged: where the directory of a call was replaced after it was judged, or what has the name, the call
// fails and changes neither.
func TestChanged(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for how, change := range map[string]func(dir string) error{
		"parents exchanged": func(dir string) error {
			return unix.Renameat2(unix.AT_FDCWD, dir+"/yes", unix.AT_FDCWD, dir+"/no", unix.RENAME_EXCHANGE)
		},
		"parent is a link": func(dir string) error {
			if err := os.Rename(dir+"/yes", dir+"/old"); err != nil {
				return err
			}
			return os.Symlink("no", dir+"/yes")
		},
	} {
		for name := range calls(t, tree(t)+"/yes") {
			t.Run(how+"/"+name, func(t *testing.T) {
				dir := tree(t)
				c := calls(t, dir+"/yes")[name]
				must(t, change(dir))
				before := testenv.Contents(t, dir)
				if errno := do(c); errno != unix.ESTALE && errno != unix.ELOOP {
					t.Errorf("%v", errno)
				}
				expectSame(t, dir, before)
			})
		}
	}
}

func expectSame(t *testing.T, dir string, before map[string]string) {
	t.Helper()
	after := testenv.Contents(t, dir)
	if len(after) != len(before) {
		t.Errorf("%v, before %v", after, before)
	}
	for name, text := range before {
		if after[name] != text {
			t.Errorf("%s: %q, before %q", name, after[name], text)
		}
	}
}

// TestReplaced: another file, or a link, has the name that was judged.
func TestReplaced(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for how, change := range map[string]func(dir string) error{
		"file": func(dir string) error { return os.Rename(dir+"/no/file", dir+"/yes/file") },
		"link": func(dir string) error {
			if err := os.Remove(dir + "/yes/file"); err != nil {
				return err
			}
			return os.Symlink(dir+"/no/file", dir+"/yes/file")
		},
	} {
		for name, c := range calls(t, tree(t)+"/yes") {
			if filepath.Base(c.At.Path) != "file" {
				continue
			}
			t.Run(how+"/"+name, func(t *testing.T) {
				dir := tree(t)
				c := calls(t, dir+"/yes")[name]
				must(t, change(dir))
				before := testenv.Contents(t, dir)
				if errno := do(c); errno != unix.ESTALE && errno != unix.ELOOP {
					t.Errorf("%v", errno)
				}
				expectSame(t, dir, before)
			})
		}
	}
}

// TestAppeared: a link that has taken the name of a new file is not followed.
func TestAppeared(t *testing.T) {
	testenv.RunAsOrdinary(t)
	dir := tree(t)
	c := calls(t, dir+"/yes")["create"]
	must(t, os.Symlink(dir+"/no/file", dir+"/yes/new"))
	before := testenv.Contents(t, dir)
	if errno := do(c); errno != unix.ELOOP {
		t.Errorf("%v", errno)
	}
	expectSame(t, dir, before)
}

// TestModes: new files get the mode that the command wants, whatever the umask of this process is, and in a
// directory with a default list of access rights what that says.
func TestModes(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, own := range []int{0, 0o022, 0o077} {
		dir := tree(t) + "/yes"
		old := unix.Umask(own)
		for _, tt := range []struct{ mode, umask, want uint32 }{
			{0o777, 0o022, 0o755}, {0o666, 0, 0o666}, {0o1777, 0o077, 0o1700}, {0o6755, 0, 0o755},
		} {
			for op, create := range map[string]*Call{"open": {Op: Open, Flags: unix.O_CREAT | unix.O_WRONLY},
				"mkdir": {Op: Mkdir}, "mknod": {Op: Mknod}} {
				create.At, create.Mode, create.Umask = at(t, dir+"/new"), tt.mode, tt.umask
				errno := do(create)
				var st unix.Stat_t
				must(t, unix.Lstat(dir+"/new", &st))
				if errno != 0 || st.Mode&0o7777 != tt.want {
					t.Errorf("own umask %o, %s %o with %o: %v, %o, want %o", own, op, tt.mode, tt.umask,
						errno,
						st.Mode&0o7777, tt.want)
				}
				must(t, os.Remove(dir+"/new"))
			}
		}
		unix.Umask(old)
	}
}

// TestPossible: what this process sees otherwise, or cannot write to, is not asked about.
func TestPossible(t *testing.T) {
	testenv.RunAsOrdinary(t)
	dir := tree(t)
	for name, c := range calls(t, dir+"/yes") {
		if !c.Possible() {
			t.Errorf("%s is not possible", name)
		}
	}
	for name, c := range map[string]*Call{
		"other directory": {Op: Mkdir, At: Place{Path: dir + "/yes/new", Parent: at(t, dir+"/no/x").Parent}},
		"missing":         {Op: Mkdir, At: Place{Path: dir + "/none/new"}},
		"other file":      {Op: Chmod, At: Place{Path: dir + "/yes/file", File: at(t, dir+"/no/file").File}},
		"no file":         {Op: Chmod, At: Place{Path: dir + "/yes/file"}},
	} {
		if c.Possible() {
			t.Errorf("%s is possible", name)
		}
	}
}
