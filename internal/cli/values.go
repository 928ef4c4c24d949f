// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// parseDuration reads a length of time such as "30s" or "1m30s". Negative ones
// are refused.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil && d >= 0 {
		return d, nil
	}
	if _, number := strconv.ParseFloat(s, 64); number == nil && err != nil && !strings.HasPrefix(s, "-") {
		return 0, fmt.Errorf("%q has no unit; did you mean %ss?", s, s)
	}
	return 0, fmt.Errorf("%q is no length of time; write it like 30s, 5m or 1h30m", s)
}

// sizeUnits are the endings of sizes. A letter alone is binary, as with dd(1)
// and ulimit, and so is one with "i"; a letter with "B" is decimal.
var sizeUnits = []struct {
	ending string
	bytes  int64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9},
	{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30},
	{"b", 1},
}

// parseSize reads a number of bytes such as "65536", "64k", "1MiB" or "10MB".
func parseSize(s string) (int, error) {
	bad := fmt.Errorf("%q is no size; write it like 65536, 64k, 1MiB or 10MB", s)
	digits, unit := strings.ToLower(s), int64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(digits, u.ending); ok {
			digits, unit = strings.TrimRight(rest, " "), u.bytes
			break
		}
	}
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, bad
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > math.MaxInt/unit {
		return 0, fmt.Errorf("%q is larger than this system can count", s)
	}
	return int(n * unit), nil
}
