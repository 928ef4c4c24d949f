// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Every attack here takes "ws", a writable directory, and "out", one that must not
// be changed. In out are the files canary and other, the directory dir with the
// file deep, and the named pipe pipe.

// put writes over a file.
func put(name string, flags int) error {
	f, err := os.OpenFile(name, os.O_WRONLY|flags, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString("evil\n")
	return errors.Join(err, f.Close())
}

// fileAttacks change contents and names.
func fileAttacks() map[string]attack {
	return map[string]attack{
		"create":    func(kv map[string]string) outcome { return deniedIf(put(kv["out"]+"/new", os.O_CREATE), "created") },
		"overwrite": func(kv map[string]string) outcome { return deniedIf(put(kv["out"]+"/canary", 0), "overwrote") },
		"append":    func(kv map[string]string) outcome { return deniedIf(put(kv["out"]+"/canary", os.O_APPEND), "appended") },
		"dotdot": func(kv map[string]string) outcome {
			return deniedIf(put(kv["ws"]+"/dir/../../"+filepath.Base(kv["out"])+"/canary", 0), "wrote")
		},
		"truncate": func(kv map[string]string) outcome { return deniedIf(os.Truncate(kv["out"]+"/canary", 0), "truncated") },
		"open-truncate": func(kv map[string]string) outcome {
			fd, err := unix.Open(kv["out"]+"/canary", unix.O_RDONLY|unix.O_TRUNC, 0)
			unix.Close(fd)
			return deniedIf(err, "truncated by opening")
		},
		"unlink": func(kv map[string]string) outcome { return deniedIf(os.Remove(kv["out"]+"/canary"), "deleted") },
		"rename-out": func(kv map[string]string) outcome {
			return deniedIf(os.Rename(kv["ws"]+"/file", kv["out"]+"/canary"), "renamed over it")
		},
		"rename-in": func(kv map[string]string) outcome {
			return deniedIf(os.Rename(kv["out"]+"/canary", kv["ws"]+"/stolen"), "moved away")
		},
		"rename-within": func(kv map[string]string) outcome {
			return deniedIf(os.Rename(kv["out"]+"/canary", kv["out"]+"/moved"), "moved")
		},
		"exchange": func(kv map[string]string) outcome {
			err := unix.Renameat2(unix.AT_FDCWD, kv["ws"]+"/file", unix.AT_FDCWD, kv["out"]+"/canary",
				unix.RENAME_EXCHANGE)
			return deniedIf(err, "exchanged")
		},
		"mkdir": func(kv map[string]string) outcome {
			return deniedIf(os.Mkdir(kv["out"]+"/newdir", 0o755), "made a directory")
		},
		"rmdir": func(kv map[string]string) outcome {
			return deniedIf(os.RemoveAll(kv["out"]+"/dir"), "removed a directory")
		},
		"make-pipe": func(kv map[string]string) outcome {
			return deniedIf(unix.Mkfifo(kv["out"]+"/p", 0o600), "made a pipe")
		},
		"make-link": func(kv map[string]string) outcome {
			return deniedIf(os.Symlink("x", kv["out"]+"/l"), "made a link")
		},
		"tmpfile": func(kv map[string]string) outcome {
			_, err := unix.Open(kv["out"], unix.O_TMPFILE|unix.O_WRONLY, 0o600)
			return deniedIf(err, "opened a nameless file")
		},
		"pipe-outside": func(kv map[string]string) outcome {
			return firstBreach(
				func() (string, error) { return "opened", put(kv["out"]+"/pipe", unix.O_NONBLOCK) },
				func() (string, error) {
					_, err := unix.Open(kv["out"]+"/pipe", unix.O_RDWR|unix.O_NONBLOCK, 0)
					return "opened both ends", err
				})
		},
		"shared-mapping": sharedMapping,
		"race":           race,
		"system-files": func(map[string]string) outcome {
			return openAny(os.O_WRONLY|os.O_APPEND, "/etc/passwd", "/etc/shadow", "/etc/crontab",
				"/etc/hosts", "/etc/profile",
				"/usr/bin/env", "/bin/sh", "/etc/ld.so.cache")
		},
		"home": func(kv map[string]string) outcome {
			name := filepath.Join(kv["home"], "sallyport-test-"+strconv.Itoa(os.Getpid()))
			err := put(name, os.O_CREATE|os.O_EXCL)
			if err == nil {
				os.Remove(name)
			}
			return deniedIf(err, "created "+name)
		},
		"var-tmp": func(map[string]string) outcome {
			name := "/var/tmp/sallyport-test-" + strconv.Itoa(os.Getpid())
			err := put(name, os.O_CREATE|os.O_EXCL)
			if err == nil {
				os.Remove(name)
			}
			return deniedIf(err, "created "+name)
		},
	}
}

// openAny tries to open files and changes none of them.
func openAny(flags int, files ...string) outcome {
	v := bad("no file to try")
	for _, f := range files {
		fd, err := unix.Open(f, flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
			return breach("%s opens", f)
		}
		v = denied(f + " " + errnoName(err))
	}
	return v
}

// sharedMapping maps a file that is opened for reading and tries to write there.
func sharedMapping(kv map[string]string) outcome {
	fd, err := unix.Open(kv["out"]+"/canary", unix.O_RDONLY, 0)
	if err != nil {
		return bad("open: %v", err)
	}
	return firstBreach(
		func() (string, error) {
			_, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			return "mapped writable", err
		},
		func() (string, error) {
			m, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
			if err != nil {
				return "", err
			}
			return "made a mapping writable", unix.Mprotect(m, unix.PROT_READ|unix.PROT_WRITE)
		})
}

// race swaps a directory of the workspace for a link that leads outside, while it
// writes through the name.
func race(kv map[string]string) outcome {
	a, b := kv["ws"]+"/race", kv["ws"]+"/race.link"
	if err := errors.Join(os.Mkdir(a, 0o755), os.Symlink(kv["out"]+"/dir", b)); err != nil {
		return bad("%v", err)
	}
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
			}
		}
	}()
	inside, refused := 0, 0
	// A busy machine may let one of the two run for a while before the other.
	for begin := time.Now(); time.Since(begin) < 300*time.Millisecond || (inside == 0 || refused == 0) &&
		time.Since(begin) < patience; {
		if put(a+"/raced", os.O_CREATE) == nil {
			inside++
		} else {
			refused++
		}
	}
	close(stop)
	<-done
	if _, err := os.Lstat(kv["out"] + "/dir/raced"); err == nil {
		return breach("a write landed outside")
	}
	if inside == 0 || refused == 0 {
		return bad("the race was none: %d inside, %d refused", inside, refused)
	}
	return denied("the race never landed")
}

