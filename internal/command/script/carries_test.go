// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"slices"
	"testing"
)

// TestCarries: what the values of variables lead to.
func TestCarries(t *testing.T) {
	for _, c := range []struct {
		variable, value string
		programs, paths []string
		code            bool
	}{
		{"LANG", "$(touch x)", nil, nil, false},
		{"BASH_ENV", "", nil, nil, false},
		{"BASH_ENV", "/etc/x", nil, []string{"/etc/x"}, false},
		{"BASH_ENV", "$(touch x)", nil, []string{"$(touch x)"}, true},
		{"ENV", "$HOME/.shrc", nil, []string{"$HOME/.shrc"}, true},
		{"BASH_FUNC_ls%%", "() { :; }", nil, nil, true},
		{"PS4", "+ ", nil, nil, false},
		{"PS4", "`touch x` ", nil, nil, true},
		{"EDITOR", "vim", []string{"vim"}, nil, false},
		{"EDITOR", "code --wait", []string{"code"}, nil, false},
		{"PAGER", "less; touch x", []string{"less", "touch"}, nil, false},
		{"PAGER", "less $(touch x)", nil, nil, true},
		{"LESSOPEN", "| /usr/bin/lesspipe %s", []string{"/usr/bin/lesspipe"}, nil, false},
		{"GIT_SSH_COMMAND", "ssh -i /k", []string{"ssh"}, nil, false},
		{"LD_PRELOAD", "libx.so /a.so", nil, []string{"/a.so"}, false},
		{"LD_LIBRARY_PATH", "/a:b", nil, []string{"/a", "b"}, false},
		{"LD_LIBRARY_PATH", "/a:", nil, []string{"/a", "."}, false},
		{"PYTHONPATH", "src", nil, []string{"src"}, false},
		{"PYTHONSTARTUP", "x.py", nil, []string{"x.py"}, false},
		{"NODE_OPTIONS", "--max-old-space-size=4096", nil, nil, false},
		{"NODE_OPTIONS", "--require ./x", nil, []string{"./x"}, true},
		{"NODE_OPTIONS", "--import=data:text/javascript,x", nil, []string{"data:text/javascript,x"}, true},
		{"PERL5OPT", "-Mx", nil, nil, true},
		{"RUBYOPT", "-W0", nil, nil, false},
		{"JAVA_TOOL_OPTIONS", "-Xmx1g -javaagent:/a.jar", nil, []string{"-javaagent:/a.jar"}, true},
		{"GOFLAGS", "-mod=mod", nil, nil, false},
		{"GOFLAGS", "-toolexec=x", nil, nil, true},
		{"GIT_CONFIG_COUNT", "1", nil, nil, false},
		{"GIT_CONFIG_KEY_0", "safe.directory", nil, nil, false},
		{"GIT_CONFIG_KEY_0", "core.fsmonitor", nil, nil, true},
		{"GIT_CONFIG_PARAMETERS", "'a.b=c'", nil, nil, true},
	} {
		commands, paths, code := Carries(c.variable, c.value)
		var programs []string
		for _, p := range commands {
			programs = append(programs, p.Args[0])
		}
		if !slices.Equal(programs, c.programs) || !slices.Equal(paths, c.paths) || code != c.code {
			t.Errorf("%s=%s: %q, %q, %v", c.variable, c.value, programs, paths, code)
		}
	}
}
