// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/remote"
)

func ExampleClient_Run() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Options{Server: remote.Options{URL: "unix:///run/sallyport/exec.sock"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	res, err := c.Run(ctx, &client.Cmd{Args: []string{"go", "version"}})
	if errors.Is(err, sallyport.ErrForbidden) {
		fmt.Println("a rule of the server forbids it:", err)
		return
	}
	fmt.Println(res, err)
}

func ExampleClient_Start() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Options{Server: remote.Options{URL: "unix:///run/sallyport/exec.sock"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	r, err := c.Start(ctx, &client.Cmd{Args: []string{"python3"}, TTY: new(executor.Size)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = r.Remove(ctx) }()
	_, _ = r.Write(ctx, []byte("6*7\n"))
	reply, err := r.Await(ctx, sallyport.Until{Quiet: time.Second, For: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	for d, err := range r.Deltas(ctx, 0) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s", d.Data)
		if d.End() >= reply.Offset {
			break
		}
	}
}
