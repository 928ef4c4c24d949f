// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// fileHelper is the argument with which this program performs file operations in a sandbox.
const fileHelper = "files"

// listenHelper is the argument with which it listens on a port until its input ends.
const listenHelper = "listen"

// listens does that.
func listens() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.TrimPrefix(l.Addr().String(), "127.0.0.1:"))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestMain(m *testing.M) {
	testenv.DefaultSignals()
	if len(os.Args) == 2 && os.Args[1] == listenHelper {
		listens()
		return
	}
	if len(os.Args) == 2 && os.Args[1] == fileHelper {
		if err := execserver.ServeFiles(os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	testenv.MostlyWait()
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(testenv.HungMounts))
}

// needs skips a scenario where a sandbox is not available.
func needs(t *testing.T, file string) {
	t.Helper()
	if strings.HasPrefix(filepath.Base(file), "sandbox_") {
		testenv.NeedUserNS(t)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"find", "grep"} { // what sh and coreutils do not have
		if strings.Contains(string(text), program+" ") {
			testenv.NeedProgram(t, program)
		}
	}
}
