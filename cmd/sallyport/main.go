// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Command sallyport runs a command in the narrowest sandbox and says what
// happened. Everything it does is in package cli; this file turns the answer into
// an exit code and refuses to know more.
package main

import (
	"os"

	"github.com/sallyport-dev/sallyport/internal/cli"
)

func main() {
	deepen()
	os.Exit(cli.Main(os.Args[1:], cli.System()))
}

// deepen makes the stack grow once, while nothing is on it. Else it would grow four
// times on the way down to the launch, and be copied each time, frame by frame: one
// part in twenty of the whole time of a short run.
//
//go:noinline
func deepen() byte {
	var room [24 << 10]byte
	return room[len(os.Args)%len(room)]
}
