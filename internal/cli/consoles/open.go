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

	"github.com/sallyport-dev/sallyport/internal/names/reach"
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
	root, err := os.OpenRoot(dir)
	if err != nil {
		return remove, err
	}
	defer root.Close()
	name := fmt.Sprintf("open-%016x.html", rand.Uint64())
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return remove, err
	}
	remove = func() { _ = os.Remove(filepath.Join(dir, name)) }
	_, err = fmt.Fprintf(f, "<!doctype html>\n<meta http-equiv=\"refresh\" content=\"0; url=%s\">\n",
		html.EscapeString(address))
	if err = errors.Join(err, f.Close()); err != nil {
		return remove, err
	}
	cmd := exec.Command(program, append(slices.Clip(opener[1:]), filepath.Join(dir, name))...)
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
