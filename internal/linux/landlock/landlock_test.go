// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package landlock

import "testing"

func TestWritesByABI(t *testing.T) {
	cases := []struct {
		name string
		abi  ABI
		want Right
		file Right
	}{
		{"none", 0, 0, 0},
		{"first", 1, write1, WriteFile},
		{"refer", 2, write1 | Refer, WriteFile},
		{"truncate", 3, write1 | Refer | Truncate, WriteFile | Truncate},
		{"network adds no file right", 4, write1 | Refer | Truncate, WriteFile | Truncate},
		{"device ioctl", 5, write1 | Refer | Truncate | IoctlDev, WriteFile | Truncate | IoctlDev},
		{"newer than we know", 99, write1 | Refer | Truncate | IoctlDev, WriteFile | Truncate | IoctlDev},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.abi.Writes(); got != c.want {
				t.Errorf("Writes() = %#x, want %#x", got, c.want)
			}
			if got := c.abi.FileWrites(); got != c.file {
				t.Errorf("FileWrites() = %#x, want %#x", got, c.file)
			}
			if got := c.abi.Writes() & (ReadFile | ReadDir | Execute); got != 0 {
				t.Errorf("Writes() names the reading rights %#x", got)
			}
		})
	}
}

func TestScopesByABI(t *testing.T) {
	if got := ABI(5).Scopes(); got != 0 {
		t.Errorf("ABI 5 has scopes %#x, want none", got)
	}
	if got := ABI(6).Scopes(); got != ScopeAbstractUnixSocket|ScopeSignal {
		t.Errorf("ABI 6 has scopes %#x", got)
	}
}
