// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/apply"
	"github.com/sallyport-dev/sallyport/internal/linux/changes"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestDropLast: a command of a shared sandbox that does not start, and goes last, leaves what others staged.
func TestDropLast(t *testing.T) {
	s, dir := newStore(t), t.TempDir()
	policy := sandbox.WorkspaceWrite(dir).Bind(sandbox.Places{Dir: dir})
	st, spec := Session{Shared: true}, &executor.Spec{Dir: dir, Policy: policy, Stage: &executor.Staging{}}
	must(t, st.open(s.State, spec, spec.Stage))
	st.users = 2
	id, err := apply.Identify(dir)
	must(t, err)
	must(t, st.stage.Begin(PolicyOf(policy, dir, ""), []Root{{Path: dir, ID: id}}, time.Now(), true))
	must(t, st.Take(nil, new(plan.Plan)))
	must(t, os.WriteFile(filepath.Join(st.stage.Upper(0), "made"), nil, 0o600))
	left, err := st.Finish()
	if err != nil || left.Total != 1 {
		t.Fatalf("%+v, %v", left, err)
	}
	st.Drop(false)
	again, err := s.Open(dir, left.ID)
	must(t, err)
	if _, err := os.Stat(filepath.Join(again.Upper(0), "made")); err != nil {
		t.Error(err)
	}
	must(t, again.Lock()) // nobody has it
	again.Unlock()
}

// TestAccessLists: those of a directory and of a single file are in the stage, so that they are no change,
// and apply takes none away.
func TestAccessLists(t *testing.T) {
	list := binary.LittleEndian.AppendUint32(nil, 2) // the version; then kind, rights and user of each entry
	for _, e := range [][2]uint16{{0x01, 7}, {0x02, 4}, {0x04, 5}, {0x10, 5}, {0x20, 0}} {
		user := uint32(1<<32 - 1)
		if e[0] == 0x02 {
			user = 65534
		}
		list = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(list, e[0]), e[1])
		list = binary.LittleEndian.AppendUint32(list, user)
	}
	s, dir := newStore(t), t.TempDir()
	file := filepath.Join(dir, "f")
	must(t, os.WriteFile(file, []byte("text"), 0o600))
	lists := map[string]string{file: "system.posix_acl_access", dir: "system.posix_acl_default"}
	for at, name := range lists {
		if err := unix.Setxattr(at, name, list, 0); !errors.Is(err, unix.ENOTSUP) { // it has some
			must(t, err)
		}
	}
	st := used(t, s, dir, executor.Staging{})
	id, err := apply.Identify(dir)
	must(t, err)
	roots := []Root{{Path: dir, ID: id}, {Path: file, File: true, ID: id}}
	must(t, st.Begin(Policy{Dir: dir, Entries: []Entry{}}, roots, time.Now(), true))
	all, base, err := st.Changes()
	must(t, err)
	entries, err := changes.Read(t.Context(), all, base)
	must(t, err)
	for _, e := range entries {
		t.Errorf("%s %s in %s", e.Kind, e.Path, e.Root)
	}
	st.Unlock()
}
