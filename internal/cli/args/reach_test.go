// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package args

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/settings/trust"
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
		if got != want || errors.As(err, &seen) != refused || err != nil &&
			!strings.Contains(err.Error(), "--config FILE") {
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

// TestTrustedFilesStay: nothing runs where files were trusted that are others now, or gone, also by
// another directory in the place of theirs.
func TestTrustedFilesStay(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for name, change := range map[string]func(dir string) error{
		"changed": func(dir string) error {
			return os.WriteFile(dir+"/.sallyport/config.toml", []byte("quiet = true\n"), 0o600)
		},
		"removed":     func(dir string) error { return os.Remove(dir + "/.sallyport/config.toml") },
		"all removed": func(dir string) error { return os.RemoveAll(dir + "/.sallyport") },
		"a link": func(dir string) error {
			return errors.Join(os.RemoveAll(dir+"/.sallyport"), os.Symlink("/etc", dir+"/.sallyport"))
		},
		"another directory": func(dir string) error { return errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o755)) },
		"":                  func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "p")
			if err := errors.Join(os.MkdirAll(dir+"/.sallyport", 0o755),
				os.WriteFile(dir+"/.sallyport/config.toml", []byte("deny = ['**/.env']\n"),
					0o600)); err != nil {
				t.Fatal(err)
			}
			p, err := trust.Read(dir)
			if err == nil {
				err = p.Trust()
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
			var changed *trust.ChangedError
			if _, _, err := projectFiles(dir); errors.As(err, &changed) != (name != "") || err != nil &&
				!strings.Contains(err.Error(), "trust --revoke ") {
				t.Errorf("%v", err)
			}
			if _, err := trust.Revoke(dir); err != nil {
				t.Fatal(err)
			}
			if _, _, err := projectFiles(dir); err != nil {
				t.Errorf("after revoking: %v", err)
			}
		})
	}
}
