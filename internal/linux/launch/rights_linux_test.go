// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// printField returns a shell text that prints a line of /proc/self/status.
func printField(field string) string {
	return `while read -r l; do case $l in ` + field + `:*) echo "$l"; esac; done </proc/self/status`
}

// TestBoundingSet: the bounding set is emptied up to a capability, that one included, and no further.
func TestBoundingSet(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	out, _ := output(t, launcher(t), script(walled, shStep(printField("CapBnd"))))
	var set uint64
	if _, err := fmt.Sscanf(out, "CapBnd: %x", &set); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	const last = 38 // of script
	if set&(1<<(last+1)-1) != 0 || set>>(last+1)&1 == 0 {
		t.Errorf("the bounding set is %#x", set)
	}
}

// helperAmbient starts a program without namespaces that prints its ambient capabilities.
func helperAmbient(args []string) int {
	s := script(plain, shStep(printField("CapAmb")))
	if len(args) > 0 {
		s = before(s, Step{Op: OpClearAmbient})
	}
	var l starter
	defer l.Close()
	p, err := l.Start(s, os.Stdin, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Println(err)
		return 2
	}
	if _, err := p.Wait(); err != nil || p.WaitAll() != nil {
		return 3
	}
	return 0
}

// TestAmbientSet: a command does not inherit ambient capabilities, which without the step it does.
func TestAmbientSet(t *testing.T) {
	held := uint64(0) // an ordinary user has none
	root := os.Geteuid() == 0
	if root {
		held = 1 << unix.CAP_NET_BIND_SERVICE
	}
	for _, c := range []struct {
		args []string
		want uint64
	}{{nil, held}, {[]string{"clear"}, 0}} {
		cmd := helperCommand(t, "ambient", c.args...)
		if root {
			cmd.SysProcAttr = &syscall.SysProcAttr{AmbientCaps: []uintptr{unix.CAP_NET_BIND_SERVICE}}
		}
		out, err := cmd.CombinedOutput()
		var set uint64
		if _, scan := fmt.Sscanf(string(out), "CapAmb: %x", &set); err != nil || scan != nil ||
			set != c.want {
			t.Errorf("%v: %q, %v; want %#x", c.args, out, err, c.want)
		}
	}
}
