// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shell knows the shells: which one a user has, which kind a program
// is, and how a script is handed to it.
//
// Flow: [Detect] or [Named] finds a [Shell] on a [Host], and [Shell.Argv] turns
// a script into the argument vector that runs it. The machine is described by
// data and functions, so every rule can be tried for every system anywhere.
//
// The package is pure: it starts nothing, reads no file and never looks at the
// environment itself. It does not guess either: a shell it does not know is an
// error that says which ones it knows, not a silent substitute.
package shell

import (
	"errors"
	"fmt"
	"strings"
)

// Kind is a family of shells that take a script in the same way. The zero Kind
// is Unknown.
type Kind uint8

const (
	// Unknown is every program that is not one of the others.
	Unknown Kind = iota
	// Bash is GNU bash.
	Bash
	// Zsh is zsh.
	Zsh
	// Sh is the POSIX shell of the system, whatever implements it.
	Sh
	// PowerShell is pwsh, and powershell of Windows.
	PowerShell
	// Cmd is cmd.exe of Windows.
	Cmd
)

var kindNames = [...]string{Unknown: "unknown", Bash: "bash", Zsh: "zsh", Sh: "sh", PowerShell: "powershell", Cmd: "cmd"}

// String returns the name of the kind in lower case, as the wire has it;
// "unknown" for Unknown and values without a name.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[Unknown]
}

// POSIX reports whether shells of this kind take a script after -c.
func (k Kind) POSIX() bool { return k == Bash || k == Zsh || k == Sh }

// KindOf returns the kind of the shell at path, judged by its file name alone:
// letter case and the ending .exe do not matter, and both slashes separate.
// Unknown for everything else, an empty path too.
func KindOf(path string) Kind {
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
	return Unknown
}

// Shell is a shell on a machine. The zero Shell is none.
type Shell struct {
	// Kind says how it takes a script.
	Kind Kind
	// Path is the program to start.
	Path string
}

// utf8Prefix makes PowerShell print UTF-8 instead of the code page of the
// console, so that its output decodes like that of every other program.
const utf8Prefix = "[Console]::OutputEncoding=[System.Text.Encoding]::UTF8;\n"

// Argv returns the argument vector that runs script. With login, POSIX shells
// run as login shells and PowerShell loads its profile; without, neither does.
// It returns nil for a Shell of unknown kind. The script is one argument and is
// not looked at, except that PowerShell scripts get a first line that selects
// UTF-8 for the output, once.
func (s Shell) Argv(script string, login bool) []string {
	switch {
	case s.Kind.POSIX():
		flag := "-c"
		if login {
			flag = "-lc"
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

// ErrLoginDisabled is the answer to a wish for a login shell where the
// configuration does not allow it. Its text is the one that models know.
var ErrLoginDisabled = errors.New("login shell is disabled by config; omit `login` or set it to false.") //nolint:staticcheck // the text is a contract

// Login decides whether a script runs in a login shell. A nil wish means no:
// profiles cost time and print into the output, so they are loaded on request
// only. A wish for one that is not allowed is ErrLoginDisabled.
func Login(wish *bool, allowed bool) (bool, error) {
	if wish == nil || !*wish {
		return false, nil
	}
	if !allowed {
		return false, ErrLoginDisabled
	}
	return true, nil
}

// UnknownError says that a shell was asked for by a name that no kind has.
type UnknownError struct {
	// Name is what was asked for.
	Name string
	// Known lists the names that would have worked.
	Known []string
}

// Error names the shell and what can be used instead.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("shell: %q is not a known shell; use one of %s, or run the program directly without a shell",
		e.Name, strings.Join(e.Known, ", "))
}

// NotFoundError says that a shell of a known kind was asked for and is not on
// this machine.
type NotFoundError struct {
	// Name is what was asked for.
	Name string
	// Kind is the kind of shell it would be.
	Kind Kind
}

// Error names the shell that is missing.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("shell: there is no %q on this machine; install it or name another shell", e.Name)
}
