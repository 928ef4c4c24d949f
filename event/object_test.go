// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// byTags is ends as package json does it.
func byTags(r Report) (head, tail []byte, err error) {
	var rawOut, rawErr []byte
	if r.Stdout.Binary {
		rawOut = r.Stdout.Data
	}
	if r.Stderr.Binary {
		rawErr = r.Stderr.Data
	}
	head, err = encode(struct {
		Type     string   `json:"type"`
		Args     []string `json:"argv"`
		Dir      string   `json:"cwd"`
		ExitCode int      `json:"exit_code"`
		Signal   int      `json:"signal"`
		TimedOut bool     `json:"timed_out"`
		End      string   `json:"end"`
		Duration int64    `json:"duration_ms"`
	}{"result", list(r.Args), r.Dir, r.ExitCode, r.Signal, r.TimedOut, r.End, r.Duration.Milliseconds()})
	if err != nil {
		return nil, nil, err
	}
	tail, err = encode(struct {
		StdoutBytes uint64           `json:"stdout_bytes"`
		StderrBytes uint64           `json:"stderr_bytes"`
		Omitted     uint64           `json:"omitted_bytes"`
		Sandbox     Sandbox          `json:"sandbox"`
		Attempts    int              `json:"attempts"`
		Denials     []sandbox.Denial `json:"denials"`
		Survivors   int              `json:"survivors"`
		LeftOpen    bool             `json:"streams_left_open,omitempty"`

		Quarantined []executor.Quarantined `json:"quarantined,omitempty"`

		Withheld  []string `json:"withheld,omitempty"`
		Warnings  []string `json:"warnings,omitempty"`
		RawStdout []byte   `json:"stdout_base64,omitempty"`
		RawStderr []byte   `json:"stderr_base64,omitempty"`
		Error     string   `json:"error,omitempty"`
		Unlisted  int      `json:"denials_omitted,omitempty"`
		Run       string   `json:"run,omitempty"`

		List []survivorDetail `json:"survivor_list,omitempty"`
		By   string           `json:"survivors_by,omitempty"`

		Limits []executor.Enforced `json:"limits,omitempty"`
		Usage  executor.Usage      `json:"usage,omitzero"`
	}{
		r.Stdout.Total, r.Stderr.Total, r.Stdout.Omitted + r.Stderr.Omitted,
		r.Sandbox.complete(), r.Attempts, list(r.Denials), r.Survivors, r.StreamsLeftOpen, r.Quarantined, r.Withheld, r.Warnings, rawOut, rawErr, r.Error,
		r.DenialsOmitted, r.Run, survivorList(r.SurvivorList), r.SurvivorsBy, r.Limits, r.Usage,
	})
	return head, tail, err
}

// fill sets everything in v that can be set to something or to nothing.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	if r.IntN(4) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64() >> r.IntN(64) * (1 - 2*r.Int64N(2)))
	case reflect.Int32:
		v.SetInt(r.Int64N(100))
	case reflect.Uint8:
		v.SetUint(r.Uint64N(256))
	case reflect.Uint64, reflect.Uint16, reflect.Uint32:
		v.SetUint(r.Uint64() >> (64 - v.Type().Bits()) >> r.IntN(v.Type().Bits()))
	case reflect.Float64:
		v.SetFloat(float64(r.IntN(1 << 20)))
	case reflect.String:
		words := []string{"a", "\"\\\n\r\t\b\f\x00\x1f\x7f", "<&>", "\u2028\u2029é漢😀", "\xff\xc3", "x y"}
		v.SetString(words[r.IntN(len(words))] + words[r.IntN(len(words))])
	case reflect.Slice:
		n := r.IntN(3)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(r, v.Index(i), depth+1)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(r, v.Field(i), depth+1)
			}
		}
	}
}

// TestEndsByHand: what is written by hand is what the tags say, byte for byte.
func TestEndsByHand(t *testing.T) {
	r := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	check := func(report Report) {
		t.Helper()
		head, tail, err := report.ends()
		wantHead, wantTail, wantErr := byTags(report)
		if (err == nil) != (wantErr == nil) || string(head) != string(wantHead) || string(tail) != string(wantTail) {
			t.Fatalf("%v, want %v\n%s\n%s\nwant\n%s\n%s", err, wantErr, head, tail, wantHead, wantTail)
		}
	}
	check(Report{})
	for range 3000 {
		var report Report
		fill(r, reflect.ValueOf(&report).Elem(), 0)
		check(report)
	}
}
