// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package browser tests the console in a real browser: Chromium opens the page that the command serves,
// clicks, types and reads as a person would. It has tests only, and they need Linux.
package browser
