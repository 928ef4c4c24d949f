// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"os"
	"testing"
)

// TestDocumented: every method is in the schema of the protocol.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/protocol.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for name := range decoders() {
		if !bytes.Contains(text, []byte(`"`+name+`"`)) {
			t.Errorf("%s is not in the schema", name)
		}
	}
}
