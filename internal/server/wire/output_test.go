// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
)

// outputs are notifications of output.
var outputs = map[string]Output{
	"text":       {ProcessID: "p", Chunk: Chunk{Seq: 1, Stream: "stdout", Chunk: []byte("hello")}},
	"one byte":   {ProcessID: "p", Chunk: Chunk{Seq: 1<<64 - 1, Stream: "stderr", Chunk: []byte{0xff}}},
	"odd ID":     {ProcessID: "a\"<&>\n\u2028 \u00fc", Chunk: Chunk{Seq: 3, Stream: "pty", Chunk: bytes.Repeat([]byte{0, 1}, 40_000)}},
	"empty ID":   {Chunk: Chunk{Seq: 4, Stream: "stdout", Chunk: []byte("x")}},
	"empty data": {ProcessID: "p", Chunk: Chunk{Seq: 5, Stream: "stdout", Chunk: []byte{}}},
}

// TestOutputMessage compares the message that is built with the one that is encoded.
func TestOutputMessage(t *testing.T) {
	for name, o := range outputs {
		t.Run(name, func(t *testing.T) {
			m, err := DecodeMessage(OutputMessage{&o}.Append(nil))
			if err != nil || m.Kind != KindNotification || m.Method != MethodOutput {
				t.Fatalf("%+v, %v", m, err)
			}
			want, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			var got, encoded any
			if json.Unmarshal(m.Params, &got) != nil || json.Unmarshal(want, &encoded) != nil ||
				!reflect.DeepEqual(got, encoded) {
				t.Errorf("got %.200s, want %.200s", m.Params, want)
			}
		})
	}
}

// TestFrame decodes frames again, whole and cut.
func TestFrame(t *testing.T) {
	for name, o := range outputs {
		t.Run(name, func(t *testing.T) {
			frame := OutputFrame{&o}.Append(nil)
			got, err := DecodeFrame(frame)
			if err != nil || !reflect.DeepEqual(*got, o) {
				t.Errorf("got %.200v, %v", got, err)
			}
			for n := range frameHead + len(o.ProcessID) {
				if _, err := DecodeFrame(frame[:n]); !errors.Is(err, errFrame) {
					t.Errorf("%d bytes: %v", n, err)
				}
			}
		})
	}
	for name, frame := range map[string]string{
		"kind":      "\x02\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01px",
		"stream":    "\x01\x03\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01px",
		"long ID":   "\x01\x00\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x01px",
		"number 0":  "\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00px",
		"not UTF-8": "\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\xffx",
	} {
		if _, err := DecodeFrame([]byte(frame)); !errors.Is(err, errFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzDecodeFrame requires that what is decoded has one form.
func FuzzDecodeFrame(f *testing.F) {
	for _, o := range outputs {
		f.Add(OutputFrame{&o}.Append(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := DecodeFrame(data)
		if err == nil && !bytes.Equal(OutputFrame{o}.Append(nil), data) {
			t.Errorf("%q became %q", data, OutputFrame{o}.Append(nil))
		}
	})
}

// FuzzAppendBase64 compares with package encoding/base64.
func FuzzAppendBase64(f *testing.F) {
	for n := range 20 {
		f.Add([]byte("before"), bytes.Repeat([]byte{0xfe, 0x01, 0x80}, n)[:min(n, 17)])
	}
	f.Add([]byte{}, bytes.Repeat([]byte{0, 255, 7}, 1000))
	f.Fuzz(func(t *testing.T, b, data []byte) {
		want := base64.StdEncoding.AppendEncode(bytes.Clone(b), data)
		if got := appendBase64(bytes.Clone(b), data); !bytes.Equal(got, want) {
			t.Errorf("%x became %q, not %q", data, got, want)
		}
	})
}

// BenchmarkBase64 guards: the encoding of output takes at most 0.7 of the time of package
// encoding/base64.
func BenchmarkBase64(b *testing.B) {
	data, to := bytes.Repeat([]byte("some output\n"), 5461), make([]byte, 0, 100<<10)
	for name, encode := range map[string]func(b, data []byte) []byte{"ours": appendBase64,
		"library": base64.StdEncoding.AppendEncode} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				to = encode(to[:0], data)
			}
		})
	}
}
