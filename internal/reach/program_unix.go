// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package reach

import (
	"cmp"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/plainfile"
	"github.com/sallyport-dev/sallyport/internal/script"
)

// Program is [Reach.Of] for a program, its interpreter or loader, that one's, and so on. Where a
// script begins with env, the program is the one that the environment leads to.
func (r *Reach) Program(path string, env []string) error {
	for range maxInterpreters + 1 {
		if err := r.Of(path); err != nil {
			return err
		}
		next, named := interpreter(path)
		if named != "" {
			if err := r.Of(next); err != nil {
				return err
			}
			at, err := hostfacts.Lookup(named, "/", env)
			if err != nil {
				return &Error{path, "its interpreter " + named + " is not found"}
			}
			next = at
		}
		if next == "" {
			return nil
		}
		path = next
	}
	return &Error{path, "it has too many interpreters"}
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
	f, err := plainfile.Open(path)
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
// known to run, and [Reach.Of] for the scripts that are their arguments, see [script.Files]. The
// directory and the environment are those that it gets.
func (r *Reach) Command(args []string, dir string, env []string) error {
	for i, c := range script.Read(args).Uses {
		if !c.Exact() {
			continue
		}
		at, err := hostfacts.Lookup(c.Args[0], dir, env)
		if err == nil {
			err = r.Program(at, env)
		} else if i > 0 {
			err = nil // a builtin of a shell, or nothing
		}
		for _, f := range script.Files(c.Args)[1:] {
			if !filepath.IsAbs(f) {
				f = filepath.Join(dir, f)
			}
			err = cmp.Or(err, r.Of(f))
		}
		if err != nil {
			return err
		}
	}
	return nil
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
