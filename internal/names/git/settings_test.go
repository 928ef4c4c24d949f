// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package git

import (
	"strings"
	"testing"
)

// TestSettings: what settings of each level name is protected in the work tree: directories and
// files present or missing, programs where they exist.
func TestSettings(t *testing.T) {
	for _, test := range []struct {
		name, config string
		files        []string // in the work tree
		want         map[string]string
		not          []string
	}{
		{name: "templates that exist", config: "[init]\ntemplateDir = tpl", files: []string{"tpl/hooks/x"}, want: map[string]string{"tpl": "f"}},
		{name: "templates that are missing", config: "[init]\ntemplateDir = WORK/tpl", want: map[string]string{"tpl": "m"}},
		{name: "attributes", config: "[core]\nattributesFile = WORK/attr", want: map[string]string{"attr": "m"}},
		{name: "attributes that exist", config: "[core]\nattributesFile = attr", files: []string{"attr"}, want: map[string]string{"attr": ""}},
		{name: "a filter", config: "[filter \"x\"]\nclean = ./tools/clean %f", files: []string{"tools/clean"}, want: map[string]string{"tools/clean": ""}},
		{name: "a script of an interpreter", config: "[merge \"m\"]\ndriver = python3 merge.py %O", files: []string{"merge.py"}, want: map[string]string{"merge.py": ""}},
		{name: "a monitor", config: "[core]\nfsmonitor = WORK/mon", files: []string{"mon"}, want: map[string]string{"mon": ""}},
		{name: "an alias for a shell", config: "[alias]\nx = !./run", files: []string{"run"}, want: map[string]string{"run": ""}},
		{name: "a helper for a host", config: "[credential \"https://h.example\"]\nhelper = !./bin/h", files: []string{"bin/h"}, want: map[string]string{"bin/h": ""}},
		{name: "words of git", config: "[alias]\nlg = log --oneline\nst = !git status log", files: []string{"log", "status"}, not: []string{"log", "status"}},
		{name: "a program that is missing", config: "[diff]\nexternal = ./diff", not: []string{"diff"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, level := range []string{"own", "user"} {
				top := tempDir(t)
				work := top + "/work"
				put(t, work+"/.git/HEAD", "ref: refs/heads/main\n")
				for _, name := range test.files {
					put(t, work+"/"+name, "x")
				}
				config := strings.ReplaceAll(test.config, "WORK", work)
				o := Outside{Home: top}
				if level == "own" {
					put(t, work+"/.git/config", config)
				} else {
					put(t, top+"/user", config)
					o.Configs = []string{top + "/user"}
				}
				paths, err := open(t, work).Shut(o)
				if err != nil {
					t.Fatal(err)
				}
				for name, marks := range test.want {
					want(t, paths, work+"/"+name, marks)
				}
				for _, name := range test.not {
					if p, ok := find(paths, work+"/"+name); ok {
						t.Errorf("%s: %+v", level, p)
					}
				}
			}
		})
	}
	t.Run("GIT_TEMPLATE_DIR", func(t *testing.T) {
		o := Surroundings(func(name string) (string, bool) { return "/of/templates", name == "GIT_TEMPLATE_DIR" })
		paths, err := o.Protected()
		if err != nil {
			t.Fatal(err)
		}
		want(t, paths, "/of/templates", "m")
	})
	t.Run("GIT_CONFIG_COUNT", func(t *testing.T) {
		given := map[string]string{
			"GIT_CONFIG_COUNT": "4", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "/of/safe", "GIT_CONFIG_KEY_1": "Init.TemplateDir", "GIT_CONFIG_VALUE_1": "/of/templates",
			"GIT_CONFIG_KEY_2": "core.hooksPath", "GIT_CONFIG_VALUE_2": "/of/hooks", "GIT_CONFIG_KEY_3": "x", "GIT_CONFIG_KEY_4": "core.hooksPath", "GIT_CONFIG_VALUE_4": "/of/more",
		}
		paths, err := Surroundings(func(name string) (string, bool) { v, ok := given[name]; return v, ok }).Protected()
		if err != nil {
			t.Fatal(err)
		}
		want(t, paths, "/of/templates", "m")
		want(t, paths, "/of/hooks", "m")
		for _, name := range []string{"/of/safe", "/of/more"} {
			if p, ok := find(paths, name); ok {
				t.Errorf("%+v", p)
			}
		}
	})
}
