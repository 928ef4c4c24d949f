// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// partAsked is the word with which this binary makes one call, in a sandbox that asks about it or outside.
const partAsked = "asked"

// askedMain makes a call, notes in the workspace that it has run, and prints the error.
func askedMain(name string, kv map[string]string) int {
	unix.Umask(0o003) // neither wider nor narrower than the usual one
	if n, err := strconv.Atoi(kv["n"]); err == nil {
		if err := benchMain(kv["at"], n); err != nil {
			fmt.Println(err)
		}
		return 0
	}
	if kv["ms"] != "" {
		return raceMain(name, kv)
	}
	count, err := os.OpenFile(kv["ws"]+"/count", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = count.WriteString("run\n")
	}
	if err == nil {
		do, ok := askedOps()[name]
		if !ok {
			do.make = askedParts()[name]
		}
		err = do.make(kv["at"], kv["ws"])
	}
	var errno syscall.Errno
	switch {
	case err == nil:
		fmt.Println("done")
	case errors.As(err, &errno):
		fmt.Println(unix.ErrnoName(errno))
	default:
		fmt.Println(err)
	}
	return 0
}

// An askedOp is a call on a directory outside of the sandbox, which has the files old and other, a directory
// dir and a link. The workspace has a file mine.
type askedOp struct {
	make  func(at, ws string) error
	call  string
	paths []string // that are asked about, in the directory
	errno string   // of the denial
}

// openIn opens a file and does something with the descriptor.
func openIn(name string, flags int, mode uint32, do func(fd int) error) error {
	fd, err := unix.Open(name, flags|unix.O_CLOEXEC, mode)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	got, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	if err != nil || got != unix.FD_CLOEXEC {
		return fmt.Errorf("the flags of the descriptor are %d, %w", got, err)
	}
	return do(fd)
}

func writes(text string) func(int) error {
	return func(fd int) error {
		_, err := unix.Write(fd, []byte(text))
		return err
	}
}

// raises is for a call that does not wait: nothing asks about descriptors that were opened for reading.
func onFile(do func(fd int) error) func(at, ws string) error {
	return func(at, _ string) error { return openIn(at+"/old", unix.O_RDONLY, 0, do) }
}

func askedOps() map[string]askedOp {
	long := []unix.Timespec{{Sec: 1000, Nsec: 1}, {Sec: 2000, Nsec: 2}}
	both := func(f func(from, to string) error) func(at, ws string) error {
		return func(at, _ string) error { return f(at+"/old", at+"/new") }
	}
	named := func(name string, f func(name string) error) func(at, ws string) error {
		return func(at, _ string) error { return f(at + "/" + name) }
	}
	ops := map[string]askedOp{
		"create": {named("new", func(n string) error {
			return openIn(n, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o666, writes("x"))
		}), "openat", []string{"new"}, "EROFS"},
		"write": {named("old", func(n string) error {
			return openIn(n, unix.O_CREAT|unix.O_TRUNC|unix.O_RDWR, 0o666, writes("x"))
		}), "openat", []string{"old"}, "EROFS"},
		"overwrite": {named("old", func(n string) error { return openIn(n, unix.O_WRONLY, 0, writes("x")) }),
			"openat", []string{"old"}, "EROFS"},
		"append": {named("old", func(n string) error {
			return openIn(n, unix.O_APPEND|unix.O_WRONLY, 0, func(fd int) error {
				_, err := unix.Pwrite(fd, []byte("end"), 0) // Linux appends whatever the offset
				return err
			})
		}), "openat", []string{"old"}, "EROFS"},
		"mkdir":    {named("new", func(n string) error { return unix.Mkdir(n, 0o777) }), "mkdirat", []string{"new"}, "EROFS"},
		"slash":    {named("new/", func(n string) error { return unix.Mkdir(n, 0o777) }), "mkdirat", []string{"new"}, "EROFS"},
		"pipe":     {named("new", func(n string) error { return unix.Mkfifo(n, 0o666) }), "mknodat", []string{"new"}, "EROFS"},
		"empty":    {named("new", func(n string) error { return unix.Mknod(n, 0o666, 0) }), "mknodat", []string{"new"}, "EROFS"},
		"symlink":  {named("new", func(n string) error { return unix.Symlink("/no where", n) }), "symlinkat", []string{"new"}, "EROFS"},
		"unlink":   {named("old", unix.Unlink), "unlinkat", []string{"old"}, "EROFS"},
		"rmdir":    {named("dir", unix.Rmdir), "unlinkat", []string{"dir"}, "EROFS"},
		"rename":   {both(unix.Rename), "renameat", []string{"old", "new"}, "EROFS"},
		"link":     {both(unix.Link), "linkat", []string{"old", "new"}, "EROFS"},
		"truncate": {named("old", func(n string) error { return unix.Truncate(n, 1) }), "truncate", []string{"old"}, "EROFS"},
		"chmod":    {named("old", func(n string) error { return unix.Chmod(n, 0o604) }), "fchmodat", []string{"old"}, "EROFS"},
		"chmod-directory": {named("dir", func(n string) error { return unix.Chmod(n, 0o710) }), "fchmodat",
			[]string{"dir"}, "EROFS"},
		"fchmod": {onFile(func(fd int) error { return unix.Fchmod(fd, 0o604) }), "fchmod", []string{"old"}, "EROFS"},
		"chown": {named("old", func(n string) error { return unix.Chown(n, os.Getuid(), os.Getgid()) }), "fchownat",
			[]string{"old"}, "EROFS"},
		"utimes": {named("old", func(n string) error { return unix.UtimesNanoAt(unix.AT_FDCWD, n, long, 0) }),
			"utimensat", []string{"old"}, "EROFS"},
		"utimes-link": {named("link", func(n string) error {
			return unix.UtimesNanoAt(unix.AT_FDCWD, n, long, unix.AT_SYMLINK_NOFOLLOW)
		}), "utimensat", []string{"link"}, "EROFS"},
		"follow": {named("link", func(n string) error { return unix.UtimesNanoAt(unix.AT_FDCWD, n, long, 0) }),
			"utimensat", []string{"old"}, "EROFS"},
		"setxattr": {named("old", func(n string) error { return unix.Setxattr(n, "user.x", []byte("y"), 0) }), "setxattr",
			[]string{"old"}, "EROFS"},
		"fsetxattr": {onFile(func(fd int) error { return unix.Fsetxattr(fd, "user.x", []byte("y"), 0) }), "fsetxattr",
			[]string{"old"}, "EROFS"},
		"removexattr": {named("other", func(n string) error { return unix.Removexattr(n, "user.has") }), "removexattr",
			[]string{"other"}, "EROFS"},
	}
	addMoves(ops)
	addWays(ops)
	return ops
}

