// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// garbage is what an attacker puts into the upper half of an argument that the
// kernel takes as 32 bits.
const garbage = 0xdeadbeef << 32

// answer is one row of the deny list: what a call gets.
type answer struct {
	name string
	call string
	args []uint64
	want string // an action's word
	// only is the architecture that has the call, "" for both.
	only string
	// o are the options, apart from the architecture.
	o Options
}

// plain are the calls that are refused whatever their arguments.
func plain() []answer {
	var rows []answer
	add := func(want, only string, calls ...string) {
		for _, c := range calls {
			rows = append(rows, answer{name: c, call: c, want: want, only: only})
		}
	}
	add("EPERM", "", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp",
		"pidfd_getfd", "ptrace",
		"bpf", "perf_event_open", "userfaultfd", "add_key", "request_key", "keyctl", "move_pages",
		"migrate_pages",
		"setns", "mount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount",
		"fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "sethostname", "setdomainname",
		"open_by_handle_at", "init_module", "finit_module", "delete_module", "kexec_load",
		"kexec_file_load", "reboot",
		"swapon", "swapoff", "quotactl", "quotactl_fd", "acct", "fanotify_init", "syslog",
		"settimeofday", "clock_settime", "vhangup", "lookup_dcookie", "nfsservctl")
	add("EPERM", "amd64", "iopl", "ioperm", "modify_ldt", "_sysctl", "uselib", "ustat", "sysfs",
		"create_module", "get_kernel_syms", "query_module")
	add("ENOSYS", "", "io_uring_setup", "io_uring_enter", "io_uring_register", "clone3")
	add("allow", "", "read", "openat2", "name_to_handle_at", "landlock_create_ruleset", "landlock_add_rule",
		"landlock_restrict_self", "seccomp", "prctl", "memfd_secret", "mbind", "set_mempolicy", "cachestat",
		"statmount", "listmount", "adjtimex", "clock_adjtime", "pidfd_open", "pidfd_send_signal", "fchown",
		"execve", "connect", "bind", "sendmsg", "lsm_list_modules", "unlinkat")
	add("allow", "amd64", "fork", "vfork", "open", "creat", "arch_prctl", "uretprobe")
	return rows
}

// argued are the calls that depend on arguments or options.
func argued() []answer {
	return slices.Concat(processes(), controls(), sockets(), modes(), spaces(), seen())
}

// a are the arguments of a call.
func a(v ...uint64) []uint64 { return v }

// processes are the calls about processes, namespaces and terminals.
func processes() []answer {
	ownPID := Options{OwnPID: true}
	return []answer{
		{"ptrace in an own PID namespace", "ptrace", nil, "allow", "", ownPID},
		{"process_vm_readv in an own PID namespace", "process_vm_readv", nil, "EPERM", "", ownPID},
		{"pidfd_getfd in an own PID namespace", "pidfd_getfd", nil, "EPERM", "", ownPID},

		{"unshare files", "unshare", a(0x400), "allow", "", Options{}},
		{"unshare fs and sysvsem", "unshare", a(0x200 | 0x40000), "allow", "", Options{}},
		{"unshare user", "unshare", a(0x10000000), "EPERM", "", Options{}},
		{"unshare time", "unshare", a(0x80), "EPERM", "", Options{}},
		{"unshare mounts and files", "unshare", a(0x20000 | 0x400), "EPERM", "", Options{}},
		{"unshare user, garbage above", "unshare", a(garbage | 0x10000000), "EPERM", "", Options{}},
		{"fork by clone", "clone", a(17), "allow", "", Options{}},
		{"thread by clone", "clone", a(0x3d0f00), "allow", "", Options{}},
		{"vfork by clone", "clone", a(0x4111), "allow", "", Options{}},
		{"clone mounts", "clone", a(0x20000 | 17), "EPERM", "", Options{}},
		{"clone cgroup", "clone", a(0x2000000), "EPERM", "", Options{}},
		{"clone uts", "clone", a(0x4000000), "EPERM", "", Options{}},
		{"clone ipc", "clone", a(0x8000000), "EPERM", "", Options{}},
		{"clone user", "clone", a(0x10000000), "EPERM", "", Options{}},
		{"clone pid", "clone", a(0x20000000), "EPERM", "", Options{}},
		{"clone net", "clone", a(0x40000000), "EPERM", "", Options{}},
		{"clone user, garbage above", "clone", a(garbage | 0x10000000 | 17), "EPERM", "", Options{}},

		{"personality linux", "personality", a(0), "allow", "", Options{}},
		{"personality query", "personality", a(0xffffffff), "allow", "", Options{}},
		{"personality query, sign extended", "personality", a(0xffffffffffffffff), "allow", "", Options{}},
		{"personality no-randomize", "personality", a(0x40000), "allow", "", Options{}},
		{"personality linux32", "personality", a(8), "allow", "", Options{}},
		{"personality uname26 with linux32", "personality", a(0x20008), "allow", "", Options{}},
		{"personality read-implies-exec", "personality", a(0x400000), "EPERM", "", Options{}},
		{"personality mmap-page-zero, garbage above", "personality", a(garbage | 0x100000), "EPERM", "", Options{}},
		{"personality svr4", "personality", a(1), "EPERM", "", Options{}},

		{"ioctl TIOCGWINSZ", "ioctl", a(0, 0x5413), "allow", "", Options{}},
		{"ioctl TIOCSCTTY", "ioctl", a(0, 0x540e), "allow", "", Options{}},
		{"ioctl TIOCSTI", "ioctl", a(0, 0x5412), "EPERM", "", Options{}},
		{"ioctl TIOCSTI, garbage above", "ioctl", a(0, garbage|0x5412), "EPERM", "", Options{}},
		{"ioctl TIOCLINUX", "ioctl", a(1, 0x541c), "EPERM", "", Options{}},
		{"ioctl TIOCLINUX, garbage above", "ioctl", a(1, garbage|0x541c), "EPERM", "", Options{}},
		{"ioctl TIOCSETD, garbage above", "ioctl", a(2, garbage|0x5423), "EPERM", "", Options{}},
	}
}

