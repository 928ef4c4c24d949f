// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/settings/trust"
)

const initHelp = `Write commented settings for the project in the current directory.

  sallyport init [-C DIR]

It looks at the files at the top of the directory (Go, npm, pnpm, Yarn, Bun,
Python, Rust, C, git), writes .sallyport/config.toml, and says what it found and
chose. The settings take effect once you trust them with sallyport trust. An
existing file is not changed.
`

func initFlags(o *options) []syntax.Flag {
	return []syntax.Flag{{Long: "cd", Short: 'C', Value: "DIR", Kind: syntax.Directories,
		Set: syntax.SetText(&o.run.Dir), Help: "the project (default current)"}}
}

func initCommand(_ context.Context, env *Env, o *options, _ []string) error {
	dir, err := o.run.Directory(&env.Env)
	if err != nil {
		return err
	}
	found, err := trust.InitProject(dir)
	switch {
	case errors.Is(err, trust.ErrExists):
		return explain.NewError("%v; sallyport config allow adds to it", err)
	case err != nil:
		return err
	}
	if found.Git {
		found.Tools = append(found.Tools, "git")
	}
	text := "Found: " + cmp.Or(strings.Join(found.Tools, ", "), "nothing that sallyport knows") + ".\n"
	if text += "Wrote " + trust.ProjectFile; found.Git {
		text += " with the grant git, so that commits work; the rest are comments.\n"
	} else {
		text += " with comments only: builds and tests need no setting.\n"
	}
	for _, c := range found.Fetch {
		text += "For packages, once: sallyport run --grant " + c + "\n"
	}
	return env.print(text + "Next: sallyport trust shows the file and asks whether to trust it.\n")
}