// addMoves adds renames and links with the workspace, and those with flags.
func addMoves(ops map[string]askedOp) {
	flagged := func(flags uint) func(at, ws string) error {
		return func(at, _ string) error {
			return unix.Renameat2(unix.AT_FDCWD, at+"/old", unix.AT_FDCWD, at+"/other", flags)
		}
	}
	ops["rename-over"] = askedOp{func(at, _ string) error { return unix.Rename(at+"/old", at+"/other") }, "renameat",
		[]string{"old", "other"}, "EROFS"}
	ops["exchange"] = askedOp{flagged(unix.RENAME_EXCHANGE), "renameat2", []string{"old", "other"}, "EROFS"}
	ops["move-out"] = askedOp{func(at, ws string) error { return unix.Rename(ws+"/mine", at+"/new") }, "renameat",
		[]string{"new"}, "EXDEV"}
	ops["move-in"] = askedOp{func(at, ws string) error { return unix.Rename(at+"/old", ws+"/new") }, "renameat",
		[]string{"old"}, "EXDEV"}
	ops["link-out"] = askedOp{func(at, ws string) error { return unix.Link(ws+"/mine", at+"/new") }, "linkat",
		[]string{"new"}, "EROFS"}
	ops["link-in"] = askedOp{func(at, ws string) error { return unix.Link(at+"/old", ws+"/new") }, "linkat",
		[]string{"old"}, "EXDEV"}
}

// addWays adds the ways in which a directory is named.
func addWays(ops map[string]askedOp) {
	ops["mkdir-cwd"] = askedOp{func(at, _ string) error {
		if err := unix.Chdir(at + "/dir"); err != nil {
			return err
		}
		return unix.Mkdir("../new", 0o777)
	}, "mkdirat", []string{"new"}, "EROFS"}
	in := func(at string, f func(dir int) error) error {
		return openIn(at, unix.O_DIRECTORY|unix.O_RDONLY, 0, f)
	}
	ops["mkdir-descriptor"] = askedOp{func(at, _ string) error {
		return in(at, func(dir int) error { return unix.Mkdirat(dir, "new", 0o777) })
	}, "mkdirat", []string{"new"}, "EROFS"}
	ops["create-descriptor"] = askedOp{func(at, _ string) error {
		return in(at+"/dir", func(dir int) error {
			fd, err := unix.Openat(dir, "new", unix.O_CREAT|unix.O_RDWR, 0o666)
			if err != nil {
				return err
			}
			return errors.Join(writes("x")(fd), unix.Close(fd))
		})
	}, "openat", []string{"dir/new"}, "EROFS"}
	ops["rename-descriptors"] = askedOp{func(at, _ string) error {
		return in(at, func(from int) error {
			return in(at+"/dir", func(to int) error { return unix.Renameat(from, "old", to, "new") })
		})
	}, "renameat", []string{"old", "dir/new"}, "EROFS"}
}

// treeOf describes what is below a directory, without what differs between two trees that were made alike.
func treeOf(dir string) (string, error) {
	out := ""
	err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(name, &st); err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		out += fmt.Sprintf("%s %o %d:%d links %d", rel, st.Mode, st.Uid, st.Gid, st.Nlink)
		if st.Mtim.Sec < 1e6 {
			out += fmt.Sprintf(" at %d.%d", st.Mtim.Sec, st.Mtim.Nsec)
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			var x [64]byte
			n, _ := unix.Listxattr(name, x[:])
			out += fmt.Sprintf(" %q %q", b, x[:max(n, 0)])
		case unix.S_IFLNK:
			to, _ := os.Readlink(name)
			out += " -> " + to
		}
		out += "\n"
		return nil
	})
	return out, err
}
