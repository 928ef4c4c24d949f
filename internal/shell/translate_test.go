// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/testenv"
)

func TestTranslateForProfile(t *testing.T) {
	bash := Profile{Shell: Shell{Bash, "/bin/bash"}}
	zshRC := Profile{Shell: Shell{Zsh, "/bin/zsh"}, RC: "/h/my rc"}
	ps := Profile{Shell: Shell{PowerShell, `C:\pwsh.exe`}}
	psBash := Profile{Shell: ps.Shell, Bash: `C:\git\bash.exe`}
	script := func(s string) []string { return []string{"bash", "-lc", s} }
	for _, tt := range []struct {
		name       string
		argv       []string
		user       Profile
		useProfile bool
		want       []string
	}{
		{"no profile wanted", script("x"), bash, false, script("x")},
		{"bash keeps the script", script("a && b"), bash, true, []string{"/bin/bash", "-lc", "a && b"}},
		{"words are quoted", []string{"echo", "a b", "it's", "", "$X", "if"}, bash, true, []string{"/bin/bash", "-lc", `echo 'a b' 'it'\''s' '' '$X' 'if'`}},
		{"start file", script("echo # end"), zshRC, true, []string{"/bin/zsh", "-lc", "source '/h/my rc' && (echo # end\n)"}},
		{"another flag is no script", []string{"bash", "-c", "x y"}, bash, true, []string{"/bin/bash", "-lc", "bash -c 'x y'"}},
		{"NUL stays", []string{"a", "\x00"}, bash, true, []string{"a", "\x00"}},
		{"empty stays", nil, bash, true, nil},
		{"sh has no builder", script("x"), Profile{Shell: Shell{Sh, "/bin/sh"}}, true, script("x")},
		{"unknown shell", script("x"), Profile{}, true, script("x")},
		{"powershell without profile wish", script("ls"), ps, false, []string{`C:\pwsh.exe`, "-NoProfile", "-Command", "ls"}},
		{"powershell with a bash", script("ls | wc"), psBash, false, []string{`C:\git\bash.exe`, "-lc", "ls | wc"}},
		{"powershell stays powershell", []string{"powershell.exe", "-Command", "ls"}, ps, false, []string{"powershell.exe", "-Command", "ls"}},
		{"command becomes a script", []string{"echo", "hello"}, psBash, false, []string{`C:\pwsh.exe`, "-NoProfile", "-Command", "echo hello"}},
		{"quoted program is called", []string{`C:\My Tools\x.exe`, "it's", "\u2019;rm"}, ps, false,
			[]string{`C:\pwsh.exe`, "-NoProfile", "-Command", "& 'C:\\My Tools\\x.exe' 'it''s' '\u2019\u2019;rm'"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			given := slices.Clone(tt.argv)
			if diff := cmp.Diff(tt.want, TranslateForProfile(tt.argv, tt.user, tt.useProfile)); diff != "" {
				t.Error(diff)
			}
			if !slices.Equal(given, tt.argv) {
				t.Errorf("argv changed to %q", tt.argv)
			}
		})
	}
}

// FuzzQuotePOSIX lets a real shell say what a quoted word means.
func FuzzQuotePOSIX(f *testing.F) {
	sh := testenv.NeedProgram(f, "sh")
	for _, s := range []string{"", "a b", "it's", "$(id)", "`id`", "a\nb", "-n", "~", "*", "a;b", "\\", "#x", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsRune(s, 0) || len(s) > 1000 {
			return // no argument can hold it
		}
		out, err := exec.Command(sh, "-c", "printf %s. "+quotePOSIX(s)).Output()
		if err != nil || string(out) != s+"." {
			t.Errorf("%q quoted as %s arrives as %q, %v", s, quotePOSIX(s), out, err)
		}
	})
}
