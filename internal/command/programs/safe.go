// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// alwaysSafe are programs that only read, whatever their words are.
var alwaysSafe = []string{
	"cat", "cd", "cut", "echo", "expr", "false", "grep", "head", "id", "ls", "nl", "numfmt", "paste",
	"pwd", "rev", "seq",
	"stat", "tac", "tail", "tr", "true", "uname", "wc", "which", "whoami",
}

// safeWith reports whether a program that can do more only reads with these words.
func safeWith(name string, words []string) bool {
	switch name {
	case "base64":
		return !has(words, "o", "output")
	case "find":
		return !slices.ContainsFunc(words, findActs)
	case "git":
		return safeGit(words)
	case "rg":
		return !has(words, "z", "pre", "hostname-bin", "search-zip")
	case "sed":
		return safeSed(words)
	case "uniq":
		return operands(words) < 2
	}
	return false
}

// systemDirectories are where programs of the lists above are what their names say.
var systemDirectories = []string{"/bin", "/usr/bin"}

// Safe reports whether a command is known to read only. A program must be given by its bare
// name, or lie in a directory of the system.
func Safe(argv []string) bool {
	if len(argv) == 0 {
		return false
	}
	if !OfSystem(argv[0]) {
		return false
	}
	name := path.Base(argv[0])
	return slices.Contains(alwaysSafe, name) || safeWith(name, argv[1:])
}

// OfSystem reports whether a program is given by its bare name, or by its path in a directory of
// the system. Others may be anything, whatever their base names say, and so may a path with "..",
// which leads elsewhere behind a link.
func OfSystem(program string) bool {
	dir, name := path.Split(program)
	return dir == "" || name != ".." && slices.Contains(systemDirectories, strings.TrimSuffix(dir, "/"))
}

// has reports whether a word is one of the short options, alone or with others, or one of the
// long ones, also abbreviated or with a value.
func has(words []string, short string, long ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		name, isLong := strings.CutPrefix(w, "--")
		if !isLong {
			return len(w) > 1 && w[0] == '-' && strings.ContainsAny(w[1:], short)
		}
		name, _, _ = strings.Cut(name, "=")
		return name != "" && slices.ContainsFunc(long,
			func(l string) bool { return strings.HasPrefix(l, name) })
	})
}

// operands counts the words that are no options.
func operands(words []string) int {
	n := 0
	for _, w := range words {
		if w == "-" || !strings.HasPrefix(w, "-") {
			n++
		}
	}
	return n
}

// findActs reports whether a word of find does more than print names.
func findActs(w string) bool {
	switch w {
	case "-delete", "-exec", "-execdir", "-fls", "-fprint", "-fprint0", "-fprintf", "-files0-from",
		"-ok", "-okdir":
		return true
	}
	return false
}

var sedLines = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]+(,[0-9]+)?p$`) })

// safeSed accepts sed -n N,Mp and at most one file.
func safeSed(words []string) bool {
	return len(words) >= 2 && len(words) <= 3 && words[0] == "-n" && sedLines().MatchString(words[1]) &&
		(len(words) == 2 || !strings.HasPrefix(words[2], "-"))
}

// gitListings are options with which git branch lists.
var gitListings = []string{"--list", "-l", "--show-current", "-a", "--all", "-r", "--remotes", "-v",
	"-vv", "--verbose"}

// gitElsewhere are options by which git reads other settings or runs programs.
var gitElsewhere = []string{"paginate", "config-env", "exec-path", "git-dir", "namespace",
	"super-prefix", "work-tree"}

// safeGit accepts commands of git that read the repository in this directory.
func safeGit(words []string) bool {
	for i, w := range words {
		if strings.HasPrefix(w, "-") && w != "-" {
			long, isLong := strings.CutPrefix(w, "--")
			long, _, _ = strings.Cut(long, "=")
			if isLong && slices.Contains(gitElsewhere, long) || !isLong && strings.ContainsAny(w[:2], "Ccp") {
				return false
			}
			continue
		}
		after := words[i+1:]
		switch w {
		case "status", "log", "diff", "show":
			return !has(after, "", "output", "ext-diff", "textconv", "exec") && !hasPrefix(after, "--output")
		case "branch":
			return !slices.ContainsFunc(after, func(w string) bool {
				return !slices.Contains(gitListings, w) && !strings.HasPrefix(w, "--format=")
			})
		}
		return false
	}
	return false
}

func hasPrefix(words []string, prefix string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, prefix) })
}

// RmOptions takes the words of rm apart.
func RmOptions(args []string) (recursive, force bool, operands []string) {
	for i, w := range args[1:] {
		long, isLong := strings.CutPrefix(w, "--")
		switch {
		case w == "--":
			return recursive, force, append(operands, args[i+2:]...)
		case isLong:
			recursive = recursive || strings.HasPrefix("recursive", long)
			force = force || strings.HasPrefix("force", long)
		case len(w) > 1 && w[0] == '-':
			recursive = recursive || strings.ContainsAny(w, "rR")
			force = force || strings.Contains(w, "f")
		default:
			operands = append(operands, w)
		}
	}
	return recursive, force, operands
}
