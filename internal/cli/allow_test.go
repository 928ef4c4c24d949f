// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
)

// TestAllowCeiling: what the ceiling does not allow is refused before anything is asked or
// written, for the project and for the user.
func TestAllowCeiling(t *testing.T) {
	root := t.TempDir()
	managed, dir := filepath.Join(root, "managed"), filepath.Join(root, "w")
	if err := errors.Join(os.Mkdir(managed, 0o755), os.Mkdir(dir, 0o755),
		os.WriteFile(filepath.Join(managed, "managed.toml"),
			[]byte("grants = [\"git\"]\nnetwork.mode = \"none\"\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	env := &Env{Env: args.Env{Environ: []string{"HOME=" + root}, Dir: dir, Managed: managed}}
	for _, wish := range [][]string{{"--grant", "gpu"}, {"--net", "host"}, {"--grant", "gpu", "--user"}} {
		err := dispatch(context.Background(), env, append([]string{"config", "allow"}, wish...))
		var ceiling *config.CeilingError
		if !errors.As(err, &ceiling) || explain.Classify(err).Code != explain.CodeForbidden ||
			!strings.Contains(err.Error(), "managed.toml:") {
			t.Errorf("%q: %v", wish, err)
		}
	}
	for _, name := range []string{".config", "w/.sallyport"} {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if err := dispatch(context.Background(), env, []string{"config", "allow", "--grant", "git",
		"--user"}); err != nil {
		t.Errorf("what the ceiling allows: %v", err)
	}
}
