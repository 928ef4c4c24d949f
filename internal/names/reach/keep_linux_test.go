// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"errors"
	"os"
	"testing"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestKeep: the files of a server are read-only where a policy makes them writable, stay denied where it
// denies them, and are refused where no mount keeps them.
func TestKeep(t *testing.T) {
	base := t.TempDir()
	for _, dir := range []string{"ws", "out"} {
		if err := errors.Join(os.Mkdir(base+"/"+dir, 0o700),
			os.WriteFile(base+"/"+dir+"/ca", nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	ws := base + "/ws"
	if err := errors.Join(os.Symlink(base+"/out/ca", ws+"/link"), os.Symlink(ws+"/ca", base+"/out/in"),
		os.WriteFile(ws+"/two", nil, 0o600), os.Link(ws+"/two", base+"/out/two")); err != nil {
		t.Fatal(err)
	}
	managed := sandbox.ReadOnly().WithEntries(sandbox.PathEntry(ws, sandbox.LevelWrite))
	for _, c := range []struct {
		name, file string
		policy     sandbox.Policy
		at         string
		want       sandbox.Level
		refused    bool
	}{
		{"out of reach", base + "/out/ca", managed, base + "/out/ca", sandbox.LevelRead, false},
		{"in reach", ws + "/ca", managed, ws + "/ca", sandbox.LevelRead, false},
		{"by a link out of reach", base + "/out/in", managed, ws + "/ca", sandbox.LevelRead, false},
		{"by a link in reach", ws + "/link", managed, "", 0, true},
		{"with another name", ws + "/two", managed, "", 0, true},
		{"missing", ws + "/none", managed, "", 0, true},
		{"denied", ws + "/ca", managed.WithEntries(sandbox.PathEntry(ws+"/ca", sandbox.LevelDeny)), ws + "/ca", sandbox.LevelDeny, false},
		{"nothing restricted", ws + "/ca", sandbox.FullAccess(), ws + "/ca", sandbox.LevelWrite, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Area{Policy: c.policy, Workspace: ws}.Keep([]string{c.file})
			if (err != nil) != c.refused || err == nil && p.LevelAt(c.at) != c.want {
				t.Errorf("%v, %v", err, p.LevelAt(c.at))
			}
		})
	}
}
