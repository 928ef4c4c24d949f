// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestFilesOfOthers: a write of root that fails inside because a file belongs to another user is a
// denial with that reason, and one that the mode allows is none.
func TestFilesOfOthers(t *testing.T) {
	testenv.NeedRoot(t)
	testenv.NeedSeccomp(t)
	dir := realTemp(t)
	for _, tt := range []struct {
		name, path, script string
		mode               os.FileMode
		denied             bool
	}{
		{"create", "", "echo x >f", 0o755, true},
		{"make a directory", "", "mkdir d", 0o755, true},
		{"create where all may", "", "echo x >f", 0o777, false},
		{"append", "/f", "echo x >>f", 0o644, true},
		{"append where all may", "/f", "echo x >>f", 0o666, false},
		{"truncate", "/f", "truncate -s 1 f", 0o644, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at, err := os.MkdirTemp(dir, "")
			must(t, err)
			if tt.path != "" {
				must(t, os.WriteFile(at+tt.path, nil, 0o600))
			}
			must(t, unix.Chown(at+tt.path, 1, 1))
			must(t, os.Chmod(at+tt.path, tt.mode))
			text, report := observedRun(t, Config{}, nil, "/bin/sh", "-c",
				"cd "+at+"; ("+tt.script+") 2>/dev/null && echo done || echo failed")
			want := "done"
			if tt.denied {
				want = "failed"
			}
			if text != want || (len(report.Denials) == 1) != tt.denied {
				t.Fatalf("%q, %+v", text, report.Denials)
			}
			if tt.denied && (report.Denials[0].Rule != ruleOthers || report.Denials[0].Errno != "EACCES" ||
				!report.Denials[0].NoGrant) {
				t.Errorf("%+v", report.Denials[0])
			}
		})
	}
}
