// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestApply(t *testing.T) {
	base := []string{
		"PATH=/bin", "HOME=/h", "API_KEY=k", "SECRET_TOKEN=s", "EDITOR=vi", "LC_TIME=C",
		"TERM=xterm", "TZ=UTC",
	}
	for _, tt := range []struct {
		name     string
		policy   Policy
		base     []string
		env      string // joined by one space
		withheld string
	}{
		{"row 29: the earliest tools keep names that look like secrets", Policy{Inherit: InheritAll, KeepSecrets: true}, base,
			"API_KEY=k EDITOR=vi HOME=/h LC_TIME=C PATH=/bin SECRET_TOKEN=s TERM=xterm TZ=UTC", ""},
		{"row 29: the default removes them", Policy{}, base,
			"HOME=/h LC_TIME=C PATH=/bin TERM=xterm TZ=UTC", "API_KEY EDITOR SECRET_TOKEN"},
		{"row 29: also of all variables", Policy{Inherit: InheritAll}, base,
			"EDITOR=vi HOME=/h LC_TIME=C PATH=/bin TERM=xterm TZ=UTC", "API_KEY SECRET_TOKEN"},
		{"row 30: default excludes on", Policy{Inherit: InheritAll}, []string{"API_KEY=k", "SECRET_TOKEN=s", "A=1"},
			"A=1", "API_KEY SECRET_TOKEN"},
		{"row 31: include_only keeps PATH and the thread id",
			Policy{Inherit: InheritAll, KeepSecrets: true, IncludeOnly: []string{"*PATH"},
				Runtime: map[string]string{"CODEX_THREAD_ID": "7"}},
			[]string{"PATH=/bin", "HOME=/h"}, "CODEX_THREAD_ID=7 PATH=/bin", "HOME"},
		{"row 31: include_only filters what was set", Policy{IncludeOnly: []string{"*PATH"}, Set: map[string]string{"NEW": "1", "MANPATH": "2"}},
			[]string{"PATH=/bin"}, "MANPATH=2 PATH=/bin", "NEW"},
		{"row 32: set adds", Policy{Inherit: InheritAll, Set: map[string]string{"NEW_VAR": "new"}}, []string{"PATH=/bin"}, "NEW_VAR=new PATH=/bin", ""},
		{"row 32: set replaces and may be a secret", Policy{Set: map[string]string{"API_KEY": "mine", "PATH": "/x"}}, base[:3],
			"API_KEY=mine HOME=/h PATH=/x", ""},
		{"row 33: no thread id, none inserted", Policy{}, []string{"PATH=/bin"}, "PATH=/bin", ""},
		{"row 33: inherit none and set", Policy{Inherit: InheritNone, Set: map[string]string{"ONLY": "1"}}, base[:2], "ONLY=1", "HOME PATH"},
		{"row 33: forbidden names even when set, any case",
			Policy{Inherit: InheritAll, KeepSecrets: true,
				Set:     map[string]string{"OpenAI_Federation_Rule_Id": "x"},
				Runtime: map[string]string{"openai_identity_token_file": "y"}},
			[]string{"OPENAI_IDENTITY_TOKEN_FILE=z", "A=1"}, "A=1",
			"OPENAI_IDENTITY_TOKEN_FILE OpenAI_Federation_Rule_Id openai_identity_token_file"},
		{"row 33: a stale runtime variable is replaced",
			Policy{Inherit: InheritAll, RuntimeOnly: []string{"CODEX_PERMISSION_PROFILE"},
				Runtime: map[string]string{"CODEX_PERMISSION_PROFILE": "new"}},
			[]string{"CODEX_PERMISSION_PROFILE=old"}, "CODEX_PERMISSION_PROFILE=new", ""},
		{"row 33: or removed", Policy{Inherit: InheritAll, RuntimeOnly: []string{"CODEX_PERMISSION_PROFILE"}},
			[]string{"CODEX_PERMISSION_PROFILE=old"}, "", "CODEX_PERMISSION_PROFILE"},
		{"exclude comes after inherit and before set", Policy{Inherit: InheritAll, Exclude: []string{"ed*", "HOM?"}, Set: map[string]string{"EDITOR": "ed"}},
			base[:5], "EDITOR=ed PATH=/bin", "API_KEY HOME SECRET_TOKEN"},
		{"named variables pass everything", Policy{Exclude: []string{"EDITOR"}, Named: []string{"API_KEY", "EDITOR", "ABSENT"}}, base[:5],
			"API_KEY=k EDITOR=vi HOME=/h PATH=/bin", "SECRET_TOKEN"},
		{"set wins over named", Policy{Named: []string{"A"}, Set: map[string]string{"A": "2"}}, []string{"A=1"}, "A=2", ""},
		{"runtime wins over set", Policy{Set: map[string]string{"A": "2"}, Runtime: map[string]string{"A": "3"}}, nil, "A=3", ""},
		{"last of duplicates wins", Policy{}, []string{"PATH=/a", "PATH=/b"}, "PATH=/b", ""},
		{"core ignores case and keeps the spelling", Policy{}, []string{"Path=/a"}, "Path=/a", ""},
		{"a value may hold an equals sign or be empty", Policy{Inherit: InheritAll}, []string{"A=b=c", "E="}, "A=b=c E=", ""},
		{"another core", Policy{Core: []string{"LC_ALL"}}, []string{"TERM=x", "LC_ALL=C", "LC_TIME=C"}, "LC_ALL=C", "LC_TIME TERM"},
		{"an unknown inherit value is closed", Policy{Inherit: 9}, base[:1], "", "PATH"},
		{"a secret in the core set is still a secret", Policy{Core: []string{"*"}}, base[2:4], "", "API_KEY SECRET_TOKEN"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.policy.Apply(tt.base)
			if err != nil {
				t.Fatal(err)
			}
			if s := strings.Join(got.Env, " "); s != tt.env {
				t.Errorf("env      %q\nwant     %q", s, tt.env)
			}
			if s := strings.Join(got.Withheld, " "); s != tt.withheld {
				t.Errorf("withheld %q\nwant     %q", s, tt.withheld)
			}
			if got.Env == nil {
				t.Error("Env is nil")
			}
		})
	}
}

