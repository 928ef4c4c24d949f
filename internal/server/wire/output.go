// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// An OutputMessage is the notification with an Output. It is built in place of being encoded in steps:
// most of what a server sends are these.
type OutputMessage struct{ *Output }

// Size returns about how many bytes Append appends.
func (o OutputMessage) Size() int {
	const around = 128 // bytes of what is around the process and the chunk
	return around + len(o.ProcessID) + base64.StdEncoding.EncodedLen(len(o.Chunk.Chunk))
}

// Append appends the message to b.
func (o OutputMessage) Append(b []byte) []byte {
	id, err := json.Marshal(o.ProcessID)
	if err != nil {
		panic(err) // texts always encode
	}
	b = slices.Grow(b, o.Size()+len(id))
	b = append(append(b, `{"method":"`+MethodOutput+`","params":{"processId":`...), id...)
	b = strconv.AppendUint(append(b, `,"seq":`...), o.Seq, 10)
	b = append(append(append(b, `,"stream":"`...), o.Stream...), `","chunk":"`...)
	return append(appendBase64(b, o.Chunk.Chunk), `"}}`...)
}

// The head of a frame: its kind, the stream, the length of the process ID and the number of the
// event, the longer ones in network byte order. The process ID and the bytes follow.
const (
	frameOutput = 1
	frameHead   = 1 + 1 + 4 + 8
)

// frameStreams are the streams of output, by their numbers in a frame.
var frameStreams = []string{"stdout", "stderr", "pty"}

// An OutputFrame is the notification as a binary message, for clients that asked for it.
type OutputFrame struct{ *Output }

// Size returns how many bytes Append appends.
func (o OutputFrame) Size() int { return frameHead + len(o.ProcessID) + len(o.Chunk.Chunk) }

// Append appends the message to b.
func (o OutputFrame) Append(b []byte) []byte {
	b = append(slices.Grow(b, o.Size()), frameOutput, byte(slices.Index(frameStreams, o.Stream)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(o.ProcessID)))
	b = binary.BigEndian.AppendUint64(b, o.Seq)
	return append(append(b, o.ProcessID...), o.Chunk.Chunk...)
}

// errFrame is the start of errors about frames.
var errFrame = errors.New("invalid binary message")

// DecodeFrame decodes what [OutputFrame.Append] appends. The chunk is a part of data.
func DecodeFrame(data []byte) (*Output, error) {
	if len(data) < frameHead {
		return nil, fmt.Errorf("%w: %d bytes are no head", errFrame, len(data))
	}
	kind, stream, rest := data[0], int(data[1]), data[frameHead:]
	n, seq := uint64(binary.BigEndian.Uint32(data[2:])), binary.BigEndian.Uint64(data[6:])
	switch {
	case kind != frameOutput:
		return nil, fmt.Errorf("%w: unknown kind %d", errFrame, kind)
	case stream >= len(frameStreams):
		return nil, fmt.Errorf("%w: unknown stream %d", errFrame, stream)
	case n > uint64(len(rest)):
		return nil, fmt.Errorf("%w: the process ID has %d bytes of %d", errFrame, len(rest), n)
	case !utf8.Valid(rest[:n]):
		return nil, fmt.Errorf("%w: the process ID is not UTF-8", errFrame)
	case seq == 0:
		return nil, fmt.Errorf("%w: events have numbers from 1", errFrame)
	}
	return &Output{ProcessID: string(rest[:n]), Chunk: Chunk{Seq: seq, Stream: frameStreams[stream],
		Chunk: rest[n:]}}, nil
}
