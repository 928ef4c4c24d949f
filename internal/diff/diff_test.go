// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"bytes"
	"testing"
)

func TestX(t *testing.T) {
	for range 2 {
	t.Log(string(Hunks([]byte("a\nb\nc\na\nb\nb\na\n"), []byte("c\nb\na\nb\na\nc"))))
	t.Log(string(Patch("x y\n", File{ModeFile, []byte("a\n")}, File{ModeLink, []byte("zu")})))
	}
	_ = bytes.Equal
}
