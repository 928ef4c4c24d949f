// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package caches

// List returns nothing: there are no private layers on this system.
func List(string) ([]Entry, error) { return nil, nil }

// Clear has nothing to remove on this system.
func Clear(string, string) (Cleared, error) { return Cleared{}, nil }
