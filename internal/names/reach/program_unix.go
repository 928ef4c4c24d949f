// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package reach

import (
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/command/script"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// Program is [Reach.Of] for a program, its interpreter or loader, that one's, and so on. Where a
// script begins with env, the program is the one that the environment leads to.
func (r *Reach) Program(path string, env []string) error {
	_, err := r.chain(path, env)
	return err
}

// chain is Program. It returns the names of what is executed.
func (r *Reach) chain(path string, env []string) (names []string, err error) {
	for range maxInterpreters + 1 {
		if err := r.Of(path); err != nil {
			return nil, err
		}
		names = append(names, filepath.Base(path))
		next, named := interpreter(path)
		if named != "" {
			if err := r.Of(next); err != nil {
				return nil, err
			}
			at, err := hostfacts.Lookup(named, "/", env)
			if err != nil {
				return nil, &Error{path, "its interpreter " + named + " is not found"}
			}
			next = at
		}
		if next == "" {
			return names, nil
		}
		path = next
	}
	return nil, &Error{path, "it has too many interpreters"}
}

// maxInterpreters bounds how often an interpreter needs another one, as the kernel does.
const maxInterpreters = 5

// interpreter returns the program that the kernel starts for another one, and where that is env,
// what env looks up.
func interpreter(path string) (program, named string) {
	program = kernelStarts(path)
	if filepath.Base(program) != "env" {
		return program, ""
	}
	f, err := safefile.Open(path)
	if err != nil {
		return program, ""
	}
	defer f.Close()
	head := make([]byte, 256)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return program, ""
	}
	line, _, _ := strings.Cut(strings.TrimPrefix(string(head[:n]), "#!"), "\n")
	words := strings.Fields(line)
	for _, w := range words[min(1, len(words)):] {
		switch w = strings.TrimPrefix(w, "-S"); {
		case w == "", strings.HasPrefix(w, "-"), strings.Contains(w, "=") && !strings.Contains(w, "/"):
		default:
			return program, w
		}
	}
	return program, ""
}

// Command is [Reach.Program] for the program of a command and for each of those that its words are
// known to run, and [Reach.Of] for the files that they read as code, see [script.File]. The
// directory and the environment are those that it gets.
func (r *Reach) Command(args []string, dir string, env []string) error {
	reading := script.Read(args)
	for i, c := range reading.Uses {
		if !c.Exact() {
			continue
		}
		var err error
		if !c.Builtin() {
			err = r.lookUp(c.Args[0], dir, env, i > 0)
		}
		if err != nil {
			return err
		}
	}
	for _, f := range reading.Files {
		for _, name := range f.Names {
			if f.Maybe || f.Project {
				break
			}
			if !filepath.IsAbs(name) {
				name = filepath.Join(dir, name)
			}
			if err := r.Of(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookUp is [Reach.Program] for what a name means. Maybe says that it may be none of a program.
func (r *Reach) lookUp(name, dir string, env []string, maybe bool) error {
	at, err := hostfacts.Lookup(name, dir, env)
	switch {
	case err == nil:
		return r.Program(at, env)
	case maybe:
		return nil
	}
	return err
}

// Words is [Reach.Of] for each word of a command that is, or ends with, an absolute path: "/a",
// "--file=/a", "-f/a". Text with a space is none: a script, or a sentence.
func (r *Reach) Words(args []string) error {
	for _, w := range args {
		i := strings.IndexByte(w, '/')
		if i < 0 || strings.ContainsAny(w, " \t\n") || strings.Contains(w, "://") {
			continue
		}
		if before := w[:i]; before == "" || before[0] == '-' || strings.HasSuffix(before, "=") {
			if err := r.Of(w[i:]); err != nil {
				return err
			}
		}
	}
	return nil
}
