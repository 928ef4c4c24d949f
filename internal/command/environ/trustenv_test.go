// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"slices"
	"testing"
)

// TestWithJava: options of others stay as they are, and ours come last, where they win.
func TestWithJava(t *testing.T) {
	const ours = "-Djavax.net.ssl.trustStore=/s.p12 -Djavax.net.ssl.trustStoreType=PKCS12 -Djavax.net.ssl.trustStorePassword="
	for _, tt := range []struct {
		name      string
		env, want []string
	}{
		{"none", []string{"A=1"}, []string{"A=1", "JAVA_TOOL_OPTIONS=" + ours}},
		{"others", []string{"JAVA_TOOL_OPTIONS=-Xmx1g  '-Dx=y  z'", "A=1"}, []string{"A=1", "JAVA_TOOL_OPTIONS=-Xmx1g  '-Dx=y  z' " + ours}},
		{"a store", []string{"JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=/old"}, []string{"JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=/old " + ours}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			given := slices.Clone(tt.env)
			if got := WithJavaTrust(given, "/s.p12"); !slices.Equal(got, tt.want) ||
				!slices.Equal(given, tt.env) {
				t.Errorf("%q, want %q; given %q", got, tt.want, given)
			}
		})
	}
}
