// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"sync"
)

// pairs holds the two letters for each 12 bits. Package encoding/base64 looks for one letter at a
// time, which takes twice as long, and is most of what a large output costs.
var pairs = sync.OnceValue(func() (list *[1 << 12]uint16) {
	list = new([1 << 12]uint16)
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i := range list {
		list[i] = uint16(letters[i>>6]) | uint16(letters[i&0x3f])<<8
	}
	return list
})

// appendBase64 appends the base64 of data to b, with padding.
func appendBase64(b, data []byte) []byte {
	b = slices.Grow(b, base64.StdEncoding.EncodedLen(len(data)))
	to := b[len(b):cap(b)]
	n, pairs := 0, pairs()
	for len(data) >= 8 { // six are encoded, as eight letters
		v := binary.BigEndian.Uint64(data)
		binary.LittleEndian.PutUint64(to, uint64(pairs[v>>52])|uint64(pairs[v>>40&0xfff])<<16|
			uint64(pairs[v>>28&0xfff])<<32|uint64(pairs[v>>16&0xfff])<<48)
		data, to, n = data[6:], to[8:], n+8
	}
	return base64.StdEncoding.AppendEncode(b[:len(b)+n], data)
}
