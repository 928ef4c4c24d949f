// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	testenv.DefaultSignals()
	testenv.MostlyWait()
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(testenv.HungMounts))
}
