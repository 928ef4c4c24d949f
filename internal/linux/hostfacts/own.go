// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hostfacts

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
)

// command is the package of sallyport's own program; its tests have more behind it.
const command = module + "/cmd/sallyport"

// OwnBuild returns the file of this program, without symbolic links, if it is sallyport; empty for
// another program that uses the packages, and where the file is gone or not known.
var OwnBuild = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || !strings.HasPrefix(info.Path, command) {
		return ""
	}
	name, err := os.Executable()
	if err != nil {
		return ""
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return ""
	}
	return real
})
