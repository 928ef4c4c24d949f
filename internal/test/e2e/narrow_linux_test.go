// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// tenants returns a directory with those of two tenants and a link in one to what no command may write.
func tenants(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sallyport-test-") // commands have a /tmp of their own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, d := range []string{"/all/one", "/all/two", "/else"} {
		if err := os.MkdirAll(dir+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"/all/one/link": dir + "/else", "/all/one/in": dir + "/all/two"} {
		if err := os.Symlink(to, dir+link); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestCmdPolicy gives commands of one Runner policies of their own.
func TestCmdPolicy(t *testing.T) {
	testenv.RunAsOrdinary(t)
	dir := tenants(t)
	all, one := dir+"/all", dir+"/all/one"
	write := sandbox.ReadOnly().WithEntries(sandbox.PathEntry(all, sandbox.LevelWrite))
	only := func(p string) sandbox.Policy {
		return sandbox.ReadOnly().WithEntries(sandbox.PathEntry(p, sandbox.LevelWrite))
	}
	for _, c := range []struct {
		name        string
		runner, own sandbox.Policy
		want        string // what is more; empty for a command that runs
		places      string // that it could write to
	}{
		{"one tenant", write, only(one), "", "one"},
		{"relative to the directory", write, only("."), "", "one"},
		{"nothing", write, sandbox.ReadOnly(), "", ""},
		{"all", write, write, "", "one two"},
		{"a link that stays inside", write, only(one + "/in"), "", "two"},
		{"below full access", sandbox.FullAccess(), only(one), "", "one"},
		{"full access", write, sandbox.FullAccess(), "run outside of the sandbox", ""},
		{"another directory", write, only(dir + "/else"), "write " + dir + "/else", ""},
		{"by a link of a tenant", write, only(one + "/link"), "write " + dir + "/else", ""},
		{"below such a link", write, only(one + "/link/new"), "write " + dir + "/else/new", ""},
		{"upwards", write, only(one + "/../../else"), "write " + dir + "/else", ""},
		{"a network", write, write.WithNetwork(sandbox.NetworkHost), "use the network host", ""},
		{"a grant", write, write.With(sandbox.Grant{Name: "docker"}), "use the grant docker", ""},
		{"without a deny entry", write.WithEntries(sandbox.PathEntry(one, sandbox.LevelDeny)), write, "write " + one, ""},
		{"without a pattern", write.WithEntries(sandbox.GlobEntry("**/.env")), write, "denied by a pattern", ""},
		{"names that are protected", write, write.WithEntries(sandbox.PathEntry(all+"/.git", sandbox.LevelWrite)), "write " + all + "/.git", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRunner(t, sandbox.ReadOnly())
			r.Update(c.runner, "") // the policy as it is now counts
			cmd := sallyport.Script("for d in one two; do (touch ../$d/f) 2>/dev/null && echo $d; done; true")
			cmd.Shell, cmd.Dir, cmd.Policy = "sh", one, &c.own
			res, err := r.Run(t.Context(), cmd)
			if c.want != "" {
				var wider *sandbox.WiderError
				if !errors.As(err, &wider) || !errors.Is(err, sallyport.ErrForbidden) ||
					!strings.Contains(wider.What, c.want) {
					t.Errorf("the error is %v, want one with %q", err, c.want)
				}
				if _, err := r.Start(t.Context(), cmd); !errors.As(err, &wider) {
					t.Errorf("a session: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(strings.Fields(res.Stdout.String()), " "); got != c.places {
				t.Errorf("it wrote to %q, want %q", got, c.places)
			}
		})
	}
}

// TestCmdPolicyLink replaces a directory by a link while a question is open.
func TestCmdPolicyLink(t *testing.T) {
	testenv.RunAsOrdinary(t)
	dir := tenants(t)
	sub := dir + "/all/one/sub"
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, sandbox.ReadOnly().WithEntries(sandbox.PathEntry(dir+"/all", sandbox.LevelWrite)))
	r.Rules = ruleText(`prefix_rule(["touch"], decision = "prompt")`)
	r.Approver = approval.Func(func(_ context.Context, q *approval.Request) (approval.Decision, error) {
		if err := errors.Join(os.Remove(sub), os.Symlink(dir+"/else", sub)); err != nil {
			t.Error(err)
		}
		return q.Decide(approval.Approved), nil
	})
	own := sandbox.ReadOnly().WithEntries(sandbox.PathEntry(sub, sandbox.LevelWrite))
	res, err := r.Run(t.Context(), &sallyport.Cmd{Args: []string{"touch", sub + "/f"}, Dir: "/",
		Policy: &own})
	if res != nil || err == nil {
		t.Errorf("it ran: %+v", res)
	}
	if _, err := os.Lstat(dir + "/else/f"); err == nil {
		t.Error("it wrote outside of the Runner's policy")
	}
}

// TestCmdPolicyReach: a rule leads no program outside that commands with the Runner's own policy could have
// put there, also where this command could not.
func TestCmdPolicyReach(t *testing.T) {
	testenv.RunAsOrdinary(t)
	dir := tenants(t)
	bin := dir + "/all/two"
	if err := testenv.WriteProgram(filepath.Join(bin, "tool"), "#!/bin/sh\ntouch "+dir+
		"/else/f\n"); err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, sandbox.ReadOnly().WithEntries(sandbox.PathEntry(dir+"/all", sandbox.LevelWrite)))
	r.Rules = ruleText(`prefix_rule(["tool"], sandbox = "outside")`)
	own := sandbox.ReadOnly()
	cmd := &sallyport.Cmd{Args: []string{"tool"}, Dir: "/", Policy: &own,
		Env: []string{"PATH=" + bin + ":/usr/bin:/bin"}}
	_, err := r.Run(t.Context(), cmd)
	if _, stat := os.Lstat(dir + "/else/f"); stat == nil {
		t.Errorf("a program that others can replace ran outside of the sandbox: %v", err)
	}
}
