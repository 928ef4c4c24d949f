// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package dirs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// maxDigits is how long the text of a number is, with what ends the line.
const maxDigits = 20 + 1

// A NumberError says that the file with the last number that was given is not usable.
type NumberError struct {
	Path string
	Err  error // never nil
}

// Error returns one sentence with the file, the reason and the fix.
func (e *NumberError) Error() string {
	return fmt.Sprintf("cannot give a new number: %s, which has the last one that was given, is not usable: %s; end what has a number of before, then remove the file",
		text.Word(e.Path), text.Line(e.Err.Error()))
}

// Unwrap returns Err.
func (e *NumberError) Unwrap() error { return e.Err }

// Number returns a number that this user's processes were not given under a name before, also those
// that have been killed, and that is larger than after: the last one is kept in the state directory. It
// blocks while another process takes one, as [Lock] does. What cannot be read is a [*NumberError], not
// the first number.
func Number(name string, after uint64) (uint64, error) {
	dir, err := Dir()
	if err != nil {
		return 0, err
	}
	lock, err := Lock(name)
	if err != nil {
		return 0, err
	}
	defer lock.Close()
	path := filepath.Join(dir, name+".last")
	last, ours, err := lastNumber(path)
	if err == nil && max(last, after) == math.MaxUint64 {
		err = errors.New("there is no larger number")
	}
	if err != nil {
		return 0, &NumberError{Path: path, Err: err}
	}
	n := max(last, after) + 1
	if err := keepNumber(path, strconv.AppendUint(nil, n, 10), ours); err != nil {
		return 0, fmt.Errorf("cannot write down the number that is given: %w; make room for it there, or set XDG_STATE_HOME to another directory", err)
	}
	return n, nil
}

// keepNumber writes down a number. It is never shorter than the one before, so it is written over one of
// ours with one call, which a kill does not divide: file systems take ten times as long to replace a file.
func keepNumber(path string, text []byte, ours bool) error {
	if !ours {
		return safefile.Replace(path, text)
	}
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return safefile.Replace(path, text)
	}
	_, err = unix.Pwrite(fd, text, 0)
	return errors.Join(err, unix.Close(fd))
}

// lastNumber reads the last number that was given, 0 for a file that is missing, and reports whether the file
// has nothing else.
func lastNumber(path string) (last uint64, alone bool, err error) {
	f, err := safefile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxDigits+1))
	if err != nil {
		return 0, false, err
	}
	n, err := strconv.ParseUint(strings.TrimSuffix(string(text), "\n"), 10, 64)
	if err != nil || len(text) > maxDigits {
		return 0, false, errors.New("it has no whole number")
	}
	return n, string(text) == strconv.FormatUint(n, 10), nil
}
