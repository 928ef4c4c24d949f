// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// What sallyport itself has in the directories of a user for a time is no matter of a client, which
// would copy it, ask about it, or report it as a change of its own: a placeholder at a missing name that
// commands must not create, and the file that takes the place of another one.

// placeholders are the names at which there can be one: those of [sandbox.ProtectedNames] that commands
// are kept from making, and directories of a repository.
var placeholders = map[string]bool{".agents": true, ".codex": true, ".sallyport": true, "hooks": true, "modules": true}

// replacing begins the name of a file that is written beside the one whose place it takes.
const replacing = ".sallyport-"

// replacingLength is that of such a name: rand.Text gives 26 characters.
const replacingLength = len(replacing) + 26

// isOurs reports whether what is at a path is sallyport's. A placeholder is known by its looks, also one
// of another user: an empty directory at one of the names, without a right to write. It hides nothing.
func isOurs(path string, kind fs.FileMode) bool {
	switch name := filepath.Base(path); {
	case kind.IsRegular():
		return strings.HasPrefix(name, replacing) && len(name) == replacingLength && strings.ToUpper(name[len(replacing):]) == name[len(replacing):]
	case !kind.IsDir() || !placeholders[name]:
		return false
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&^0o555 != fs.ModeDir {
		return false
	}
	dir, err := os.OpenFile(path, os.O_RDONLY|openDirectory, 0)
	if err != nil {
		return false
	}
	defer dir.Close()
	_, err = dir.Readdirnames(1)
	return err == io.EOF //nolint:errorlint // Readdirnames returns it as it is
}
