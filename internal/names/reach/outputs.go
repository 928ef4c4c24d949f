// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// An output says which words of a command name files that it writes. What it read in one before is
// no part of an approval, for its own work changes it.
type output struct {
	all    bool     // every word that is no option
	last   bool     // the last one of several
	first  bool     // the first one
	flags  []string // options whose value is one: the next word, or the rest of this one
	keys   []string // what stands before the value in a word of the form key=value
	inline []string // options that make every word an output: the files are edited in place
	part   string   // those options may be a part of a word of options, such as "i" in "-ni"
	// creates are the letters of tar(1) with which it writes its archive.
	creates string
	plainO  bool // -o has no file as its value
}

// always are the options of every program whose value is an output.
var always = []string{"-o", "--output", "--out", "--output-file", "--outfile", "--log-file"}

// outputs are what is known of programs. Of others every word counts that names a file, but for the
// values of always. A program that is missing here is asked about more often than it must be.
var outputs = sync.OnceValue(func() map[string]output {
	return map[string]output{
		"tee": {all: true}, "touch": {all: true}, "truncate": {all: true}, "mktemp": {all: true},
		"rm": {all: true}, "rmdir": {all: true}, "unlink": {all: true}, "shred": {all: true},
		"chmod": {all: true}, "chown": {all: true}, "chgrp": {all: true}, "setfacl": {all: true}, // which read nothing
		"mkdir": {all: true}, "mkfifo": {all: true}, "mknod": {all: true},
		"cp": {last: true, flags: []string{"-t", "--target-directory"}}, "mv": {last: true, flags: []string{"-t", "--target-directory"}},
		"install": {last: true, flags: []string{"-t", "--target-directory"}}, "ln": {last: true, flags: []string{"-t", "--target-directory"}},
		"rsync": {last: true}, "scp": {last: true}, "ffmpeg": {last: true}, "convert": {last: true}, "magick": {last: true},
		"dd":  {keys: []string{"of"}},
		"zip": {first: true},
		"tar": {creates: "cruA"}, "bsdtar": {creates: "cru"}, "gtar": {creates: "cruA"},
		"unzip": {plainO: true}, "grep": {plainO: true}, "egrep": {plainO: true}, "fgrep": {plainO: true}, "zgrep": {plainO: true},
		"rg": {plainO: true}, "bash": {plainO: true}, "sh": {plainO: true}, "dash": {plainO: true}, "zsh": {plainO: true}, "ksh": {plainO: true},
		"curl": {flags: []string{"--dump-header", "-D", "-c", "--cookie-jar"}},
		"wget": {flags: []string{"-O", "--output-document", "-a", "--append-output"}},
		"go":   {flags: []string{"-coverprofile", "-cpuprofile", "-memprofile", "-trace"}},
		"gcc":  {flags: []string{"-MF"}}, "cc": {flags: []string{"-MF"}}, "clang": {flags: []string{"-MF"}},
		"sed": {inline: []string{"-i", "--in-place"}, part: "i"}, "perl": {inline: []string{"-i"}, part: "i"},
		"gofmt": {inline: []string{"-w"}}, "goimports": {inline: []string{"-w"}}, "gofumpt": {inline: []string{"-w"}},
		"clang-format": {inline: []string{"-i"}}, "prettier": {inline: []string{"-w", "--write"}}, "shfmt": {inline: []string{"-w"}},
		"black": {all: true}, "isort": {all: true}, "rustfmt": {all: true}, "autopep8": {inline: []string{"-i", "--in-place"}},
		"ruff": {inline: []string{"--fix", "format"}}, "eslint": {inline: []string{"--fix"}},
	}
})

// inputs returns the words behind the program of a command that may name files which it reads.
func inputs(args []string) []string {
	name := path.Base(args[0])
	if at := strings.LastIndexByte(name, '\\'); at >= 0 {
		name = name[at+1:]
	}
	known := outputs()[strings.TrimSuffix(name, ".exe")]
	words := known.archive(args[1:])
	if known.all || slices.ContainsFunc(words, known.edits) {
		return nil
	}
	var out []string
	var plain []int // of out, the words that are no options
	rest := false   // no options any more
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch flag, value, joined := strings.Cut(w, "="); {
		case !rest && w == "--":
			rest = true
		case rest || !strings.HasPrefix(w, "-") || w == "-":
			plain = append(plain, len(out))
			out = append(out, w)
			if joined && !slices.Contains(known.keys, flag) {
				out = append(out, value)
			}
		case known.writes(w):
			i++ // its value is the next word
		case joined && known.writes(flag):
		case joined:
			out = append(out, value)
		}
	}
	switch {
	case known.last && len(plain) > 1:
		at := plain[len(plain)-1]
		out = slices.Delete(out, at, min(at+1, len(out)))
	case known.first && len(plain) > 1:
		out = slices.Delete(out, plain[0], plain[0]+1)
	}
	return out
}

// archive returns the words of tar(1) without an archive that it writes.
func (o *output) archive(words []string) []string {
	if o.creates == "" || len(words) == 0 {
		return words
	}
	letters := strings.TrimPrefix(words[0], "-")
	long := strings.HasPrefix(letters, "-")
	writes := !long && strings.ContainsAny(letters, o.creates) || slices.Contains(words, "--create")
	var out []string
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch file := i == 0 && !long && strings.HasSuffix(w, "f") || w == "-f" || w == "--file"; {
		case writes && file:
			i++ // the archive
		case writes && strings.HasPrefix(w, "--file="):
		default:
			out = append(out, w)
		}
	}
	return out
}

// writes reports whether the value of an option is an output.
func (o *output) writes(flag string) bool {
	if o.plainO && flag == "-o" {
		return false
	}
	return slices.Contains(always, flag) || slices.Contains(o.flags, flag)
}

// edits reports whether an option has files edited in place.
func (o *output) edits(word string) bool {
	for _, f := range o.inline {
		if word == f || strings.HasPrefix(word, f+"=") || f == "-i" && strings.HasPrefix(word, "-i") {
			return true
		}
	}
	return o.part != "" && strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") &&
		strings.Contains(word, o.part)
}
