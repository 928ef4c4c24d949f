// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

func TestMain(m *testing.M) {
	testenv.MostlyWait()
	goleak.VerifyTestMain(m)
}
