// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/linux/caches"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestSharedCaches: the private layers of a cache stay mounted with the rest of a policy's mounts. A
// command with these mounts finds the layers, another policy has others, and a sandbox beside cannot
// take them. They are given back when the sandbox ends.
func TestSharedCaches(t *testing.T) {
	testenv.RunAsOrdinary(t)
	var wrong []string
	undisturbed(t, func() bool {
		wrong = sharedCaches(t)
		return wrong == nil
	})
	if wrong != nil {
		t.Error(strings.Join(wrong, "\n"))
	}
}

func sharedCaches(t *testing.T) (wrong []string) {
	t.Helper()
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	c := newCached(t)
	unchanged(t, c.home)
	s := c.open(t, c.policy())
	closed := c.policy().WithEntries(sandbox.PathEntry(c.out+"/dir", sandbox.LevelDeny))
	run := func(s *Shared, j job, line string) (out string, known bool) {
		t.Helper()
		j.in = s
		j.explain = true
		j.during = func(child *Child) {
			known = script(child.Sandbox().Script, "expect-mount "+c.home+"/.npm") != nil
		}
		out = c.sh(t, &j, line)
		return out, known
	}
	tests := []struct {
		name  string
		job   job
		line  string
		want  string
		known bool
	}{
		{"first", job{}, "echo first >entry && rm gone && cat entry", "first\n", false},
		{"second", job{}, "cat entry && echo second >entry", "first\n", true},
		{"another policy", job{policy: &closed}, "cat entry && echo other >entry", "clean\n", false},
		{"the first policy again", job{}, "cat entry && ls", "second\ndir\nentry\nlink\npipe\n", true},
		{"the other again", job{policy: &closed}, "cat entry", "other\n", true},
	}
	for _, test := range tests {
		out, known := run(s, test.job, "cd $HOME/.npm && "+test.line)
		if out != test.want || known != test.known {
			fail("%s: printed %q, found its mounts: %v; want %q, %v", test.name, out, known,
				test.want, test.known)
		}
	}
	beside := c.open(t, c.policy())
	if out, _ := run(beside, job{}, "cat $HOME/.npm/entry"); out != "clean\n" {
		fail("a sandbox beside finds %q", out)
	}
	must(t, s.Close())
	must(t, beside.Close())
	if got := c.sh(t, &job{}, "cat $HOME/.npm/entry"); got != "second\n" {
		fail("a command after the sandbox finds %q", got)
	}
	list, err := caches.List(c.base + "/state/sallyport")
	must(t, err)
	if slices.ContainsFunc(list, func(e caches.Entry) bool { return e.InUse }) {
		fail("the layers are still in use: %+v", list)
	}
	return wrong
}
