// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"os"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// An OpenCredsError reports credentials that every user of the machine can read or write.
type OpenCredsError struct {
	Path string
	Mode os.FileMode
}

// Error returns one sentence with the fix.
func (e *OpenCredsError) Error() string {
	return fmt.Sprintf("every user of this machine can read the credentials %s (mode %04o); use chmod 600",
		text.Word(e.Path), e.Mode.Perm())
}

// CheckCreds returns an [*OpenCredsError] if other users than the owner and its group can read or write a
// file. A group may, for that is how a pod of Kubernetes gets secrets. Links are followed. On systems without
// such modes it checks only that the file is there.
func CheckCreds(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("cannot read the credentials: %w", err)
	}
	if info.Mode()&others != 0 {
		return &OpenCredsError{path, info.Mode()}
	}
	return nil
}
