// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"github.com/sallyport-dev/sallyport/internal/darwin"
	"github.com/sallyport-dev/sallyport/internal/process"
)

type (
	host  = darwin.Host
	child = process.Group
)
