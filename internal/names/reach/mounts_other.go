// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package reach

type oneName struct{}

// Aliases finds none.
func (oneName) Aliases(string) ([]string, bool) { return nil, true }

func mountTable() table { return oneName{} }

// kernelStarts finds none.
func kernelStarts(string) string { return "" }
