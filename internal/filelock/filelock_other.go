// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

// Package filelock waits for locks of files, where there are such locks.
package filelock
