// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

func TestSystemDirectories(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	var known []string
	for _, s := range a.host.Facts().RunShows {
		known = append(known, strings.TrimPrefix(s.Path, "/run/"))
	}
	attacks := systemAttacks()
	delete(attacks, "devices-work") // no attack
	a.expect(t, wordDenied, &job{}, names(attacks), "known="+strings.Join(known, " "))
	host := sandbox.ReadOnly().WithNetwork(sandbox.NetworkHost)
	t.Run("host network", func(t *testing.T) {
		a.expect(t, wordDenied, &job{policy: &host}, names(attacks), "known="+strings.Join(known, " "))
	})
}

// victim starts a process outside that lets anybody of its user trace it.
func victim(t *testing.T) string {
	t.Helper()
	// cat, because it can be traced by its user and ends with its input.
	cmd := exec.Command(testenv.NeedProgram(t, "cat"))
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the process outside ended with %v", err)
		}
	})
	return fmt.Sprint(cmd.Process.Pid)
}

func TestProcesses(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	pid := victim(t)
	full := sandbox.ReadOnly().WithNetwork(sandbox.NetworkHost)
	for name, j := range map[string]*job{
		"default": {}, "host network": {policy: &full},
		"ptrace allowed": {allow: []string{"ptrace"}}, "everything allowed": {allow: []string{"ptrace", "userns", "unix", "bpf", "perf", "keyring"}},
	} {
		t.Run(name, func(t *testing.T) {
			a.expect(t, wordDenied, j, names(processAttacks()), "pid="+pid)
		})
	}
}

// outside makes kernel objects that others of this user could find by name.
func outside(t *testing.T) []string {
	t.Helper()
	var kv []string
	for _, o := range []struct {
		name       string
		get        uintptr
		size       uintptr
		ctl        uintptr
		removeArgs []uintptr
	}{
		{"shm", unix.SYS_SHMGET, 4096, unix.SYS_SHMCTL, []uintptr{0, 0}},
		{"sem", unix.SYS_SEMGET, 1, unix.SYS_SEMCTL, []uintptr{0, 0}},
		{"msg", unix.SYS_MSGGET, 0, unix.SYS_MSGCTL, []uintptr{0, 0}},
	} {
		key := 0x5a110000 | os.Getpid()&0xffff
		args := [3]uintptr{uintptr(key), o.size, unix.IPC_CREAT | 0o600}
		if o.name == "msg" {
			args = [3]uintptr{uintptr(key), unix.IPC_CREAT | 0o600}
		}
		id, _, errno := unix.Syscall(o.get, args[0], args[1], args[2])
		if errno != 0 {
			t.Fatalf("%s: %v", o.name, errno)
		}
		t.Cleanup(func() {
			nr, cmd := o.ctl, [3]uintptr{id, unix.IPC_RMID, 0}
			if o.name == "sem" {
				cmd = [3]uintptr{id, 0, unix.IPC_RMID}
			}
			if _, _, errno := unix.Syscall(nr, cmd[0], cmd[1], cmd[2]); errno != 0 {
				t.Errorf("remove %s: %v", o.name, errno)
			}
		})
		kv = append(kv, fmt.Sprintf("%s=%d", o.name, key))
	}
	mq := fmt.Sprintf("sallyport-test-%d", os.Getpid())
	fd, err := mqOpen(mq, unix.O_CREAT|unix.O_RDWR)
	must(t, err)
	unix.Close(fd)
	t.Cleanup(func() { must(t, mqUnlink(mq)) })
	file, err := os.CreateTemp("/dev/shm", "sallyport-test-")
	must(t, err)
	t.Cleanup(func() { file.Close(); os.Remove(file.Name()) })
	return append(kv, "mq="+mq, "shm-file="+strings.TrimPrefix(file.Name(), "/dev/shm/"))
}

// addKey puts a key into the user's keyring. The name tells whether it could.
func addKey(t *testing.T) string {
	t.Helper()
	// Adding one of the same name replaces it, so another run of this test by the
	// same user at the same time may take it away first.
	key, err := unix.AddKey("user", keyName, []byte("secret"), unix.KEY_SPEC_USER_KEYRING)
	if err != nil {
		t.Logf("no key: %v", err) // some kernels have none
		return "key=1"
	}
	t.Cleanup(func() {
		if _, err := unix.KeyctlInt(unix.KEYCTL_UNLINK, key, unix.KEY_SPEC_USER_KEYRING, 0, 0); err != nil &&
			!errors.Is(err, unix.ENOKEY) && !errors.Is(err, unix.ENOENT) {
			t.Errorf("remove the key: %v", err)
		}
	})
	return fmt.Sprintf("key=%d", key)
}

func TestKernelObjects(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	kv := append(outside(t), addKey(t))
	a.expect(t, wordDenied, &job{}, names(ipcAttacks()), kv...)
	host := sandbox.ReadOnly().WithNetwork(sandbox.NetworkHost)
	t.Run("host network", func(t *testing.T) {
		a.expect(t, wordDenied, &job{policy: &host}, names(ipcAttacks()), kv...)
	})
}

func TestKernelSurface(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	attacks := kernelAttacks()
	delete(attacks, "clone-thread") // no attack
	a.expect(t, wordDenied, &job{}, names(attacks))
}

// TestOpenings holds that an opening opens, and that the walls around it stand.
func TestOpenings(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	for opening, opened := range map[string]string{"io_uring": "io-uring", "userns": "unshare-uts",
		"icmp": "icmp", "unix": "pair-raw", "setuid": "set-uid-own"} {
		t.Run(opening, func(t *testing.T) {
			allow := []string{opening}
			if opening == "io_uring" { // which opens these, too
				allow = append(allow, "setuid", "unix")
			}
			got := a.attack(t, &job{allow: allow}, []string{opened, "create", "chmod", "cap-effective"})
			if v := got[opened]; v.word == wordDenied && v.detail == "EPERM" && opening != "userns" {
				t.Errorf("%s is shut: %v", opened, v)
			}
			for _, n := range []string{"create", "chmod", "cap-effective"} {
				if v := got[n]; v.word != wordDenied {
					t.Errorf("%s: %v", n, v)
				}
			}
		})
	}
}

func TestPrivileges(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	leak(t, a)
	t.Setenv("TOKEN", "sallyport-secret")
	a.expect(t, wordDenied, &job{}, privilegeNames(), namespacesHere(t)...)
	t.Run("environment", func(t *testing.T) {
		env := []string{"A=1", "EMPTY=", "PATH=/usr/bin:/bin"}
		res := mustRun(t, a, &job{args: []string{"/usr/bin/env"}, env: env})
		if res.out != strings.Join(env, "\n")+"\n" {
			t.Errorf("%q", res.out)
		}
	})
}

// privilegeNames leaves out the one that needs a terminal.
func privilegeNames() []string {
	m := taskAttacks()
	delete(m, "tiocsti")
	return names(privilegeAttacks(), m)
}

// namespacesHere names the namespaces of this process.
func namespacesHere(t *testing.T) []string {
	t.Helper()
	var kv []string
	for _, ns := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"} {
		to, err := os.Readlink("/proc/self/ns/" + ns)
		must(t, err)
		kv = append(kv, "ns-"+ns+"="+to)
	}
	return kv
}
