// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"os"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestCachesAtLevels: at every level a build has a cache that it can write to, and
// the host's stays as it is, also where a policy or the home as workspace says more
// about the directory.
func TestCachesAtLevels(t *testing.T) {
	testenv.RunAsOrdinary(t)
	const line = `echo x >"$npm_config_cache/new" 2>/dev/null || echo x >"$HOME/.npm/new"`
	cases := []struct {
		name    string
		make    bool // the host has a cache
		home    bool // the home is the workspace
		policy  func(a *arena, p sandbox.Policy) sandbox.Policy
		refused string // the level that refuses the policy
	}{
		{name: "no cache of the host's"},
		{name: "a cache of the host's", make: true},
		{name: "the home as workspace", make: true, home: true},
		{name: "a denied cache", make: true, policy: func(a *arena, p sandbox.Policy) sandbox.Policy {
			return p.WithEntries(sandbox.PathEntry(a.base+"/home/.npm", sandbox.LevelDeny))
		}, refused: plan.LevelLandlock},
		{name: "read-only", make: true, policy: func(a *arena, _ sandbox.Policy) sandbox.Policy { return bind(sandbox.ReadOnly(), a.ws) }},
	}
	for _, level := range []string{"", plan.LevelBwrap, plan.LevelLandlock} {
		for _, c := range cases {
			t.Run(c.name+" "+level, func(t *testing.T) {
				a := atLevel(t, level)
				if _, lack := a.host.findBwrap(); level == plan.LevelBwrap && lack != nil {
					testenv.Lack(t, testenv.Programs, lack.Error())
				}
				home := a.base + "/home"
				must(t, os.Mkdir(home, 0o755))
				if c.make {
					must(t, os.Mkdir(home+"/.npm", 0o755))
				}
				dir := a.ws
				if c.home {
					dir = home
				}
				write(t, dir+"/package.json", "{}")
				p := bind(sandbox.WorkspaceWrite(dir), dir)
				if c.policy != nil {
					p = c.policy(a, p)
				}
				res, err := a.run(t, &job{args: sh(line), dir: dir, policy: &p,
					env: []string{"PATH=/usr/bin:/bin", "HOME=" + home}})
				if c.refused == level && level != "" {
					if err == nil {
						t.Errorf("not refused: %+v", res)
					}
					return
				}
				if err != nil || res.code != 0 {
					t.Errorf("%v, %+v", err, res)
				}
				// The landlock level cannot shut a directory in a workspace, and says so.
				if _, err := os.Lstat(home + "/.npm/new"); err == nil &&
					!(c.home && level == plan.LevelLandlock) {
					t.Error("the host's cache was written to")
				}
				if strings.Contains(res.err, "sallyport") {
					t.Error(res.err)
				}
			})
		}
	}
}
