// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package safefile

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Exchange exchanges two names of an open directory in one step. Whatever had the second name at that moment
// has the first one then, so nothing that another program puts there is lost. The error is
// errors.ErrUnsupported where the system or the file system cannot.
func Exchange(dir uintptr, a, b string) error {
	err := unix.Renameat2(int(dir), a, int(dir), b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return errors.ErrUnsupported // EPERM: of some FUSE file systems, and of filters
	}
	return err
}
