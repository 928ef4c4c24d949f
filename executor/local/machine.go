// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/command/programs"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// minimal returns the directories of the platform's own files, which system programs read
// to run. Those that do not exist are left out of the sandbox. On Linux the sandboxes of
// other agents show the same directories.
func minimal() []string {
	return []string{
		"/bin", "/sbin", "/usr", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store",
		"/run/current-system/sw",
		"/System", "/Library",
	}
}

// Host implements [executor.Executor].
func (e *Executor) Host(context.Context) (executor.HostInfo, error) {
	return executor.HostInfo{Local: true, OS: runtime.GOOS, Arch: runtime.GOARCH}, nil
}

// Places implements [executor.Executor]. TMPDIR counts only for commands that see the
// machine's /tmp; others get a TMPDIR of /tmp.
func (e *Executor) Places(_ context.Context, dir string, env []string, tmp string) (sandbox.Places, error) {
	if strings.ContainsRune(dir, 0) {
		return sandbox.Places{}, &executor.NULError{Where: "the working directory"}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return sandbox.Places{}, &executor.DirError{Dir: dir, Err: err}
	}
	st, err := os.Stat(abs)
	switch {
	case err != nil:
		return sandbox.Places{}, &executor.DirError{Dir: abs, Err: err}
	case !st.IsDir():
		return sandbox.Places{}, &executor.DirError{Dir: abs, Err: executor.ErrNotDir}
	}
	places := sandbox.Places{Dir: abs, Minimal: minimal()}
	if home, err := os.UserHomeDir(); err == nil {
		places.Home = home
	}
	if st, err := os.Stat("/tmp"); err == nil && st.IsDir() {
		places.SlashTmp = "/tmp"
	}
	if tmp == "host" {
		places.TmpDir = lookEnv(env, "TMPDIR")
	}
	return places, nil
}

// lookEnv returns the last value of a variable; empty when it is not set.
func lookEnv(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if k, v, _ := strings.Cut(env[i], "="); k == name {
			return v
		}
	}
	return ""
}

// Shell implements [executor.Executor].
func (e *Executor) Shell(_ context.Context, name, script string, login bool) ([]string, error) {
	host := programs.ShellHost{
		System:    runtime.GOOS,
		UserShell: sync.OnceValue(userShell),
		LookPath: func(program string) string {
			path, err := exec.LookPath(program)
			if err != nil || !filepath.IsAbs(path) {
				return ""
			}
			return path
		},
		IsFile: func(path string) bool {
			st, err := os.Stat(path)
			return err == nil && st.Mode().IsRegular()
		},
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

// userShell returns the shell of this user in the user database; empty when there is none.
func userShell() string {
	users, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return ""
	}
	own, _ := programs.PasswdShell(users, uint32(os.Getuid()))
	return own
}
