// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import "testing"

// TestAlters: which programs a variable has do something else.
func TestAlters(t *testing.T) {
	for _, c := range []struct {
		variable, program string
		alters            bool
	}{
		{"LD_PRELOAD", "cat", true}, {"BASH_ENV", "cat", false}, {"BASH_ENV", "bash", true}, {"PS4", "sh", true}, {"PS4", "cat", false},
		{"GIT_CONFIG_GLOBAL", "git", true}, {"GIT_CONFIG_GLOBAL", "ls", false}, {"PYTHONPATH", "ls", false}, {"PYTHONPATH", "python3.12", true}, {"PAGER", "git", false},
	} {
		if Alters(c.variable, c.program) != c.alters {
			t.Errorf("%s, %s: %v", c.variable, c.program, !c.alters)
		}
	}
}

// TestLogin: shells that read a profile.
func TestLogin(t *testing.T) {
	for _, c := range []struct {
		args  []string
		login bool
	}{
		{[]string{"bash", "-lc", "x"}, true}, {[]string{"bash", "-c", "-l"}, true}, {[]string{"sh", "--login"}, true}, {[]string{"-bash"}, true},
		{[]string{"bash", "-c", "x"}, false}, {[]string{"ls", "-l"}, false},
	} {
		if Login(c.args) != c.login {
			t.Errorf("%q: %v", c.args, !c.login)
		}
	}
}
