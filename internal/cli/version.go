// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

func versionUsage() string {
	return `Say which version this is.

  sallyport version [--verbose] [--json]

With --verbose also the compiler, the system and the revision it was built of.
`
}

// A build is what this program was made of, as the Go linker wrote it down.
type build struct {
	Type     string `json:"type"` // always "version"
	Version  string `json:"version"`
	Go       string `json:"go"`
	System   string `json:"system"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified"`
}

func readBuild() build {
	b := build{Type: "version", Version: "(devel)", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	var system, arch string
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS":
			system = s.Value
		case "GOARCH":
			arch = s.Value
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	b.System = system + "/" + arch
	return b
}

func versionVerb(_ context.Context, env *Env, args []string) error {
	var verbose, asJSON, help bool
	rest, err := parse([]flag{
		{long: "verbose", short: 'v', set: on(&verbose)},
		{long: "json", set: on(&asJSON)},
		{long: "help", short: 'h', set: on(&help)},
	}, args)
	switch {
	case err != nil:
		return err
	case help:
		return env.put([]byte(versionUsage()))
	case len(rest) > 0:
		return usage("version takes no words, such as %s", quote(rest[0]))
	}
	b := readBuild()
	if asJSON {
		line, err := encode(b)
		if err != nil {
			return err
		}
		return env.put(line)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "sallyport %s\n", b.Version)
	if verbose {
		fmt.Fprintf(&out, "go        %s\nsystem    %s\n", b.Go, b.System)
		if b.Revision != "" {
			changed := ""
			if b.Modified {
				changed = " with changes"
			}
			fmt.Fprintf(&out, "revision  %s%s\ntime      %s\n", b.Revision, changed, b.Time)
		}
	}
	return env.put([]byte(out.String()))
}
