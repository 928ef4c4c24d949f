// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestGrantedCache: a grant gives the layer that a file of the toolchain would have
// given, by an overlay or by a variable, and nothing else.
func TestGrantedCache(t *testing.T) {
	testenv.RunAsOrdinary(t)
	c := newCached(t)
	unchanged(t, c.home)
	must(t, os.Remove(c.ws+"/package.json"))
	granted := func(names ...string) *job {
		p := bind(sandbox.WorkspaceWrite(c.ws), c.ws)
		for _, n := range names {
			p = p.With(sandbox.Grant{Name: n})
		}
		return &job{policy: &p}
	}
	for _, l := range []struct{ name, grant, line, want string }{
		{"without it", "", "(echo x >$HOME/.npm/entry) 2>/dev/null || echo refused", "refused\n"},
		{"an overlay", "cache:npm", "echo poison >$HOME/.npm/entry && cat $HOME/.npm/entry", "poison\n"},
		{"it lasts", "cache:npm", "cat $HOME/.npm/entry", "poison\n"},
		{"nothing beside it", "cache:npm", "(echo x >$HOME/x) 2>/dev/null || echo refused", "refused\n"},
		{"a variable where there is no directory", "cache:pip", "echo wheel >$PIP_CACHE_DIR/wheel && cat $PIP_CACHE_DIR/wheel; echo $UV_CACHE_DIR", "wheel\n\n"},
		{"another one", "cache:uv", "(echo x >$HOME/.npm/entry) 2>/dev/null || echo refused", "refused\n"},
	} {
		t.Run(l.name, func(t *testing.T) {
			j := granted()
			if l.grant != "" {
				j = granted(l.grant)
			}
			if got := c.sh(t, j, l.line); got != l.want {
				t.Errorf("%q, want %q", got, l.want)
			}
		})
	}
	t.Run("a file of the toolchain is there as well", func(t *testing.T) {
		write(t, c.ws+"/package.json", "{}")
		if got := c.sh(t, granted("cache:npm"), "cat $HOME/.npm/entry"); got != "poison\n" {
			t.Errorf("%q", got)
		}
	})
}

// TestGrantedCacheRefused: a grant that nobody knows, and one that is turned off
// at once, stop the command.
func TestGrantedCacheRefused(t *testing.T) {
	testenv.NeedUserNS(t)
	c := newCached(t)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	must(t, err)
	defer null.Close()
	h := &Host{}
	t.Cleanup(func() { must(t, h.Close()) })
	for _, test := range []struct {
		name, grant string
		off         bool
		want        string
	}{
		{"unknown", "cache:nonesuch", false, `the named grant "cache:nonesuch"`},
		{"turned off", "cache:npm", true, "private layers over toolchain caches"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := bind(sandbox.WorkspaceWrite(c.ws), c.ws).With(sandbox.Grant{Name: test.grant})
			_, err = h.Start(t.Context(), &executor.Spec{Args: []string{"/bin/true"}, Dir: c.ws, Env: c.env(),
				Policy: p, NoCaches: test.off}, [3]*os.File{null, null, null})
			var unsupported *sandbox.UnsupportedError
			if !errors.As(err, &unsupported) || !strings.Contains(unsupported.Need, test.want) {
				t.Errorf("%v, want one about %s", err, test.want)
			}
		})
	}
}
