// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/approval"
)

// TestLongPath: the limit of socket addresses is no limit of the state directory.
func TestLongPath(t *testing.T) {
	home(t)
	t.Setenv("XDG_STATE_HOME", filepath.Join(os.Getenv("XDG_STATE_HOME"), strings.Repeat("long", 30),
		strings.Repeat("long", 30)))
	p := newPost(t, passes)
	out := p.ask(t, request("abc-1"))
	if err := list(t).Answer("abc-1", approval.Approved, "", ""); err != nil || (<-out).err != nil {
		t.Error(err)
	}
}
