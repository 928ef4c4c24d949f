// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Every attack here takes "ws", in which the files linked, linked-moved and linked-race are
// further names of out/canary, and linked-last is one of out/other.

// inPlaceAttacks change a file through its name in the workspace.
func inPlaceAttacks() map[string]attack {
	opened := func(flags int) attack {
		return func(kv map[string]string) outcome { return deniedIf(put(kv["ws"]+"/linked", flags), "wrote") }
	}
	return map[string]attack{
		"in-place-write":  opened(0),
		"in-place-append": opened(os.O_APPEND),
		"in-place-both":   opened(os.O_RDWR | os.O_CREATE),
		"in-place-empty":  opened(os.O_TRUNC | os.O_CREATE),
		"in-place-creat": func(kv map[string]string) outcome {
			_, err := unix.Creat(kv["ws"]+"/linked", 0o644)
			return deniedIf(err, "emptied by creat")
		},
		"in-place-truncate": func(kv map[string]string) outcome {
			return deniedIf(unix.Truncate(kv["ws"]+"/linked", 1), "truncated")
		},
		"in-place-read-only": func(kv map[string]string) outcome {
			_, err := unix.Open(kv["ws"]+"/linked", unix.O_RDONLY|unix.O_TRUNC, 0)
			return deniedIf(err, "emptied by opening for reading")
		},
		"in-place-openat2": func(kv map[string]string) outcome {
			open := func(resolve uint64) error {
				dir, err := unix.Open(kv["ws"], unix.O_PATH, 0)
				if err == nil {
					_, err = unix.Openat2(dir, "linked",
						&unix.OpenHow{Flags: unix.O_WRONLY, Resolve: resolve})
				}
				return err
			}
			return firstBreach(
				func() (string, error) { return "opened", open(0) },
				func() (string, error) { return "opened beneath", open(unix.RESOLVE_BENEATH) })
		},
		"in-place-reopen": func(kv map[string]string) outcome {
			fd, err := unix.Open(kv["ws"]+"/linked", unix.O_RDONLY, 0)
			if err != nil {
				return bad("%v", err)
			}
			return deniedIf(put("/proc/self/fd/"+strconv.Itoa(fd), 0), "reopened")
		},
		"in-place-symlink": func(kv map[string]string) outcome {
			if err := os.Symlink("linked", kv["ws"]+"/way"); err != nil {
				return bad("%v", err)
			}
			return deniedIf(put(kv["ws"]+"/way", os.O_CREATE), "wrote through a link")
		},
		"in-place-more-links": func(kv map[string]string) outcome {
			if err := os.Link(kv["ws"]+"/linked", kv["ws"]+"/more"); err != nil {
				return bad("%v", err)
			}
			return deniedIf(put(kv["ws"]+"/more", 0), "wrote through a link of its own")
		},
		"in-place-moved": func(kv map[string]string) outcome {
			if err := os.Rename(kv["ws"]+"/linked-moved", kv["ws"]+"/moved"); err != nil {
				return bad("%v", err)
			}
			return deniedIf(put(kv["ws"]+"/moved", 0), "wrote")
		},
		"in-place-last": inPlaceLast,
		"in-place-race": inPlaceRace,
	}
}

// inPlaceLast removes all names in the workspace, so that only the one outside is left, and
// makes one more.
func inPlaceLast(kv map[string]string) outcome {
	name := kv["ws"] + "/linked-last"
	fd, err := unix.Open(name, unix.O_PATH, 0)
	if err = errors.Join(err, os.Remove(name)); err != nil {
		return bad("%v", err)
	}
	at := "/proc/self/fd/" + strconv.Itoa(fd)
	return firstBreach(
		func() (string, error) { return "reopened", put(at, 0) },
		func() (string, error) { return "truncated", unix.Truncate(at, 1) },
		func() (string, error) {
			if err := unix.Linkat(unix.AT_FDCWD, at, unix.AT_FDCWD, name,
				unix.AT_SYMLINK_FOLLOW); err != nil {
				return "", err
			}
			return "made a name", put(name, 0)
		})
}

// inPlaceRace swaps a name for a file of its own, a directory and a name of the file outside,
// while it writes through it.
func inPlaceRace(kv map[string]string) outcome {
	name, evil := kv["ws"]+"/swapped", kv["ws"]+"/linked-race"
	stop, done := make(chan struct{}), make(chan struct{})
	if err := errors.Join(os.WriteFile(kv["ws"]+"/mine", nil, 0o600), os.Mkdir(name, 0o700)); err != nil {
		return bad("%v", err)
	}
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, other := range []string{evil, kv["ws"] + "/mine"} {
				_ = unix.Renameat2(unix.AT_FDCWD, name, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
			}
		}
	}()
	const long = 300 * time.Millisecond
	tries, written := 0, 0
	for begin := time.Now(); time.Since(begin) < long || written == 0 &&
		time.Since(begin) < patience; tries++ {
		if put(name, os.O_CREATE|os.O_TRUNC) == nil {
			written++
		}
		_ = unix.Truncate(name, 0)
	}
	close(stop)
	<-done
	if text, err := os.ReadFile(kv["out"] + "/canary"); err != nil || string(text) != "canary" {
		return breach("%d of %d, now %q, %v", written, tries, text, err)
	}
	return denied(strconv.Itoa(written) + " of " + strconv.Itoa(tries) + " into its own file")
}
