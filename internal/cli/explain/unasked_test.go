// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/command/judge"
)

// TestUnasked: refusals of questions that are not asked name no type of the code, give the reason of the
// rule, and say how to fix it.
func TestUnasked(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]string{
		"never": judge.NeverAsks, "never, to leave": judge.NeverLeaves, "no rules": judge.RulesOff,
		"no sandbox": judge.SandboxOff, "more permissions": judge.NeverMore,
	} {
		for _, rule := range []*sallyport.Rule{nil, {}, {Justification: "shares work"}} {
			words, fix := Unasked("forbidden: "+said+" (rule f:1:1)", rule)
			if strings.Contains(words, "AskForApproval") || strings.Contains(words, "Never") || fix == "" ||
				!strings.HasPrefix(words, "forbidden: ") || !strings.HasSuffix(words, " (rule f:1:1)") {
				t.Errorf("%s: %q, %q", name, words, fix)
			}
			why := rule != nil && rule.Justification != ""
			if strings.Contains(words, "(shares work)") != why {
				t.Errorf("%s: %q", name, words)
			}
		}
	}
	if words, fix := Unasked("other", nil); words != "other" || fix != "" {
		t.Errorf("%q, %q", words, fix)
	}
}

// TestKilled: faults are named, and not what people end programs by, or what a limit has ended.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		end    sallyport.End
		signal syscall.Signal
		want   string
	}{
		{sallyport.EndSignaled, syscall.SIGSEGV, "killed by signal 11 (segmentation fault)"},
		{sallyport.EndSignaled, syscall.SIGKILL, "killed by signal 9 (killed)"},
		{sallyport.EndSignaled, syscall.SIGTERM, ""}, {sallyport.EndSignaled, syscall.SIGINT, ""},
		{sallyport.EndOOM, syscall.SIGKILL, ""}, {sallyport.EndExited, 0, ""},
	} {
		if got := Killed(string(c.end), int(c.signal)); got != c.want {
			t.Errorf("%s, %v: %q, want %q", c.end, c.signal, got, c.want)
		}
	}
}
