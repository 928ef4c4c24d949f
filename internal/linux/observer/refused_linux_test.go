// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// refusedTimes is how often a child makes a refused call.
const refusedTimes = 5000

// makeRefused makes calls that a filter refuses, one of them many times, and prints what they
// gave where it is not the filter's error.
func makeRefused() error {
	for range refusedTimes {
		if _, err := unix.KeyctlInt(unix.KEYCTL_GET_KEYRING_ID, unix.KEY_SPEC_USER_KEYRING, 0, 0,
			0); err != unix.EPERM {
			return fmt.Errorf("keyctl: %w", err)
		}
	}
	for _, c := range []struct {
		name string
		err  error
		want error
	}{
		{"unshare", unix.Unshare(unix.CLONE_NEWUSER), unix.EPERM},
		{"packet", socketError(unix.AF_PACKET, unix.SOCK_RAW, 0), unix.EAFNOSUPPORT},
		{"ping", socketError(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP), unix.EPROTONOSUPPORT},
		{"chmod", os.Chmod(os.TempDir(), os.ModeSetuid|0o700), unix.EPERM},
	} {
		if got := fmt.Sprint(c.err); !strings.HasSuffix(got, c.want.Error()) {
			return fmt.Errorf("%s: %s", c.name, got)
		}
	}
	return nil
}

func socketError(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind, protocol)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// TestRefusedCalls: what the filter refuses gets the filter's error, and one denial with a
// count, however often it is tried.
func TestRefusedCalls(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedSeccomp(t)
	exe, err := os.Executable()
	must(t, err)
	text, report := observedRun(t, Config{}, nil, exe, "refused")
	if text != "done" {
		t.Errorf("the command got %q", text)
	}
	want := []struct {
		call, errno, grant string
		count              int
	}{
		{"keyctl", "EPERM", "--allow keyring", refusedTimes},
		{"unshare(CLONE_NEWUSER)", "EPERM", "--allow userns", 1},
		{"socket(AF_PACKET, SOCK_RAW)", "EAFNOSUPPORT", "", 1},
		{"socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP)", "EPROTONOSUPPORT", "--allow icmp", 1},
		{"fchmodat(mode 04700)", "EPERM", "--allow setuid", 1},
	}
	if len(report.Denials) < len(want) {
		t.Fatalf("%v", report.Denials)
	}
	for i, w := range want {
		d := report.Denials[i]
		if d.Op != sandbox.Syscall || d.Call != w.call || d.Errno != w.errno || d.Grant != w.grant ||
			d.Count != w.count ||
			d.NoGrant != (w.grant == "") || d.Source != sandbox.Notified || d.PID == 0 || d.Program != exe ||
			d.Rule != ruleFilter {
			t.Errorf("%+v, want %+v", d, w)
		}
	}
}
