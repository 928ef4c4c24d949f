// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

// askedParts are programs that do more than one call.
func askedParts() map[string]func(at, ws string) error {
	return nil
}
