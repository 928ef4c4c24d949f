// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"errors"
	"slices"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
)

// joins reports whether a flag about named sandboxes was given.
func (o *Options) joins() bool {
	return o.Join != "" || o.Idle != 0 || slices.Contains(o.Shape, "--join")
}

// checkJoin returns what is wrong with the flags about named sandboxes.
func (o *Options) checkJoin() error {
	switch {
	case !o.joins():
		return nil
	case o.Join == "" && o.Idle != 0 && !slices.Contains(o.Shape, "--join"):
		return explain.NewError("--idle is for --join NAME")
	case runs.CheckName(o.Join) != nil:
		return explain.NewError("--join: %v", runs.CheckName(o.Join))
	case o.Server.URL != "":
		return explain.NewError("--join and --remote cannot be combined; named sandboxes are on this machine")
	case o.Detach:
		return explain.NewError("--join and --detach cannot be combined; let the shell run it in the background")
	case len(o.Descriptors) > 0:
		return explain.NewError("--join and --fd cannot be combined; descriptors stay with this process")
	case o.Cmd.Unsandboxed:
		return explain.NewError("--join and --escalate cannot be combined; nothing runs outside of a named sandbox")
	}
	return nil
}

// forbidden gives the error of a run that cannot join a sandbox its exit code. Others stay as they are.
func forbidden(err error) error {
	var no *runs.RefusedError
	if errors.As(err, &no) {
		return explain.ErrorWith(explain.CodeForbidden, sallyport.EndForbidden, no.Error(), "")
	}
	return err
}
