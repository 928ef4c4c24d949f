// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package safefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReplaceLeft: what a killed process has left is removed, and what another one writes, or is no file of
// ours, stays.
func TestReplaceLeft(t *testing.T) {
	for name, test := range map[string]struct {
		make func(path string) (release func(), err error)
		busy bool
	}{
		"nothing": {func(string) (func(), error) { return func() {}, nil }, false},
		"left over": {func(path string) (func(), error) {
			return func() {}, os.WriteFile(path, []byte("half"), 0o600)
		}, false},
		"held": {func(path string) (func(), error) {
			f, err := os.Create(path)
			if err != nil {
				return nil, err
			}
			release, ok := hold(f)
			if !ok {
				t.Error("it is held already")
			}
			return release, f.Close() // it stays held
		}, true},
		"a link": {func(path string) (func(), error) {
			return func() {}, os.Symlink("file", path)
		}, true},
		"a directory": {func(path string) (func(), error) { return func() {}, os.Mkdir(path, 0o700) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			file := filepath.Join(dir, "file")
			if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			release, err := test.make(file + unfinishedExt)
			if err != nil {
				t.Fatal(err)
			}
			err = ReplaceIn(root, "file", []byte("old"), []byte("new"), 0o600, nil)
			text, _ := os.ReadFile(file)
			if test.busy != (err != nil && strings.Contains(err.Error(), "another sallyport")) ||
				test.busy != (string(text) == "old") {
				t.Errorf("%v, %q", err, text)
			}
			if _, err := os.Lstat(file + unfinishedExt); (err == nil) != test.busy {
				t.Errorf("what is being written: %v", err)
			}
			release()
		})
	}
}
