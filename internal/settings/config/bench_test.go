// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// twentyProfiles is a file of settings with 20 profiles.
func twentyProfiles() string {
	var b strings.Builder
	b.WriteString("sandbox = 'p19'\nlevel = 'bwrap'\ndeny = ['**/.env', '**/*.pem']\n[limits]\ntimeout = '30m'\nmemory = '4GiB'\n[environment]\nexclude = ['X_*']\n")
	for i := range 20 {
		parent := "workspace-write"
		if i > 0 {
			parent = fmt.Sprintf("p%d", i-1)
		}
		fmt.Fprintf(&b, "[profiles.p%d]\nextends = '%s'\ndescription = 'for tests'\nwrite = ['/srv/%d']\ndeny = ['secrets/%d']\ngrants = ['git']\nlimits.pids = %d\n", i, parent, i, i, 100+i)
	}
	return b.String()
}

// BenchmarkLayers guards: reading and merging all layers with 20 profiles takes at most 3 ms.
func BenchmarkLayers(b *testing.B) {
	p := newPlace(b)
	w := world{
		managed: "level = 'bwrap'\ngrants = ['git', 'cache:*']\nwrite = ['/srv', ':workspace']\n",
		more:    "limits.memory = '8GiB'",
		user:    twentyProfiles(), project: "deny = ['x']\nlimits.pids = 50\n",
		environ: []string{"SALLYPORT_LEVEL=native"}, flags: []string{"limits.cpus=2"},
	}
	if _, err := w.resolve(b, p); err != nil {
		b.Fatal(err)
	}
	c, err := w.load(b, p)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c, err := Load(c.in)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.Resolve(w.given(p)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOneFile guards: what settings add to a short run with one user file, in process, is
// at most 0.5 ms.
func BenchmarkOneFile(b *testing.B) {
	p := newPlace(b)
	c, err := (&world{user: "sandbox = 'workspace-write'\nlevel = 'bwrap'\ndeny = ['**/.env']\n[limits]\ntimeout = '5m'\n"}).load(b, p)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c, err := Load(c.in)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.Resolve(nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParse guards: a file with 20 profiles is parsed in less time than a cache of it could
// be checked in, so that there is none.
func BenchmarkParse(b *testing.B) {
	text := []byte(twentyProfiles())
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := syntax.ParseTOML(text); err != nil {
			b.Fatal(err)
		}
	}
}
