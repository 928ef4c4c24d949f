// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package suffixes knows the public suffixes of names.
package suffixes

import (
	"strings"

	"golang.org/x/net/publicsuffix"
)

// IsPublic reports whether everybody can register a name directly below this one, such as "com",
// "co.uk" and "github.io". A top-level name that is not listed, as of a private network, is none.
// The name is in lower case, with A-labels.
func IsPublic(name string) bool {
	suffix, registry := publicsuffix.PublicSuffix(name)
	return suffix == name && (registry || strings.Contains(name, "."))
}
