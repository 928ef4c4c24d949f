// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestReplacedMeanwhile: a file or directory that another program puts in the place of one that is updated,
// at whatever moment, is there afterwards.
func TestReplacedMeanwhile(t *testing.T) {
	t.Parallel()
	if err := exchanges(t); err != nil { // as some network file systems
		t.Log("no names are exchanged here, so such a file can be lost: ", err)
		return
	}
	for kind, test := range map[string]struct {
		replace func(tree, name string) error
		want    string
	}{
		"file": {func(tree, name string) error {
			return os.Rename(filepath.Join(tree, "theirs"), name)
		}, "theirs\n"},
		"directory": {func(tree, name string) error {
			return errors.Join(os.Remove(filepath.Join(tree, "theirs")), os.Remove(name), os.Mkdir(name, 0o700))
		}, "dir"},
	} {
		for at := 1; ; at++ {
			tree, journals := testenv.RealTemp(t), testenv.RealTemp(t)
			name := filepath.Join(tree, "a")
			put(t, name, "a\nb\n")
			put(t, filepath.Join(tree, "theirs"), "theirs\n")
			plan := makePlan(t, "*** Begin Patch\n*** Update File: a\n@@\n-b\n+c\n*** End Patch", tree)
			n := 0
			err := plan.apply(context.Background(), journals, func() {
				if n++; n == at {
					if err := test.replace(tree, name); err != nil {
						t.Error(err)
					}
				}
			})
			if n < at {
				break
			}
			got := testenv.Contents(t, tree)
			if len(got) != 1 || !strings.Contains(got["a"], test.want) {
				t.Errorf("a %s at %d: %v, %v", kind, at, got, err)
			}
		}
	}
}

// exchanges tells why names cannot be exchanged where tests write.
func exchanges(t *testing.T) error {
	t.Helper()
	dir := testenv.RealTemp(t)
	put(t, filepath.Join(dir, "a"), "a")
	put(t, filepath.Join(dir, "b"), "b")
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return safefile.Exchange(f.Fd(), "a", "b")
}
