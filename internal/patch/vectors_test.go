// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"fmt"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

func TestVectors(t *testing.T) {
	t.Parallel()
	testenv.EachPatchVector(t, "testdata/vectors", func(t *testing.T, tree, dir, text string) (string, bool) {
		out, err := applyText(text, Options{Dir: dir, Allow: within(tree)}, testenv.RealTemp(t))
		if err != nil {
			return fmt.Sprintln(err), true
		}
		return out, false
	})
}

// applyText does what the command does.
func applyText(text string, o Options, journals string) (string, error) {
	p, err := Parse(text)
	if err != nil {
		return "", err
	}
	plan, err := Make(context.Background(), p, o)
	if err != nil {
		return "", err
	}
	defer plan.Close()
	return plan.Summary(), plan.Apply(context.Background(), journals)
}

// within allows what lies in a directory.
func within(dir string) func(string) bool {
	return func(path string) bool { return path != dir && safefile.Within(path, dir) }
}
