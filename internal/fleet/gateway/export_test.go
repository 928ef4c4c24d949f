// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import "time"

// SetAway sets how long clients that were cut may stay away.
func (g *Gateway) SetAway(d time.Duration) { g.away = d }
