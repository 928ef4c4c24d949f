// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKindOf(t *testing.T) {
	for _, tt := range []struct {
		path string
		want ShellKind
	}{
		{"/bin/bash", Bash},
		{"bash", Bash},
		{`C:\Program Files\Git\bin\BASH.EXE`, Bash},
		{"/usr/bin/zsh", Zsh},
		{"/bin/sh", Sh},
		{"pwsh", PowerShell},
		{"PowerShell.exe", PowerShell},
		{"/usr/local/bin/pwsh", PowerShell},
		{"cmd.exe", Cmd},
		{`C:\Windows\system32\cmd.exe`, Cmd},
		{"/usr/bin/fish", UnknownShell},
		{"/bin/bash5", UnknownShell},
		{"/bin/dash", UnknownShell},
		{"/bin/bash/", UnknownShell},
		{"bash.sh", UnknownShell},
		{"", UnknownShell},
		{".exe", UnknownShell},
	} {
		if got := ShellKindOf(tt.path); got != tt.want {
			t.Errorf("KindOf(%q) = %v, want %v", tt.path, got, tt.want)
		}
	}
	if s := ShellKind(77).String(); s != "unknown" {
		t.Errorf("a kind without a name is %q", s)
	}
}

func TestArgv(t *testing.T) {
	const prefix = "[Console]::OutputEncoding=[System.Text.Encoding]::UTF8;\n"
	for _, tt := range []struct {
		name   string
		shell  Shell
		script string
		login  bool
		want   []string
	}{
		{"bash", Shell{Bash, "/bin/bash"}, "echo 'a b' | wc", false, []string{"/bin/bash", "-c", "echo 'a b' | wc"}},
		{"bash login", Shell{Bash, "/bin/bash"}, "x", true, []string{"/bin/bash", "-lc", "x"}},
		{"zsh login", Shell{Zsh, "/bin/zsh"}, "x", true, []string{"/bin/zsh", "-lc", "x"}},
		{"like an option", Shell{Sh, "/bin/sh"}, "-x y", false, []string{"/bin/sh", "-c", " -x y"}},
		{"like its reverse", Shell{Bash, "/bin/bash"}, "+x", true, []string{"/bin/bash", "-lc", " +x"}},
		{"sh", Shell{Sh, "/bin/sh"}, "", false, []string{"/bin/sh", "-c", ""}},
		{"powershell", Shell{PowerShell, "pwsh"}, "ls", false, []string{"pwsh", "-NoProfile", "-Command", prefix + "ls"}},
		{"powershell with profile", Shell{PowerShell, "pwsh"}, "ls", true, []string{"pwsh", "-Command", prefix + "ls"}},
		{"powershell prefix once", Shell{PowerShell, "pwsh"}, "\n" + prefix + "ls", false, []string{"pwsh", "-NoProfile", "-Command", "\n" + prefix + "ls"}},
		{"cmd", Shell{Cmd, "cmd.exe"}, "dir /b", true, []string{"cmd.exe", "/c", "dir /b"}},
		{"unknown", Shell{UnknownShell, "/usr/bin/fish"}, "x", false, nil},
		{"zero", Shell{}, "x", false, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.shell.Argv(tt.script, tt.login)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLoginShell(t *testing.T) {
	yes, no := true, false
	for _, tt := range []struct {
		name    string
		wish    *bool
		allowed bool
		want    bool
		err     error
	}{
		{"no wish, allowed", nil, true, false, nil},
		{"no wish, not allowed", nil, false, false, nil},
		{"wish, allowed", &yes, true, true, nil},
		{"wish, not allowed", &yes, false, false, ErrLoginDisabled},
		{"wish for none", &no, false, false, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := LoginShell(tt.wish, tt.allowed)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("Login = %v, %v; want %v, %v", got, err, tt.want, tt.err)
			}
		})
	}
	if got, want := ErrLoginDisabled.Error(),
		"login shell is disabled by config; omit `login` or set it to false."; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
}

// machine is a Host made of lists.
type machine struct {
	system, user string
	path         map[string]string
	files        []string
}

func (m machine) host() ShellHost {
	return ShellHost{
		System:    m.system,
		UserShell: func() string { return m.user },
		LookPath:  func(program string) string { return m.path[program] },
		IsFile: func(path string) bool {
			for _, f := range m.files {
				if f == path {
					return true
				}
			}
			return false
		},
	}
}

func TestDetect(t *testing.T) {
	for _, tt := range []struct {
		name string
		host ShellHost
		want Shell
	}{
		{"the user's own", machine{user: "/usr/bin/zsh", files: []string{"/usr/bin/zsh", "/bin/bash"}}.host(), Shell{Zsh, "/usr/bin/zsh"}},
		{"own is gone, same kind in PATH", machine{user: "/opt/zsh", path: map[string]string{"zsh": "/x/zsh"}}.host(), Shell{Zsh, "/x/zsh"}},
		{"own is gone, same kind in a usual place", machine{user: "/opt/bash", files: []string{"/usr/bin/bash"}}.host(), Shell{Bash, "/usr/bin/bash"}},
		{"unknown kind, bash first", machine{user: "/bin/fish", files: []string{"/bin/fish", "/bin/zsh", "/bin/bash"}}.host(), Shell{Bash, "/bin/bash"}},
		{"unknown kind, zsh if no bash", machine{user: "/bin/fish", files: []string{"/bin/zsh"}}.host(), Shell{Zsh, "/bin/zsh"}},
		{"macOS takes zsh first", machine{system: "darwin", user: "/bin/fish", files: []string{"/bin/zsh", "/bin/bash"}}.host(), Shell{Zsh, "/bin/zsh"}},
		{"macOS user of bash", machine{system: "darwin", user: "/bin/bash", files: []string{"/bin/zsh", "/bin/bash"}}.host(), Shell{Bash, "/bin/bash"}},
		{"nothing but the last resort", machine{user: "/usr/sbin/nologin"}.host(), Shell{Sh, "/bin/sh"}},
		{"no user database", machine{}.host(), Shell{Sh, "/bin/sh"}},
		{"Windows, pwsh in PATH", machine{system: "windows", path: map[string]string{"pwsh": `D:\pwsh.exe`, "powershell": `C:\p.exe`}}.host(), Shell{PowerShell, `D:\pwsh.exe`}},
		{"Windows, pwsh in its usual place before powershell", machine{system: "windows", path: map[string]string{"powershell": `C:\p.exe`}, files: []string{`C:\Program Files\PowerShell\7\pwsh.exe`}}.host(),
			Shell{PowerShell, `C:\Program Files\PowerShell\7\pwsh.exe`}},
		{"Windows, old powershell", machine{system: "windows", files: []string{`C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe`}}.host(),
			Shell{PowerShell, `C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe`}},
		{"Windows, nothing", machine{system: "windows"}.host(), Shell{Cmd, "cmd.exe"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := DetectShell(tt.host); got != tt.want {
				t.Errorf("Detect = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestNamed(t *testing.T) {
	unix := machine{
		user:  "/opt/bash",
		path:  map[string]string{"bash": "/usr/bin/bash", "zsh": "/usr/bin/zsh"},
		files: []string{"/opt/bash", "/usr/bin/bash", "/usr/bin/zsh", "/work/bash", "/usr/bin/fish"},
	}.host()
	windows := machine{system: "windows", path: map[string]string{"cmd": `C:\cmd.exe`}}.host()
	for _, tt := range []struct {
		name  string
		host  ShellHost
		shell string
		want  Shell
		err   string
	}{
		{"name, the user's own first", unix, "bash", Shell{Bash, "/opt/bash"}, ""},
		{"name in PATH", unix, "zsh", Shell{Zsh, "/usr/bin/zsh"}, ""},
		{"path", unix, "/work/bash", Shell{Bash, "/work/bash"}, ""},
		{"path that is no file", unix, "/nowhere/bash", Shell{}, `shell "/nowhere/bash" is not on this machine; install it or name another shell`},
		{"known kind, not there", unix, "pwsh", Shell{}, `shell "pwsh" is not on this machine; install it or name another shell`},
		{"unknown kind", unix, "/usr/bin/fish", Shell{}, `unknown shell "/usr/bin/fish"; use one of bash, zsh, sh, pwsh, or run the program without a shell`},
		{"empty", unix, "", Shell{}, `unknown shell ""; use one of bash, zsh, sh, pwsh, or run the program without a shell`},
		{"cmd on Windows", windows, "cmd", Shell{Cmd, `C:\cmd.exe`}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := NamedShell(tt.host, tt.shell)
			if got != tt.want {
				t.Errorf("Named = %v, want %v", got, tt.want)
			}
			if text := errText(err); text != tt.err {
				t.Errorf("error %q, want %q", text, tt.err)
			}
		})
	}
	_, err := NamedShell(windows, "nu")
	var unknown *UnknownShellError
	if !errors.As(err, &unknown) || unknown.Known[0] != "pwsh" {
		t.Errorf("error %v does not offer the shells of Windows", err)
	}
	_, err = NamedShell(unix, "sh")
	var missing *ShellNotFoundError
	if !errors.As(err, &missing) || missing.Kind != Sh {
		t.Errorf("error %v, want a *NotFoundError for sh", err)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestExport(t *testing.T) {
	env := []string{"TERM=dumb", "A_1=it's", "EMPTY=", "1A=no", "a.b=no", "=no", "é=no"}
	for _, tt := range []struct {
		kind ShellKind
		want string
	}{
		{Sh, `export TERM='dumb'; export A_1='it'\''s'; export EMPTY=''; `},
		{PowerShell, `$env:TERM='dumb'; $env:A_1='it''s'; $env:EMPTY=''; `},
		{Cmd, ""},
		{UnknownShell, ""},
	} {
		if got := tt.kind.Export(env); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.kind, got, tt.want)
		}
	}
}
