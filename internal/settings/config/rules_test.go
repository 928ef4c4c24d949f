// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/names/reach"
)

// TestRulesInReach: rules that settings name in the workspace, where a command could have
// written them, do not load; those beside the settings, and those of a flag, do.
func TestRulesInReach(t *testing.T) {
	user, work := t.TempDir(), t.TempDir()
	const rule = "prefix_rule(['x'], sandbox='outside')\n"
	for _, name := range []string{filepath.Join(user, "own.rules"), filepath.Join(work, "planted.rules")} {
		if err := os.WriteFile(name, []byte(rule), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(user, "link.rules")
	planted := filepath.Join(work, "planted.rules")
	if err := os.Symlink(planted, link); err != nil {
		t.Fatal(err)
	}
	text := "rules = ['own.rules', 'link.rules', '" + planted + "']\n"
	if err := os.WriteFile(filepath.Join(user, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(Input{User: user, Dir: work, Environ: []string{"SALLYPORT_RULES=planted.rules"}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Resolve(Values{"rules": {{Text: "./planted.rules",
		Origin: Origin{Layer: Flags, File: "--rules"}}}})
	if err != nil {
		t.Fatal(err)
	}
	var refused, read []string
	for _, s := range e.Rules() {
		switch {
		case errors.As(s.Err, new(*reach.Error)):
			refused = append(refused, s.Name)
		case s.Err == nil && string(s.Text) == rule:
			read = append(read, s.Name)
		default:
			t.Errorf("%s: %v", s.Name, s.Err)
		}
	}
	if want := []string{link, planted, planted}; !slices.Equal(refused, want) {
		t.Errorf("refused %q, want %q", refused, want)
	}
	if want := []string{filepath.Join(user, "own.rules"), planted}; !slices.Equal(read, want) {
		t.Errorf("read %q, want %q", read, want)
	}
}
