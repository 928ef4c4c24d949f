// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e holds the end-to-end tests of the module's root package: they run real commands on
// this machine by its exported API, as programs that import it do. What is decided without a real
// command is tested in the root, with executors that tests play (internal/test/executortest).
package e2e
