// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package questions

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
