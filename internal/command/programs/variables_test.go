// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import "testing"

// TestVariables names variables that run code, and those that do so whatever a program is told.
func TestVariables(t *testing.T) {
	for name, want := range map[string]struct{ runs, replaces bool }{
		"BASH_ENV": {true, true}, "ENV": {true, true}, "BASH_FUNC_ls%%": {true, true}, "LD_PRELOAD": {true, true}, "LD_NEW": {true, true},
		"GIT_CONFIG_COUNT": {true, true}, "GIT_CONFIG_KEY_3": {true, true}, "GIT_CONFIG_GLOBAL": {true, true}, "NODE_OPTIONS": {true, true},
		"PYTHONSTARTUP": {true, true}, "PERL5OPT": {true, true}, "PS4": {true, false}, "GIT_SSH_COMMAND": {true, false}, "PAGER": {true, false},
		"CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER": {true, false},
		"PATH": {}, "HOME": {}, "LANG": {}, "FOO": {}, "TERM": {}, "GIT_AUTHOR_NAME": {}, "CARGO_TARGET_DIR": {}, "": {},
	} {
		if RunsCode(name) != want.runs || Replaces(name) != want.replaces {
			t.Errorf("%s: runs %v, replaces %v; want %v", name, RunsCode(name), Replaces(name), want)
		}
	}
}
