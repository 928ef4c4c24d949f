// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Quote returns s as a JSON string, in which <, > and & stand as they are. Bytes that are no
// UTF-8 become U+FFFD.
func Quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}
