// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package runargs

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/reach"
)

// TestSettingsInReach: settings in the workspace are refused, and none are read where there are none.
func TestSettingsInReach(t *testing.T) {
	home := t.TempDir()
	env := func(name string) string { return map[string]string{"HOME": home}[name] }
	dir := home + "/.config/sallyport"
	check := func(workspace, want string, refused bool) {
		t.Helper()
		got, err := configFor(env, workspace)
		var seen *reach.Error
		if got != want || errors.As(err, &seen) != refused || err != nil && !strings.Contains(err.Error(), "--config FILE") {
			t.Errorf("in %s: %q, %v", workspace, got, err)
		}
	}
	check(home, "", false)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	check(home, "", false)
	if err := os.WriteFile(dir+"/config.toml", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	check(home, "", true)
	check(home+"/elsewhere", dir, false)
	env = func(string) string { return "" }
	check(home, "", false)
}