// linkAttacks reach out through links and through /proc.
func linkAttacks() map[string]attack {
	through := func(dir string) attack {
		return func(kv map[string]string) outcome {
			return deniedIf(put(dir+kv["out"]+"/canary", 0), "wrote through "+dir)
		}
	}
	return map[string]attack{
		"link-file": func(kv map[string]string) outcome {
			if err := os.Symlink(kv["out"]+"/canary", kv["ws"]+"/lf"); err != nil {
				return bad("%v", err)
			}
			return deniedIf(put(kv["ws"]+"/lf", 0), "wrote through a link")
		},
		"link-directory": func(kv map[string]string) outcome {
			if err := os.Symlink(kv["out"]+"/dir", kv["ws"]+"/ld"); err != nil {
				return bad("%v", err)
			}
			return deniedIf(put(kv["ws"]+"/ld/new", os.O_CREATE), "created through a link")
		},
		"link-planted": func(kv map[string]string) outcome {
			return deniedIf(put(kv["ws"]+"/planted", 0), "wrote through a planted link")
		},
		"hard-link": func(kv map[string]string) outcome {
			return deniedIf(os.Link(kv["out"]+"/canary", kv["ws"]+"/h1"), "linked")
		},
		"hard-link-descriptor": func(kv map[string]string) outcome {
			fd, err := unix.Open(kv["out"]+"/canary", unix.O_RDONLY, 0)
			if err != nil {
				return bad("%v", err)
			}
			from := "/proc/self/fd/" + strconv.Itoa(fd)
			return firstBreach(
				func() (string, error) {
					return "linked a descriptor", unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, kv["ws"]+
						"/h2", unix.AT_SYMLINK_FOLLOW)
				},
				func() (string, error) {
					return "linked an empty path", unix.Linkat(fd, "", unix.AT_FDCWD, kv["ws"]+"/h3",
						unix.AT_EMPTY_PATH)
				})
		},
		"reopen": func(kv map[string]string) outcome {
			fd, err := unix.Open(kv["out"]+"/canary", unix.O_RDONLY, 0)
			if err != nil {
				return bad("%v", err)
			}
			return deniedIf(put("/proc/self/fd/"+strconv.Itoa(fd), 0), "reopened for writing")
		},
		"reopen-place": func(kv map[string]string) outcome {
			fd, err := unix.Open(kv["out"]+"/canary", unix.O_PATH, 0)
			if err != nil {
				return bad("%v", err)
			}
			return deniedIf(put("/proc/self/fd/"+strconv.Itoa(fd), 0), "reopened for writing")
		},
		"through-root":   through("/proc/self/root"),
		"through-1-root": through("/proc/1/root"),
		"through-1-cwd":  through("/proc/1/cwd"),
		"through-task":   through("/proc/thread-self/root"),
		"through-cwd": func(kv map[string]string) outcome {
			if err := os.Chdir(kv["ws"]); err != nil {
				return bad("%v", err)
			}
			return deniedIf(put("/proc/self/cwd/../"+filepath.Base(kv["out"])+"/canary", 0),
				"wrote through the working directory")
		},
		"by-handle": byHandle,
	}
}

// byHandle opens a file by the number that the file system knows it by.
func byHandle(kv map[string]string) outcome {
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, kv["out"]+"/canary", 0)
	if err != nil {
		return denied("name_to_handle_at " + errnoName(err))
	}
	v := bad("nothing tried")
	for _, dir := range []string{kv["ws"], "/"} {
		at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			return bad("%v", err)
		}
		_, err = unix.OpenByHandleAt(at, h, unix.O_WRONLY)
		if v = deniedIf(err, "opened by handle"); v.word == wordBreach {
			return v
		}
	}
	return v
}
