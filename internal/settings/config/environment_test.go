// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEnvironmentWidens: one line says what variables open, and only if they do.
func TestEnvironmentWidens(t *testing.T) {
	for _, c := range []struct {
		name, user string
		environ    []string
		flags      Values
		want       string
	}{
		{"nothing", "", []string{"SALLYPORT_LEVEL=native"}, nil, ""},
		{"a wider mode", "", []string{"SALLYPORT_PROFILE=full-access"}, nil, "SALLYPORT_PROFILE=full-access"},
		{"a narrower mode", "", []string{"SALLYPORT_PROFILE=read-only"}, nil, ""},
		{"the same mode", "sandbox = 'full-access'", []string{"SALLYPORT_PROFILE=full-access"}, nil, ""},
		{"a profile that opens", "[profiles.p]\nextends = 'q'\n[profiles.q]\nextends = 'read-only'\nwrite = ['/usr']", []string{"SALLYPORT_PROFILE=p"}, nil, "SALLYPORT_PROFILE=p"},
		{"a profile that does not", "[profiles.p]\nextends = 'read-only'\ndeny = ['/usr']", []string{"SALLYPORT_PROFILE=p"}, nil, ""},
		{"a flag decides", "", []string{"SALLYPORT_PROFILE=full-access"}, Values{"sandbox": {{"read-only", Origin{Layer: Flags, File: "-s"}}}}, ""},
		{"paths and rules", "", []string{"SALLYPORT_WRITE=/usr", "SALLYPORT_RULES=/x.rules"}, nil, "SALLYPORT_RULES=/x.rules, SALLYPORT_WRITE=/usr"},
		{"the built-in rules", "", []string{"SALLYPORT_RULES=builtin:read-only"}, nil, ""},
		{"paths to read", "", []string{"SALLYPORT_READ=/usr"}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(c.user), 0o600); err != nil {
				t.Fatal(err)
			}
			config, err := Load(Input{User: dir, Dir: dir, Environ: c.environ})
			if err != nil {
				t.Fatal(err)
			}
			e, err := config.Resolve(c.flags)
			if err != nil {
				t.Fatal(err)
			}
			const begin = "the environment widens what commands may do: "
			got := ""
			for _, n := range e.Notes {
				if rest, ok := strings.CutPrefix(n, begin); ok {
					got += rest
				}
			}
			if got != c.want {
				t.Errorf("%q, want %q; %q", got, c.want, e.Notes)
			}
		})
	}
}
