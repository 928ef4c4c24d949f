// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// all reads a recording.
func all(file []byte) (Header, []Event, error) {
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		return Header{}, nil, err
	}
	var events []Event
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r.Header(), events, nil
		}
		if err != nil {
			return r.Header(), events, err
		}
		events = append(events, e)
	}
}

// TestReader reads the examples of the documentation of asciinema, and others.
func TestReader(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name, file string
		header     Header
		events     []Event
	}{
		{"version 3", `{"version": 3, "term": {"cols": 80, "rows": 24, "type": "xterm-256color"}, "timestamp": 1504467315, "title": "Demo", "env": {"SHELL": "/bin/zsh"}}
# event stream follows the header
[0.248, "o", "\u001b[1;31mHello\n"]

[1.001, "i", "a"]
[3.5, "m", ""]
[2, "r", "90x30"]
[0.887, "x", "0"]`, Header{Size: executor.Size{Cols: 80, Rows: 24}, Started: time.Unix(1504467315, 0), Title: "Demo"}, []Event{
			{248 * ms, 'o', "\x1b[1;31mHello\n"}, {1249 * ms, 'i', "a"}, {4749 * ms, 'm', ""}, {6749 * ms, 'r', "90x30"}, {7636 * ms, 'x', "0"},
		}},
		{"version 2", `{"version": 2, "width": 80, "height": 24, "idle_time_limit": 1.5, "command": "sh"}
[0.248848, "o", "a"]
[0.1, "o", "back"]
[1.001376, "o", "b"]
`, Header{Format: V2, Size: executor.Size{Cols: 80, Rows: 24}, Command: "sh", IdleLimit: 1500 * ms}, []Event{
			{248848 * time.Microsecond, 'o', "a"}, {248848 * time.Microsecond, 'o', "back"}, {1001376 * time.Microsecond, 'o', "b"},
		}},
		{"sizes that cannot be", `{"version": 3, "term": {"cols": -1, "rows": 70000}}`, Header{}, nil},
		{"no end of the line", `{"version": 3, "term": {}}` + "\n" + `[0, "o", "x"]`, Header{}, []Event{{0, 'o', "x"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			header, events, err := all([]byte(test.file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.header, header) + cmp.Diff(test.events, events); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestReaderFails: each error has its line.
func TestReaderFails(t *testing.T) {
	const head = `{"version":3,"term":{"cols":80,"rows":24}}` + "\n"
	for _, test := range []struct {
		name, file string
		line       int
		err        error // nil for any
	}{
		{"nothing", "", 1, io.ErrUnexpectedEOF},
		{"a comment first", "# x\n" + head, 1, nil},
		{"no JSON", "x\n", 1, nil},
		{"version 1", `{"version":1}`, 1, errVersion},
		{"no version", `{}`, 1, errVersion},
		{"no array", head + "\n# c\n{}", 4, nil},
		{"two members", head + `[1, "o"]`, 2, errMembers},
		{"a number as text", head + `[1, "o", 5]`, 2, errMembers},
		{"no time", head + `["1", "o", "x"]`, 2, errTime},
		{"a negative time", head + `[-1, "o", "x"]`, 2, errTime},
		{"a large time", head + `[1e300, "o", "x"]`, 2, errTime},
		{"times that are too long together", head + strings.Repeat(`[4e9, "o", "x"]`+"\n", 4), 4, errTime},
		{"no code", head + `[1, "", "x"]`, 2, errCode},
		{"a long code", head + `[1, "oo", "x"]`, 2, errCode},
		{"a long line", head + `[1, "o", "` + strings.Repeat("x", maxLine), 2, errLong},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := all([]byte(test.file))
			of := new(FormatError)
			if !errors.As(err, &of) || of.Line != test.line || test.err != nil && !errors.Is(err, test.err) {
				t.Errorf("%v, not %v in line %d", err, test.err, test.line)
			}
		})
	}
}

// TestReaderRecordings reads the recordings of the documentation.
func TestReaderRecordings(t *testing.T) {
	files, err := filepath.Glob("../docs/recordings/*.cast")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, events, err := all(file); err != nil || len(events) == 0 {
			t.Errorf("%s: %d events, %v", name, len(events), err)
		}
	}
}

// FuzzText: what is written is a string of JSON that says the same.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a", "0123456\"89\\bcdef\n", "é\xff\x00\x1f \x7f\u2028<>", "\xe2\x82", "aaaaaaa\raaaaaaaaaaa\x80"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		in := bytes.Clone(p)
		line := appendEvent(nil, 1_000_001, 'o', p)
		var got []any
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		if want := []any{1.000001, "o", text.Decode(in)}; !cmp.Equal(got, want) || !bytes.Equal(in, p) {
			t.Errorf("%q is %q, not %q", p, got, want)
		}
	})
}

// FuzzReader: times do not go back, and what was read can be written and read again.
func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"version":3,"term":{"cols":80,"rows":24}}` + "\n" + `[0.5, "o", "x"]` + "\n#c\n" + `[1, "x", "0"]`))
	f.Add([]byte(`{"version":2,"width":80,"height":24}` + "\n" + `[0.5, "o", "x"]` + "\n" + `[0.25, "é", ""]`))
	f.Fuzz(func(t *testing.T, file []byte) {
		_, events, _ := all(file)
		again := []byte(`{"version":2,"width":80,"height":24}` + "\n")
		at := time.Duration(0)
		for i, e := range events {
			if e.At < at {
				t.Fatal("time goes back")
			}
			at = e.At
			if e.Code < ' ' || e.Code > '~' || e.Code == '"' || e.Code == '\\' {
				events[i].Code = 'o'
			}
			again = appendEvent(again, e.At.Microseconds(), byte(events[i].Code), []byte(e.Data))
		}
		_, back, err := all(again)
		near := cmp.Comparer(func(a, b time.Duration) bool { return max(a-b, b-a) <= a/1e9+time.Microsecond })
		if err != nil || !cmp.Equal(events, back, near) {
			t.Errorf("%v: %s", err, cmp.Diff(events, back, near))
		}
	})
}
