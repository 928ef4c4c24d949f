// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestPing runs the system's ping, which has file capabilities or a set-uid bit that mean
// nothing inside, and which gives up rights before it begins.
func TestPing(t *testing.T) {
	testenv.RunAsOrdinary(t)
	ping := testenv.NeedProgram(t, "ping")
	host := sandbox.ReadOnly().WithNetwork(sandbox.NetworkHost)
	opened := []string{"icmp"}
	for _, test := range []struct {
		name, line string
		job        job
		fails      bool
		denied     string // by the filter
	}{
		{name: "loopback", line: "-4 127.0.0.1", job: job{allow: opened}},
		{name: "by name", line: "localhost", job: job{allow: opened}},
		{name: "version 6", line: "-6 ::1", job: job{allow: opened}, fails: !pingSockets(unix.AF_INET6, 0)},
		{name: "without an observer", line: "127.0.0.1", job: job{allow: opened, blind: true}},
		{name: "beyond loopback", line: "192.0.2.1", job: job{allow: opened}, fails: true},
		{name: "closed", line: "-4 127.0.0.1", fails: true, denied: "socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP) --allow icmp"},
		{name: "the host's network", line: "127.0.0.1", job: job{policy: &host}, fails: !pingSockets(unix.AF_INET, unix.IPPROTO_ICMP)}, // as outside
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newArena(t)
			var after executor.Exit
			test.job.args, test.job.after = sh(ping+" -n -c 1 -W 5 "+test.line), &after
			res := mustRun(t, a, &test.job)
			if (res.code != 0) != test.fails || strings.Contains(res.out, " 0% packet loss") == test.fails {
				t.Errorf("%+v", res)
			}
			named := slices.ContainsFunc(after.Denials,
				func(d sandbox.Denial) bool { return d.Call+" "+d.Grant == test.denied })
			if named != (test.denied != "") {
				t.Errorf("denials %+v", after.Denials)
			}
		})
	}
}

// TestPingSetting: the setting that opens ping sockets is of the command's own network, names
// its own group, and cannot be changed by it.
func TestPingSetting(t *testing.T) {
	testenv.RunAsOrdinary(t)
	const setting = "/proc/sys/net/ipv4/ping_group_range"
	before, err := os.ReadFile(setting)
	must(t, err)
	a := newArena(t)
	res := mustRun(t, a, &job{allow: []string{"icmp"}, args: sh("cat " + setting + "; (echo 0 4294967294 >" +
		setting + ") 2>/dev/null; cat " + setting)})
	own := fmt.Sprintf("%d\t%d\n", os.Getegid(), os.Getegid())
	if res.out != own+own {
		t.Errorf("inside %q, want twice %q; %s", res.out, own, res.err)
	}
	const unmapped = 65534 // what stands for groups that the sandbox does not map, as root is here
	if res := mustRun(t, a, &job{args: sh("cat " + setting)}); res.out == own && os.Getegid() != unmapped {
		t.Errorf("without the opening %q", res.out)
	}
	if after, err := os.ReadFile(setting); err != nil || string(after) != string(before) {
		t.Errorf("the host's was %q and is %q, %v", before, after, err)
	}
}

// TestPingAtLevels: a level that cannot open ping sockets is not taken.
func TestPingAtLevels(t *testing.T) {
	for _, level := range []string{plan.LevelBwrap, plan.LevelLandlock} {
		if level == plan.LevelBwrap {
			testenv.NeedProgram(t, "bwrap")
		}
		a := newArena(t)
		a.host.Only = level
		_, err := a.run(t, &job{allow: []string{"icmp"}, args: sh(":")})
		if err == nil || !strings.Contains(err.Error(), "icmp") {
			t.Errorf("%s: error %v, want that icmp is not available", level, err)
		}
	}
}

// pingSockets reports whether this machine has datagram sockets of a kind for this user.
func pingSockets(family, protocol int) bool {
	s, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, protocol)
	if err == nil {
		unix.Close(s)
	}
	return err == nil
}
