// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"io"
	"os"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
)

const patchHelp = `Apply a patch as models write it: a text that begins with "*** Begin Patch".

  sallyport patch [-s MODE] [-C DIR] [FILE|-]

The patch is in FILE, or comes from standard input. Its names are relative to
DIR. All of it is applied, or nothing: what a killed process left half done is
undone by the next patch. Only files that a command in the sandbox could change
are changed; others need an approval. The exit code is 1 if the patch does not
fit, and 122 if the policy forbids it; nothing was changed then.
`

// patchFlagNames are the flags of run that say where a patch applies and who is asked.
var patchFlagNames = []string{"sandbox", "cd", "profile", "approval", "approver", "approval-wait",
	"ask-in-console", "rw", "ro",
	"deny", "grant", "tmp", "no-stage", "level", "set", "config", "no-config", "json", "jsonl", "quiet",
	"verbose"}

func patchFlags(o *options) []syntax.Flag {
	return slices.DeleteFunc(o.run.Flags(), func(f syntax.Flag) bool {
		return !slices.Contains(patchFlagNames, f.Long)
	})
}

// maxPatch is how many bytes a patch may have.
const maxPatch = 16 << 20

func patchCommand(ctx context.Context, env *Env, o *options, words []string) error {
	var in io.Reader = env.Stdin
	if len(words) > 0 && words[0] != "-" {
		f, err := os.Open(words[0])
		if err != nil {
			return explain.NewError("cannot read the patch: %s", err)
		}
		defer f.Close()
		in = f
	}
	if in == nil {
		return explain.NewError("no patch given; use sallyport patch FILE, or - for standard input")
	}
	read, err := io.ReadAll(io.LimitReader(in, maxPatch+1))
	switch {
	case err != nil:
		return explain.NewError("cannot read the patch: %s", text.Line(err.Error()))
	case len(read) > maxPatch:
		return explain.NewError("the patch has more than %d bytes", maxPatch)
	case len(read) == 0:
		read = []byte("\n") // a patch too, and as wrong
	}
	o.run.Cmd.Patch = string(read)
	if err := o.run.Check(nil); err != nil {
		return err
	}
	return runParsed(ctx, &report{env: env, o: &o.run})
}
