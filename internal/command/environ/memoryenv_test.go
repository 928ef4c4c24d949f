// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"slices"
	"testing"
)

func TestWithMemory(t *testing.T) {
	t.Parallel()
	const (
		limit = 600 << 20
		node  = "NODE_OPTIONS="
		java  = "JAVA_TOOL_OPTIONS="
		heap  = "--max-old-space-size=450"
		ram   = "-XX:MaxRAM=629145600"
	)
	for _, tt := range []struct {
		name      string
		env, want []string
		limit     int64
	}{
		{"no limit", []string{"A=1"}, []string{"A=1"}, 0},
		{"nothing set", []string{"A=1"}, []string{"A=1", node + heap, java + ram}, limit},
		{"other options", []string{node + "--no-warnings", java + "-Dx=y"},
			[]string{node + "--no-warnings " + heap, java + "-Dx=y " + ram}, limit},
		{"a heap of the caller's", []string{node + "--max-old-space-size=64", java + "-Xmx64m"},
			[]string{node + "--max-old-space-size=64", java + "-Xmx64m"}, limit},
		{"empty", []string{node, java}, []string{node + heap, java + ram}, limit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(tt.env)
			if got := WithMemory(tt.env, tt.limit); !slices.Equal(got, tt.want) ||
				!slices.Equal(tt.env, before) {
				t.Errorf("%q, want %q; the argument is %q", got, tt.want, tt.env)
			}
		})
	}
}
