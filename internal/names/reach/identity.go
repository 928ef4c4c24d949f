// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/command/script"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A ApprovedCommand is a command as its caller describes it.
type ApprovedCommand struct {
	Run         string // may be empty
	Environment string // that it runs in; empty for this machine
	Local       bool   // its paths are those of this machine
	Args        []string
	Arg0        string
	Dir         string
	Env         []string
	Policy      sandbox.Policy // before anything was approved
	HostTmp     bool           // /tmp is that of this machine
	Allow       []string       // openings
	Shape       []any          // what else decides about the sandbox
}

// An Identity is all that an approval of a command rests on: when any of it changes, it is
// another question.
type Identity struct {
	Environment string
	Args        []string // without what makes no difference
	Arg0        string
	Dir         string          // without links
	Program     string          // without links; empty where it is not known
	Files       []approval.File // that commands can change
	Env         []string
	Policy      string
	Allow       []string
	Shape       []any
}

// of looks at what a command is, but for its files.
func of(c *ApprovedCommand) Identity {
	return Identity{
		Environment: c.Environment, Args: c.Args, Arg0: c.Arg0, Dir: c.Dir,
		Env:    slices.Sorted(slices.Values(c.Env)),
		Policy: describe(c.Policy), Allow: c.Allow, Shape: c.Shape,
	}
}

// directory returns the directory of the command without links, and what it is; nil if it cannot be
// looked at.
func (c *ApprovedCommand) directory() (string, os.FileInfo) {
	dir := c.Dir
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	at, _ := os.Stat(dir)
	return dir, at
}

// canonical returns the words of a command whose program is known otherwise, without what makes
// no difference: the path of a shell that gets a script and, where the script is one plain
// command, the spaces between its words.
func canonical(args []string) []string {
	r := script.Read(args)
	if !r.Wrapper {
		return args
	}
	if len(r.Plain) != 1 {
		return append([]string{"", args[1]}, args[2:]...)
	}
	return append([]string{"", args[1], ""}, r.Plain[0].Args...)
}

// describe is a policy with everything in it.
func describe(p sandbox.Policy) string {
	var b strings.Builder
	b.WriteString(p.String())
	for _, e := range p.Entries() {
		b.WriteString("\n" + e.String())
	}
	for _, words := range [][]string{p.Named(), p.Hosts()} {
		b.WriteString("\n" + strings.Join(words, " "))
	}
	return b.String()
}

// Version names a policy with what else decides, by 12 hexadecimal digits: equal ones are equal policies.
func Version(p sandbox.Policy, more ...any) string {
	const bytes = 6
	sum := sha256.Sum256(fmt.Append([]byte(describe(p)), more...))
	return hex.EncodeToString(sum[:bytes])
}

// Key is the identity as one word; empty if it has none, and then nothing is remembered.
func (id Identity) Key() string {
	text, err := json.Marshal(id)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
