// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package seccomp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// The test binary plays the confined process: with this variable set it installs
// the filter that the value names ("none" for the control), makes calls and
// prints what each of them gave.
const childEnv = "SALLYPORT_SECCOMP_TEST_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childEnv); mode != "" {
		os.Exit(child(mode))
	}
	os.Exit(m.Run())
}

// install puts the default filter over all threads of this process.
func install() error {
	f, err := Default(Options{Arch: runtime.GOARCH, OwnPID: true})
	if err != nil {
		return err
	}
	prog, err := f.Compile()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: (*unix.SockFilter)(unsafe.Pointer(&prog[0]))}
	start := time.Now()
	r, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	if r != 0 {
		return fmt.Errorf("thread %d could not be synchronized", r)
	}
	fmt.Fprintf(os.Stderr, "%d instructions installed in %v\n", len(prog), time.Since(start))
	runtime.UnlockOSThread()
	return nil
}

func child(mode string) int {
	if mode != "none" {
		if err := install(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	out := map[string]string{}
	for name, call := range calls() {
		out[name] = outcome(call())
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		return 1
	}
	return 0
}

// outcome names an error, by its errno where there is one.
func outcome(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// raw makes a call whose result is only its error.
func raw(nr uintptr, args ...uintptr) func() error {
	return func() error {
		var a [6]uintptr
		copy(a[:], args)
		if _, _, errno := unix.RawSyscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
			return errno
		}
		return nil
	}
}

// calls are refused calls and ordinary work. The arguments are such that without
// the filter nothing is changed and none of the refusals comes about.
func calls() map[string]func() error {
	dir := os.Getenv("SALLYPORT_SECCOMP_TEST_DIR")
	file := filepath.Join(dir, "file")
	junk := uintptr(garbage) // the kernel must not see it, the filter neither
	var sv [2]int32
	pair := func(typ uintptr) func() error {
		return raw(unix.SYS_SOCKETPAIR, junk|unix.AF_UNIX, typ, 0, uintptr(unsafe.Pointer(&sv)))
	}
	return map[string]func() error{
		"io_uring_setup":       raw(unix.SYS_IO_URING_SETUP, 0, 0),
		"clone3":               raw(unix.SYS_CLONE3, 0, 0),
		"bpf":                  raw(unix.SYS_BPF, 1<<20, 0, 0),
		"mount":                raw(unix.SYS_MOUNT, 0, 0, 0, 0, 0),
		"process_vm_readv":     raw(unix.SYS_PROCESS_VM_READV, uintptr(os.Getpid()), 0, 0, 0, 0, 0),
		"unshare user":         raw(unix.SYS_UNSHARE, unix.CLONE_NEWUSER|unix.CLONE_THREAD), // without filter always EINVAL here
		"TIOCSTI":              raw(unix.SYS_IOCTL, 1, junk|unix.TIOCSTI, 0),
		"write lease":          lease(file, junk|unix.F_SETLEASE, unix.F_WRLCK),
		"read lease":           lease(file, unix.F_SETLEASE, unix.F_RDLCK),
		"delegation":           lease(file, junk|fSetDeleg, uintptr(unsafe.Pointer(&readDelegation))),
		"notification":         lease(dir, junk|unix.F_NOTIFY, 0x4),
		"which lease":          lease(file, unix.F_GETLEASE, 0),
		"open flags":           lease(file, junk|unix.F_GETFL, 0),
		"socket unix":          raw(unix.SYS_SOCKET, junk|unix.AF_UNIX, unix.SOCK_STREAM, 0),
		"socket unix datagram": raw(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0),
		"socket alg":           raw(unix.SYS_SOCKET, unix.AF_ALG, unix.SOCK_SEQPACKET, 0),
		"socketpair datagram":  pair(unix.SOCK_DGRAM),
		"socketpair stream":    pair(junk | unix.SOCK_STREAM | unix.SOCK_CLOEXEC),
		"chmod set-uid":        func() error { return unix.Fchmodat(unix.AT_FDCWD, file, 0o4755, 0) },
		"chmod":                func() error { return os.Chmod(file, 0o755) },
		"create set-uid": func() error {
			_, err := unix.Open(filepath.Join(dir, "new"), unix.O_CREAT|unix.O_WRONLY, 0o4755)
			return err
		},
		"personality read-implies-exec": raw(unix.SYS_PERSONALITY, 0x00400000),
		"personality query":             raw(unix.SYS_PERSONALITY, personaQuery),
		"write a file":                  func() error { return os.WriteFile(filepath.Join(dir, "other"), []byte("x"), 0o644) },
		"run a program":                 func() error { return exec.Command("true").Run() },
		"tcp on loopback":               func() error { return echo("tcp", "127.0.0.1:0") },
		"interfaces":                    func() error { _, err := net.Interfaces(); return err },
		"udp": func() error {
			c, err := net.ListenPacket("udp", "127.0.0.1:0")
			if err == nil {
				err = c.Close()
			}
			return err
		},
	}
}

// readDelegation is a struct delegation of linux/fcntl.h that asks for one of reads (F_RDLCK).
var readDelegation [8]byte

// lease makes a call of fcntl on a descriptor of path that only reads.
func lease(path string, command, arg uintptr) func() error {
	return func() error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }()
		return raw(unix.SYS_FCNTL, uintptr(fd), command, arg)()
	}
}

