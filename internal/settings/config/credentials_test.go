// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

// TestCredentialMembers: what a credential needs, and which members go together.
func TestCredentialMembers(t *testing.T) {
	p := newPlace(t)
	for _, tt := range []struct{ name, members, want string }{
		{"a variable", `env = "T"`, ""},
		{"a file", `env = "T", file = "~/f"`, ""},
		{"a part of a file", `file = "~/f", find = "t=(.*)"`, ""},
		{"a part of a file, in base64", `env = "T", file = "~/f", find = "t=(.*)", form = "basic"`, ""},
		{"none", `where = ["bearer"]`, "has no env; add it"},
		{"a file alone", `file = "~/f"`, "has no env; add it"},
		{"find without a file", `env = "T", find = "t=(.*)"`, "has no file; add it"},
		{"form without find", `env = "T", file = "~/f", form = "basic"`, "has no find; add it"},
		{"another form", `file = "~/f", find = "t=(.*)", form = "hex"`, "unknown form"},
		{"no group", `file = "~/f", find = "t=.*"`, "find has 0 groups in parentheses; one, for the value, is needed"},
		{"two groups", `file = "~/f", find = "(t)=(.*)"`, "find has 2 groups"},
		{"no expression", `file = "~/f", find = "("`, "find: error parsing regexp"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := world{user: `network.credentials.g = { hosts = ["api.example.com"], ` + tt.members + ` }`}
			e, err := w.resolve(t, p)
			if err == nil {
				_, err = e.Credentials()
			}
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
