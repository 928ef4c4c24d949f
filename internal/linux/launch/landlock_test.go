// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package launch

import "testing"

func TestWritesByABI(t *testing.T) {
	const (
		file     = LandlockWriteFile
		refer    = LandlockRefer
		truncate = LandlockTruncate
		device   = LandlockIoctlDev
	)
	cases := []struct {
		name string
		abi  LandlockABI
		want LandlockRight
		file LandlockRight
	}{
		{"none", 0, 0, 0},
		{"first", 1, landlockWrites, LandlockWriteFile},
		{"refer", 2, landlockWrites | LandlockRefer, LandlockWriteFile},
		{"truncate", 3, landlockWrites | refer | truncate, file | truncate},
		{"network adds no file right", 4, landlockWrites | refer | truncate, file | truncate},
		{"device ioctl", 5, landlockWrites | refer | truncate | device, file | truncate | device},
		{"newer than we know", 99, landlockWrites | refer | truncate | device, file | truncate | device},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.abi.Writes(); got != c.want {
				t.Errorf("Writes() = %#x, want %#x", got, c.want)
			}
			if got := c.abi.FileWrites(); got != c.file {
				t.Errorf("FileWrites() = %#x, want %#x", got, c.file)
			}
			if got := c.abi.Writes() & (LandlockReadFile | LandlockReadDir | LandlockExecute); got != 0 {
				t.Errorf("Writes() names the reading rights %#x", got)
			}
		})
	}
}

func TestScopesByABI(t *testing.T) {
	if got := LandlockABI(5).Scopes(); got != 0 {
		t.Errorf("ABI 5 has scopes %#x, want none", got)
	}
	if got := LandlockABI(6).Scopes(); got != LandlockScopeAbstractUnixSocket|LandlockScopeSignal {
		t.Errorf("ABI 6 has scopes %#x", got)
	}
}
