// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"fmt"
	"strings"
	"time"
)

// ParseDuration reads a duration such as "30s", "5m" or "1h30m"; a number alone counts seconds. The error
// is a sentence.
func ParseDuration(s string) (time.Duration, error) {
	unit := ""
	if strings.Trim(s, "0123456789.") == "" {
		unit = "s"
	}
	if d, err := time.ParseDuration(s + unit); err == nil && d >= 0 {
		return d, nil
	}
	return 0, fmt.Errorf("invalid duration %s; use seconds, or a form such as 30s, 5m or 1h30m", QuoteFlag(s))
}
