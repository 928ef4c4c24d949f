// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

const versionHelp = `Print the version.

  sallyport version [--verbose] [--json]
`

func versionFlags(o *options) []flag {
	return []flag{{long: "verbose", short: 'v', set: on(&o.verbose), help: "print the compiler, the system and the revision too"}, o.jsonFlag()}
}

// A build is what the Go linker recorded about this program.
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
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	b.System = settings["GOOS"] + "/" + settings["GOARCH"]
	b.Revision, b.Time, b.Modified = settings["vcs.revision"], settings["vcs.time"], settings["vcs.modified"] == "true"
	return b
}

func versionCommand(_ context.Context, env *Env, o *options, _ []string) error {
	b := readBuild()
	if o.json {
		return env.printJSON(b)
	}
	text := fmt.Sprintf("sallyport %s\n", b.Version)
	if o.verbose {
		text += fmt.Sprintf("go        %s\nsystem    %s\n", b.Go, b.System)
	}
	if o.verbose && b.Revision != "" {
		changed := ""
		if b.Modified {
			changed = " with changes"
		}
		text += fmt.Sprintf("revision  %s%s\ntime      %s\n", b.Revision, changed, b.Time)
	}
	return env.print(text)
}
