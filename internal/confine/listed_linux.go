// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// maxLinks bounds the symbolic links on one way, as the kernel does (path_resolution(7)).
const maxLinks = 40

// maxInterpreters bounds how often an interpreter needs another one, as the
// kernel does (execve(2): five, the program's own loader included).
const maxInterpreters = 5

// listed adds what folders of ours that stand over the host's need to be of use:
// the symbolic links on the way to what the policy lists, and, where it lists all
// that is visible, the places without which the command could not start.
func listed(res *sandbox.Resolved, r *executor.Spec, pr *plan.Request) {
	links := map[string]bool{}
	add := func(name string) {
		if real, err := evalSymlinks(name); err == nil && real == filepath.Clean(name) {
			return // no link is on the way
		}
		for _, l := range walk(name) {
			if !links[l.Path] && (pr.Root == sandbox.LevelDeny || strings.HasPrefix(l.Path, "/run/")) {
				links[l.Path] = true
				pr.Links = append(pr.Links, l)
			}
		}
	}
	for _, name := range runShows {
		add(name)
	}
	for _, p := range res.Paths {
		if p.Level != sandbox.LevelDeny && !p.Auto {
			add(p.Path)
		}
	}
	if pr.Root != sandbox.LevelDeny {
		return
	}
	add("/tmp")
	pr.Needs = append(pr.Needs, needs("the working directory", r.Dir, true)...)
	what, name := "the program", pr.Program
	for range maxInterpreters {
		pr.Needs = append(pr.Needs, needs(what, name, false)...)
		next := interpreter(name)
		if !filepath.IsAbs(next) {
			break
		}
		what, name = "the interpreter of "+name+",", next
	}
}

// aboutRoot refuses rules that turn out to be about "/", by a symbolic link that
// leads there: what the root is was decided by the policy, not by a link.
func (g *gathering) aboutRoot() error {
	if _, ok := g.rules["/"]; !ok {
		return nil
	}
	return &executor.RootError{Path: "/", Why: "is where a path of the policy leads by a symbolic link", Fix: "name the folder that is meant"}
}

// walk lists the symbolic links on the way to a path, in the order in which the
// kernel meets them. No link is above the path of one that it returns.
func walk(name string) []plan.Link {
	var links []plan.Link
	at, rest := "/", strings.Split(filepath.Clean(name), "/")
	for len(rest) > 0 && len(links) < maxLinks {
		part := rest[0]
		rest = rest[1:]
		next := filepath.Join(at, part) // also for "..", as no link is in at
		st, err := os.Lstat(next)
		if err != nil {
			break
		}
		if st.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		dest, err := os.Readlink(next)
		if err != nil || dest == "" {
			break
		}
		links = append(links, plan.Link{Path: next, Dest: dest})
		if filepath.IsAbs(dest) {
			at = "/"
		}
		rest = append(strings.Split(dest, "/"), rest...)
	}
	return links
}

// needs lists what must be visible for a path to lead where it leads.
func needs(what, name string, folder bool) []plan.Need {
	var out []plan.Need
	for _, l := range walk(name) {
		out = append(out, plan.Need{What: what, Path: l.Path})
	}
	return append(out, plan.Need{What: what, Path: realPath(name), Folder: folder})
}

// interpreter returns the program that the kernel starts for another one: that
// of a script's first line, or the loader that an ELF file names. It is empty
// where there is none, or none can be told.
func interpreter(name string) string {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:forbidigo // it only reads
	if err != nil {
		return ""
	}
	defer f.Close()
	return interpreterOf(f)
}

func interpreterOf(f io.ReaderAt) string {
	const most = 256 // BINPRM_BUF_SIZE of linux/binfmts.h
	head := make([]byte, most)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	head = head[:n]
	if line, ok := bytes.CutPrefix(head, []byte("#!")); ok {
		line, _, _ = bytes.Cut(line, []byte("\n"))
		words := bytes.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == 0 })
		if len(words) == 0 {
			return ""
		}
		return string(words[0])
	}
	return loader(f, head)
}

// loader returns what the header of the type PT_INTERP of a 64-bit little-endian
// ELF file names (elf(5)): the only kind that runs on the machines that have a
// launcher.
func loader(f io.ReaderAt, head []byte) string {
	const (
		size, entry, interp = 64, 56, 3 // of the file's header, of a program header, PT_INTERP
		mostHeaders         = 512
	)
	if len(head) < size || !bytes.HasPrefix(head, []byte("\x7fELF\x02\x01")) || binary.LittleEndian.Uint16(head[54:]) != entry {
		return ""
	}
	at, count := binary.LittleEndian.Uint64(head[32:]), binary.LittleEndian.Uint16(head[56:])
	if at > 1<<40 || count > mostHeaders {
		return ""
	}
	table := make([]byte, int(count)*entry)
	if n, err := f.ReadAt(table, int64(at)); n < len(table) && err != nil {
		return ""
	}
	for ; len(table) >= entry; table = table[entry:] {
		if binary.LittleEndian.Uint32(table) != interp {
			continue
		}
		from, length := binary.LittleEndian.Uint64(table[8:]), binary.LittleEndian.Uint64(table[32:])
		if from > 1<<40 || length == 0 || length > 4096 {
			return ""
		}
		text := make([]byte, length)
		if n, err := f.ReadAt(text, int64(from)); n < len(text) && err != nil {
			return ""
		}
		text, _, _ = bytes.Cut(text, []byte{0})
		return string(text)
	}
	return ""
}

// hidden gives an error about what a command does not see the type that says
// which part of the request it is about.
func hidden(r *executor.Spec, err error) error {
	var h *sandbox.HiddenError
	switch {
	case !errors.As(err, &h):
		return err
	case h.What == "the working directory":
		return &executor.DirError{Dir: r.Dir, Err: h}
	case strings.HasPrefix(h.What, "standard "):
		return &executor.RootError{Path: h.Path, Why: "is " + strings.TrimSuffix(h.What, ", the folder") + ", and a folder that the command does not see", Fix: "pass a file or a pipe, or show it with --ro"}
	}
	return &executor.StartError{Program: r.Args[0], Err: fmt.Errorf("%s: cannot be run: %w", r.Args[0], h)}
}