// controls are the commands of fcntl.
func controls() []answer {
	var rows []answer
	for _, c := range []struct {
		name    string
		command uint64
		want    string
	}{
		{"F_GETFD", 1, "allow"}, {"F_SETFL", 4, "allow"}, {"F_SETLK", 6, "allow"}, {"F_OFD_SETLKW", 38, "allow"},
		{"F_SETLEASE", 1024, "EACCES"}, {"F_GETLEASE", 1025, "allow"}, {"F_NOTIFY", 1026, "EACCES"},
		{"F_DUPFD_QUERY", 1027, "allow"}, {"F_DUPFD_CLOEXEC", 1030, "allow"}, {"F_SETPIPE_SZ", 1031, "allow"},
		{"F_ADD_SEALS", 1033, "allow"}, {"F_GETDELEG", 1039, "allow"}, {"F_SETDELEG", 1040, "EACCES"},
	} {
		for _, above := range []uint64{0, garbage, 1 << 63} {
			rows = append(rows,
				answer{c.name, "fcntl", a(3, above|c.command, 1), c.want, "", Options{}},
				answer{c.name + ", all opened", "fcntl", a(3, above|c.command, 1), c.want, "",
					Options{Allow: []string{"unix", "setuid", "io_uring", "ptrace", "userns"},
						HostNetwork: true}},
				answer{c.name + " without namespaces", "fcntl", a(3, above|c.command, 1), c.want, "",
					Options{HostSpaces: true}})
		}
	}
	return rows
}

