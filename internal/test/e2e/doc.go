// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e holds the end-to-end tests of the module's root package: they run real commands on
// this machine by its exported API, as programs that import it do. What is decided without a real
// command is tested in the root, with executors that tests play.
//
// Those executors are here as well, and the contract of executors as tests: what package executor promises is
// the same wherever a command runs.
//
// Its benchmarks compare what starting a command costs with what it costs elsewhere. Machines drift, so
// nothing is compared across runs: all variants run in each round, in rotating order, and what is reported is
// the median of the ratios inside the rounds ([Rounds]).
package e2e
