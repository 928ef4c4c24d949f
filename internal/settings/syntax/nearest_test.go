// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"workspace-write", "read-only", "full-access", "run", "doctor"}
	tests := []struct{ name, word, want string }{
		{"itself", "run", "run"},
		{"swapped letters", "rnu", "run"},
		{"letter case", "READ-ONLY", "read-only"},
		{"a letter lost", "readonly", "read-only"},
		{"beginning", "doc", "doctor"},
		{"beginning of a long one", "work", "workspace-write"},
		{"far away", "banana", ""},
		{"empty", "", ""},
		{"very long", strings.Repeat("run", 1000), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := NearestWord(tt.word, known); got != tt.want {
				t.Errorf("Word(%q) = %q, want %q", tt.word, got, tt.want)
			}
		})
	}
}
