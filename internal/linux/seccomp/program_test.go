// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"slices"
	"testing"
)

func TestProgram(t *testing.T) {
	for _, o := range []Options{
		{Arch: "amd64", OwnPID: true},
		{Arch: "arm64", OwnPID: true, HostNetwork: true, Observe: true},
		{Arch: "amd64", Allow: []string{"unix"}, HostSpaces: true},
	} {
		got, err := Program(o)
		if err != nil {
			t.Fatal(err)
		}
		if want := Words(mustCompile(t, mustDefault(t, o))); !slices.Equal(got, want) {
			t.Errorf("%+v: %d words that differ from the compiled deny list", o, len(got))
		}
	}
	var unknown *UnknownOpeningError
	if _, err := Program(Options{Arch: "amd64", Allow: []string{"nothing"}}); !errors.As(err, &unknown) {
		t.Errorf("unknown opening: %v", err)
	}
	var arch *UnsupportedArchError
	if _, err := Program(Options{Arch: "386"}); !errors.As(err, &arch) {
		t.Errorf("unknown architecture: %v", err)
	}
}

// TestWordsAreSockFilter: a word has the fields of struct sock_filter in the order of a
// little-endian machine.
func TestWordsAreSockFilter(t *testing.T) {
	got := Words([]Instruction{{Code: 0x1122, JT: 0x33, JF: 0x44, K: 0x55667788}})
	if want := []uint64{0x5566778844331122}; !slices.Equal(got, want) {
		t.Errorf("%#x, want %#x", got, want)
	}
}
