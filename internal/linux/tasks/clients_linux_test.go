// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"slices"
	"strconv"
	"testing"
)

// TestMappedID: an id is told as the user namespace of the one who asks has it.
func TestMappedID(t *testing.T) {
	for _, c := range []struct {
		name, table string
		id, want    uint32
	}{
		{"one user", "      1000       1000          1\n", 1000, 1000},
		{"as root", "         0       1000          1\n", 1000, 0},
		{"a range", "0 1000 1\n1 100000 65536\n", 100041, 42},
		{"the whole", "0 0 4294967295\n", 1000, 1000},
		{"not there", "0 1000 1\n", 1001, 65534},
		{"no table", "", 1000, 65534},
		{"no numbers", "a b c\n", 1000, 65534},
	} {
		if got := MappedID(c.table, c.id); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestClients: the latest connections are known, and no more than so many.
func TestClients(t *testing.T) {
	var all Clients
	for i := range uint32(maxClients + 10) {
		all.Add(i, Client{IDs: []string{strconv.Itoa(int(i))}})
	}
	all.Add(20, Client{IDs: []string{"again"}})
	for _, c := range []struct {
		ino  uint32
		want []string
	}{
		{0, nil}, {9, nil}, {10, []string{"10"}}, {20, []string{"again"}},
		{maxClients + 9, []string{"1033"}},
	} {
		if got, ok := all.Find(c.ino); ok != (c.want != nil) || !slices.Equal(got.IDs, c.want) {
			t.Errorf("%d: %v, %v, want %v", c.ino, got.IDs, ok, c.want)
		}
	}
	if len(all.of) != maxClients || len(all.order) != maxClients {
		t.Errorf("%d and %d are kept", len(all.of), len(all.order))
	}
}
