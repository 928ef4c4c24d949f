// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/executor/local"
)

// shellName is the name by which this program is a shell: all that it is called with runs by a shell of
// the system in the sandbox, with the settings of sallyport run. Agents call it by SHELL or
// CLAUDE_CODE_SHELL_PREFIX.
const shellName = "sallyport-sh"

// isShell reports whether this program was called as a shell; a login shell has a dash before its name.
func (e *Env) isShell() bool {
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(e.Name), "-"), ".exe") == shellName
}

// shellCommand runs a shell of the system with the words that this one got, each as it was.
func shellCommand(ctx context.Context, env *Env, words []string) error {
	shells := new(local.Executor)
	found, err := shells.Shell(ctx, "bash", "", false)
	if err != nil {
		found, err = shells.Shell(ctx, "sh", "", false)
	}
	if err != nil {
		return err
	}
	run := append([]string{"--"}, shellWords(found[0], filepath.Base(env.Name), words)...)
	// what asks for the user's shell in there means that one
	env.Environ = append(slices.Clone(env.Environ), "SHELL="+found[0])
	return runCommand(ctx, env, nil, run)
}

// shellWords is the command of a shell. One word that is no option is a whole command, as a prefix gets it;
// a shell would take it for the name of a file.
func shellWords(shell, name string, words []string) []string {
	command := []string{shell}
	if strings.HasPrefix(name, "-") {
		command = append(command, "-l")
	}
	if len(words) == 1 && !strings.HasPrefix(words[0], "-") && !strings.HasPrefix(words[0], "+") {
		command = append(command, "-c")
	}
	return append(command, words...)
}
