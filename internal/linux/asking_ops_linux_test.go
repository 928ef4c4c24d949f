// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// onFile is for a call on a descriptor that was opened for reading.
func onFile(do func(fd int) error) func(at, ws string) error {
	return func(at, _ string) error { return openIn(at+"/old", unix.O_RDONLY, 0, do) }
}

// on is for a call on one name in the directory.
func on(name string, f func(name string) error) func(at, ws string) error {
	return func(at, _ string) error { return f(at + "/" + name) }
}

// onTwo is for a call on two.
func onTwo(from, to string, f func(from, to string) error) func(at, ws string) error {
	return func(at, _ string) error { return f(at+"/"+from, at+"/"+to) }
}

// row is a call that a read-only mount denies. The paths are words.
func row(call, paths string, make func(at, ws string) error) askedOp {
	return askedOp{make, call, strings.Fields(paths), "EROFS"}
}

func askedOps() map[string]askedOp {
	put := func(flags int, mode uint32) func(string) error {
		return func(name string) error { return openIn(name, flags, mode, writes("x")) }
	}
	ops := map[string]askedOp{
		"create":    row("openat", "new", on("new", put(unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o666))),
		"write":     row("openat", "old", on("old", put(unix.O_CREAT|unix.O_TRUNC|unix.O_RDWR, 0o666))),
		"overwrite": row("openat", "old", on("old", put(unix.O_WRONLY, 0))),
		"append": row("openat", "old", on("old", func(n string) error {
			return openIn(n, unix.O_APPEND|unix.O_WRONLY, 0, func(fd int) error {
				_, err := unix.Pwrite(fd, []byte("end"), 0) // Linux appends whatever the offset
				return err
			})
		})),
		"mkdir": row("mkdirat", "new", on("new", func(n string) error { return unix.Mkdir(n, 0o777) })),
		"slash": row("mkdirat", "new", on("new/", func(n string) error { return unix.Mkdir(n, 0o777) })),
		"pipe":  row("mknodat", "new", on("new", func(n string) error { return unix.Mkfifo(n, 0o666) })),
		"empty": row("mknodat", "new", on("new", func(n string) error { return unix.Mknod(n, 0o666, 0) })),
		"symlink": row("symlinkat", "new",
			on("new", func(n string) error { return unix.Symlink("/no where", n) })),
		"unlink":   row("unlinkat", "old", on("old", unix.Unlink)),
		"rmdir":    row("unlinkat", "dir", on("dir", unix.Rmdir)),
		"truncate": row("truncate", "old", on("old", func(n string) error { return unix.Truncate(n, 1) })),
	}
	addChanges(ops)
	addMoves(ops)
	addWays(ops)
	addLegacy(ops)
	return ops
}

// addChanges adds changes of attributes.
func addChanges(ops map[string]askedOp) {
	long := []unix.Timespec{{Sec: 1000, Nsec: 1}, {Sec: 2000, Nsec: 2}}
	chmod := func(mode uint32) func(string) error {
		return func(n string) error { return unix.Chmod(n, mode) }
	}
	times := func(flags int) func(string) error {
		return func(n string) error { return unix.UtimesNanoAt(unix.AT_FDCWD, n, long, flags) }
	}
	ops["chmod"] = row("fchmodat", "old", on("old", chmod(0o604)))
	ops["chmod-directory"] = row("fchmodat", "dir", on("dir", chmod(0o710)))
	ops["fchmod"] = row("fchmod", "old", onFile(func(fd int) error { return unix.Fchmod(fd, 0o604) }))
	ops["chown"] = row("fchownat", "old", on("old", func(n string) error {
		return unix.Chown(n, os.Getuid(), os.Getgid())
	}))
	ops["fchown"] = row("fchown", "old",
		onFile(func(fd int) error { return unix.Fchown(fd, -1, os.Getgid()) }))
	ops["utimes"] = row("utimensat", "old", on("old", times(0)))
	ops["utimes-link"] = row("utimensat", "link", on("link", times(unix.AT_SYMLINK_NOFOLLOW)))
	ops["follow"] = row("utimensat", "old", on("link", times(0)))
	ops["setxattr"] = row("setxattr", "old", on("old", func(n string) error {
		return unix.Setxattr(n, "user.x", []byte("y"), 0)
	}))
	ops["fsetxattr"] = row("fsetxattr", "old", onFile(func(fd int) error {
		return unix.Fsetxattr(fd, "user.x", []byte("y"), 0)
	}))
	ops["removexattr"] = row("removexattr", "other", on("other", func(n string) error {
		return unix.Removexattr(n, "user.has")
	}))
}

// addMoves adds renames and links.
func addMoves(ops map[string]askedOp) {
	ops["rename"] = row("renameat", "old new", onTwo("old", "new", unix.Rename))
	ops["rename-over"] = row("renameat", "old other", onTwo("old", "other", unix.Rename))
	ops["link"] = row("linkat", "old new", onTwo("old", "new", unix.Link))
	ops["exchange"] = row("renameat2", "old other", onTwo("old", "other", func(from, to string) error {
		return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	}))
	crossing := func(call, path string, make func(at, ws string) error) askedOp {
		return askedOp{make, call, []string{path}, "EXDEV"}
	}
	ops["move-out"] = crossing("renameat", "new", func(at, ws string) error {
		return unix.Rename(ws+"/mine", at+"/new")
	})
	ops["move-in"] = crossing("renameat", "old", func(at, ws string) error {
		return unix.Rename(at+"/old", ws+"/new")
	})
	ops["link-in"] = crossing("linkat", "old",
		func(at, ws string) error { return unix.Link(at+"/old", ws+"/new") })
	ops["link-out"] = row("linkat", "new",
		func(at, ws string) error { return unix.Link(ws+"/mine", at+"/new") })
}

// addWays adds the ways in which a directory is named.
func addWays(ops map[string]askedOp) {
	ops["mkdir-cwd"] = row("mkdirat", "new", func(at, _ string) error {
		if err := unix.Chdir(at + "/dir"); err != nil {
			return err
		}
		return unix.Mkdir("../new", 0o777)
	})
	in := func(at string, f func(dir int) error) error {
		return openIn(at, unix.O_DIRECTORY|unix.O_RDONLY, 0, f)
	}
	ops["mkdir-descriptor"] = row("mkdirat", "new", func(at, _ string) error {
		return in(at, func(dir int) error { return unix.Mkdirat(dir, "new", 0o777) })
	})
	ops["create-descriptor"] = row("openat", "dir/new", func(at, _ string) error {
		return in(at+"/dir", func(dir int) error {
			fd, err := unix.Openat(dir, "new", unix.O_CREAT|unix.O_RDWR, 0o666)
			if err != nil {
				return err
			}
			return errors.Join(writes("x")(fd), unix.Close(fd))
		})
	})
	ops["rename-descriptors"] = row("renameat", "old dir/new", func(at, _ string) error {
		return in(at, func(from int) error {
			return in(at+"/dir", func(to int) error { return unix.Renameat(from, "old", to, "new") })
		})
	})
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
