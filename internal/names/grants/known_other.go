// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package grants

// Search finds nothing: modes of files do not say here who can read them.
func (k *KnownSecrets) Search(string) (found []Store, complete bool) { return nil, true }
