// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package dirs

import (
	"os"
	"slices"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/names/grants"
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
func TestProtectedDirs(t *testing.T) {
	t.Setenv("HOME", "/elsewhere")
	got := ProtectedDirs(environment(map[string]string{"XDG_CONFIG_HOME": "/c", "HOME": "/elsewhere"}),
		grants.Homes())
	for _, want := range []string{"/c/sallyport", "/elsewhere/.config/sallyport", "/etc/sallyport",
		Usual()[len(Usual())-1]} {
		if want != "" && !slices.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{"/f/../g": "/g", "x/relative": wd + "/x/relative",
		"~/x": "/elsewhere/x", "": ""} {
		if got := ProtectedFile(environment(map[string]string{"SALLYPORT_CONFIG": value,
			"HOME": "/elsewhere"})); got != want {
			t.Errorf("SALLYPORT_CONFIG=%s: %q, want %q", value, got, want)
		}
	}
}
