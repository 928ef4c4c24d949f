// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/command/programs"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// environment returns what the server says of its machine, and an error that is
// [errors.ErrUnsupported] when it says nothing.
func (e *Executor) environment(ctx context.Context) (*wire.Environment, error) {
	client, err := e.connect(ctx)
	if err != nil {
		return nil, err
	}
	env := client.Server().Environment
	if env == nil {
		return nil, fmt.Errorf("the exec-server does not describe its machine: %w", errors.ErrUnsupported)
	}
	return env, nil
}

// Host implements [executor.Executor]. It connects first.
func (e *Executor) Host(ctx context.Context) (executor.HostInfo, error) {
	info := executor.HostInfo{Environment: e.opts.Environment}
	env, err := e.environment(ctx)
	if err == nil {
		if info.OS = env.System; info.OS == "macos" {
			info.OS = "darwin"
		}
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = nil // the name of the environment is known
	}
	return info, err
}

// Places implements [executor.Executor] for the machine of the server. It does not look whether the
// directory exists: the start does. Which files are those of the platform the server knows.
func (e *Executor) Places(ctx context.Context, dir string, env []string, tmp string) (sandbox.Places, error) {
	if strings.ContainsRune(dir, 0) {
		return sandbox.Places{}, &executor.NULError{Where: "the working directory"}
	}
	info, err := e.environment(ctx)
	if err != nil {
		return sandbox.Places{}, err
	}
	if info.System == "windows" {
		return sandbox.Places{}, fmt.Errorf("places of a Windows machine are not supported: %w",
			errors.ErrUnsupported)
	}
	cwd, _ := wire.Path(info.CWD, info.System) // empty when there is none
	if !path.IsAbs(dir) {
		if cwd == "" {
			return sandbox.Places{}, &executor.DirError{Dir: dir,
				Err: errors.New("it is relative, and the exec-server names no directory of its own")}
		}
		dir = path.Join(cwd, dir)
	}
	places := sandbox.Places{Dir: path.Clean(dir), SlashTmp: "/tmp"}
	if home, err := wire.Path(info.HomeDir, info.System); err == nil {
		places.Home = home
	}
	if tmp == tmpHost {
		for _, entry := range env {
			if value, ok := strings.CutPrefix(entry, "TMPDIR="); ok {
				places.TmpDir = value
			}
		}
	}
	return places, nil
}

// Shell implements [executor.Executor]. The shell of the server's user is known; others are
// expected in their usual places, and a start tells that there is none.
func (e *Executor) Shell(ctx context.Context, name, script string, login bool) ([]string, error) {
	env, err := e.environment(ctx)
	if err != nil {
		return nil, err
	}
	host := programs.ShellHost{
		System:    cmp.Or(env.System, "linux"),
		UserShell: func() string { return env.Shell.Path },
		LookPath:  func(string) string { return "" },
		IsFile:    func(string) bool { return true },
	}
	if name == "" {
		return programs.DetectShell(host).Argv(script, login), nil
	}
	sh, err := programs.NamedShell(host, name)
	if err != nil {
		return nil, fmt.Errorf("cannot run the script: %w", err)
	}
	return sh.Argv(script, login), nil
}