// sockets are the calls that make sockets.
func sockets() []answer {
	const cloexec, nonblock = 0x80000, 0x800
	host := Options{HostNetwork: true}
	return []answer{
		{"socket tcp", "socket", a(2, 1, 0), "allow", "", Options{}},
		{"socket tcp by number, close-on-exec", "socket", a(2, 1|cloexec|nonblock, 6), "allow", "", Options{}},
		{"socket tcp6", "socket", a(10, 1|cloexec, 6), "allow", "", Options{}},
		{"socket udp", "socket", a(2, 2|nonblock, 17), "allow", "", Options{}},
		{"socket udp6, garbage above everywhere", "socket", a(garbage|10, garbage|2, garbage), "allow", "", Options{}},
		{"socket raw", "socket", a(2, 3, 1), "EPERM", "", Options{}},
		{"socket raw6, garbage above", "socket", a(garbage|10, garbage|3|cloexec, 255), "EPERM", "", Options{}},
		{"socket packet by the old type", "socket", a(2, 10, 0x300), "ESOCKTNOSUPPORT", "", Options{}},
		{"socket seqpacket over ip", "socket", a(2, 5, 0), "ESOCKTNOSUPPORT", "", Options{}},
		{"socket dccp", "socket", a(2, 6, 33), "ESOCKTNOSUPPORT", "", Options{}},
		{"socket icmp", "socket", a(2, 2, 1), "EPROTONOSUPPORT", "", Options{}},
		{"socket icmpv6, garbage above", "socket", a(10, 2, garbage|58), "EPROTONOSUPPORT", "", Options{}},
		{"socket mptcp", "socket", a(2, 1, 262), "allow", "", Options{}},
		{"socket mptcp as datagram", "socket", a(2, 2, 262), "EPROTONOSUPPORT", "", Options{}},
		{"socket sctp", "socket", a(2, 1, 132), "EPROTONOSUPPORT", "", Options{}},
		{"socket udplite", "socket", a(10, 2, 136), "EPROTONOSUPPORT", "", Options{}},
		{"socket netlink route", "socket", a(16, 3|cloexec, 0), "allow", "", Options{}},
		{"socket netlink route, garbage above", "socket", a(garbage|16, 2, garbage), "allow", "", Options{}},
		{"socket netlink netfilter", "socket", a(16, 3, 12), "EPROTONOSUPPORT", "", Options{}},
		{"socket netlink uevent", "socket", a(garbage|16, 3, 15), "EPROTONOSUPPORT", "", Options{}},
		{"socket unix", "socket", a(1, 1, 0), "EPERM", "", Options{}},
		{"socket unix dgram, garbage above", "socket", a(garbage|1, 2, 0), "EPERM", "", Options{}},
		{"socket packet", "socket", a(17, 3, 0x300), "EAFNOSUPPORT", "", Options{}},
		{"socket alg", "socket", a(38, 5, 0), "EAFNOSUPPORT", "", Options{}},
		{"socket vsock", "socket", a(40, 1, 0), "EAFNOSUPPORT", "", Options{}},
		{"socket unspecified", "socket", a(0, 1, 0), "EAFNOSUPPORT", "", Options{}},
		{"socket unknown family, garbage above", "socket", a(garbage|99, 1, 0), "EAFNOSUPPORT", "", Options{}},
		{"host network, icmp", "socket", a(2, 2, 1), "allow", "", host},
		{"host network, icmpv6, garbage above", "socket", a(10, garbage|2|cloexec, garbage|58), "allow", "", host},
		{"host network, raw icmp", "socket", a(2, 3, 1), "EPERM", "", host},
		{"host network, icmp as stream", "socket", a(2, 1, 1), "EPROTONOSUPPORT", "", host},
		{"host network, unix", "socket", a(1, 1, 0), "EPERM", "", host},
		{"host network, sctp", "socket", a(2, 1, 132), "EPROTONOSUPPORT", "", host},

		{"socketpair stream", "socketpair", a(1, 1, 0), "allow", "", Options{}},
		{"socketpair seqpacket, close-on-exec", "socketpair", a(1, 5|cloexec, 0), "allow", "", Options{}},
		{"socketpair stream, garbage above", "socketpair", a(garbage|1, garbage|1|nonblock, 0), "allow", "", Options{}},
		{"socketpair dgram", "socketpair", a(1, 2|cloexec, 0), "EPERM", "", Options{}},
		{"socketpair raw, garbage above", "socketpair", a(garbage|1, garbage|3, 0), "EPERM", "", Options{}},
		{"socketpair tipc", "socketpair", a(30, 1, 0), "EAFNOSUPPORT", "", Options{}},
		{"socketpair inet", "socketpair", a(garbage|2, 1, 0), "EAFNOSUPPORT", "", Options{}},
	}
}

