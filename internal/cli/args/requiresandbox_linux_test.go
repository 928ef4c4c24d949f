// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestRequireSandbox: below --require-sandbox a run has a sandbox, whatever its flags, the settings of the
// user, a rule and an approver say. Without it, each of them leads outside.
func TestRequireSandbox(t *testing.T) {
	testenv.NeedUserNS(t)
	const outside = `prefix_rule(pattern=["true"], decision="allow", sandbox="outside")`
	for _, test := range []struct {
		name, settings, rules string
		words                 []string
	}{
		{"a flag", "", "", []string{"-s", "full-access"}},
		{"a setting", `sandbox = "full-access"`, "", nil},
		{"a profile", "sandbox = \"p\"\n[profiles.p]\nextends = \"full-access\"\n", "", nil},
		{"the whole disk", "", "", []string{"--rw", "/"}},
		{"an approved escalation", "", "", []string{"-a", "on-request", "--escalate"}},
		{"a rule", "", outside, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, requires := range []bool{false, true} {
				level, err := levelOf(t, test.settings, test.rules, requires, test.words...)
				switch {
				case test.name == "the whole disk" && err != nil: // it is refused in any case
				case !requires && (err != nil || level != "none"):
					t.Errorf("without --require-sandbox: level %q, %v", level, err)
				case requires && err == nil && (level == "none" || level == ""):
					t.Errorf("it ran without a sandbox")
				case requires && err != nil && !strings.Contains(err.Error(), config.RequireSandboxFlag):
					t.Errorf("%v, want %s in it", err, config.RequireSandboxFlag)
				}
			}
		})
	}
}

// levelOf runs a command of a client, whose user approves everything, and returns the level of its sandbox.
func levelOf(t *testing.T, settings, rules string, requires bool, words ...string) (string, error) {
	t.Helper()
	home := t.TempDir()
	dir := filepath.Join(home, ".config", "sallyport")
	if err := errors.Join(os.MkdirAll(dir+"/rules", 0o700),
		os.WriteFile(dir+"/config.toml", []byte(settings), 0o600),
		os.WriteFile(dir+"/rules/a.rules", []byte(rules), 0o600)); err != nil {
		t.Fatal(err)
	}
	p, err := Prepare("", nil, nil, nil)(t.Context(), &runs.Request{RequireSandbox: requires,
		Args: append(words, "--", "true"), Dir: t.TempDir(), Approver: says,
		Environ: []string{"HOME=" + home, "PATH=/usr/bin:/bin"}})
	if err != nil {
		return "", err
	}
	defer func() {
		if err := p.Runner.Close(); err != nil {
			t.Error(err)
		}
		p.Close()
	}()
	res, err := p.Runner.Run(t.Context(), p.Cmd)
	if err != nil {
		return "", err
	}
	return res.Sandbox.Level, nil
}
