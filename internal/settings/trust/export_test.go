// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package trust

// WriteSettings writes the first file of the project in dir, which is not trusted by that.
func WriteSettings(dir string, s []byte) error {
	return writeSettings(dir, nil, s, func() error { return nil })
}
