// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/linux/caches"
	"github.com/sallyport-dev/sallyport/internal/linux/seccomp"
	"github.com/sallyport-dev/sallyport/internal/net/intercept"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/rules"
)

// Options are the flags of run, and the settings that hold for it.
type Options struct {
	config.Run

	// Beside are rules that count after those of the settings.
	Beside []rules.Source

	recordTo *os.File               // of a recording that has not begun; nil for none
	secrets  *intercept.Credentials // credentials that the command does not get; nil for none
}

// Openings returns an error about --allow.
func Openings(err error) error {
	var more *seccomp.MissingOpeningsError
	if errors.As(err, &more) {
		return explain.NewError("--allow %s opens unix sockets and set-uid bits, too, because no filter sees its requests; add --allow %s", more.Name, strings.Join(more.Missing, ","))
	}
	return explain.NewError("%v", err)
}

// isCache reports whether a grant is for the caches of a toolchain.
func isCache(grant string) bool { return strings.HasPrefix(grant, caches.GrantPrefix) }

// Check returns what is wrong with flags and words together.
func (o *Options) Check(words []string) error {
	switch {
	case o.Sandbox != "" && o.Profile != "":
		return explain.NewError("-s %s and -P %s cannot be combined; use one of them", o.Sandbox, o.Profile)
	case o.JSON && o.JSONL:
		return explain.NewError("--json and --jsonl cannot be combined; --jsonl ends with the object of --json")
	case o.JSONLDrop && !o.JSONL:
		return explain.NewError("--jsonl-drop needs --jsonl")
	case o.Server.Check() != nil:
		return o.Server.Check()
	case o.Server.URL != "" && len(o.Descriptors) > 0:
		return explain.NewError("--fd and --remote cannot be combined; descriptors stay on this machine")
	case o.Detach && o.Captures():
		return explain.NewError("--detach and --json or --jsonl cannot be combined; sallyport wait --json ID prints the result")
	case o.Detach && len(o.Descriptors) > 0:
		return explain.NewError("--detach and --fd cannot be combined: a session has no descriptors of its caller")
	case o.Approved != "" && (o.Detach || o.Join != "" || o.Server.URL != ""):
		return explain.NewError("--approved is for a run that sallyport hook has written; leave it out")
	case o.checkJoin() != nil:
		return o.checkJoin()
	case o.HasScript && len(words) > 0:
		return explain.NewError("unexpected argument %s after -c; put it into the script",
			syntax.QuoteFlag(words[0]))
	case o.HasScript && strings.TrimSpace(o.Cmd.Script) == "":
		return explain.NewError("command args are empty: the script of -c is empty")
	case !o.HasScript && o.Cmd.Shell != "":
		return explain.NewError("--shell needs a script: sallyport run --shell %s -c SCRIPT",
			explain.ShellWord(o.Cmd.Shell))
	case !o.HasScript && o.Cmd.Login:
		return explain.NewError("--login needs a script: sallyport run --login -c SCRIPT")
	case o.Quiet && o.Verbose:
		return explain.NewError("-q and -v cannot be combined; use one of them")
	case o.Cmd.Patch != "": // the command
	case !o.HasScript && len(words) == 0:
		return explain.NewError("command args are empty; use sallyport run [FLAGS] -- PROGRAM [ARG...]")
	case !o.HasScript && words[0] == "":
		return explain.NewError("the name of the program is empty")
	}
	return nil
}

// check returns what is wrong with settings together, of flags and files.
func (o *Options) check() error {
	var bad *executor.LimitError
	switch {
	case o.Cmd.Stage != nil && o.mode() == config.FullAccess:
		return explain.NewError("-s full-access builds no sandbox, and a stage needs one; " +
			"use another -s, or add --no-stage")
	case o.Cmd.Stage != nil && o.Cmd.Unsandboxed:
		return explain.NewError("--escalate leaves the sandbox, and a staged run does not; " +
			"add --no-stage, or leave --escalate out")
	case o.Cmd.Stage != nil && o.Cmd.Patch != "":
		return explain.NewError("a patch changes the files themselves, and the settings have a stage; " +
			"add --no-stage")
	case o.Cmd.NoCaches && slices.ContainsFunc(o.Grants, isCache):
		return explain.NewError("--no-caches and --grant %s cannot be combined; use one of them",
			o.Grants[slices.IndexFunc(o.Grants, isCache)])
	case seccomp.Complete(o.Cmd.Allow) != nil:
		return Openings(seccomp.Complete(o.Cmd.Allow))
	case errors.As(o.Cmd.Resources.Check(), &bad):
		return explain.NewError("--%s: %s", bad.Limit, bad.Reason)
	}
	return nil
}
