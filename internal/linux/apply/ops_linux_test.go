// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/changes"
)

// An op is one operation on files. What fails is left out, as both trees then agree.
type op struct {
	Do   string
	A, B string
	N    int
}

// perform does operations below a directory.
func perform(dir string, ops []op) error {
	for _, o := range ops {
		a, b := filepath.Join(dir, o.A), filepath.Join(dir, o.B)
		var err error
		switch o.Do {
		case "write":
			err = writeTo(a, os.O_CREATE|os.O_TRUNC, o.B, o.N)
		case "append":
			err = writeTo(a, os.O_APPEND, o.B, o.N)
		case "replace": // as editors do
			if err = writeTo(a+".tmp", os.O_CREATE|os.O_TRUNC, o.B, o.N); err == nil {
				err = os.Rename(a+".tmp", a)
			}
		case "sparse":
			err = sparse(a, o.B)
		case "mkdir":
			err = os.Mkdir(a, fs.FileMode(o.N))
		case "rm":
			err = os.Remove(a)
		case "rmtree":
			err = os.RemoveAll(a)
		case "mv":
			err = renameFile(a, b)
		case "ln":
			err = os.Link(a, b)
		case "symlink":
			err = os.Symlink(o.B, a)
		case "chmod":
			err = chmodPath(a, uint32(o.N))
		case "setattr":
			err = unix.Lsetxattr(a, "user.test", []byte(o.B), 0)
		case "rmattr":
			err = unix.Lremovexattr(a, "user.test")
		case "old":
			at := time.Unix(int64(o.N), 0)
			err = os.Chtimes(a, at, at)
		case "fifo":
			err = unix.Mkfifo(a, 0o600)
		default:
			return fmt.Errorf("unknown operation %q", o.Do)
		}
		if testStrict && err != nil {
			return fmt.Errorf("%+v: %w", o, err)
		}
	}
	return nil
}

var testStrict = os.Getenv(childVar+"_STRICT") != ""

func writeTo(path string, flags int, text string, n int) error {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW|flags, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(bytes.Repeat([]byte(text+"\n"), n))
	return errors.Join(err, f.Close())
}

func sparse(path, text string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return err
	}
	const far = 3 << 20
	_, err = f.WriteAt([]byte(text), far)
	if err == nil {
		err = f.Truncate(2 * far)
	}
	return errors.Join(err, f.Close())
}

// renameFile renames what is no directory: overlays do not rename directories of the host.
func renameFile(a, b string) error {
	if info, err := os.Lstat(a); err != nil || info.IsDir() {
		return errors.Join(err, errors.New("a directory"))
	}
	return os.Rename(a, b)
}

func chmodPath(path string, mode uint32) error {
	if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeSymlink != 0 {
		return errors.Join(err, errors.New("a link"))
	} else if info.IsDir() {
		mode |= 0o500 // what its owner cannot enter, no command can
	}
	return unix.Chmod(path, mode)
}

// A seen describes a file of a tree.
type seen struct {
	Kind, Mode, Text, Attrs, Links string
	Time                           int64 // of the last change of a regular file
	Blocks                         int64
}

// look describes a tree by paths. An ordinary user looks as the root of a namespace, who can read everything.
func look(t testing.TB, root string) map[string]seen {
	t.Helper()
	if os.Geteuid() == 0 {
		out, err := lookAt(root)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	cmd := namespaceCommand(t, &childTask{Root: root, Look: true})
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]seen
	if err := gob.NewDecoder(bytes.NewReader(text)).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func lookAt(root string) (map[string]seen, error) {
	out, names, inodes := map[string]seen{}, map[uint64][]string{}, map[string]uint64{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return errors.New("no facts of the file")
		}
		s := seen{Kind: info.Mode().Type().String(), Mode: fmt.Sprintf("%04o", st.Mode&0o7777)}
		if info.Mode()&fs.ModeSymlink != 0 {
			s.Mode = ""
			s.Text, err = os.Readlink(path)
		} else if info.Mode().IsRegular() || info.IsDir() {
			err = s.read(path, st)
		}
		if info.Mode().IsRegular() {
			names[st.Ino] = append(names[st.Ino], rel)
			inodes[rel] = st.Ino
		}
		out[rel] = s
		return err
	})
	for rel, ino := range inodes {
		s := out[rel]
		slices.Sort(names[ino])
		s.Links = strings.Join(names[ino], " ")
		out[rel] = s
	}
	return out, err
}

// read describes what a file or directory has.
func (s *seen) read(path string, st *syscall.Stat_t) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		text, err := io.ReadAll(f)
		if err != nil {
			return err
		}
		s.Text, s.Time, s.Blocks = fmt.Sprintf("%d %x", len(text), sha256.Sum256(text)), st.Mtim.Sec,
			st.Blocks
	}
	attrs, err := changes.Attrs(int(f.Fd()))
	s.Attrs = fmt.Sprint(attrs)
	return err
}

// sameTree compares a tree with what it should be. Times of files count where the content is not that of
// before, to a second more than lay between the making of the two.
func sameTree(t testing.TB, got, want, before map[string]seen, between time.Duration) {
	t.Helper()
	late := int64(between/time.Second) + 1
	for path := range want {
		if _, ok := got[path]; !ok {
			t.Errorf("%s is missing", path)
		}
	}
	for path, g := range got {
		w, ok := want[path]
		if !ok {
			t.Errorf("%s should not be there", path)
			continue
		}
		if d := g.Time - w.Time; g.Text == w.Text && (before[path].Text == w.Text || d >= -1 && d <= late) {
			g.Time = w.Time
		}
		const fewBlocks = 4200 // of 12 288: the kernel copies up by the MiB, at two places
		if d := g.Blocks - w.Blocks; d > -fewBlocks && d < fewBlocks {
			g.Blocks = w.Blocks
		}
		if g != w {
			t.Errorf("%s is %+v, want %+v", path, g, w)
		}
	}
}
