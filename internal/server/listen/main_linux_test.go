// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// fileHelper is the argument with which this program performs file operations in a sandbox.
const fileHelper = "files"

func TestMain(m *testing.M) {
	testenv.DefaultSignals()
	helpers := map[string]func() error{
		fileHelper: func() error { return execserver.ServeFiles(os.Stdin, os.Stdout) }, serveArg: serveMain,
		activatedArg: activatedMain,
	}
	if len(os.Args) == 2 && helpers[os.Args[1]] != nil {
		if err := helpers[os.Args[1]](); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	testenv.MostlyWait()
	goleak.VerifyTestMain(m)
}