// echo sends a word through a connection to itself.
func echo(network, addr string) error {
	l, err := net.Listen(network, addr)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	failed := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, err = io.Copy(c, c)
			err = errors.Join(err, c.Close())
		}
		failed <- err
	}()
	to, err := net.ResolveTCPAddr(network, l.Addr().String())
	if err != nil {
		return err
	}
	c, err := net.DialTCP(network, nil, to)
	if err != nil {
		return err
	}
	if _, err = c.Write([]byte("ping")); err == nil {
		err = c.CloseWrite()
	}
	got, rerr := io.ReadAll(c)
	if err = errors.Join(err, rerr, <-failed, c.Close()); err == nil && string(got) != "ping" {
		err = fmt.Errorf("%q came back", got)
	}
	return err
}

// runChild returns what the calls gave in a process with that filter.
func runChild(t *testing.T, mode string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childEnv+"="+mode, "SALLYPORT_SECCOMP_TEST_DIR="+dir,
		"GORACE=atexit_sleep_ms=0") // else the race detector waits a second at each exit
	// A pipe, so that TIOCSTI never meets a terminal.
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, raw, errText(err))
	}
	out := map[string]string{}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return out
}

// errText returns what a child that failed wrote to its standard error.
func errText(err error) []byte {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.Stderr
	}
	return nil
}

func TestKernel(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedSeccomp(t)
	testenv.NeedProgram(t, "true")
	want := map[string]string{
		"io_uring_setup":                "ENOSYS",
		"clone3":                        "ENOSYS",
		"bpf":                           "EPERM",
		"mount":                         "EPERM",
		"process_vm_readv":              "EPERM",
		"unshare user":                  "EPERM",
		"TIOCSTI":                       "EPERM",
		"write lease":                   "EACCES",
		"read lease":                    "EACCES",
		"delegation":                    "EACCES",
		"notification":                  "EACCES",
		"which lease":                   "ok",
		"open flags":                    "ok",
		"socket unix":                   "EPERM",
		"socket unix datagram":          "EPERM",
		"socket alg":                    "EAFNOSUPPORT",
		"socketpair datagram":           "EPERM",
		"socketpair stream":             "ok",
		"chmod set-uid":                 "EPERM",
		"chmod":                         "ok",
		"create set-uid":                "EPERM",
		"personality read-implies-exec": "EPERM",
		"personality query":             "ok",
		"write a file":                  "ok",
		"run a program":                 "ok",
		"tcp on loopback":               "ok",
		"interfaces":                    "ok",
		"udp":                           "ok",
	}
	free := runChild(t, "none")
	confined := runChild(t, "default")
	if diff := cmp.Diff(want, confined); diff != "" {
		t.Errorf("with the filter (-want +got):\n%s", diff)
	}
	// The filter, and not the machine, gave these answers. (Others may also be
	// refused by a container around the test.)
	for _, name := range []string{"write lease", "read lease", "notification", "TIOCSTI", "socket unix",
		"socketpair datagram", "chmod set-uid", "create set-uid"} {
		if free[name] == want[name] {
			t.Errorf("%s gives %s without the filter too, so the test proves nothing", name, free[name])
		}
	}
	t.Logf("without the filter: %v", free)
}

// TestNumbersOfThisMachine compares the numbers of the running machine with the
// ones that programs here are built with.
func TestNumbersOfThisMachine(t *testing.T) {
	for name, want := range map[string]int{
		"read": unix.SYS_READ, "openat": unix.SYS_OPENAT, "ioctl": unix.SYS_IOCTL, "socket": unix.SYS_SOCKET,
		"socketpair": unix.SYS_SOCKETPAIR, "clone": unix.SYS_CLONE, "clone3": unix.SYS_CLONE3, "unshare": unix.SYS_UNSHARE,
		"fchmod": unix.SYS_FCHMOD, "fchmodat": unix.SYS_FCHMODAT, "fchmodat2": unix.SYS_FCHMODAT2, "mknodat": unix.SYS_MKNODAT,
		"ptrace": unix.SYS_PTRACE, "process_vm_readv": unix.SYS_PROCESS_VM_READV, "process_vm_writev": unix.SYS_PROCESS_VM_WRITEV,
		"io_uring_setup": unix.SYS_IO_URING_SETUP, "bpf": unix.SYS_BPF, "perf_event_open": unix.SYS_PERF_EVENT_OPEN,
		"userfaultfd": unix.SYS_USERFAULTFD, "keyctl": unix.SYS_KEYCTL, "setns": unix.SYS_SETNS, "mount": unix.SYS_MOUNT,
		"umount2": unix.SYS_UMOUNT2, "open_tree_attr": unix.SYS_OPEN_TREE_ATTR, "pidfd_getfd": unix.SYS_PIDFD_GETFD,
		"personality": unix.SYS_PERSONALITY, "open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT,
	} {
		if nr, ok := SyscallNumber(runtime.GOARCH, name); !ok || nr != want {
			t.Errorf("%s is %d (known %v), want %d", name, nr, ok, want)
		}
	}
	if s := unsafe.Sizeof(unix.SockFilter{}); s != unsafe.Sizeof(Instruction{}) {
		t.Errorf("struct sock_filter has %d bytes", s)
	}
}
