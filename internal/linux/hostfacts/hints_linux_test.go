// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hostfacts

import (
	"slices"
	"strings"
	"testing"
)

func TestStrangeKernel(t *testing.T) {
	for _, c := range []struct{ name, version, want, hint string }{
		{"Debian", "Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org)", "", ""},
		{"gVisor", "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016", "gVisor", "runc"},
		{"WSL 1", "Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com)", "WSL 1", "--set-version"},
		{"WSL 2", "Linux version 5.15.90.1-microsoft-standard-WSL2 (oe-user@oe-host)", "", ""},
		{"nothing", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := StrangeKernel(c.version); got != c.want {
				t.Errorf("%q", got)
			}
			if got := StrangeHint(c.version); (got == "") != (c.hint == "") ||
				!strings.Contains(got, c.hint) {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestFilterHint(t *testing.T) {
	for _, c := range []struct{ name, container, want string }{
		{"none", "", "outside of it"},
		{"Docker", "a Docker container (/.dockerenv)", "seccomp=unconfined --security-opt systempaths=unconfined"},
		{"Podman", "a Podman container (/run/.containerenv)", "unmask=ALL"},
		{"another", "a container (/run/systemd/container)", "outside of it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := FilterHint(c.container); !strings.Contains(got, c.want) ||
				!strings.Contains(got, "system call filter") {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestLandlockMissing(t *testing.T) {
	for _, c := range []struct {
		name, modules string
		abi           int
		filtered      bool
		have, hint    string
	}{
		{"old version", "landlock,lockdown", 1, false, "version 1", "5.19"},
		{"switched off", "lockdown,yama,apparmor", 0, false, "switched off", "lsm=landlock,lockdown,yama,apparmor"},
		{"old kernel", "", 0, false, "has none", "5.19"},
		{"hidden by a filter", "landlock,yama", 0, true, "filter", "allow the landlock system calls"},
	} {
		t.Run(c.name, func(t *testing.T) {
			have, hint := landlockMissing(c.abi, c.modules, c.filtered)
			if !strings.Contains(have, c.have) || !strings.Contains(hint, c.hint) {
				t.Errorf("%q %q", have, hint)
			}
		})
	}
}

func TestCoveredProc(t *testing.T) {
	const docker = `1 0 0:1 / / rw - overlay overlay rw
2 1 0:2 / /proc rw,nosuid - proc proc rw
3 2 0:2 /bus /proc/bus ro - proc proc rw
4 2 0:3 / /proc/acpi ro - tmpfs tmpfs ro
5 2 0:4 /null /proc/kcore rw - tmpfs tmpfs rw
6 2 0:5 / /proc/sys/fs/binfmt_misc rw - binfmt_misc none rw
bad
`
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"Docker", docker, []string{"/proc/bus", "/proc/acpi", "/proc/kcore"}},
		{"nothing", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := coveredProc(c.text); !slices.Equal(got, c.want) {
				t.Errorf("%q", got)
			}
		})
	}
}

// FuzzHints: whatever the kernel says, reading it ends, and what was read is in it.
func FuzzHints(f *testing.F) {
	for _, s := range []string{"2 1 0:2 / /proc/bus rw - proc proc rw\n", "", "a b.c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, at := range coveredProc(s) {
			if !strings.HasPrefix(at, "/proc/") || !slices.Contains(strings.Fields(s), at) {
				t.Errorf("covered %q", at)
			}
		}
		if k := StrangeKernel(s); k != "" && StrangeHint(s) == "" {
			t.Errorf("%s without a hint", k)
		}
	})
}