// modes are the calls that depend on a file mode.
func modes() []answer {
	const creat, tmpfile, trunc, read = 0x40, 0x400000 | 0x10000, 0x200, 0
	rows := []answer{
		{"open to read, leftovers in the mode", "open", a(0, read, 0o6755), "allow", "amd64", Options{}},
		{"open O_TRUNC, leftovers in the mode", "open", a(0, trunc|1, 0o6755), "allow", "amd64", Options{}},
		{"open O_DIRECTORY, leftovers in the mode", "openat", a(0, 0, 0x10000, 0o4000), "allow", "", Options{}},
		{"open O_CREAT 0644", "open", a(0, creat|1, 0o644), "allow", "amd64", Options{}},
		{"open O_CREAT 04755", "open", a(0, garbage|creat|1, garbage|0o4755), "EPERM", "amd64", Options{}},
		{"openat to read, leftovers in the mode", "openat", a(0, 0, read, 0o6755), "allow", "", Options{}},
		{"openat O_CREAT 0666", "openat", a(0, 0, creat|1, 0o666), "allow", "", Options{}},
		{"openat O_CREAT sticky", "openat", a(0, 0, creat|1, 0o1666), "allow", "", Options{}},
		{"openat O_CREAT 02755", "openat", a(0, 0, creat|1, 0o2755), "EPERM", "", Options{}},
		{"openat O_TMPFILE 04755", "openat", a(0, 0, garbage|tmpfile|2, garbage|0o4755), "EPERM", "", Options{}},
	}
	for _, c := range []struct {
		call string
		mode int
		only string
	}{
		{"chmod", 1, "amd64"}, {"fchmod", 1, ""}, {"fchmodat", 2, ""}, {"fchmodat2", 2, ""}, {"creat", 1, "amd64"},
		{"mknod", 1, "amd64"}, {"mknodat", 2, ""},
	} {
		for _, m := range []struct {
			name string
			mode uint64
			want string
		}{
			{" 0755", 0o755, "allow"},
			{" sticky", 0o1777, "allow"},
			{" set-uid", 0o4755, "EPERM"},
			{" set-gid", 0o2755, "EPERM"},
			{" both, garbage above", garbage | 0o6000, "EPERM"},
			{" nothing but garbage above", 0o6000<<32 | 0o644, "allow"},
		} {
			args := make([]uint64, 6)
			args[c.mode] = m.mode
			rows = append(rows, answer{c.call + m.name, c.call, args, m.want, c.only, Options{}})
		}
	}
	for _, m := range []struct {
		name string
		mode uint64
		want string
	}{
		{" pipe", 0o010644, "allow"},
		{" file", 0o100644, "allow"},
		{" file without a type", 0o644, "allow"},
		{" socket", 0o140755, "allow"},
		{" character device", 0o020600, "EPERM"},
		{" block device", 0o060600, "EPERM"},
		{" block device, garbage above", garbage | 0o060600, "EPERM"},
	} {
		rows = append(rows,
			answer{"mknod" + m.name, "mknod", a(0, m.mode), m.want, "amd64", Options{}},
			answer{"mknodat" + m.name, "mknodat", a(0, 0, m.mode), m.want, "", Options{}})
	}
	return append(rows,
		answer{"mknodat device with setuid opened", "mknodat", a(0, 0, 0o024600), "EPERM", "",
			Options{Allow: []string{"setuid"}}})
}

func TestDenyList(t *testing.T) {
	for _, arch := range bothArches {
		for _, tc := range slices.Concat(plain(), argued()) {
			if tc.only != "" && tc.only != arch {
				continue
			}
			t.Run(arch+"/"+tc.name, func(t *testing.T) {
				nr, ok := SyscallNumber(arch, tc.call)
				if !ok {
					t.Fatalf("%s has no %s", arch, tc.call)
				}
				tc.o.Arch = arch
				prog := mustCompile(t, mustDefault(t, tc.o))
				audit, _ := AuditArch(arch)
				d := Data{NR: int32(nr), Arch: audit}
				copy(d.Args[:], tc.args)
				got, _ := mustRun(t, prog, d)
				if r, ok := mustRefusals(t, tc.o).Refused(d.Arch, uint32(d.NR), d.Args); ok && got == Notify {
					got = Errno(r.Errno) // the supervisor's answer
				}
				if got.String() != tc.want {
					t.Errorf("%s%#x: %v, want %s", tc.call, tc.args, got, tc.want)
				}
			})
		}
	}
}

