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

	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// A Type is what the value of a key is. As a text, of a flag or a variable, a Bool is "true" or
// "false", a List has commas between its elements, an element of a Map is "K=V", and one of
// Tables "NAME.MEMBER=V".
type Type uint8

// The types. Size, Duration, Count and CPUs are strings with a unit or numbers.
const (
	Word     Type = iota // one of Key.Words
	Text                 // a string that is not empty
	Any                  // any string
	Bool                 // true or false
	Size                 // bytes: "512MiB" or a number
	Duration             // "30s" or a number of seconds
	Count                // a whole number
	CPUs                 // a number such as 1.5
	List                 // an array of strings
	Map                  // a table of strings
	Tables               // a table of tables by name, which have the members of Key.table
)

// types say what is known of each type.
var types = [...]struct {
	shape  string                        // in a sentence
	kinds  []syntax.TOMLKind             // in a file; nil where each value is read by itself
	schema []string                      // the types of JSON Schema; nil for one of Key.Words
	number func(string) (float64, error) // what a text means; nil if it is no number
}{
	Word:     {"a string", []syntax.TOMLKind{syntax.String}, nil, nil},
	Text:     {"a string", []syntax.TOMLKind{syntax.String}, []string{"string"}, nil},
	Bool:     {"true or false", []syntax.TOMLKind{syntax.Bool}, []string{"boolean"}, nil},
	Size:     {`a size such as "512MiB", or a number of bytes`, numbers, []string{"string", "integer"}, numeric(ParseSize)},
	Duration: {`a duration such as "30s", or a number of seconds`, numbers, []string{"string", "number"}, numeric(ParseDuration)},
	Count:    {"a number", numbers[1:], []string{"integer"}, numeric(ParsePIDs)},
	CPUs:     {"a number", numbers[1:], []string{"number"}, ParseCPUs},
	List:     {"an array of strings", []syntax.TOMLKind{syntax.Array}, []string{"array"}, nil},
	Map:      {"a table of strings", nil, []string{"object"}, nil},
	Tables:   {"a table of tables", nil, []string{"object"}, nil},
}

var numbers = []syntax.TOMLKind{syntax.String, syntax.Number}

// numeric is a function that reads numbers, for values of any kind.
func numeric[N int | int64 | time.Duration](read func(string) (N, error)) func(string) (float64, error) {
	return func(text string) (float64, error) {
		n, err := read(text)
		return float64(n), err
	}
}

// An Order says which of two values is the narrower one. The project and the ceiling move values
// towards narrow only; keys without an order cannot be set by them.
type Order uint8

// The orders.
const (
	None       Order = iota
	Words            // earlier in Key.Words
	Smaller          // the smaller number; none at all is the widest
	TrueFirst        // true
	FalseFirst       // false
	Narrows          // a list that takes away: all layers add to it
	Opens            // a list that opens: the ceiling lists what may be in it
	Fixes            // the value of the ceiling holds; a project cannot set it
)

const digits = "0123456789"

// ParseDuration reads a duration such as "30s" or "1m30s". A number alone is in seconds, as
// with timeout(1) and sleep(1). Negative ones are refused.
func ParseDuration(s string) (time.Duration, error) { return syntax.ParseDuration(s) }

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
func quoted(s string) string { return syntax.QuoteFlag(s) }
