// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package userdirs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/credentials"
)

func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestConfig(t *testing.T) {
	for _, tt := range []struct{ name, xdg, home, want string }{
		{"home", "", "/h", "/h/.config/sallyport"},
		{"configuration home", "/c", "/h", "/c/sallyport"},
		{"relative configuration home", "c", "/h", "/h/.config/sallyport"},
		{"no home", "/c", "", "/c/sallyport"},
		{"relative home", "", "h", ""},
		{"nothing", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := Config(environment(map[string]string{"XDG_CONFIG_HOME": tt.xdg, "HOME": tt.home}))
			if got != tt.want || ok != (tt.want != "") {
				t.Errorf("%q, %v, want %q", got, ok, tt.want)
			}
		})
	}
}

// TestProtected: what later runs with another environment read is protected as well.
func TestProtected(t *testing.T) {
	t.Setenv("HOME", "/elsewhere")
	got := Protected(environment(map[string]string{"XDG_CONFIG_HOME": "/c", "HOME": "/elsewhere"}), credentials.Homes())
	for _, want := range []string{"/c/sallyport", "/elsewhere/.config/sallyport", "/etc/sallyport", usual()} {
		if want != "" && !slices.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{"/f/../g": "/g", "x/relative": wd + "/x/relative", "~/x": "/elsewhere/x", "": ""} {
		if got := ProtectedFile(environment(map[string]string{"SALLYPORT_CONFIG": value, "HOME": "/elsewhere"})); got != want {
			t.Errorf("SALLYPORT_CONFIG=%s: %q, want %q", value, got, want)
		}
	}
}

// TestConfigFor: settings in the workspace are refused, and none are read where there are none.
func TestConfigFor(t *testing.T) {
	home := t.TempDir()
	env := environment(map[string]string{"HOME": home})
	dir := home + "/.config/sallyport"
	check := func(workspace, want string, refused bool) {
		t.Helper()
		got, err := ConfigFor(env, workspace)
		var reach *ReachError
		if got != want || errors.As(err, &reach) != refused {
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
	env = environment(nil)
	check(home, "", false)
}

// TestInReach: settings in a workspace are refused, whatever links lead to them; those of the
// usual directory are not, because every run protects them.
func TestInReach(t *testing.T) {
	home := credentials.DatabaseHome()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/ws/cfg/sallyport", "/out/sallyport"} {
		if err := os.MkdirAll(base+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, dest := range map[string]string{
		"/in": base + "/ws/cfg", "/ws/out": base + "/out", "/alias": "ws", "/chain": "ws/out", "/ws/loop": "loop", "/ws/home": filepath.Join(home, ".config"),
	} {
		if err := os.Symlink(dest, base+name); err != nil {
			t.Fatal(err)
		}
	}
	type reachCase struct {
		name, path, workspace string
		refused               bool
	}
	cases := []reachCase{
		{"outside", base + "/out/sallyport", base + "/ws", false},
		{"inside", base + "/ws/cfg/sallyport", base + "/ws", true},
		{"the workspace itself", base + "/ws", base + "/ws", true},
		{"a name that only begins alike", base + "/ws2/sallyport", base + "/ws", false},
		{"missing", base + "/ws/none/at/all/sallyport", base + "/ws", true},
		{"missing, outside", base + "/none/sallyport", base + "/ws", false},
		{"dots", base + "/out/../ws/cfg/sallyport", base + "/ws", true},
		{"a link outside leads in", base + "/in/sallyport", base + "/ws", true},
		{"a link inside leads out", base + "/ws/out/sallyport", base + "/ws", true},
		{"a link to a link inside", base + "/chain/sallyport", base + "/ws", true},
		{"a loop inside", base + "/ws/loop/sallyport", base + "/ws", true},
		{"the workspace by a link", base + "/ws/cfg/sallyport", base + "/alias", true},
		{"a missing workspace", base + "/ws/new/sallyport", base + "/alias/new", true},
		{"HOME set to the workspace", base + "/ws/.config/sallyport", base + "/ws", true},
	}
	if filepath.IsAbs(home) { // else this user has no usual directory
		cases = append(cases, []reachCase{
			{"the usual directory in the home as the workspace", home + "/.config/sallyport", home, false},
			{"a file in it", home + "/.config/sallyport/config.toml", home, false},
			{"another directory in the home as the workspace", home + "/other/sallyport", home, true},
			{"the usual directory by a link inside", base + "/ws/home/sallyport", base + "/ws", true},
		}...)
	}
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			err := InReach(tt.path, tt.workspace)
			var reach *ReachError
			if errors.As(err, &reach) != tt.refused || err != nil && !strings.Contains(err.Error(), "--config FILE") {
				t.Errorf("%v", err)
			}
		})
	}
}
