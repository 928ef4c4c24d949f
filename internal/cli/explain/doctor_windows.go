// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"os"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/otheros"
	"github.com/sallyport-dev/sallyport/sandbox"
)

type doctor struct{ host otheros.Host }

func (d *doctor) close() { _ = d.host.Close() }

func (d *doctor) probes() []probe {
	return []probe{
		{"whole sandbox", true, func(context.Context) (string, error) { return planned(d.host.Facts()) }},
		{"process tree", false, d.processTree},
	}
}

// processTree runs a command with full access and waits for the end of its job.
func (d *doctor) processTree(ctx context.Context) (string, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return "", err
	}
	defer null.Close()
	c, err := d.host.Start(ctx, &executor.Spec{
		Args: []string{"cmd.exe", "/c", "exit 7"}, Dir: os.TempDir(), Env: os.Environ(),
		Policy: sandbox.FullAccess(),
	}, [3]*os.File{null, null, null})
	if err != nil {
		return "", err
	}
	code, _, err := c.Wait()
	const want = 7
	if err == nil && code != want {
		err = errors.New("a command in a job ended with another exit code than its own")
	}
	return "a command ran and ended in a job object",
		errors.Join(err, c.Kill(), c.WaitAll(), c.Close(new(executor.Exit)))
}
