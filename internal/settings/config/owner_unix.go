// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package config

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// owned refuses a file that another user can change: settings open what commands may touch.
func owned(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	const otherWrites = 0o002
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("belongs to another user (%d); use --config FILE with a file of your own, or change its owner", st.Uid)
	}
	if info.Mode().Perm()&otherWrites != 0 {
		return errors.New("can be changed by every user; run chmod o-w on it")
	}
	return nil
}
