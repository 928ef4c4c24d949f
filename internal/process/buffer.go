// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import "sync"

// bufferSize is how much is read at once, in bytes. More than a quarter of a MiB gains
// nothing: the copying dominates.
const bufferSize = 256 << 10

// buffers holds memory for reading, which a pump uses only while there is output.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}
