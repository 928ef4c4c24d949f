// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"os"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/internal/windows"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Checks says why no sandbox is available, and tries a command in a job object.
func Checks(ctx context.Context) []Check {
	whole := Check{Name: "whole sandbox", Needed: true}
	_, err := plan.Make(new(windows.Host).Facts(), &plan.Request{Spec: &executor.Spec{Policy: sandbox.ReadOnly()}})
	var no *sandbox.UnsupportedError
	if errors.As(err, &no) {
		whole.Detail, whole.Fix = no.Have, no.Hint
	}
	tree := Check{Name: "process tree"}
	switch detail, err := tryJob(ctx); {
	case err != nil:
		tree.Detail = err.Error()
	default:
		tree.OK, tree.Detail = true, detail
	}
	return []Check{whole, tree}
}

// tryJob runs a command with full access and waits for the end of its job.
func tryJob(ctx context.Context) (string, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return "", err
	}
	defer null.Close()
	var host windows.Host
	c, err := host.Start(ctx, &executor.Spec{
		Args: []string{"cmd.exe", "/c", "exit 7"}, Dir: os.TempDir(), Env: os.Environ(), Policy: sandbox.FullAccess(),
	}, [3]*os.File{null, null, null})
	if err != nil {
		return "", err
	}
	code, _, err := c.Wait()
	const asked = 7
	if err == nil && code != asked {
		err = errors.New("the exit code of a command in a job is not its own")
	}
	if err = errors.Join(err, c.Kill(), c.WaitAll(), c.Close(new(executor.Exit)), host.Close()); err != nil {
		return "", err
	}
	return "a command began, ran and ended in a job object", nil
}
