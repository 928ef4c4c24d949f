// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// copyContent copies a file to an empty one. What is a hole stays one, also at the end.
func copyContent(ctx context.Context, out, in *os.File, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Blocks*512 >= st.Size { // or a file that has another size than it says, as in /proc
		return copyAll(ctx, out, in)
	}
	for at := int64(0); ; {
		data, err := in.Seek(at, unix.SEEK_DATA)
		switch {
		case errors.Is(err, unix.ENXIO): // a hole up to the end
			return lengthen(out, in)
		case errors.Is(err, unix.EINVAL) && at == 0: // the file system knows no holes
			return copyAll(ctx, out, in)
		case err != nil:
			return err
		}
		if at, err = in.Seek(data, unix.SEEK_HOLE); err != nil {
			return err
		}
		for _, f := range []*os.File{in, out} {
			if _, err := f.Seek(data, io.SeekStart); err != nil {
				return err
			}
		}
		if err := copyPart(ctx, out, in, at-data); errors.Is(err, io.EOF) { // it was shortened meanwhile
			return nil
		} else if err != nil {
			return err
		}
	}
}

// lengthen gives a copy the length of its source.
func lengthen(out, in *os.File) error {
	end, err := in.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if info, err := out.Stat(); err != nil || info.Size() >= end {
		return err
	}
	return out.Truncate(end)
}
