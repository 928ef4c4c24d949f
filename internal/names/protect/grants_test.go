// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"errors"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestHostGrants: grants of hosts are known to settings, and listed with what they open. A policy
// with one is refused: it would open nothing, and no error would tell.
func TestHostGrants(t *testing.T) {
	listed := map[string]NamedGrant{}
	for _, g := range NamedGrants() {
		listed[g.Name] = g
	}
	for _, g := range grants.HostGrants() {
		t.Run(g.Name, func(t *testing.T) {
			for _, host := range g.Hosts {
				if !strings.Contains(listed[g.Name].Opens, host) {
					t.Errorf("%s is not in %q", host, listed[g.Name].Opens)
				}
			}
			if !Known(g.Name) || listed[g.Name].Warning != g.Warning {
				t.Errorf("%+v", listed[g.Name])
			}
			var refused *sandbox.UnsupportedError
			if err := CheckNamed([]string{GrantGit, g.Name}); !errors.As(err, &refused) ||
				!strings.Contains(refused.Hint, g.Hosts[0]) {
				t.Errorf("%v", err)
			}
		})
	}
	if Known("net:nonesuch") || Known("net:") {
		t.Error("an unknown name is known")
	}
}
