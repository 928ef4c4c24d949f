// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package waits

import (
	"os"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

func TestMain(m *testing.M) {
	testenv.MostlyWait()
	os.Exit(m.Run())
}
