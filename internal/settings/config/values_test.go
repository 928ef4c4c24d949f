// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	tests := []struct {
		name, in string
		want     time.Duration
		err      string
	}{
		{name: "seconds", in: "30s", want: 30 * time.Second},
		{name: "parts", in: "1h1m1ms", want: time.Hour + time.Minute + time.Millisecond},
		{name: "zero", in: "0"},
		{name: "a number is seconds, as for timeout(1)", in: "5", want: 5 * time.Second},
		{name: "parts of a second", in: "1.5", want: 1500 * time.Millisecond},
		{name: "parts of a unit", in: "2.5m", want: 150 * time.Second},
		{name: "a dot", in: ".", err: `invalid duration "."; use seconds, or a form such as 30s, 5m or 1h30m`},
		{name: "negative", in: "-1s", err: `invalid duration "-1s"; use seconds, or a form such as 30s, 5m or 1h30m`},
		{name: "empty", in: "", err: `invalid duration ""; use seconds, or a form such as 30s, 5m or 1h30m`},
		{name: "words", in: "a while", err: `invalid duration "a while"; use seconds, or a form such as 30s, 5m or 1h30m`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseDuration(tt.in)
			if got != tt.want || errorText(err) != tt.err {
				t.Errorf("%v, %q; want %v, %q", got, errorText(err), tt.want, tt.err)
			}
		})
	}
}

func TestSize(t *testing.T) {
	tests := []struct {
		name, in string
		want     int64
		bad      bool
	}{
		{name: "bytes", in: "65536", want: 65536},
		{name: "bytes with unit", in: "12B", want: 12},
		{name: "binary", in: "1MiB", want: 1 << 20},
		{name: "a letter alone is binary", in: "64k", want: 64 << 10},
		{name: "any letter case", in: "2m", want: 2 << 20},
		{name: "decimal", in: "10MB", want: 10_000_000},
		{name: "with a space", in: "10 kB", want: 10_000},
		{name: "zero", in: "0", want: 0},
		{name: "nothing", in: "", bad: true},
		{name: "unit alone", in: "MiB", bad: true},
		{name: "negative", in: "-1", bad: true},
		{name: "fraction", in: "1.5M", bad: true},
		{name: "unknown unit", in: "1TB", bad: true},
		{name: "too large to count", in: "99999999999999999999", bad: true},
		{name: "too large with unit", in: "9223372036854775807k", bad: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseSize(tt.in)
			if got != tt.want || (err != nil) != tt.bad {
				t.Errorf("%d, %v; want %d, bad %v", got, err, tt.want, tt.bad)
			}
		})
	}
}

// FuzzSize checks that what is accepted is never negative, and that a plain
// number is itself.
func FuzzSize(f *testing.F) {
	for _, s := range []string{"1", "64k", "1MiB", "10 MB", "-1", "1e3", "٣"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := ParseSize(s); err == nil && (n < 0 || !strings.ContainsAny(s, "0123456789")) {
			t.Fatalf("%q gives %d", s, n)
		}
	})
}

func FuzzNumbers(f *testing.F) {
	for _, s := range []string{"1", "0.5", "1e9", "NaN", "0x10", "1_000", ".", "٣",
		"99999999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := ParseCPUs(s); err == nil && !(n > 0 && n < 1e308) {
			t.Errorf("%q is %v processors", s, n)
		}
		if n, err := ParsePIDs(s); err == nil && n <= 0 {
			t.Errorf("%q is %d processes", s, n)
		}
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
