// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"errors"
	"fmt"
	"strings"
)

// A ShellKind is a family of shells that take a script in the same way.
type ShellKind uint8

const (
	// UnknownShell is every program that is not one of the others.
	UnknownShell ShellKind = iota
	// Bash is GNU bash.
	Bash
	// Zsh is zsh.
	Zsh
	// Sh is the POSIX shell of the system.
	Sh
	// PowerShell is pwsh, and powershell of Windows.
	PowerShell
	// Cmd is cmd.exe of Windows.
	Cmd
)

var kindNames = [...]string{UnknownShell: "unknown", Bash: "bash", Zsh: "zsh", Sh: "sh",
	PowerShell: "powershell", Cmd: "cmd"}

// String returns the name of the kind in lower case, "unknown" for values without a name.
func (k ShellKind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[UnknownShell]
}

// POSIX reports whether shells of this kind take a script after -c.
func (k ShellKind) POSIX() bool { return k == Bash || k == Zsh || k == Sh }

// ShellKindOf returns the kind of the shell at path by its file name: letter case and the
// ending .exe do not matter, and both slashes separate. Other names are Unknown.
func ShellKindOf(path string) ShellKind {
	name := strings.ToLower(path[strings.LastIndexAny(path, `/\`)+1:])
	switch strings.TrimSuffix(name, ".exe") {
	case "bash":
		return Bash
	case "zsh":
		return Zsh
	case "sh":
		return Sh
	case "pwsh", "powershell":
		return PowerShell
	case "cmd":
		return Cmd
	}
	return UnknownShell
}

// A Shell is a shell on a machine.
type Shell struct {
	Kind ShellKind
	Path string
}

// utf8Prefix makes PowerShell print UTF-8 instead of the code page of the
// console, so that its output decodes like that of every other program.
const utf8Prefix = "[Console]::OutputEncoding=[System.Text.Encoding]::UTF8;\n"

// Argv returns the argument vector that runs script; nil for a Shell of unknown kind.
// With login, POSIX shells run as login shells and PowerShell loads its profile. The
// script is one argument, after a blank where it begins like an option. A PowerShell script
// gets a first line that selects UTF-8 for the output, unless it has that line.
func (s Shell) Argv(script string, login bool) []string {
	switch {
	case s.Kind.POSIX():
		flag := "-c"
		if login {
			flag = "-lc"
		}
		if strings.HasPrefix(script, "-") || strings.HasPrefix(script, "+") {
			script = " " + script // else it is an option
		}
		return []string{s.Path, flag, script}
	case s.Kind == PowerShell:
		if !strings.HasPrefix(strings.TrimLeft(script, " \t\r\n"), strings.TrimSpace(utf8Prefix)) {
			script = utf8Prefix + script
		}
		if login {
			return []string{s.Path, "-Command", script}
		}
		return []string{s.Path, "-NoProfile", "-Command", script}
	case s.Kind == Cmd:
		return []string{s.Path, "/c", script}
	}
	return nil
}

// Export returns the beginning of a script that sets environment variables, "K=V". It is
// empty for kinds without a profile, which could have changed them. Names that the shell
// cannot set are left out.
func (k ShellKind) Export(env []string) string {
	format, quote := "export %s='%s'; ", `'\''`
	if k == PowerShell {
		format, quote = "$env:%s='%s'; ", "''"
	} else if !k.POSIX() {
		return ""
	}
	var b strings.Builder
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if name != "" && name[0] > '9' && strings.Trim(name, nameCharacters) == "" {
			fmt.Fprintf(&b, format, name, strings.ReplaceAll(value, "'", quote))
		}
	}
	return b.String()
}

// nameCharacters are those of variables that every shell can set.
const nameCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789"

// ErrLoginDisabled refuses a login shell that the configuration does not allow. Its text
// is that of Codex, which models know.
var ErrLoginDisabled = errors.New("login shell is disabled by config; omit `login` or set it to false.") //nolint:staticcheck // the text is a contract

// LoginShell decides whether a script runs in a login shell. A nil wish means no: profiles cost
// time and print into the output. A login shell that is not allowed is ErrLoginDisabled.
func LoginShell(wish *bool, allowed bool) (bool, error) {
	login := wish != nil && *wish
	if login && !allowed {
		return false, ErrLoginDisabled
	}
	return login, nil
}

// UnknownShellError reports a name of no known kind of shell.
type UnknownShellError struct {
	Name  string
	Known []string // names of known kinds
}

// Error returns the name and the known ones.
func (e *UnknownShellError) Error() string {
	return fmt.Sprintf("unknown shell %q; use one of %s, or run the program without a shell",
		e.Name, strings.Join(e.Known, ", "))
}

// ShellNotFoundError reports a shell of a known kind that is not on this machine.
type ShellNotFoundError struct {
	Name string
	Kind ShellKind
}

// Error returns the name and the fix.
func (e *ShellNotFoundError) Error() string {
	return fmt.Sprintf("shell %q is not on this machine; install it or name another shell", e.Name)
}
