// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestAbsent: nothing is suggested that cannot help, as for mounts and for sockets that the machine lacks.
func TestAbsent(t *testing.T) {
	t.Parallel()
	there := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", there)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	connect := func(addr, errno string) sandbox.Denial {
		return sandbox.Denial{Access: sandbox.Access{Op: sandbox.Connect, Net: "unix", Addr: addr},
			Errno: errno, Source: sandbox.Notified}
	}
	call := func(name string) sandbox.Denial {
		return sandbox.Denial{Access: sandbox.Access{Op: sandbox.Syscall, Call: name},
			Source: sandbox.Notified}
	}
	_, err = os.Stat("/var/run/docker.sock")
	noDocker := err != nil
	for _, c := range []struct {
		name   string
		denial sandbox.Denial
		none   bool // no grant opens it
	}{
		{"a missing socket", connect("/run/none/such.sock", "ENOENT"), true},
		{"Docker's, where none runs", connect("/var/run/docker.sock", "ENOENT"), noDocker},
		{"one that is there", connect(there, "ENOENT"), strings.HasPrefix(there, "/dev/shm/")},
		{"a missing one that was denied", connect("/run/none/such.sock", "EACCES"), false},
		{"one of the command's own /tmp", connect("/tmp/none/such.sock", "ENOENT"), false},
		{"a mount", call("mount"), true},
		{"another root", call("chroot"), true},
		{"another user", call("setresuid"), true},
		{"groups of another user", call("setgroups"), true},
		{"another call", call("perf_event_open"), false},
	} {
		r := runOf(sandbox.WorkspaceWrite("/w"))
		r.OS, r.Local, r.Named = "linux", true, true
		ds := []sandbox.Denial{c.denial}
		r.Complete(ds)
		none := strings.HasPrefix(ds[0].Rule, NothingOpens) && ds[0].Grant+ds[0].Wider == ""
		if none != c.none {
			t.Errorf("%s: %+v", c.name, ds[0])
		}
	}
}

// TestHarmlessAudit: programs do without the kernel's audit.
func TestHarmlessAudit(t *testing.T) {
	t.Parallel()
	for call, want := range map[string]bool{
		"socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT)": true,
		"socket(AF_NETLINK, SOCK_RAW, NETLINK_XFRM)":  false,
	} {
		ds := []sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Syscall, Call: call},
			Source: sandbox.Notified}}
		runOf(sandbox.WorkspaceWrite("/w")).Weigh(ds, 1)
		if got := ds[0].Harmless != ""; got != want {
			t.Errorf("%s: harmless %v", call, got)
		}
	}
}