func TestApplyOnWindows(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy Policy
		base   []string
		env    string
	}{
		{"core", Policy{}, []string{"Path=C:\\", "ProgramFiles(x86)=P", "PATHEXT=.EXE", "HOME=h", "TERM=x"}, "Path=C:\\|PATHEXT=.EXE|ProgramFiles(x86)=P"},
		{"PATHEXT is added", Policy{Inherit: InheritNone}, nil, "PATHEXT=.COM;.EXE;.BAT;.CMD"},
		{"one variable in two spellings", Policy{Set: map[string]string{"PATH": "new"}}, []string{"Path=old", "pathext=.X"}, "PATH=new|pathext=.X"},
		{"drive entries are no variables", Policy{Inherit: InheritAll}, []string{"=C:=C:\\x", "PATHEXT=.X"}, "PATHEXT=.X"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.policy.System = "windows"
			got, err := tt.policy.Apply(tt.base)
			if err != nil {
				t.Fatal(err)
			}
			if s := strings.Join(got.Env, "|"); s != tt.env {
				t.Errorf("env %q, want %q", s, tt.env)
			}
		})
	}
}

func TestMalformed(t *testing.T) {
	got, err := Policy{Inherit: InheritAll}.Apply([]string{"NOEQUALS", "=x", "", "A\x00=1", "B=\x00", "C=1"})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Result{Env: []string{"C=1"}}); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	for _, tt := range []struct{ name, key, value, want string }{
		{"empty name", "", "v", `cannot set the variable "": the name is empty`},
		{"equals sign", "A=B", "v", `cannot set the variable "A=B": the name contains '='`},
		{"NUL in the name", "A\x00", "v", `cannot set the variable "A\x00": the name contains a NUL character`},
		{"NUL in the value", "A", "hidden\x00", `cannot set the variable "A": the value contains a NUL character`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			vars := map[string]string{tt.key: tt.value}
			for _, p := range []Policy{{Set: vars}, {Runtime: vars}} {
				_, err := p.Apply(nil)
				var ne *NameError
				if !errors.As(err, &ne) || err.Error() != tt.want {
					t.Errorf("error %v, want %s", err, tt.want)
				}
			}
		})
	}
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"PATH", "PATH", true},
		{"path", "PATH", true},
		{"PATH", "PATHEXT", false},
		{"*PATH", "MANPATH", true},
		{"*PATH", "PATH", true},
		{"*PATH", "PATHS", false},
		{"*KEY*", "API_KEY_2", true},
		{"L?_*", "LC_ALL", true},
		{"L?_*", "L_ALL", false},
		{"?", "é", true},
		{"??", "é", false},
		{"É*", "éa", true},
		{"", "", true},
		{"", "A", false},
		{"*", "", true},
		{"**", "A", true},
		{"?", "", false},
		{"A*B*C", "AxxBxxBxC", true},
		{"A*B*C", "AxxBxxBx", false},
		{"[A]", "A", false},
	} {
		if got := match(tt.pattern, tt.name); got != tt.want {
			t.Errorf("match(%q, %q) = %v, want %v", tt.pattern, tt.name, got, tt.want)
		}
	}
	// A matcher that tries every star again would not come back from this.
	if match(strings.Repeat("*a", 40)+"b", strings.Repeat("a", 4000)) {
		t.Error("a name without b matches")
	}
}

func FuzzApply(f *testing.F) {
	f.Add("PATH=/bin\nAPI_KEY=1\n=x\nPath=2", "*KEY*", "windows")
	f.Add("A=1\nA=2\nOPENAI_IDENTITY_TOKEN_FILE=1", "?", "linux")
	f.Fuzz(func(t *testing.T, base, pattern, system string) {
		p := Policy{Inherit: InheritAll, System: system, IncludeOnly: []string{pattern}}
		entries := strings.Split(base, "\n")
		got, err := p.Apply(entries)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := p.Apply(entries)
		if !cmp.Equal(got, again) {
			t.Fatal("two calls differ")
		}
		seen := make(map[string]bool)
		for _, e := range got.Env {
			name, _, ok := strings.Cut(e, "=")
			if !ok || name == "" || seen[name] || Forbidden(name) {
				t.Fatalf("entry %q in %q", e, got.Env)
			}
			seen[name] = true
			if name == "PATHEXT" && system == "windows" {
				continue // may be our own addition
			}
			if SecretName(name) || !match(pattern, name) {
				t.Fatalf("%q passes with pattern %q", name, pattern)
			}
		}
		for _, name := range got.Withheld {
			if seen[name] {
				t.Fatalf("%q is both given and withheld", name)
			}
		}
		if !slices.IsSorted(got.Withheld) {
			t.Fatalf("withheld is not sorted: %q", got.Withheld)
		}
	})
}
