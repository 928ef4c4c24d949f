// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package inputwait

import (
	"os"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.MostlyWait()
	os.Exit(m.Run())
}
