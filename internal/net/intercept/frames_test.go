// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"encoding/binary"
	"io"
	"strings"
	"testing"
)

// frame is one of a websocket (RFC 6455, 5.2).
func frame(text string, masked bool) []byte {
	head := []byte{0x81}
	switch n := len(text); {
	case n < 126:
		head = append(head, byte(n))
	case n < 1<<16:
		head = binary.BigEndian.AppendUint16(append(head, 126), uint16(n))
	default:
		head = binary.BigEndian.AppendUint64(append(head, 127), uint64(n))
	}
	if masked {
		head[1] |= 0x80
		head = append(head, 0, 0, 0, 0) // this key leaves the text as it is
	}
	return append(head, text...)
}

// TestFrames: a message is read whole though its end can begin a value and nothing follows, wherever
// reads end; what is in it is replaced.
func TestFrames(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"ends with a beginning", "xaa", "xaa"},
		{"is a beginning", "a", "a"},
		{"has a value", "xaabcaa", "x12345a"},
		{"empty", "", ""},
		{"of two bytes of length", strings.Repeat("x", 300) + "aabc", strings.Repeat("x", 300) + "xyzc"},
		{"of eight", strings.Repeat("x", 70000) + "b", strings.Repeat("x", 70000) + "b"},
	} {
		for _, masked := range []bool{false, true} {
			in, want := frame(c.text, masked), string(frame(c.want, masked))
			for cut := range min(len(in), 20) {
				r, w := io.Pipe()
				s := newStream(new(Credentials), r, small())
				s.frames = new(frames)
				go func() {
					_, _ = w.Write(in[:cut])
					_, _ = w.Write(in[cut:])
				}()
				got := make([]byte, len(want))
				if _, err := io.ReadFull(s, got); err != nil || string(got) != want {
					t.Errorf("%s, cut at %d: %.40q, %v", c.name, cut, got, err)
				}
				_ = r.Close()
			}
		}
	}
}

// FuzzFrames: frames in any pieces end where the whole does, and no bytes are too strange.
func FuzzFrames(f *testing.F) {
	f.Add(frame("text", false), uint8(1))
	f.Add(append(frame("a", true), 0x88, 0xff, 0xff), uint8(3))
	f.Fuzz(func(t *testing.T, p []byte, size uint8) {
		var whole, cut frames
		whole.pass(p)
		for rest := p; len(rest) > 0; {
			n := min(len(rest), int(size)+1)
			cut.pass(rest[:n])
			rest = rest[n:]
		}
		if whole.left != cut.left || string(whole.head) != string(cut.head) {
			t.Errorf("%+v and %+v", whole, cut)
		}
	})
}
