// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hostfacts

import (
	"slices"
	"strings"
	"testing"
)

func TestParseMounts(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []Mount
	}{
		{"usual", "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n", []Mount{{36, 35, "98:0", "/mnt1", "/mnt2", false}}},
		{"of a program", "36 35 0:9 / /mnt2 rw,noatime master:1 - fuse.sshfs a:b rw\n", []Mount{{36, 35, "0:9", "/", "/mnt2", true}}},
		{"no end of line", "36 35 98:0 / / rw", []Mount{{36, 35, "98:0", "/", "/", false}}},
		{"escapes", `1 0 8:1 /a\040b\134 /c\011d\012 rw - x y z`, []Mount{{1, 0, "8:1", `/a b\`, "/c\td\n", false}}},
		{"no escapes", `1 0 8:1 /a\04 /b\999 rw - x y z`, []Mount{{1, 0, "8:1", `/a\04`, `/b\999`, false}}},
		{"deleted", "1 0 8:1 /a//deleted /b rw - x y z", []Mount{{1, 0, "8:1", "/a//deleted", "/b", false}}},
		{"object", "1 0 0:4 net:[4026] /run/netns/a rw - nsfs nsfs rw", []Mount{{1, 0, "0:4", "net:[4026]", "/run/netns/a", false}}},
		{"short", "1 0 8:1 /\n1 0 8:1 / /\n\n", nil},
		{"no numbers", "a 0 8:1 / / rw\n1 b 8:1 / / rw\n", nil},
		{"empty field", "1 0  / / rw", nil},
		{"no path", "1 0 8:1 / mnt rw", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ParseMounts(tt.text); !slices.Equal(got, tt.want) {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestAliases(t *testing.T) {
	const root = "1 0 8:1 / / rw\n"
	for _, tt := range []struct {
		name, mounts, path, want string
	}{
		{"one mount", root, "/home/u", ""},
		{"a bind mount of the directory", root + "2 1 8:1 /home/u/s /mnt rw\n", "/home/u/s", "/mnt"},
		{"of one above", root + "2 1 8:1 /home /mnt rw\n", "/home/u/s", "/mnt/u/s"},
		{"of the root", root + "2 1 8:1 / /mnt rw\n", "/home/u", "/mnt/home/u"},
		{"of something else", root + "2 1 8:1 /home/us /mnt rw\n3 1 8:1 /home/u/s/below /m rw\n", "/home/u/s", ""},
		{"of a file", root + "2 1 8:1 /home/key /etc/key rw\n", "/home/key", "/etc/key"},
		{"the other way round", root + "2 1 8:1 /home /mnt rw\n", "/mnt/u/s", "/home/u/s"},
		{"two at once", root + "2 1 8:1 /home /mnt rw\n3 1 8:1 /home/u /srv rw\n", "/home/u/s", "/mnt/u/s /srv/s"},
		{"another file system", root + "2 1 8:2 /home /mnt rw\n", "/home/u/s", ""},
		{"subvolumes of one", "1 0 0:30 /@ / rw\n2 1 0:30 /@home /home rw\n3 1 0:30 / /mnt rw\n", "/home/u/s", "/mnt/@home/u/s"},
		{"a volume mounted twice", root + "2 1 8:2 / /a rw\n3 1 8:2 /x /b rw\n", "/a/x/s", "/b/s"},
		{"covered by a later mount", root + "2 1 8:1 /home /mnt rw\n3 2 0:9 / /mnt/u rw\n", "/home/u/s", ""},
		{"covered from above", root + "2 1 8:1 /home /mnt/h rw\n3 1 0:9 / /mnt rw\n", "/home/u/s", ""},
		{"stacked at one point", root + "2 1 0:9 / /mnt rw\n3 2 8:1 /home /mnt rw\n", "/home/u/s", "/mnt/u/s"},
		{"below the stack", root + "2 1 8:1 /home /mnt rw\n3 2 0:9 / /mnt rw\n", "/home/u/s", ""},
		{"a root on the root", root + "2 1 8:2 / / rw\n3 2 8:2 /home /mnt rw\n", "/home/u", "/mnt/u"},
		{"bound over itself", root + "2 1 8:1 /home /home rw\n", "/home/u", ""},
		{"escaped", root + `2 1 8:1 /a\040b /c\011d rw`, "/a b/s", "/c\td/s"},
		{"deleted", root + "2 1 8:1 /home//deleted /mnt rw\n", "/home/u", ""},
		{"hidden original", root + "2 1 0:9 / /home rw\n3 1 8:1 /home /mnt rw\n", "/home/u", ""},
		{"the root itself", root + "2 1 8:1 / /mnt rw\n", "/", "/mnt"},
		{"loops", "1 1 8:1 / / rw\n2 3 8:1 / / rw\n3 2 8:1 / / rw\n", "/a", ""},
		{"no root", "2 1 8:1 /home /mnt rw\n", "/mnt/u", "unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			paths, known := NewMountTable(ParseMounts(tt.mounts)).Aliases(tt.path)
			got := strings.Join(paths, " ")
			if !known {
				got = "unknown"
			}
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestWithin(t *testing.T) {
	const mounts = "1 0 8:1 / / rw\n2 1 0:9 / /a/b rw\n3 2 0:8 / /a/b/c rw\n4 1 0:7 / /a/b/d rw\n5 1 0:6 / /ab rw\n" +
		"6 1 8:1 /a/x/y /z rw\n7 1 0:8 /w /v rw\n"
	table := NewMountTable(ParseMounts(mounts))
	for dir, want := range map[string]string{
		"/a": "/a/b /a/b/c /a/b/c/w /a/x/y", "/a/b": "/a/b/c /a/b/c/w", "/a/x": "/a/x/y", "/a/x/y": "", "/ab": "", "/none": "",
		"/": "/a/b /a/b/c /a/b/c/w /a/x/y /ab /v /z",
	} {
		if got := strings.Join(table.Within(dir), " "); got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
	if got := new(MountTable).Within("/"); got != nil {
		t.Errorf("%q", got)
	}
}

// FuzzMounts: whatever the table says, an alias of an alias is the path again, and no path is
// its own alias.
func FuzzMounts(f *testing.F) {
	f.Add("1 0 8:1 / / rw\n2 1 8:1 /home /mnt rw\n", "/home/u")
	f.Add("1 1 8:1 / / rw\n2 1 8:1 /a\\040b /c rw\n3 2 8:1 / /c/d rw\n", "/a b")
	f.Fuzz(func(t *testing.T, text, name string) {
		mounts := ParseMounts(text)
		if !cleanPath(name) || slices.ContainsFunc(mounts,
			func(m Mount) bool { return !cleanPath(m.Point) }) {
			return // the kernel and the callers have no others
		}
		table := NewMountTable(mounts)
		table.Within(name)
		paths, _ := table.Aliases(name)
		if slices.Contains(paths, name) {
			t.Errorf("%q is its own alias", name)
		}
		for _, p := range paths {
			if back, _ := table.Aliases(p); !slices.Contains(back, name) {
				t.Errorf("%q is an alias of %q, and not the other way round: %q", p, name, back)
			}
		}
	})
}

func cleanPath(p string) bool {
	return p == "/" || strings.HasPrefix(p, "/") && !strings.HasSuffix(p, "/") && !strings.Contains(p, "//")
}
