// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/seccomp"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// factRun is the second stage of a nested part: nothing more is switched off.
const factRun = "run"

// facts are what can be switched off for a process and what it starts, for real:
// the process lives in namespaces of its own and has all rights in them.
func facts() map[string]func() error {
	return map[string]func() error{
		"none": func() error { return nil },
		// The administrator's way to forbid user namespaces.
		"limit": func() error { return os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0) },
		// What container runtimes do to /proc.
		"masked-proc": maskProc,
		// What Docker's default profile answers.
		"docker-filter": func() error {
			return refuseCalls(
				seccomp.Rule{Name: "clone",
					When:   []seccomp.Cond{{Arg: 0, Op: seccomp.MaskedNe, Mask: unix.CLONE_NEWUSER}},
					Action: seccomp.Errno(uint16(unix.EPERM))},
				seccomp.Rule{Name: "clone3", Action: seccomp.Errno(uint16(unix.ENOSYS))},
				seccomp.Rule{Name: "unshare", Action: seccomp.Errno(uint16(unix.EPERM))},
				seccomp.Rule{Name: "mount", Action: seccomp.Errno(uint16(unix.EPERM))})
		},
		// A kernel before 5.12, as far as mounts go.
		"old-mounts": func() error {
			var rules []seccomp.Rule
			for _, n := range []string{"open_tree", "move_mount", "fsopen", "fsconfig", "fsmount",
				"mount_setattr"} {
				rules = append(rules, seccomp.Rule{Name: n, Action: seccomp.Errno(uint16(unix.ENOSYS))})
			}
			return refuseCalls(rules...)
		},
		// A kernel without nf_tables.
		"no-nftables": func() error {
			return refuseCalls(seccomp.Rule{Name: "socket",
				Action: seccomp.Errno(uint16(unix.EPROTONOSUPPORT)), When: []seccomp.Cond{
					{Arg: 0, Op: seccomp.Eq, Value: unix.AF_NETLINK}, {Arg: 2, Op: seccomp.Eq, Value: unix.NETLINK_NETFILTER},
				}})
		},
		// One that takes no messages of a network either.
		"no-netlink": func() error {
			return refuseCalls(seccomp.Rule{Name: "socket", Action: seccomp.Errno(uint16(unix.EAFNOSUPPORT)),
				When: []seccomp.Cond{{Arg: 0, Op: seccomp.Eq, Value: unix.AF_NETLINK}}})
		},
		"no-landlock": func() error {
			return refuseCalls(seccomp.Rule{Name: "landlock_create_ruleset",
				Action: seccomp.Errno(uint16(unix.ENOSYS))})
		},
	}
}

func maskProc() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	return unix.Mount("none", "/proc/fs", "tmpfs", unix.MS_RDONLY, "")
}

// refuseCalls puts a filter over this thread, which then executes a program.
func refuseCalls(rules ...seccomp.Rule) error {
	prog, err := seccomp.Filter{Arch: runtime.GOARCH, Rules: rules, Default: seccomp.Allow}.Compile()
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: (*unix.SockFilter)(unsafe.Pointer(&prog[0]))}
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
		uintptr(unsafe.Pointer(&fprog))); errno != 0 {
		return errno
	}
	return nil
}

// A nestedResult is what a nested part prints.
type nestedResult struct {
	Level  string   // reached
	Weaker []string // as the result says
	Code   int      // of the command
	Refuse string   // why it did not start
	Typed  bool     // the refusal is an *UnsupportedError
	By     []string // mechanisms
}

// nestedMain switches a fact off and executes itself again, so that what is
// left has no more rights than its user; then it runs a command.
func nestedMain(fact string, words []string) int {
	if fact != factRun {
		runtime.LockOSThread()
		off := facts()[fact]
		if off == nil {
			off = func() error { return fmt.Errorf("no fact %q", fact) }
		}
		err := off()
		if err == nil {
			err = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
		}
		if err == nil {
			err = syscall.Exec(os.Getenv(programVar), append([]string{os.Args[0], partNested, factRun},
				words...), os.Environ())
		}
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	res, err := nestedRun(keyValues(words))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(res); err != nil {
		return 1
	}
	return 0
}

// nestedRun runs a command twice, because what the first start tells about the
// host is kept for the second.
func nestedRun(kv map[string]string) (*nestedResult, error) {
	host := new(Host)
	defer host.Close()
	first, err := nestedStart(host, kv)
	if err != nil {
		return nil, err
	}
	second, err := nestedStart(host, kv)
	if err != nil {
		return nil, err
	}
	if first.Level != second.Level || first.Refuse != second.Refuse {
		return nil, fmt.Errorf("the second start differs: %+v, then %+v", first, second)
	}
	return second, nil
}

func nestedStart(host *Host, kv map[string]string) (*nestedResult, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	r := &executor.Spec{
		Args: sh(`echo x >inside || exit 3; (echo x >"$1/outside") 2>/dev/null && exit 4; (echo x >/etc/sallyport-test) 2>/dev/null && exit 5; exit 0`, kv["out"]),
		Dir:  kv["ws"], Env: []string{"PATH=/usr/bin:/bin"}, Level: kv["level"],
		Policy: bind(sandbox.WorkspaceWrite(kv["ws"]), kv["ws"]),
	}
	if kv["net"] == sandbox.NetworkProxy.String() {
		r.Policy = r.Policy.WithNetwork(sandbox.NetworkProxy)
	}
	c, err := host.Start(context.Background(), r, [3]*os.File{null, null, null})
	if err != nil {
		var no *sandbox.UnsupportedError
		return &nestedResult{Refuse: err.Error(), Typed: errors.As(err, &no)}, nil
	}
	code, _, err := c.Wait()
	_ = c.Kill() // nobody is left, or it ends them
	if err := errors.Join(err, c.WaitAll(), c.Close(new(executor.Exit))); err != nil {
		return nil, err
	}
	s := c.Sandbox()
	return &nestedResult{Level: s.Level, Weaker: s.Weaker, Code: code, By: s.Mechanism}, nil
}

// nested runs a command where a fact is missing, with a least level.
func nested(t *testing.T, a *arena, fact, level string, words ...string) *nestedResult {
	t.Helper()
	cmd := exec.Command(os.Getenv(programVar),
		append([]string{partNested, fact, "ws=" + a.ws, "out=" + a.out, "level=" + level}, words...)...)
	cmd.Dir = a.ws
	cmd.Stderr = os.Stderr
	ids := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: ids(os.Geteuid()), GidMappings: ids(os.Getegid()),
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_RESOURCE},
	}
	out, err := cmd.Output()
	must(t, err)
	res := new(nestedResult)
	must(t, json.Unmarshal(out, res))
	return res
}
