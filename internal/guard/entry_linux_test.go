// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

const (
	idA = "0123456789abcdef"
	idB = "fedcba9876543210"
)

// TestDecodeEntry reads entries as they are after each step, and others.
func TestDecodeEntry(t *testing.T) {
	const head = entryMagic + `"/w/x"` + "\n"
	tests := []struct {
		name, text string
		want       entry
		err        string
	}{
		{name: "intent", text: head + "+ " + idA + "\nmake\n", want: entry{path: "/w/x", holders: []string{idA}, making: true}},
		{name: "made", text: head + "+ " + idA + "\nmake\nmade 1 2 3\n",
			want: entry{path: "/w/x", holders: []string{idA}, made: true, id: ident{1, 2, 3}}},
		{name: "shared and given back", text: head + "+ " + idA + "\nmake\nmade 1 2 -3\n+ " + idB + "\n- " + idA + "\n",
			want: entry{path: "/w/x", holders: []string{idB}, made: true, id: ident{1, 2, -3}}},
		{name: "made anew", text: head + "+ " + idA + "\nmake\nmade 1 2 3\nmake\n", want: entry{path: "/w/x", holders: []string{idA}, making: true}},
		{name: "torn end", text: head + "+ " + idA + "\nmake\nmade 1 2", want: entry{path: "/w/x", holders: []string{idA}, making: true, torn: true}},
		{name: "strange path", text: entryMagic + `"/w/\xff\n"` + "\n", want: entry{path: "/w/\xff\n"}},
		{name: "nothing", text: "", err: errTorn.Error()},
		{name: "torn beginning", text: "sallyp", err: errTorn.Error()},
		{name: "torn path", text: entryMagic + `"/w/x"`, err: errTorn.Error()},
		{name: "something else", text: "hello", err: "not an entry"},
		{name: "another version", text: "sallyport guard 2 \"/w\"\n", err: "not an entry"},
		{name: "relative path", text: entryMagic + `"w"` + "\n", err: "invalid path"},
		{name: "path with dots", text: entryMagic + `"/w/../etc"` + "\n", err: "invalid path"},
		{name: "zero byte", text: entryMagic + `"/w\x00"` + "\n", err: "invalid path"},
		{name: "other quotes", text: entryMagic + "`/w`" + "\n", err: "invalid path"},
		{name: "holder with a slash", text: head + "+ ../../../../abcdef\n", err: "invalid line"},
		{name: "short holder", text: head + "- 12\n", err: "invalid line"},
		{name: "no identity", text: head + "made x\n", err: "identity"},
		{name: "identity with more", text: head + "made 1 2 3 4\n", err: "identity"},
		{name: "unknown word", text: head + "remove /etc\n", err: "invalid line"},
		{name: "empty line", text: head + "\n", err: "invalid line"},
		{name: "make with more", text: head + "make \n", err: "invalid line"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := decodeEntry([]byte(tt.text))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("err = %v, want %q in it", err, tt.err)
				}
				return
			}
			check(t, err)
			tt.want.size = len(tt.text)
			if tt.want.holders == nil {
				got.holders = nil
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// FuzzDecodeEntry: what decodes says the same when it is written and read again,
// and so does every beginning of it at the end of a line.
func FuzzDecodeEntry(f *testing.F) {
	f.Add([]byte(entryMagic + `"/w/x"` + "\n+ " + idA + "\nmake\nmade 1 2 3\n+ " + idB + "\n- " + idA + "\n"))
	f.Add([]byte(entryMagic + `"/\xff"` + "\nmake\nfol"))
	f.Add([]byte("sally"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := decodeEntry(data)
		if err != nil {
			if errors.Is(err, errTorn) && bytes.Contains(data, []byte("\n")) {
				t.Error("torn, but the first line is complete")
			}
			return
		}
		if !validPath(e.path) {
			t.Errorf("path %q", e.path)
		}
		again, err := decodeEntry(e.encode())
		if err != nil {
			t.Fatalf("%v: %q", err, e.encode())
		}
		again.size, again.torn = e.size, e.torn
		if len(e.holders) == 0 {
			e.holders, again.holders = nil, nil
		}
		if !reflect.DeepEqual(e, again) {
			t.Errorf("%+v became %+v", e, again)
		}
		if i := bytes.LastIndexByte(data, '\n'); i >= 0 {
			if _, err := decodeEntry(data[:i+1]); err != nil {
				t.Errorf("without its last line: %v", err)
			}
		}
	})
}
