// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"os"
	"strings"
	"testing"
)

// hidingNames are variables that change what tools do behind a test's back: extra
// flags, start-up files, search paths, other repositories.
var hidingNames = []string{
	"BASH_ENV", "CDPATH", "ENV", "GLOBIGNORE", "POSIXLY_CORRECT", "PS4", "SHELLOPTS", "BASHOPTS",
	"CC", "CFLAGS", "CPATH", "CPPFLAGS", "CXX", "CXXFLAGS", "LDFLAGS", "LIBRARY_PATH",
	"MAKEFLAGS", "MAKELEVEL",
	"GOARCH", "GOENV", "GOEXPERIMENT", "GOFLAGS", "GOOS", "GOWORK", "CGO_ENABLED", "GODEBUG",
	"LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD",
	"NODE_OPTIONS", "NODE_PATH", "PERL5LIB", "PERL5OPT", "RUBYLIB", "RUBYOPT",
	"INIT_CWD", "VIRTUAL_ENV",
}

// hidingPrefixes are families of such variables.
var hidingPrefixes = []string{"GIT_", "PYTHON", "npm_", "NPM_CONFIG_", "BASH_FUNC_", "SALLYPORT_"}

// keptPrefix are the product's own variables that steer tests; they stay.
const keptPrefix = "SALLYPORT_TEST_"

// Clean unsets, until t ends, the variables that hide failures: compiler and
// interpreter flags, everything of git, npm and Python, preloaded libraries,
// shell start-up files, and the product's own settings. Like [testing.T.Setenv]
// it changes the whole process and panics in a parallel test; such a test gives
// [Environ] to the commands it starts instead.
func Clean(t testing.TB) {
	t.Helper()
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !hides(name) {
			continue
		}
		t.Setenv(name, "") // remembers the value and restores it at the end
		if err := os.Unsetenv(name); err != nil {
			t.Fatalf("testenv: unset %s: %v", name, err)
		}
	}
}

// Environ returns the environment of this process, as [os.Environ] does, without
// the variables that [Clean] unsets.
func Environ() []string {
	var kept []string
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); !hides(name) {
			kept = append(kept, entry)
		}
	}
	return kept
}

// hides reports whether Clean takes the variable away.
func hides(name string) bool {
	if strings.HasPrefix(name, keptPrefix) {
		return false
	}
	for _, hiding := range hidingNames {
		if name == hiding {
			return true
		}
	}
	for _, prefix := range hidingPrefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
