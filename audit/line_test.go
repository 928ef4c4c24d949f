// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// aLine is a good line without its end.
func aLine() string {
	b, _ := appendLine(nil, line{n: 17, prev: sha256.Sum256(nil), time: time.Unix(1, 500).UTC(), kind: "event",
		body: []byte(`{"a":"\"hash\":\"","b":[1]}`)})
	return strings.TrimSuffix(string(b), "\n")
}

// hashed replaces a part of the good line, and its hash by that of what it is then.
func hashed(old, changed string) string {
	s := strings.Replace(aLine(), old, changed, 1)
	s = s[:len(s)-tailLen]
	h := sha256.Sum256([]byte(s))
	return s + hashMember + hex.EncodeToString(h[:]) + `"}`
}

// TestParseLine: there is one spelling of a line, and all others are refused, also with the right hash.
func TestParseLine(t *testing.T) {
	const zero = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for name, tc := range map[string]struct {
		text string
		err  error
	}{
		"good":                  {aLine(), nil},
		"good with another n":   {hashed(`"n":17`, `"n":18446744073709551615`), nil},
		"empty":                 {"", errForm},
		"no JSON":               {"x", errForm},
		"only the begin":        {`{"n":17`, errForm},
		"another n":             {strings.Replace(aLine(), "17", "18", 1), errHash},
		"n 0":                   {hashed(`"n":17`, `"n":0`), errForm},
		"n with a zero":         {hashed(`"n":17`, `"n":017`), errForm},
		"n that is too large":   {hashed(`"n":17`, `"n":18446744073709551616`), errForm},
		"n below 0":             {hashed(`"n":17`, `"n":-17`), errForm},
		"n as text":             {hashed(`"n":17`, `"n":"17"`), errForm},
		"a blank":               {hashed(`,"prev"`, ` ,"prev"`), errForm},
		"a short prev":          {hashed(zero, zero[:62]), errForm},
		"prev in capitals":      {hashed(zero, strings.ToUpper(zero)), errForm},
		"time of another zone":  {hashed("00:00:01.0000005Z", "01:00:01.0000005+01:00"), errForm},
		"time with more digits": {hashed("01.0000005Z", "01.00000050Z"), errForm},
		"no time":               {hashed("1970", "x970"), errForm},
		"kind in capitals":      {hashed(`"event"`, `"Event"`), errForm},
		"no kind":               {hashed(`"event"`, `""`), errForm},
		"a long kind":           {hashed("event", strings.Repeat("e", 33)), errForm},
		"another member":        {hashed(`,"kind"`, `,"more":1,"kind"`), errForm},
		"body no object":        {hashed(`{"a":"\"hash\":\"","b":[1]}`, `[1]`), errForm},
		"body no JSON":          {hashed(`[1]`, `[1`), errForm},
		"two bodies":            {hashed(`[1]}`, `[1]},"body":{}`), errForm},
		"hash in capitals":      {aLine()[:len(aLine())-66] + strings.ToUpper(aLine()[len(aLine())-66:]), errForm},
		"another hash":          {aLine()[:len(aLine())-66] + zero + `"}`, errHash},
		"more behind it":        {aLine() + " ", errForm},
		"without its end":       {aLine()[:len(aLine())-1], errForm},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := parseLine([]byte(tc.text))
			if err != tc.err { //nolint:errorlint // it is one of two values
				t.Fatalf("%q: %v, want %v", tc.text, err, tc.err)
			}
			if b, _ := appendLine(nil, l); err == nil && string(b) != tc.text+"\n" {
				t.Errorf("written again it is %q, was %q", b, tc.text)
			}
		})
	}
}

// FuzzParseLine: what is read is written in the same way, and nothing panics.
func FuzzParseLine(f *testing.F) {
	f.Add([]byte(aLine()))
	f.Add([]byte(hashed(`[1]}`, `[1]},"body":{}`)))
	f.Add([]byte(`{"n":`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := parseLine(text)
		if err != nil {
			return
		}
		if b, hash := appendLine(nil, l); hash != l.hash || string(b) != string(text)+"\n" {
			t.Errorf("%q is written as %q", text, b)
		}
	})
}

