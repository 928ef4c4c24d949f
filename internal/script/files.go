// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// An interpreter runs the file that its first operand names.
type interpreter struct {
	// Inline are options in front of code: no file is behind them. Files are those with a value
	// that may be a file that runs as well, and values others with a value.
	inline, files, values []string
	shell                 bool
}

var (
	ofShells = interpreter{files: []string{"--rcfile", "--init-file"}, shell: true}
	ofPython = interpreter{inline: []string{"-c", "-m"}, values: []string{"-W", "-X"}}
	ofNode   = interpreter{inline: []string{"-e", "-p", "--eval", "--print"}, files: []string{"-r", "--require", "--import", "--loader"}}
	ofPerl   = interpreter{inline: []string{"-e", "-E", "-ne", "-pe"}, files: []string{"-r", "-I", "-M"}}
)

var interpreters = sync.OnceValue(func() map[string]interpreter {
	return map[string]interpreter{
		"sh": ofShells, "bash": ofShells, "dash": ofShells, "ash": ofShells, "ksh": ofShells, "zsh": ofShells, "fish": ofShells,
		"source": {}, ".": {}, "python": ofPython, "pypy": ofPython, "node": ofNode, "nodejs": ofNode, "bun": ofNode, "deno": ofNode, "tsx": ofNode,
		"ruby": ofPerl, "perl": ofPerl, "php": {inline: []string{"-r"}, files: []string{"-f"}}, "lua": {inline: []string{"-e"}},
		"tclsh": {}, "Rscript": {inline: []string{"-e"}}, "osascript": {inline: []string{"-e"}},
		"pwsh": {inline: []string{"-c", "-Command", "-EncodedCommand"}, files: []string{"-f", "-File"}},
	}
})

// Files returns the words of a command that may name files that it runs: the program, and the
// script of an interpreter. There must be a program.
func Files(args []string) []string {
	out := []string{args[0]}
	base := path.Base(args[0])
	if base != "." {
		base = strings.TrimRight(base, "0123456789.")
	}
	in, ok := interpreters()[base]
	if !ok {
		return out
	}
	for i := 1; i < len(args); i++ {
		a := args[i]
		short := in.shell && len(a) > 1 && (a[0] == '-' || a[0] == '+') && a[1] != '-'
		switch {
		case slices.Contains(in.inline, a), short && strings.Contains(a, "c"):
			return out
		case slices.Contains(in.files, a) && i+1 < len(args):
			i++
			out = append(out, args[i])
		case slices.Contains(in.values, a), short && strings.ContainsAny(a[len(a)-1:], "oO"):
			i++
		case a == "--" && i+1 < len(args):
			return append(out, args[i+1])
		case short, strings.HasPrefix(a, "-"), a == "run" && (base == "deno" || base == "bun"):
		default:
			return append(out, a)
		}
	}
	return out
}
