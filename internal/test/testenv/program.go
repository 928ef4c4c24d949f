// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"os"
	"syscall"
)

// WriteProgram writes a program that can be started at once. A process that is forked meanwhile
// would keep the file open for writing for a moment, and to start it would fail with ETXTBSY.
func WriteProgram[T string | []byte](path string, text T) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(text), 0o755) //nolint:gosec // it is a program
}
