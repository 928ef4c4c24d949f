// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package grants

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	searchDepth = 3 // directories below the home; one more in those that have a directory for each program
	maxAge      = 10 * time.Minute
	// lookSize is how much of a file is looked into, in bytes.
	lookSize = 8 << 10
)

// racyTime is how long after a change another one may have the same time, in nanoseconds: file systems
// count in steps.
const racyTime = int64(20 * time.Millisecond)

// unsearched are directories that hold what programs have fetched or built, in great number, and what is
// looked at in another way; relative to the home.
var unsearched = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for _, name := range []string{
		".cache", ".npm", ".rustup", ".cargo/registry", ".cargo/git", ".nvm", ".pyenv", ".rbenv", ".nodenv",
		".sdkman", ".asdf", ".deno", ".bun", ".volta", ".fnm", ".pnpm-store", ".yarn", ".ghcup", ".stack",
		".cabal", ".opam", ".julia", ".conan", ".conan2",
		".m2/repository", ".gradle/caches", ".gradle/wrapper", ".gradle/daemon", ".ivy2/cache", ".ivy2/local",
		".sbt/boot", ".nuget/packages", ".dotnet", ".android", ".gem/ruby", ".gem/specs", ".bundle/cache",
		".terraform.d/plugins", ".terraform.d/plugin-cache", ".pub-cache", ".cpan", ".cpanm",
		".local/lib", ".local/bin",
		".local/share/Trash", ".local/share/containers", ".local/share/pnpm", ".local/share/virtualenvs",
		".local/share/uv", ".local/share/mise", ".local/share/flatpak", ".local/share/Steam", ".steam",
		".wine", ".var", ".docker/contexts", ".docker/cli-plugins", ".docker/buildx", ".docker/models",
		".docker/desktop", ".docker/scout", ".vscode", ".vscode-server", ".vscode-oss", ".cursor-server",
		".cursor/extensions",
		".local/share/nvim", ".local/share/icons", ".local/share/fonts", ".fonts", ".icons", ".themes",
		".oh-my-zsh", ".local/share/zinit", ".emacs.d", ".vim", ".jupyter", ".nv", ".java", ".ccache",
		".texlive", ".thumbnails", ".config/sallyport", ".local/state/sallyport", "snap", "go",
		"node_modules", "Library",
	} {
		m[name] = true
	}
	return m
})

// copyOf returns the name of which another one is an editor's or a person's copy; false for none.
func copyOf(name string) (string, bool) {
	for _, suffix := range []string{".sallyport-new", ".sallyport-backup", ".un~", "~", ".bak", ".backup", ".orig",
		".old", ".save", ".rej", ".tmp",
		".dpkg-old", ".rpmsave", ".copy", " (copy)", "_backup", "-backup", "_bak", "-bak", ".bk", "_old",
		"-old", ".new", ".lock", ".corrupted", ".pacsave", ",v", ".swp", ".swo", ".swn", ".kate-swp"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && base != "" {
			return base, true
		}
	}
	if base := strings.TrimRight(name, "0123456789"); base != name { // X.1, X-20260102, X.~1
		if cut := strings.TrimRight(base, ".-_~"); cut != base && cut != "" {
			return cut, true
		}
	}
	if strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#") && len(name) > 2 {
		return name[1 : len(name)-1], true
	}
	if base, ok := strings.CutPrefix(name, ".#"); ok {
		return base, true
	}
	return "", false
}

// table is the paths of the table, in the spelling of it, with the names of their kinds.
var table = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for i := range kinds {
		k := &kinds[i]
		for _, path := range slices.Concat(k.paths, k.keys) {
			m[path] = k.name
		}
		for _, f := range k.files {
			m[f.path] = k.name
		}
	}
	return m
})

// original returns the path in the table of which the file or directory at a path below the home is a
// copy; "" for none.
func original(path string) string {
	dir, name := filepath.Split(path)
	for tries := 0; tries < 3; tries++ {
		base, ok := copyOf(name)
		if !ok {
			return ""
		}
		for _, found := range []string{base, strings.TrimPrefix(base, "."), "." + base} {
			// .X.swp is of X, ..X.swp of .X
			if _, ok := table()[dir+found]; ok {
				return dir + found
			}
		}
		name = base
	}
	return ""
}
