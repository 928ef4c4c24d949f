// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// guessDenials guesses, for want of evidence, whether the sandbox kept the command
// from something. There is at most one denial, and it is labeled as a guess. The
// system is the one that it ran on, in the words of GOOS.
func guessDenials(r *Result, p sandbox.Policy, system string) []sandbox.Denial {
	sandboxed := p.Mode() == sandbox.Managed
	out, errs := r.Stdout.Bytes(), r.Stderr.Bytes()
	if d, ok := gitDenial(string(errs), r.Dir, p); ok && sandboxed {
		return []sandbox.Denial{d}
	}
	if !text.SuspectDenied(r.ExitCode, sandboxed, system == "linux", errs, out) {
		return nil
	}
	d := sandbox.Denial{Access: sandbox.Access{Op: sandbox.Write}, Source: sandbox.Guessed, Time: time.Now()}
	for _, said := range []string{string(errs), string(out)} {
		if name, errno := complaint(said); errno != "" {
			d.Path, d.Errno = name, errno
			break
		}
	}
	if d.Path != "" && p.Rule(d.Access) == sandbox.Allow {
		// The policy allows it: it was something else, perhaps the file's own mode.
		return nil
	}
	return []sandbox.Denial{d}
}

// gitGrant is the grant for working with git: everything in a git folder but what
// git obeys.
const gitGrant = "git"

// gitDenial finds the words with which git says that it could not write its
// configuration. It goes on after them in some commands and exits with 0. The path
// is the one that it names, and its grant the flags that let it be written.
func gitDenial(said, dir string, p sandbox.Policy) (sandbox.Denial, bool) {
	for line := range strings.Lines(said) {
		line = strings.TrimRight(line, "\r\n")
		for _, e := range []struct{ before, after, errno string }{
			{"could not write config file ", ": Device or resource busy", "EBUSY"},
			{"could not lock config file ", ": Read-only file system", "EROFS"},
		} {
			_, rest, ok := strings.Cut(line, e.before)
			name, clear := strings.CutSuffix(rest, e.after)
			if !ok || !clear {
				continue
			}
			if !strings.HasPrefix(name, "/") {
				name = path.Join(dir, name)
			}
			d := sandbox.Denial{Access: sandbox.Access{Op: sandbox.Write, Path: path.Clean(name)}, Errno: e.errno, Source: sandbox.Guessed, Time: time.Now()}
			if p.Rule(d.Access) == sandbox.Allow {
				return d, false
			}
			d.Grant = sandbox.Grant{Path: d.Path, Level: sandbox.LevelWrite}.String()
			if !slices.Contains(p.Named(), gitGrant) {
				d.Grant = sandbox.Grant{Name: gitGrant}.String() + " " + d.Grant
			}
			return d, true
		}
	}
	return sandbox.Denial{}, false
}

// complaint finds the first line that says which file could not be written or
// opened, in the form in which C programs and Python say it. The path is absolute
// and clean, or empty where the line is not clear.
func complaint(said string) (name, errno string) {
	for line := range strings.Lines(said) {
		line = strings.TrimRight(line, "\r\n")
		for _, e := range []struct{ words, errno string }{
			{"Read-only file system", "EROFS"}, {"Permission denied", "EACCES"}, {"Operation not permitted", "EPERM"},
		} {
			before, after, ok := strings.Cut(line, e.words)
			if !ok {
				continue
			}
			name = pathIn(strings.TrimSuffix(strings.TrimRight(before, " "), ":"))
			if rest, ok := strings.CutPrefix(after, ": "); ok && name == "" {
				name = pathIn(rest) // as Python has it
			}
			return name, e.errno
		}
	}
	return "", ""
}

// pathIn returns the absolute path at the end of s, quoted or not; empty if there
// is none.
func pathIn(s string) string {
	s = strings.TrimSpace(s)
	for _, q := range [][2]string{{"'", "'"}, {"\"", "\""}, {"‘", "’"}, {"`", "`"}} {
		inner, ok := strings.CutSuffix(s, q[1])
		if !ok {
			continue
		}
		if i := strings.LastIndex(inner, q[0]); i >= 0 {
			return absolute(inner[i+len(q[0]):])
		}
	}
	if i := strings.LastIndexByte(s, ' '); i >= 0 {
		s = s[i+1:]
	}
	return absolute(s)
}

func absolute(name string) string {
	if !strings.HasPrefix(name, "/") {
		return ""
	}
	return path.Clean(name)
}
