// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestEnv gives commands variables, as a caller with some of its own would.
func TestEnv(t *testing.T) {
	mine, path := []string{"PATH=/usr/bin:/bin", "HOME=/h", "MODE=test", "API_KEY=k", "SALLYPORT=stale"},
		"PATH=/usr/bin:/bin"
	for _, test := range []struct {
		name     string
		env      []string
		policy   sallyport.EnvPolicy
		want     string // of the variables below
		withheld string
		err      string
	}{
		{"nothing of its own", nil, sallyport.EnvPolicy{}, "HOME=/h", "API_KEY MODE", ""},
		{"an empty list", []string{}, sallyport.EnvPolicy{Set: map[string]string{"PATH": "/usr/bin:/bin"}}, "", "", ""},
		{"its own", []string{path, "OTHER=1", "OTHER_TOKEN=t"}, sallyport.EnvPolicy{}, "OTHER=1 OTHER_TOKEN=t", "", ""},
		{"added to all", append(slices.Clone(mine), "OTHER=1", "OTHER_TOKEN=t"), sallyport.EnvPolicy{}, "HOME=/h OTHER=1 OTHER_TOKEN=t", "API_KEY MODE", ""},
		{"added once more", append(slices.Clone(mine), "API_KEY=k"), sallyport.EnvPolicy{}, "API_KEY=k HOME=/h", "MODE", ""},
		{"changed", append(slices.Clone(mine), "MODE=other"), sallyport.EnvPolicy{}, "HOME=/h MODE=other", "API_KEY", ""},
		{"a copy that was edited", []string{path, "HOME=/x", "MODE=test", "API_KEY=k"}, sallyport.EnvPolicy{}, "HOME=/x MODE=test", "API_KEY", ""},
		{"a copy, and a name", []string{path, "API_KEY=k"}, sallyport.EnvPolicy{Named: []string{"API_KEY"}}, "API_KEY=k", "", ""},
		{"another value of a secret", []string{path, "API_KEY=z"}, sallyport.EnvPolicy{}, "API_KEY=z", "", ""},
		{"nothing is inherited", []string{path, "OTHER=1"}, sallyport.EnvPolicy{Inherit: sallyport.InheritNone}, "OTHER=1", "", ""},
		{"set wins", []string{path, "OTHER=1"}, sallyport.EnvPolicy{Set: map[string]string{"OTHER": "2"}}, "OTHER=2", "", ""},
		{"excluded", []string{path, "OTHER=1"}, sallyport.EnvPolicy{Exclude: []string{"oth*"}}, "", "", `Cmd.Env: cannot set the variable "OTHER": Exclude of the policy matches it`},
		{"not included", []string{path, "OTHER=1"}, sallyport.EnvPolicy{IncludeOnly: []string{"PATH"}}, "", "", `"OTHER": IncludeOnly of the policy does not match it`},
		{"of the runtime only", []string{path, "OTHER=1"}, sallyport.EnvPolicy{RuntimeOnly: []string{"OTHER"}}, "", "", `"OTHER": RuntimeOnly of the policy has it`},
		{"of no command", []string{path, "OpenAI_Identity_Token_File=f"}, sallyport.EnvPolicy{}, "", "", "no command gets it"},
		{"no variable", []string{path, "hidden"}, sallyport.EnvPolicy{}, "", "", "entry 2 is not NAME=value"},
		{"a name that cannot be", []string{path}, sallyport.EnvPolicy{Set: map[string]string{"A=B": "hidden"}}, "", "", "the name contains '='"},
		{"NUL of the caller", nil, sallyport.EnvPolicy{Base: []string{path, "OTHER=hidden\x00"}}, "", "", `variable "OTHER"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &sallyport.Runner{Policy: sandbox.FullAccess()}
			defer r.Close()
			if test.policy.Base == nil {
				test.policy.Base = mine
			}
			c := sallyport.Command("/usr/bin/env")
			c.Dir, c.Env, c.EnvPolicy = "/", test.env, test.policy
			res, err := r.Run(t.Context(), c)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) ||
					strings.Contains(err.Error(), "hidden") {
					t.Errorf("the error is %v, want one with %q and without values", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(res.Stdout.String()) {
				if name, _, _ := strings.Cut(line, "="); slices.Contains([]string{"HOME", "MODE", "OTHER",
					"OTHER_TOKEN", "API_KEY"}, name) {
					got = append(got, strings.TrimSpace(line))
				}
			}
			slices.Sort(got)
			if s := strings.Join(got, " "); s != test.want {
				t.Errorf("it got %q, want %q", s, test.want)
			}
			if s := strings.Join(res.Withheld, " "); s != test.withheld {
				t.Errorf("withheld %q, want %q", s, test.withheld)
			}
		})
	}
}

// TestEnvOfProcess has no Base: the variables are those of this process.
func TestEnvOfProcess(t *testing.T) {
	t.Setenv("OWN_API_KEY", "hidden")
	t.Setenv("OWN_MODE", "test")
	r := &sallyport.Runner{Policy: sandbox.FullAccess()}
	defer r.Close()
	edited := slices.DeleteFunc(os.Environ(),
		func(e string) bool { return strings.HasPrefix(e, "OWN_MODE=") })
	for name, env := range map[string][]string{"none": nil, "all and more": append(os.Environ(), "MORE=1"),
		"edited": append(edited, "MORE=1")} {
		c := sallyport.Command("/usr/bin/env")
		c.Dir, c.Env = "/", env
		res, err := r.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if out := res.Stdout.String(); strings.Contains(out, "hidden") || strings.Contains(out, "OWN_MODE") ||
			strings.Contains(out, "MORE=1") != (env != nil) {
			t.Errorf("%s: it got %s", name, out)
		}
	}
}

// TestEnvPolicyJSON uses the names of the configuration that other agents have, too.
func TestEnvPolicyJSON(t *testing.T) {
	const text = `{"inherit":"all","ignore_default_excludes":true,"exclude":["A*"],"set":{"B":"1"},"include_only":["C"]}`
	var p sallyport.EnvPolicy
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	want := sallyport.EnvPolicy{
		Inherit: sallyport.InheritAll, KeepSecrets: true, Exclude: []string{"A*"},
		Set: map[string]string{"B": "1"}, IncludeOnly: []string{"C"},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
	if out, err := json.Marshal(p); err != nil || string(out) != text {
		t.Errorf("written as %s, %v; want %s", out, err, text)
	}
	if err := json.Unmarshal([]byte(`{"inherit":"some"}`), &p); err == nil {
		t.Error("an unknown inherit value was accepted")
	}
	if _, err := json.Marshal(sallyport.EnvPolicy{Inherit: 9}); err == nil {
		t.Error("an unknown inherit value was written")
	}
	for i, want := range map[sallyport.EnvInherit]string{sallyport.InheritNone: "none",
		sallyport.InheritCore: "core"} {
		text, err := i.MarshalText()
		var back sallyport.EnvInherit
		if backErr := back.UnmarshalText(text); err != nil || backErr != nil || i.String() != want ||
			string(text) != want || back != i {
			t.Errorf("%v is written as %q (%v) and read as %v (%v), want %s", i, text, err, back,
				backErr, want)
		}
	}
	if got := sallyport.EnvInherit(9).String(); got != "inherit(9)" {
		t.Errorf("an unknown value is %q", got)
	}
}
