// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package dirs

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// Watch calls changed when a name in one of the directories that list returns comes or goes, or a file in
// them was written and closed (on macOS only names count), until end is called. Directories that cannot be
// read are left out until the next change. It is not supported on Windows.
func Watch(list func() []string, changed func()) (end func(), err error) {
	w, err := newWatch()
	if err != nil {
		return nil, err
	}
	var work sync.WaitGroup
	end = func() {
		w.close()
		work.Wait()
	}
	first := w.add(list())
	work.Go(func() {
		for w.wait() == nil {
			_ = w.add(list()) // what cannot be watched now may be after the next change
			changed()
		}
	})
	if first != nil {
		end()
		return nil, first
	}
	return end, nil
}

// StagesName is the name of the directory of all stages in the state directory.
const StagesName = "stages"

// Stages returns the directory of all stages of this user, which it makes, and that of each; none where there
// is no state directory.
func Stages() (all []string) {
	state, err := Dir()
	if err != nil {
		return nil
	}
	dir := filepath.Join(state, StagesName)
	if root, err := safefile.MakeDirs(dir); err == nil { // else there are none to see
		_ = root.Close()
	}
	found, _ := os.ReadDir(dir) // likewise
	all = []string{dir}
	for _, e := range found {
		all = append(all, filepath.Join(dir, e.Name()))
	}
	return all
}
