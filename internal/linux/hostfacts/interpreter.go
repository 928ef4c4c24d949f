// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hostfacts

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// MaxInterpreters bounds how often an interpreter needs another one, as the
// kernel does (execve(2): five, the program's own loader included).
const MaxInterpreters = 5

// Interpreter returns the program that the kernel starts for another one: that
// of a script's first line, or the loader that an ELF file names. It is empty
// where there is none, or none can be told.
func Interpreter(name string) string {
	f, err := safefile.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	if words := InterpreterOf(f); len(words) > 0 {
		return words[0]
	}
	return ""
}

// InterpreterOf is [Interpreter] of an open file, with the further words of a script's first line.
func InterpreterOf(f io.ReaderAt) []string {
	const most = 256 // BINPRM_BUF_SIZE of linux/binfmts.h
	head := make([]byte, most)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	head = head[:n]
	if line, ok := bytes.CutPrefix(head, []byte("#!")); ok {
		line, _, _ = bytes.Cut(line, []byte("\n"))
		return strings.FieldsFunc(string(line), func(r rune) bool { return r == ' ' || r == '\t' || r == 0 })
	}
	if name := loader(f, head); name != "" {
		return []string{name}
	}
	return nil
}

// loader returns what the header of the type PT_INTERP of a 64-bit little-endian
// ELF file names (elf(5)): the only kind that runs on the machines that have a
// launcher.
func loader(f io.ReaderAt, head []byte) string {
	const (
		size, entry, interp = 64, 56, 3 // of the file's header, of a program header, PT_INTERP
		mostHeaders         = 512
	)
	if len(head) < size || !bytes.HasPrefix(head, []byte("\x7fELF\x02\x01")) ||
		binary.LittleEndian.Uint16(head[54:]) != entry {
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