// FuzzState: whatever the file of the checkpoint has, a writer makes something of it.
func FuzzState(f *testing.F) {
	f.Add([]byte("a\n1\nb\n\n— x y\n{\"first\":1,\"n\":1,\"edge\":[\"" + strings.Repeat("00", 32) + "\"]}\n"))
	f.Add([]byte(`{"n":3,"edge":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, c := splitState(text)
		if c == nil {
			return
		}
		c.add(&entry{time.Unix(0, 0), "event", []byte("{}")})
		(&tree{c.N, c.Edge}).root()
	})
}

// TestTree: the right edge makes the root that package tlog computes of all hashes.
func TestTree(t *testing.T) {
	var stored []tlog.Hash
	read := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		var all []tlog.Hash
		for _, i := range indexes {
			all = append(all, stored[i])
		}
		return all, nil
	})
	c := new(tree)
	for i := range int64(70) {
		want, err := tlog.TreeHash(i, read)
		if err != nil || c.root() != want || !c.fits() {
			t.Fatalf("%d lines: %v, want %v (%v)", i, c.root(), want, err)
		}
		text := fmt.Appendf(nil, "line %d", i)
		more, err := tlog.StoredHashes(i, text, read)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, more...)
		c.add(text)
	}
}

// TestCheckpointText: the text of a checkpoint has one spelling.
func TestCheckpointText(t *testing.T) {
	c := checkpoint{"origin", 7, tlog.RecordHash(nil), time.Unix(1, 5)}
	good := c.text()
	if got, err := parseCheckpoint(good); err != nil || got.text() != good {
		t.Errorf("%v, %v", got, err)
	}
	for _, change := range [][2]string{{"\n7\n", "\n07\n"}, {"\n7\n", "\n-7\n"}, {"time ", ""}, {"time ", "time  "},
		{"origin\n", ""}, {"Z\n", "Z"}, {"Z\n", "Z\nmore\n"}, {"1970", "197"}} {
		if _, err := parseCheckpoint(strings.Replace(good, change[0], change[1], 1)); err == nil {
			t.Errorf("%q was taken with %q", change[0], change[1])
		}
	}
}

// TestScanLines: long lines, lines without an end, and where reading begins.
func TestScanLines(t *testing.T) {
	long := strings.Repeat("x", 3*maxLine)
	for name, tc := range map[string]struct {
		text  string
		from  int64
		want  []int // lengths of lines
		end   int64
		after int64
	}{
		"empty":         {"", 0, nil, 0, 0},
		"lines":         {"a\n\nbc\n", 0, []int{1, 0, 2}, 6, 0},
		"half":          {"a\nbc", 0, []int{1}, 2, 2},
		"only half":     {"bc", 0, nil, 0, 2},
		"from":          {"a\nbc\n", 2, []int{2}, 5, 0},
		"behind":        {"a\n", 9, nil, 9, 0},
		"long":          {strings.Repeat("y", 100_000) + "\nz\n", 0, []int{100_000, 1}, 100_003, 0},
		"too long":      {long + "\nz\n", 0, []int{-1, 1}, int64(len(long)) + 3, 0},
		"too long half": {"z\n" + long, 0, []int{1}, 2, int64(len(long))},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			end, half, err := scanLines(strings.NewReader(tc.text), tc.from, func(text []byte) error {
				if len(text) > maxLine {
					got = append(got, -1)
				} else {
					got = append(got, len(text))
				}
				if bytes.ContainsRune(text, '\n') {
					t.Errorf("a line has an end: %d bytes", len(text))
				}
				return nil
			})
			if err != nil || fmt.Sprint(got) != fmt.Sprint(tc.want) || end != tc.end || half != tc.after {
				t.Errorf("%v, end %d, half %d, %v", got, end, half, err)
			}
		})
	}
}
