// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// members are the values of a JSON object by name. Null values are absent.
type members map[string]json.RawMessage

// parseObject reads one JSON object whose keys are all known, spelled exactly so, and not
// repeated. Package encoding/json would take keys of other letter case and the last of two
// equal ones, and a model's intention behind those is not known.
func parseObject(tool string, data []byte, known ...string) (members, error) {
	fail := func(reason string, err error) (members, error) {
		return nil, badArgument(tool, "", reason, err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if first, err := d.Token(); err != nil {
		return fail("not valid JSON", err)
	} else if first != json.Delim('{') {
		return fail("not a JSON object", nil)
	}
	found := make(members)
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fail("not valid JSON", err)
		}
		name, _ := key.(string)
		if !slices.Contains(known, name) {
			return nil, badArgument(tool, name, "unknown argument", nil)
		}
		if _, twice := found[name]; twice {
			return nil, badArgument(tool, name, "given twice", nil)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return fail("not valid JSON", err)
		}
		found[name] = value
	}
	if _, err := d.Token(); err != nil {
		return fail("not valid JSON", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fail("there is text after the JSON object", nil)
	}
	for name, value := range found {
		if string(value) == "null" {
			delete(found, name)
		}
	}
	return found, nil
}

// A reader decodes the members of a tool's arguments and keeps the first error.
type reader struct {
	tool string
	from members
	err  error
}

// fail records that an argument is invalid.
func (r *reader) fail(name, reason string, err error) {
	if r.err == nil {
		r.err = badArgument(r.tool, name, reason, err)
	}
}

// require fails for an argument that is absent.
func (r *reader) require(name string) {
	if _, ok := r.from[name]; !ok {
		r.fail(name, "missing", nil)
	}
}

// take decodes a member into v, and leaves v alone if there is none.
func take[T any](r *reader, name, kind string, v *T) bool {
	value, ok := r.from[name]
	if !ok {
		return false
	}
	if err := json.Unmarshal(value, v); err != nil {
		r.fail(name, "must be "+kind, err)
		return false
	}
	return true
}

func (r *reader) text(name string) (s string) {
	take(r, name, "a string", &s)
	return s
}

func (r *reader) truth(name string) *bool {
	var b bool
	if !take(r, name, "true or false", &b) {
		return nil
	}
	return &b
}

// count reads a whole number, 0 or more, in any form: models write 1e3 and 1000.0.
func (r *reader) count(name string) (n int, ok bool) {
	value, ok := r.from[name]
	if !ok {
		return 0, false
	}
	if whole, err := strconv.Atoi(string(value)); err == nil && whole >= 0 {
		return whole, true
	}
	const most = 1 << 53 // beyond it not every whole number is a float64
	var f float64
	if err := json.Unmarshal(value, &f); err != nil || f < 0 || f > most || f != math.Trunc(f) {
		r.fail(name, "must be a whole number, 0 or more", err)
		return 0, false
	}
	return int(f), true
}

// mostMilliseconds is more than every limit on times, and fits into a time.Duration.
const mostMilliseconds = 1 << 40

// milliseconds reads a time. An explicit zero becomes a nanosecond, because 0 means that the
// request names no time; every limit treats the two alike.
func (r *reader) milliseconds(name string) time.Duration {
	n, ok := r.count(name)
	if !ok {
		return 0
	}
	return max(time.Duration(min(n, mostMilliseconds))*time.Millisecond, 1)
}

// conditions reads the arguments that both tools share.
func (r *reader) conditions() Conditions {
	c := Conditions{Idle: r.milliseconds("until_idle_ms"), InputWait: r.truth("until_input_wait")}
	c.MinBytes, _ = r.count("min_bytes")
	if pattern := r.text("until_regex"); pattern != "" {
		re, err := regexp.Compile(pattern)
		if err != nil {
			r.fail("until_regex", err.Error(), err)
		}
		c.Match = re
	}
	return c
}

// tokens reads max_output_tokens.
func (r *reader) tokens() *int {
	n, ok := r.count("max_output_tokens")
	if !ok {
		return nil
	}
	return &n
}
