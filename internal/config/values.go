// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/internal/getopt"
)

const digits = "0123456789"

// ParseDuration reads a duration such as "30s" or "1m30s". A number alone is in seconds, as
// with timeout(1) and sleep(1). Negative ones are refused.
func ParseDuration(s string) (time.Duration, error) {
	unit := ""
	if strings.Trim(s, digits+".") == "" {
		unit = "s"
	}
	if d, err := time.ParseDuration(s + unit); err == nil && d >= 0 {
		return d, nil
	}
	return 0, fmt.Errorf("invalid duration %s; use seconds, or a form such as 30s, 5m or 1h30m", quoted(s))
}

// sizeUnits are the endings of sizes. A letter alone is binary, as with dd(1)
// and ulimit, and so is one with "i"; a letter with "B" is decimal.
var sizeUnits = sync.OnceValue(func() map[string]int64 {
	return map[string]int64{
		"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9,
		"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30,
	}
})

// ParseSize reads a number of bytes such as "65536", "64k", "1MiB" or "10MB".
func ParseSize(s string) (int64, error) {
	count := s[:len(s)-len(strings.TrimLeft(s, digits))]
	unit := sizeUnits()[strings.ToLower(strings.TrimLeft(s[len(count):], " "))]
	if count == "" || unit == 0 {
		return 0, fmt.Errorf("invalid size %s; use a form such as 65536, 64k, 1MiB or 10MB", quoted(s))
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil || n > math.MaxInt/unit {
		return 0, fmt.Errorf("size %s is too large for this system", quoted(s))
	}
	return n * unit, nil
}

var errZeroLimit = errors.New("a limit of 0 is invalid; leave it out for no limit")

// ParseLimit reads a limit in bytes.
func ParseLimit(s string) (int64, error) {
	n, err := ParseSize(s)
	if err == nil && n == 0 {
		err = errZeroLimit
	}
	return n, err
}

// ParseCPUs reads a number of processors such as "2" or "0.5".
func ParseCPUs(s string) (float64, error) {
	n, err := strconv.ParseFloat(s, 64)
	// The form is narrower than that of the number: no exponents, signs or words.
	if err != nil || strings.Trim(s, digits+".") != "" || math.IsInf(n, 0) {
		return 0, fmt.Errorf("invalid number of processors %s; use a form such as 2 or 0.5", quoted(s))
	}
	if n == 0 {
		return 0, errZeroLimit
	}
	return n, nil
}

// ParsePIDs reads a number of processes.
func ParsePIDs(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("invalid number of processes %s; use a number such as 200", quoted(s))
	}
	if n == 0 {
		return 0, errZeroLimit
	}
	return int(n), nil
}

var (
	errEmpty = errors.New("the value is empty")
	errNUL   = errors.New("the value has a NUL character")
)

// quoted puts a word of others into a message, shortened.
func quoted(s string) string { return getopt.Quote(s) }
