// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

const cachesHelp = `List or clear what programs wrote to toolchain caches.

  sallyport caches [--json]
  sallyport caches clear [--all | WORKSPACE]

Programs see the toolchain caches of this machine; what they write goes to a
private layer of their workspace. This command clears only these layers. A layer
that a run is using is not cleared; the exit code is then 1.
`

func cachesFlags(o *options) []syntax.Flag {
	return []syntax.Flag{{Long: "all", Set: syntax.SetOn(&o.all),
		Help: "clear every workspace (default the current one)"}, o.jsonFlag()}
}

func cachesCommand(_ context.Context, env *Env, o *options, words []string) error {
	switch {
	case len(words) == 0 && o.all:
		return explain.NewError("--all needs clear: sallyport caches clear --all")
	case len(words) == 0:
		list, err := explain.ListCaches()
		if err != nil {
			return err
		}
		return env.answer(list, o.json, true)
	case words[0] != "clear":
		return explain.NewError("unknown argument %s%s", syntax.QuoteFlag(words[0]),
			syntax.NearestClause(words[0], []string{"clear"}, "see sallyport help caches"))
	case o.json:
		return explain.NewError("--json is for the list: sallyport caches --json")
	case o.all && len(words) > 1:
		return explain.NewError("--all and a workspace cannot be combined; use one of them")
	}
	workspace := "" // all
	if !o.all {
		workspace = filepath.Join(words[1:]...)
		if !filepath.IsAbs(workspace) {
			if env.Dir == "" {
				return explain.NewError("the current directory no longer exists; name the workspace by its absolute path")
			}
			workspace = filepath.Join(env.Dir, workspace)
		}
		workspace = hostfacts.RealPath(filepath.Clean(workspace)) // one that is gone has the name that it had
	}
	done, err := explain.ClearCaches(workspace)
	if err != nil {
		return err
	}
	return env.answer(done, false, len(done.InUse) == 0)
}
