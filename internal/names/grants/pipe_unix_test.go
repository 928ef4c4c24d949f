// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package grants

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestHomeIsPipe: what a command has put in the place of a home directory is not waited for.
func TestHomeIsPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "home")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := FindStores([]string{pipe}, nil); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
