// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import "strings"

// A ShellHost describes a machine for detection.
type ShellHost struct {
	// System is the operating system as in GOOS.
	System string
	// UserShell returns the shell of the user in the user database, or ""; see
	// [PasswdShell].
	UserShell func() string
	// LookPath returns the path of a program found through PATH, or "".
	LookPath func(program string) string
	// IsFile reports whether path is a file.
	IsFile func(path string) bool
}

// A place is where a kind of shell can be: a program in PATH, and the usual files.
type place struct {
	program string
	files   []string
}

func (h ShellHost) places(k ShellKind) []place {
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

// find returns a shell of the kind: the user's own if it is of that kind, the first in
// PATH, or one in the usual places. It reports false if there is none.
func (h ShellHost) find(k ShellKind) (Shell, bool) {
	if own := h.UserShell(); k != UnknownShell && ShellKindOf(own) == k && h.IsFile(own) {
		return Shell{k, own}, true
	}
	for _, p := range h.places(k) {
		if path := h.LookPath(p.program); path != "" {
			return Shell{k, path}, true
		}
		for _, f := range p.files {
			if h.IsFile(f) {
				return Shell{k, f}, true
			}
		}
	}
	return Shell{}, false
}

// DetectShell returns the shell of the user: on Windows PowerShell; elsewhere the one in the
// user database if its kind is known, else bash or zsh (on macOS zsh or bash). If there is
// none of these it is /bin/sh or cmd.exe. A user of a shell with a language of its own so
// gets one whose language agents write.
func DetectShell(h ShellHost) Shell {
	order, last := []ShellKind{ShellKindOf(h.UserShell()), Bash, Zsh}, Shell{Sh, "/bin/sh"}
	switch h.System {
	case "windows":
		order, last = []ShellKind{PowerShell}, Shell{Cmd, "cmd.exe"}
	case "darwin":
		order = []ShellKind{ShellKindOf(h.UserShell()), Zsh, Bash}
	}
	for _, k := range order {
		if s, ok := h.find(k); ok {
			return s
		}
	}
	return last
}

// NamedShell returns the shell with a name ("bash") or a path ("/opt/bin/zsh"). A name of no
// known kind is an [*UnknownError]; a path that is not a file, and a name that is not
// found, is a [*NotFoundError].
func NamedShell(h ShellHost, name string) (Shell, error) {
	k := ShellKindOf(name)
	if k == UnknownShell {
		return Shell{}, &UnknownShellError{Name: name, Known: h.known()}
	}
	if strings.ContainsAny(name, `/\`) {
		if h.IsFile(name) {
			return Shell{k, name}, nil
		}
	} else if s, ok := h.find(k); ok {
		return s, nil
	}
	return Shell{}, &ShellNotFoundError{Name: name, Kind: k}
}

func (h ShellHost) known() []string {
	if h.System == "windows" {
		return []string{"pwsh", "powershell", "cmd", "bash", "zsh", "sh"}
	}
	return []string{"bash", "zsh", "sh", "pwsh"}
}
