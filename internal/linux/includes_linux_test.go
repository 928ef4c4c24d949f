// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestIncludes: which files of root ssh's system configuration includes, and that ssh accepts.
func TestIncludes(t *testing.T) {
	testenv.NeedRoot(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	file := func(name, text string, mode os.FileMode) {
		must(t, os.MkdirAll(filepath.Dir(dir+"/"+name), 0o755))
		must(t, os.WriteFile(dir+"/"+name, []byte(text), mode))
		must(t, os.Chmod(dir+"/"+name, mode))
	}
	file("ssh_config", "# Include none.conf\nInclude conf.d/*.conf \""+dir+"/quoted.conf\"\nHost *\n", 0o644)
	file("conf.d/10-a.conf", "Host a\n  include=more/deep.conf\n", 0o644)
	file("conf.d/20-open.conf", "Host b\n", 0o666)
	file("conf.d/30-user.conf", "Host c\n", 0o644)
	must(t, os.Chown(dir+"/conf.d/30-user.conf", 1, 1))
	file("conf.d/other.txt", "Host d\n", 0o644)
	file("more/deep.conf", "Include ssh_config\n", 0o644) // in a circle
	file("vendor/real.conf", "Host e\n", 0o644)
	must(t, os.Symlink("../vendor/real.conf", dir+"/conf.d/40-link.conf"))
	must(t, os.Mkdir(dir+"/conf.d/50-directory.conf", 0o755))
	file("quoted.conf", "Host f\n", 0o644)
	got := sshIncludes(dir + "/ssh_config")
	want := []string{"conf.d/10-a.conf", "more/deep.conf", "quoted.conf", "ssh_config", "vendor/real.conf"}
	for i := range want {
		want[i] = dir + "/" + want[i]
	}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if text := string(got[dir+"/vendor/real.conf"]); text != "Host e\n" {
		t.Errorf("%q", text)
	}
}
