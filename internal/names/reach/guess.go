// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Guess concludes from the exit code and the output of a command whether the sandbox
// denied something. It returns at most one denial, whose Source is sandbox.Guessed.
func (r *DeniedRun) Guess(exit int, stdout, stderr []byte) []sandbox.Denial {
	sandboxed := r.Policy.Mode() == sandbox.Managed
	if d, ok := r.gitDenial(string(stderr)); ok && sandboxed {
		return []sandbox.Denial{d}
	}
	if !text.SuspectDenied(exit, sandboxed, r.OS == "linux", stderr, stdout) {
		return nil
	}
	d := guessed("", "")
	for _, said := range []string{string(stderr), string(stdout)} {
		if name, errno := complaint(said); errno != "" {
			d = guessed(name, errno)
			break
		}
	}
	if d.Path != "" && r.Policy.Rule(d.Access) == sandbox.Allow {
		return nil // it was something else, such as the mode of the file
	}
	return []sandbox.Denial{d}
}

// Hidden concludes from the output of a command that failed, and from the paths and the hosts by ssh that
// its words name, which hidden stores of secrets it tried to open: that is not observed. Each is a guess
// with the grant that opens it.
func (r *DeniedRun) Hidden(exit int, stdout, stderr []byte) []sandbox.Denial {
	if exit == 0 || !r.Local {
		return nil
	}
	said := slices.Concat(stderr, []byte("\n"), stdout)
	var out []sandbox.Denial
	key := false // one that ssh needed is enough: one grant opens all
	for _, store := range grants.FindStores(grants.Homes(), r.Policy.Named()) {
		if !complains(said, store.Path) && !r.names(store.Path) {
			if key || !r.keyless(&store, exit) {
				continue
			}
			key = true
		}
		d := guessed(store.Path, "EACCES")
		d.Op, d.Rule, d.Grant = sandbox.Read, store.Path+"=deny (a store of secrets)",
			sandbox.Grant{Name: store.Grant()}.String()
		out = append(out, d)
	}
	return out
}

// complains reports whether a line says that a path could not be opened.
func complains(said []byte, name string) bool {
	for line := range bytes.Lines(said) {
		if bytes.Contains(line, []byte(name)) &&
			(bytes.Contains(line, []byte("ermission denied")) || bytes.Contains(line, []byte("EACCES"))) {
			return true
		}
	}
	return false
}

// names reports whether a word of the command, or one in its script, is a path at or below a store.
func (r *DeniedRun) names(store string) bool {
	home := strings.NewReplacer("${HOME}/", r.variable("HOME")+"/", "$HOME/", r.variable("HOME")+"/")
	for _, word := range r.Args {
		for _, name := range pathsIn(home.Replace(word)) {
			if rest, ok := strings.CutPrefix(name, "~/"); ok {
				name = path.Join(r.variable("HOME"), rest)
			} else if !path.IsAbs(name) {
				name = path.Join(r.Dir, name)
			}
			if inside(path.Clean(name), store) {
				return true
			}
		}
	}
	return false
}

func guessed(name, errno string) sandbox.Denial {
	return sandbox.Denial{Access: sandbox.Access{Op: sandbox.Write, Path: name}, Errno: errno,
		Source: sandbox.Guessed, Time: time.Now()}
}

// gitDenial finds the messages with which git says that it could not write its
// configuration; some git commands go on after them and exit with 0. The path of the
// denial is the one in the message, and its grant opens it.
func (r *DeniedRun) gitDenial(said string) (sandbox.Denial, bool) {
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
				name = path.Join(r.Dir, name)
			}
			d := guessed(path.Clean(name), e.errno)
			if r.Policy.Rule(d.Access) == sandbox.Allow {
				return d, false
			}
			d.Grant = sandbox.Grant{Path: d.Path, Level: sandbox.LevelWrite}.String()
			if !slices.Contains(r.Policy.Named(), GitGrant) {
				d.Grant = sandbox.Grant{Name: GitGrant}.String() + " " + d.Grant
			}
			return d, true
		}
	}
	return sandbox.Denial{}, false
}

// complaint finds the first message that a file could not be written or opened, in the
// form of C programs and of Python. The path is absolute and clean, or empty where the
// message does not name one.
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

// pathIn returns the absolute path at the end of s, quoted or not, or "".
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
