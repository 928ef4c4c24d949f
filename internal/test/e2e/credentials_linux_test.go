// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/linux"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// BenchmarkCredentials guards: hiding 12 stores of secrets makes a start at most 1.15 times as
// long as with an empty home directory.
func BenchmarkCredentials(b *testing.B) {
	testenv.NeedUserNS(b)
	ws := workspace(b)
	full, empty := b.TempDir(), b.TempDir()
	for _, name := range []string{
		".aws/credentials", ".azure/token", ".kube/config", ".docker/config.json", ".config/gcloud/token",
		".config/gh/hosts.yml",
		".netrc", ".git-credentials", ".cargo/credentials.toml", ".bash_history", ".python_history",
		".gnupg/private-keys-v1.d/key",
	} {
		path := filepath.Join(full, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	host := new(linux.Host)
	defer host.Close()
	at := func(home string) func() error {
		run := confined(b, host, ws)
		return func() error {
			if err := os.Setenv("HOME", home); err != nil { //nolint:usetesting // it changes in each round
				return err
			}
			return run()
		}
	}
	b.Setenv("HOME", empty)
	compare(b, []Variant{{"twelve", at(full)}, {"none", at(empty)}})
}
