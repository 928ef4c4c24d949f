// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package consoles

import (
	"errors"
	"fmt"
	"html"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/server/console"
)

// openPage opens an address in a browser, and returns a function that removes what it has made. Other users
// see the arguments of processes, so the browser gets the name of a file, 0600 in dir, that leads to the
// address.
func openPage(env *Env, dir, address string) (remove func(), err error) {
	remove = func() {}
	if dir == "" {
		return remove, errors.New("there is no state directory on this system")
	}
	// A program that a command has put into a directory of PATH would get the address.
	path := reach.New(reach.Area{Workspace: env.Dir}).Path(env.Variable("PATH"))
	program, err := lookPath(opener[0], path)
	if err != nil {
		return remove, err
	}
	// One that was killed has left its file, with a token that has expired.
	name := filepath.Join(dir, fmt.Sprintf("open-%016x.html", rand.Uint64()))
	old, _ := filepath.Glob(filepath.Join(dir, "open-*.html")) // the pattern is right
	for _, left := range old {
		if st, err := os.Lstat(left); err == nil && time.Since(st.ModTime()) > console.TokenTime {
			_ = os.Remove(left) // the next one tries again
		}
	}
	remove = func() { _ = os.Remove(name) }
	page := "<!doctype html>\n<meta http-equiv=\"refresh\" content=\"0; url=" + html.EscapeString(address) + "\">\n"
	if err := safefile.Replace(name, []byte(page)); err != nil {
		return remove, err
	}
	cmd := exec.Command(program, append(slices.Clip(opener[1:]), name)...)
	cmd.Env, cmd.Dir = append(slices.Clip(env.Environ), "PATH="+path), "/"
	if err := cmd.Start(); err != nil {
		return remove, err
	}
	go cmd.Wait() //nolint:errcheck // so that it is no zombie; a browser may go on
	return remove, nil
}

// lookPath returns the program with a name in the directories of a PATH; an absolute name is one itself.
func lookPath(name, path string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	for _, dir := range filepath.SplitList(path) {
		if program, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return program, nil
		}
	}
	return "", fmt.Errorf("%s is not on PATH", name)
}
