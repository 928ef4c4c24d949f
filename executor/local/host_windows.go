// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import "github.com/sallyport-dev/sallyport/internal/otheros"

type (
	host  = otheros.Host
	child = otheros.Job
)
