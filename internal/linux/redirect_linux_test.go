// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/plan"
)

// TestLearnRedirect: what the kernel cannot do is remembered, first of IPv6; that it had no room is not.
func TestLearnRedirect(t *testing.T) {
	failed := func(op launch.Op, errno syscall.Errno) error {
		return &launch.StepError{Step: launch.Step{Op: op}, Call: "sendto", Errno: errno}
	}
	for _, test := range []struct {
		name           string
		err            error
		try            int
		onlyIPv4       bool // from before
		again          bool
		ipv4, redirect bool // after it
	}{
		{"no IPv6", failed(launch.OpNetlink, unix.EAFNOSUPPORT), 1, false, true, true, true},
		{"no nf_tables", failed(launch.OpNetlink, unix.EPROTONOSUPPORT), 2, true, true, true, false},
		{"no memory", failed(launch.OpNetlink, unix.ENOMEM), 1, false, true, false, true},
		{"no buffers", failed(launch.OpNetlink, unix.ENOBUFS), 1, true, true, true, true},
		{"no descriptors", failed(launch.OpListen, unix.EMFILE), 1, false, true, false, true},
		{"still no memory", failed(launch.OpNetlink, unix.ENOMEM), shortTries, false, false, false, true},
		{"another step", failed(launch.OpTmpfs, unix.EPERM), 1, false, false, false, true},
		{"another error", errors.New("x"), 1, false, false, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &Host{onlyIPv4: test.onlyIPv4}
			a := &attempt{host: h, level: plan.LevelNative}
			if got := a.learnRedirect(test.err, test.try); got != test.again {
				t.Errorf("another plan: %v", got)
			}
			if h.onlyIPv4 != test.ipv4 || (h.unredirected == "") != test.redirect {
				t.Errorf("only IPv4 %v, not led away %q", h.onlyIPv4, h.unredirected)
			}
		})
	}
}
