// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package shell

import "strings"

// Host is what detection needs to know of a machine. The zero Host is a Unix
// on which nothing can be found.
type Host struct {
	// System is the system in the words of GOOS; empty means a Unix that is not
	// macOS.
	System string
	// UserShell returns the shell that the user database has for the user, ""
	// if there is none; see [PasswdShell]. Nil means there is none.
	UserShell func() string
	// LookPath returns the path of a program found through PATH, "" if there is
	// none. Nil finds nothing.
	LookPath func(program string) string
	// IsFile reports whether path is a file. Nil means that nothing is.
	IsFile func(path string) bool
}

func (h Host) userShell() string {
	if h.UserShell == nil {
		return ""
	}
	return h.UserShell()
}

func (h Host) lookPath(program string) string {
	if h.LookPath == nil {
		return ""
	}
	return h.LookPath(program)
}

func (h Host) isFile(path string) bool { return path != "" && h.IsFile != nil && h.IsFile(path) }

// LastResort returns the shell that every machine of this system has: /bin/sh,
// or cmd.exe on Windows. Whether it is there is not checked.
func (h Host) LastResort() Shell {
	if h.System == "windows" {
		return Shell{Kind: Cmd, Path: "cmd.exe"}
	}
	return Shell{Kind: Sh, Path: "/bin/sh"}
}

// place is where a kind of shell may be: a program to look for in PATH, and
// the usual files.
type place struct {
	program string
	files   []string
}

func (h Host) places(k Kind) []place {
	switch k {
	case Zsh:
		return []place{{"zsh", []string{"/bin/zsh"}}}
	case Bash:
		return []place{{"bash", []string{"/bin/bash", "/usr/bin/bash"}}}
	case Sh:
		return []place{{"sh", []string{"/bin/sh"}}}
	case PowerShell:
		if h.System == "windows" {
			return []place{
				{"pwsh", []string{`C:\Program Files\PowerShell\7\pwsh.exe`}},
				{"powershell", []string{`C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe`}},
			}
		}
		return []place{{"pwsh", []string{"/usr/local/bin/pwsh"}}, {"powershell", nil}}
	case Cmd:
		return []place{{"cmd", nil}}
	}
	return nil
}

// Find returns a shell of the wanted kind: the one at given if that is a file
// ("" is none), the user's own if it is of that kind, the first in PATH, or one
// in the usual places, in this order. False if there is none, and for Unknown.
func (h Host) Find(k Kind, given string) (Shell, bool) {
	if k == Unknown {
		return Shell{}, false
	}
	if h.isFile(given) {
		return Shell{k, given}, true
	}
	if own := h.userShell(); KindOf(own) == k && h.isFile(own) {
		return Shell{k, own}, true
	}
	for _, p := range h.places(k) {
		if path := h.lookPath(p.program); path != "" {
			return Shell{k, path}, true
		}
		for _, f := range p.files {
			if h.isFile(f) {
				return Shell{k, f}, true
			}
		}
	}
	return Shell{}, false
}

// Detect returns the shell of the user: on Windows PowerShell; elsewhere the
// one in the user database if its kind is known, else bash or zsh (on macOS zsh
// or bash). Where there is none of these it is [Host.LastResort], so a user of
// a shell that takes scripts in its own language gets one whose language agents
// write.
func Detect(h Host) Shell {
	var order []Kind
	switch h.System {
	case "windows":
		order = []Kind{PowerShell}
	case "darwin":
		order = []Kind{KindOf(h.userShell()), Zsh, Bash}
	default:
		order = []Kind{KindOf(h.userShell()), Bash, Zsh}
	}
	for _, k := range order {
		if s, ok := h.Find(k, ""); ok {
			return s
		}
	}
	return h.LastResort()
}

// Named returns the shell that someone asked for by a name ("bash") or a path
// ("/opt/bin/zsh"). A name of no known kind is a [*UnknownError]; a path that is
// no file, and a name that is not found, is a [*NotFoundError].
//
// With lenient it never fails, as Codex does: a shell of the same kind stands in
// for one that is missing, and the last resort for everything else.
func Named(h Host, name string, lenient bool) (Shell, error) {
	k := KindOf(name)
	isPath := strings.ContainsAny(name, `/\`)
	given := ""
	if isPath || lenient {
		given = name
	}
	if k != Unknown && (lenient || !isPath || h.isFile(name)) {
		if s, ok := h.Find(k, given); ok {
			return s, nil
		}
	}
	switch {
	case lenient:
		return h.LastResort(), nil
	case k == Unknown:
		return Shell{}, &UnknownError{Name: name, Known: h.known()}
	}
	return Shell{}, &NotFoundError{Name: name, Kind: k}
}

func (h Host) known() []string {
	if h.System == "windows" {
		return []string{"pwsh", "powershell", "cmd", "bash", "zsh", "sh"}
	}
	return []string{"bash", "zsh", "sh", "pwsh"}
}