func TestForeignConventions(t *testing.T) {
	for _, tc := range []struct {
		name, arch string
		audit      uint32
		nr         int32
		want       Action
	}{
		{"amd64", "amd64", 0xc000003e, 0, Allow},
		{"i386 on amd64", "amd64", 0x40000003, 0, Errno(38)},
		{"i386 calling what is refused", "amd64", 0x40000003, 101, Errno(38)},
		{"x32 read", "amd64", 0xc000003e, 0x40000000, Errno(38)},
		{"x32 ptrace", "amd64", 0xc000003e, 0x40000000 + 521, Errno(38)},
		{"last x32", "amd64", 0xc000003e, 0x7fffffff, Errno(38)},
		{"negative", "amd64", 0xc000003e, -2, Errno(38)},
		{"lowest", "amd64", 0xc000003e, -1 << 31, Errno(38)},
		{"canceled by a debugger", "amd64", 0xc000003e, -1, Allow},
		{"number before x32", "amd64", 0xc000003e, 0x3fffffff, Allow},
		{"future call", "amd64", 0xc000003e, 600, Allow},
		{"arm64", "arm64", 0xc00000b7, 63, Allow},
		{"arm32 on arm64", "arm64", 0x40000028, 3, Errno(38)},
		{"amd64 on arm64", "arm64", 0xc000003e, 0, Errno(38)},
		{"big-endian arm64", "arm64", 0x800000b7, 63, Errno(38)},
		{"no architecture", "arm64", 0, 63, Errno(38)},
		{"arm64 has no x32", "arm64", 0xc00000b7, 0x40000000, Allow},
		{"canceled on arm64", "arm64", 0xc00000b7, -1, Allow},
	} {
		t.Run(tc.name, func(t *testing.T) {
			prog := mustCompile(t, mustDefault(t, Options{Arch: tc.arch}))
			if got, _ := mustRun(t, prog, Data{NR: tc.nr, Arch: tc.audit}); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// probes are calls that tell any two lists of this package apart.
func probes(arch string) []Data {
	audit, _ := AuditArch(arch)
	var out []Data
	for nr := range int32(600) {
		d := Data{NR: nr, Arch: audit}
		out = append(out, d)
		for i := range d.Args { // all flags and bits at once
			d.Args[i] = 0x7effffff
		}
		out = append(out, d)
	}
	for _, row := range argued() {
		if nr, ok := SyscallNumber(arch, row.call); ok {
			d := Data{NR: int32(nr), Arch: audit}
			copy(d.Args[:], row.args)
			out = append(out, d)
		}
	}
	return out
}

// openedCalls are the calls, on any architecture, that get other answers with an opening.
func openedCalls() map[string][]string {
	return map[string][]string{
		"bpf":         {"bpf"},
		"icmp":        {"socket"},
		"io_uring":    {"io_uring_setup", "io_uring_enter", "io_uring_register"},
		"keyring":     {"add_key", "request_key", "keyctl"},
		"netlink":     {"socket"},
		"numa":        {"move_pages", "migrate_pages"},
		"perf":        {"perf_event_open"},
		"ptrace":      {"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd"},
		"setuid":      {"chmod", "fchmod", "fchmodat", "fchmodat2", "open", "openat", "creat", "mknod", "mknodat"},
		"unix":        {"socket", "socketpair"},
		"userfaultfd": {"userfaultfd"},
		"userns": {
			"clone", "clone3", "unshare", "setns", "mount", "umount2", "pivot_root", "chroot",
			"open_tree", "open_tree_attr", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick",
			"mount_setattr",
			"sethostname", "setdomainname",
		},
	}
}

// TestOpeningsOpenWhatTheySay compares the filter with each opening to the one
// without: exactly the listed calls change, and only towards "allow" or to the
// answer of a later rule.
func TestOpeningsOpenWhatTheySay(t *testing.T) {
	for _, arch := range bothArches {
		for _, o := range Openings() {
			t.Run(arch+"/"+o.Name, func(t *testing.T) {
				var with []string // without these there is no such opening
				if o.Name == openIOUring {
					with = []string{openUnix, openSetuid}
				}
				shut := mustCompile(t, mustDefault(t, Options{Arch: arch, Allow: with}))
				open := mustCompile(t, mustDefault(t,
					Options{Arch: arch, Allow: append(with, o.Name, o.Name)}))
				got := map[string]bool{}
				for _, d := range probes(arch) {
					before, _ := mustRun(t, shut, d)
					after, _ := mustRun(t, open, d)
					if before == after {
						continue
					}
					name, _ := SyscallName(arch, int(d.NR))
					got[name] = true
					if before == Allow || after != Allow {
						t.Errorf("%s%#x: %v became %v", name, d.Args, before, after)
					}
				}
				want := map[string]bool{}
				for _, name := range openedCalls()[o.Name] {
					if !known(name) {
						t.Errorf("no call %q", name)
					}
					if _, ok := SyscallNumber(arch, name); ok {
						want[name] = true
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("calls that change (-said +changed):\n%s", diff)
				}
			})
		}
	}
}

func TestOpeningsAreDescribed(t *testing.T) {
	all := Openings()
	if !slices.IsSortedFunc(all, func(a, b Opening) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("not sorted by name")
	}
	for _, o := range all {
		if o.Name == "" || o.Opens == "" || strings.Contains(o.Opens, "\n") ||
			len(openedCalls()[o.Name]) == 0 {
			t.Errorf("incomplete: %+v", o)
		}
	}
	all[0].Name = "changed"
	if again := Openings()[0]; again.Name == "changed" {
		t.Error("a caller can change the table")
	}
}

func TestOptionErrors(t *testing.T) {
	var unknown *UnknownOpeningError
	_, err := Default(Options{Arch: "amd64", Allow: []string{"unix", "qtrace", "", "perf"}})
	if !errors.As(err, &unknown) {
		t.Fatalf("error %v", err)
	}
	if diff := cmp.Diff([]string{"qtrace", ""}, unknown.Names); diff != "" {
		t.Error(diff)
	}
	if !slices.Contains(unknown.Known, "ptrace") || !strings.Contains(err.Error(), `"qtrace"`) ||
		!strings.Contains(err.Error(), "userns") {
		t.Errorf("not helpful: %v", err)
	}
	var missing *MissingOpeningsError
	for _, c := range []struct{ allow, want []string }{
		{[]string{"io_uring"}, []string{"unix", "setuid"}},
		{[]string{"unix", "io_uring"}, []string{"setuid"}},
		{[]string{"setuid", "io_uring"}, []string{"unix"}},
	} {
		if _, err := Default(Options{Arch: "amd64", Allow: c.allow}); !errors.As(err, &missing) ||
			!slices.Equal(missing.Missing, c.want) {
			t.Errorf("%q: error %v, want that %q are missing", c.allow, err, c.want)
		}
	}
	if _, err := Default(Options{Arch: "amd64", Allow: []string{"setuid", "io_uring", "unix"}}); err != nil {
		t.Errorf("error %v", err)
	}
	var arch *UnsupportedArchError
	if rules, err := DenyList(Options{}); !errors.As(err, &arch) || rules != nil {
		t.Errorf("zero options: %d rules, error %v", len(rules), err)
	}
	if f, err := Default(Options{Arch: "386"}); !errors.As(err, &arch) || f.Default != 0 {
		t.Errorf("386: %v, error %v", f, err)
	}
}

var update = flag.Bool("update", false, "write the golden files anew")

func TestLinesGolden(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    Options
	}{
		{"amd64", Options{Arch: "amd64"}},
		{"arm64-own-pid", Options{Arch: "arm64", OwnPID: true}},
		{"amd64-host-network-opened", Options{Arch: "amd64", HostNetwork: true, OwnPID: true, Allow: []string{"unix", "userns", "netlink", "setuid"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := strings.Join(mustDefault(t, tc.o).Lines(), "\n") + "\n"
			name := filepath.Join("testdata", "lines-"+tc.name+".txt")
			if *update {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLines(t *testing.T) {
	f := Filter{Arch: "arm64", Default: Errno(7), Rules: []Rule{
		{Name: "open", Action: Allow},
		{Name: "read", Action: Notify},
		{Name: "write", When: []Cond{{Arg: 1, Op: MaskedEq, Mask: 16}, {Arg: 2, Int: true, Op: MaskedNe, Mask: 3, Value: 1}}, Action: Errno(1)},
		{Name: "close", When: []Cond{{Op: Eq}, {Op: Ne}}, Action: Allow},
		{Name: "nonsense", When: []Cond{{}}, Action: Errno(4096)},
		{},
	}}
	want := []string{
		"calls by another architecture or convention: ENOSYS",
		"read: notify",
		"write with arg1 & 0x10 == 0x0 and int(arg2) & 0x3 != 0x1: EPERM",
		"close with arg0 == 0x0 and arg0 != 0x0: allow",
		"nonsense with arg0 comparison 0 0x0: action 0x51000",
		": none",
		"everything else: errno 7",
	}
	if diff := cmp.Diff(want, f.Lines()); diff != "" {
		t.Error(diff)
	}
	if got := Action(5).String(); got != "action 0x5" {
		t.Error(got)
	}
}
