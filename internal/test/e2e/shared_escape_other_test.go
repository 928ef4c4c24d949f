// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package e2e_test

func playDriver() {} // only Linux has shared sandboxes
