// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plainfile opens files that commands may have replaced.
//
// [Open] looks at what a name leads to before it opens that. To open a device can start
// something, such as a watchdog or the rewinding of a tape, and to open a named pipe can wait
// or wake another program. The package refuses to open anything but regular files.
package plainfile

import "errors"

// ErrNotPlain says that something is no regular file. It was not opened.
var ErrNotPlain = errors.New("it is not a regular file")
