// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package hostfacts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// Lookup finds the program that a command names, as the command's own
// environment and directory would: a name with a slash is a path, any other is
// looked for in PATH. An empty element of PATH is not the current directory:
// that old rule lets a planted file stand for a system command.
func Lookup(name, dir string, env []string) (string, error) {
	return LookupIn(name, dir, env, os.Stat)
}

// LookupIn is Lookup where stat says what is at a path, as [os.Stat] does.
func LookupIn(name, dir string, env []string, stat func(string) (fs.FileInfo, error)) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		p := name
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, p)
			if strings.Contains(name, "..") { // which is behind a link not what the name says
				p = filepath.Join(dir, ".") + "/" + name
			}
		}
		if err := executable(p, stat); err != nil {
			return "", StartError(name, err)
		}
		return p, nil
	}
	if name == "" {
		return "", &executor.StartError{Program: name, NotFound: true,
			Err: errors.New("the name of the program is empty")}
	}
	list, ok := Value(env, "PATH")
	if !ok {
		return "", &executor.StartError{Program: name, NotFound: true, Err: fmt.Errorf(
			"%s: not found, because the command's environment has no PATH; give the program's full path, or set PATH", name)}
	}
	var found error
	for _, d := range filepath.SplitList(list) {
		if !filepath.IsAbs(d) {
			continue
		}
		p := filepath.Join(d, name)
		err := executable(p, stat)
		if err == nil {
			return p, nil
		}
		// What exists but is no program is worth telling; a directory of PATH
		// that cannot be entered is not.
		var seen *notProgram
		if found == nil && errors.As(err, &seen) {
			found = err
		}
	}
	if found != nil {
		return "", StartError(name, found)
	}
	return "", &executor.StartError{Program: name, NotFound: true,
		Err: fmt.Errorf("%s: not found in PATH", text.Word(name))}
}

// executable says why a path is no program, or nil.
func executable(p string, stat func(string) (fs.FileInfo, error)) error {
	st, err := stat(p)
	if err != nil {
		return err
	}
	if st.IsDir() {
		return &notProgram{fs.PathError{Op: "exec", Path: p, Err: syscall.EISDIR}}
	}
	if st.Mode()&0o111 == 0 {
		return &notProgram{fs.PathError{Op: "exec", Path: p, Err: syscall.EACCES}}
	}
	return nil
}

// A notProgram is something that is there but cannot be executed.
type notProgram struct{ fs.PathError }
