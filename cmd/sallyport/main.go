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
	os.Exit(cli.Main(os.Args[1:], cli.System()))
}
