// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// probeUserNS starts a program in namespaces of its own and has it change a
// mount there. Some systems let anyone make the namespaces and then refuse every
// use of them; the mount finds that out.
func probeUserNS() error {
	path, err := exec.LookPath("true")
	if err != nil {
		return fmt.Errorf("nothing to start for the probe: %w", err)
	}
	cmd := exec.Command(path)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		// With this flag package syscall also makes every mount private.
		Unshareflags: unix.CLONE_NEWNS,
	}
	return cmd.Run()
}

// wholeRoot reports whether root maps the ordinary user, and has the capabilities for mounts and for the
// memory of other processes.
func wholeRoot() bool {
	mapped := false
	maps, err := os.ReadFile("/proc/self/uid_map")
	for line := range strings.Lines(string(maps)) {
		var first, outside, count int
		if _, err := fmt.Sscan(line, &first, &outside, &count); err == nil {
			mapped = mapped || first <= ordinaryID && ordinaryID-first < count
		}
	}
	head, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	const needed = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SYS_PTRACE
	return err == nil && mapped && unix.Capget(&head, &data[0]) == nil && data[0].Effective&needed == needed
}

// landlockABI asks for the version: landlock_create_ruleset(2) without attributes
// and with the flag LANDLOCK_CREATE_RULESET_VERSION makes nothing and returns it.
func landlockABI() (int, error) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0,
		unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	return int(version), nil
}

// probeSeccomp asks whether the action is known, see seccomp(2) under
// SECCOMP_GET_ACTION_AVAIL; that operation changes nothing.
func probeSeccomp() error {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0,
		uintptr(unsafe.Pointer(&action)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}

func probeInotify() error {
	const enough = 16 // some tests make many at once
	for range enough {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if _, err = unix.InotifyAddWatch(fd, "/", unix.IN_MODIFY); err != nil {
			return err
		}
	}
	return nil
}
