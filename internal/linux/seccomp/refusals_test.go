// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustRefusals(t *testing.T, o Options) *Refusals {
	t.Helper()
	r, err := NewRefusals(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRefusalsAreTheFilter: with a supervisor every call gets the answer that it gets without
// one. What is refused is passed, except clone3, and refused with the same error.
func TestRefusalsAreTheFilter(t *testing.T) {
	for _, arch := range bothArches {
		for _, o := range []Options{
			{}, {OwnPID: true}, {OwnPID: true, HostNetwork: true}, {HostSpaces: true}, {HostSpaces: true, HostNetwork: true},
			{OwnPID: true, Allow: []string{openUnix}}, {OwnPID: true, OneUser: true},
			{HostSpaces: true, Allow: []string{openUnix, openSetuid, openIOUring}},
		} {
			o.Arch = arch
			alone := mustCompile(t, mustDefault(t, o))
			o.Observe = true
			observed, refusals := mustCompile(t, mustDefault(t, o)), mustRefusals(t, o)
			foreign := Data{Arch: 1}
			for _, d := range append(probes(arch), foreign, Data{Arch: auditX8664, NR: x32First + 1}) {
				name, _ := SyscallName(arch, int(d.NR))
				before, _ := mustRun(t, alone, d)
				after, _ := mustRun(t, observed, d)
				r, refused := refusals.Refused(d.Arch, uint32(d.NR), d.Args)
				judged := (name == "socket" || name == "socketpair" && d.Args[1]&sockTypeMask == sockDgram) &&
					d.Args[0]&0xffffffff == afUnix &&
					(d.Args[1]&sockTypeMask != sockDgram || o.judgesSends()) && after == Allow
				switch {
				case before == Allow && refused, before == Notify || before == Action(0):
					t.Fatalf("%s%#x: %v alone, %+v observed", name, d.Args, before, r)
				case before == Allow || judged:
				case name == unseen:
					if after != before {
						t.Errorf("clone3: %v", after)
					}
				case after != Notify || !refused || Errno(r.Errno) != before || r.Call == "":
					t.Errorf("%s%#x: %v alone, %v and %+v observed", name, d.Args, before, after, r)
				}
			}
		}
	}
}

// TestRefusalWords: a refusal names the call, the arguments that tell why, and what opens it.
func TestRefusalWords(t *testing.T) {
	private := Options{OwnPID: true, Observe: true}
	bare := Options{HostSpaces: true, Observe: true}
	host := Options{OwnPID: true, Observe: true, HostNetwork: true}
	for _, tt := range []struct {
		call     string
		args     []uint64
		o        Options
		want     string
		openings []string
	}{
		{"unshare", a(0x10020000), private, "unshare(CLONE_NEWUSER|CLONE_NEWNS)", []string{"userns"}},
		{"unshare", a(0x80), private, "unshare(CLONE_NEWTIME)", []string{"userns"}},
		{"clone", a(0x10000000 | 17), private, "clone(CLONE_NEWUSER)", []string{"userns"}},
		{"setns", nil, private, "setns", []string{"userns"}},
		{"mount", nil, private, "mount", nil},
		{"socket", a(1, 2|0x80000, 0), host, "socket(AF_UNIX, SOCK_DGRAM)", []string{"unix"}},
		{"socketpair", a(1, 3, 0), private, "socketpair(AF_UNIX, SOCK_RAW)", []string{"unix"}},
		{"socket", a(2, 3, 1), private, "socket(AF_INET, SOCK_RAW, IPPROTO_ICMP)", nil},
		{"socket", a(2, 2, 1), private, "socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP)", []string{"icmp"}},
		{"socket", a(10, 2, 58), private, "socket(AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6)", []string{"icmp"}},
		{"socket", a(2, 1, 132), private, "socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP)", nil},
		{"socket", a(16, 3, 9), private, "socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT)", []string{"netlink"}},
		{"socket", a(17, 3, 0x300), private, "socket(AF_PACKET, SOCK_RAW)", nil},
		{"socket", a(99, 77, 0), private, "socket(99, 13)", nil},
		{"io_uring_setup", nil, private, "io_uring_setup", []string{"io_uring", "unix", "setuid"}},
		{"io_uring_setup", nil, Options{Allow: []string{"unix"}}, "io_uring_setup", []string{"io_uring", "setuid"}},
		{"setgroups", a(1), Options{OwnPID: true, OneUser: true, Observe: true}, "setgroups", nil},
		{"keyctl", nil, private, "keyctl", []string{"keyring"}},
		{"bpf", nil, private, "bpf", []string{"bpf"}},
		{"perf_event_open", nil, private, "perf_event_open", []string{"perf"}},
		{"userfaultfd", nil, private, "userfaultfd", []string{"userfaultfd"}},
		{"ptrace", nil, bare, "ptrace", []string{"ptrace"}},
		{"socket", a(1, 1, 0), bare, "socket(AF_UNIX, SOCK_STREAM)", []string{"unix"}},
		{"fchmodat", a(0, 0, 0o4755), private, "fchmodat(mode 04755)", []string{"setuid"}},
		{"openat", a(0, 0, 0x41, 0o2755), private, "openat(mode 02755)", []string{"setuid"}},
		{"mknodat", a(0, 0, 0o60644), private, "mknodat(mode 060644)", nil},
		{"ioctl", a(0, 0x5412), private, "ioctl(TIOCSTI)", nil},
		{"fcntl", a(3, 0x400, 1), private, "fcntl(F_SETLEASE)", nil},
		{"fcntl", a(3, garbage|0x402, 1), bare, "fcntl(F_NOTIFY)", nil},
		{"fcntl", a(3, 0x410, 1), host, "fcntl(F_SETDELEG)", nil},
		{"personality", a(0x400000), private, "personality(0x400000)", nil},
	} {
		t.Run(tt.call, func(t *testing.T) {
			tt.o.Arch = "amd64"
			nr, _ := SyscallNumber(tt.o.Arch, tt.call)
			var args [6]uint64
			copy(args[:], tt.args)
			got, ok := mustRefusals(t, tt.o).Refused(auditX8664, uint32(nr), args)
			if !ok || got.Call != tt.want || !slices.Equal(got.Openings, tt.openings) {
				t.Errorf("%+v, refused %v; want %s and %q", got, ok, tt.want, tt.openings)
			}
		})
	}
	got, ok := mustRefusals(t, Options{Arch: "amd64"}).Refused(0x40000003, 3, [6]uint64{})
	if diff := cmp.Diff(Refusal{Call: "32-bit system calls", Errno: errNoSys}, got); !ok || diff != "" {
		t.Error(diff)
	}
	if _, ok := new(Refusals).Refused(auditX8664, 0, [6]uint64{}); !ok {
		t.Error("the zero Refusals let a call pass")
	}
	var arch *UnsupportedArchError
	if _, err := NewRefusals(Options{Arch: "386"}); !errors.As(err, &arch) {
		t.Errorf("error %v", err)
	}
}

// TestOneUser: only those changes of users and groups are refused that fail for root which knows no other
// user, and with the kernel's error.
func TestOneUser(t *testing.T) {
	t.Parallel()
	const keep = 0xffffffff
	for _, tt := range []struct {
		call  string
		args  []uint64
		errno uint16
	}{
		{"setgroups", a(0), 0},
		{"setgroups", a(2), ePerm},
		{"setuid", a(0), 0},
		{"setuid", a(1), eInval},
		{"setuid", a(garbage), 0},
		{"setgid", a(keep), eInval},
		{"setreuid", a(keep, keep), 0},
		{"setregid", a(keep, 5), eInval},
		{"setresuid", a(0, keep, 0), 0},
		{"setresuid", a(0, 0, 7), eInval},
		{"setresgid", a(keep, 8, keep), eInval},
		{"setresgid", a(garbage|keep, 0, 0), 0},
		{"setfsuid", a(9), 0},
	} {
		for _, arch := range bothArches {
			o := Options{Arch: arch, OwnPID: true, OneUser: true}
			nr, ok := SyscallNumber(arch, tt.call)
			if !ok {
				t.Fatal(tt.call)
			}
			d := Data{Arch: archOf(arch).audit, NR: int32(nr)}
			copy(d.Args[:], tt.args)
			want := Allow
			if tt.errno != 0 {
				want = Errno(tt.errno)
			}
			if got, _ := mustRun(t, mustCompile(t, mustDefault(t, o)), d); got != want {
				t.Errorf("%s %s%#x: %v, want %v", arch, tt.call, tt.args, got, want)
			}
			o.OneUser = false
			if got, _ := mustRun(t, mustCompile(t, mustDefault(t, o)), d); got != Allow {
				t.Errorf("%s %s%#x: %v for all others", arch, tt.call, tt.args, got)
			}
		}
	}
}
