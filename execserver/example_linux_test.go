// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/execserver"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Runner runs its commands through a server in this process.
func Example() {
	server := execserver.New(execserver.Options{})
	defer server.Close()
	e := remote.New(remote.Options{Dial: server.Dial})
	defer e.Close()
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite("."), Executor: e}
	defer r.Close()

	res, err := r.Run(context.Background(), sallyport.Script("echo hello; echo x >>/etc/hosts"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(res.Stdout)
	for _, d := range res.Denials() {
		fmt.Println("denied:", d.Op, d.Path)
	}
	// Output:
	// hello
	// denied: write /etc/hosts
}

// A server behind a socket of the program. Every process of this user that reaches the socket runs what
// it wants: a directory with mode 0700 keeps other users away.
func ExampleServer_Serve() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "sallyport-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		log.Fatal(err)
	}

	server := execserver.New(execserver.Options{})
	var clients sync.WaitGroup
	clients.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // the listener is closed
			}
			clients.Go(func() { _ = server.Serve(ctx, conn) })
		}
	})

	// In another program:
	e := remote.New(remote.Options{Dial: func(ctx context.Context) (io.ReadWriteCloser, error) {
		return new(net.Dialer).DialContext(ctx, "unix", l.Addr().String())
	}})
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite("."), Executor: e}
	res, err := r.Run(ctx, sallyport.Script("echo $((6 * 7)); exit 3"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%sexit code %d\n", res.Stdout, res.ExitCode)
	r.Close()
	e.Close()

	l.Close()
	server.Close()
	clients.Wait()
	// Output:
	// 42
	// exit code 3
}
