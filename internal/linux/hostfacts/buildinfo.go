// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hostfacts

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

const module = "github.com/sallyport-dev/sallyport"

// A Build is what the Go linker recorded about this program.
type Build struct {
	Type     string `json:"type"`    // always "version"
	Version  string `json:"version"` // of sallyport
	Go       string `json:"go"`
	System   string `json:"system"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified"`
}

// ReadBuild returns the Build of this program.
func ReadBuild() Build {
	b := Build{Type: "version", Version: "(devel)", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := version(info); v != "" {
		b.Version = v
	}
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	b.System = settings["GOOS"] + "/" + settings["GOARCH"]
	b.Revision, b.Time, b.Modified = settings["vcs.revision"], settings["vcs.time"],
		settings["vcs.modified"] == "true"
	return b
}

// version returns that of this module, which another program may have as a dependency.
func version(info *debug.BuildInfo) string {
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version
		}
	}
	return info.Main.Version
}

// String is one line: the version of the module and, when the build has none, the revision
// that it was built from. A build from a file list has neither, and says (devel).
func (b Build) String() string {
	text := "sallyport " + b.Version
	if b.Version == "(devel)" && b.Revision != "" {
		text += " " + b.revision() + ", " + b.Time
	}
	return fmt.Sprintf("%s (%s, %s)\n", text, b.Go, b.System)
}

// revision is the revision, and whether the files differed from it.
func (b Build) revision() string {
	if b.Modified {
		return b.Revision + " with changes"
	}
	return b.Revision
}

// Verbose is a line for each thing that is known.
func (b Build) Verbose() string {
	text := fmt.Sprintf("sallyport %s\ngo        %s\nsystem    %s\n", b.Version, b.Go, b.System)
	if b.Revision != "" {
		text += fmt.Sprintf("revision  %s\ntime      %s\n", b.revision(), b.Time)
	}
	return text
}
