// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestWatch: a watch ends when one of its paths is there, in whatever steps it came.
func TestWatch(t *testing.T) {
	testenv.NeedInotify(t)
	for _, test := range []struct {
		name string
		make func(top string) []error
	}{
		{"a file", func(top string) []error { return []error{os.WriteFile(top+"/a/b/c", nil, 0o600)} }},
		{"a file that is moved there", func(top string) []error {
			return []error{os.WriteFile(top+"/x", nil, 0o600), os.Rename(top+"/x", top+"/a/b/c")}
		}},
		{"a directory that is moved there", func(top string) []error {
			return []error{os.MkdirAll(top+"/x/y", 0o700), os.Rename(top+"/x", top+"/d")}
		}},
		{"directories one after another", func(top string) []error {
			return []error{os.Mkdir(top+"/d", 0o700), os.Mkdir(top+"/d/y", 0o700)}
		}},
		{"after the directory was removed", func(top string) []error {
			return []error{os.Remove(top + "/a/b"), os.Mkdir(top+"/a/b", 0o700),
				os.Mkdir(top+"/a/b/c", 0o700)}
		}},
		{"after the directory was moved away", func(top string) []error {
			return []error{os.Rename(top+"/a", top+"/z"), os.MkdirAll(top+"/a/b/c", 0o700)}
		}},
		{"a link", func(top string) []error { return []error{os.Symlink("..", top+"/a/b/c")} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			for range 20 { // with the looks at other moments
				top := t.TempDir()
				check(t, os.MkdirAll(top+"/a/b", 0o700))
				w, err := NewWatch([]string{top + "/a/b/c", top + "/d/y"})
				check(t, err)
				over := make(chan error, 1)
				go func() { over <- w.Wait(t.Context()) }()
				check(t, errors.Join(test.make(top)...))
				check(t, <-over)
			}
		})
	}
}

// TestWatchEnds: a watch ends with its context, and not for what else happens.
func TestWatchEnds(t *testing.T) {
	testenv.NeedInotify(t)
	top := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	w, err := NewWatch([]string{top + "/missing"})
	check(t, err)
	over := make(chan error, 1)
	go func() { over <- w.Wait(ctx) }()
	check(t, errors.Join(os.WriteFile(top+"/other", nil, 0o600), os.Symlink("nothing", top+"/missing"),
		os.Remove(top+"/missing")))
	select {
	case err := <-over:
		t.Errorf("it ended: %v", err)
	default:
	}
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
