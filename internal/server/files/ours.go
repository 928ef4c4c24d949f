// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"io/fs"
	"path/filepath"
	"strings"
)

// replacing begins the name of a file that is written beside the one whose place it takes.
const replacing = ".sallyport-"

// replacingLength is that of such a name: rand.Text gives 26 characters.
const replacingLength = len(replacing) + 26

// isOurs reports whether what is at a path is sallyport's for a time: a file that takes the place of
// another one. It is no matter of a client, which would copy it, ask about it, or report it as a change
// of its own.
func isOurs(path string, kind fs.FileMode) bool {
	name := filepath.Base(path)
	return kind.IsRegular() && strings.HasPrefix(name, replacing) && len(name) == replacingLength &&
		strings.ToUpper(name[len(replacing):]) == name[len(replacing):]
}
