// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity says what an approval of a command rests on. It looks at the files that the
// command names, on this machine, and changes nothing.
package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/plainfile"
	"github.com/sallyport-dev/sallyport/internal/script"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Command is a command as its caller describes it.
type Command struct {
	Environment string // that it runs in; empty for this machine
	Local       bool   // its paths are those of this machine
	Args        []string
	Arg0        string
	Dir         string
	Env         []string
	Policy      sandbox.Policy // before anything was approved
	Allow       []string       // openings
	Shape       []any          // what else decides about the sandbox
}

// An Identity is all that an approval of a command rests on: when any of it changes, it is
// another question.
type Identity struct {
	Environment string
	Args        []string // without what makes no difference
	Arg0        string
	Dir         string // without links
	Program     string // without links; empty where it is not known
	Digest      string // of a program or script that commands can change; empty for others
	Env         []string
	Policy      string
	Allow       []string
	Shape       []any

	at os.FileInfo // of Dir; nil where it is not known
}

// Of looks at what a command is now.
func Of(c *Command) Identity {
	id := Identity{
		Environment: c.Environment, Args: c.Args, Arg0: c.Arg0, Dir: c.Dir, Env: slices.Sorted(slices.Values(c.Env)),
		Policy: describe(c.Policy), Allow: c.Allow, Shape: c.Shape,
	}
	if !c.Local {
		return id
	}
	if real, err := filepath.EvalSymlinks(c.Dir); err == nil {
		id.Dir = real
	}
	id.at, _ = os.Stat(id.Dir)
	id.Program = c.program()
	id.Digest = c.digest(id.Program)
	if id.Program != "" {
		id.Args = canonical(c.Args)
	}
	return id
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

// Changed names what differs in another identity; empty if nothing does.
func (id Identity) Changed(now Identity) string {
	switch {
	case id.Program != now.Program:
		return "the program that the command names"
	case id.Digest != now.Digest:
		return "the file that it runs"
	case id.Dir != now.Dir, (id.at == nil) != (now.at == nil), id.at != nil && !os.SameFile(id.at, now.at):
		return "its directory"
	case id.Key() != now.Key():
		return "the command"
	}
	return ""
}

// program returns the file of the program, as the command's own PATH leads to it.
func (c *Command) program() string {
	at, err := hostfacts.Lookup(c.Args[0], c.Dir, c.Env)
	if err == nil {
		at, err = filepath.EvalSymlinks(at)
	}
	if err != nil {
		return ""
	}
	return at
}

// maxScript is how large a script may be that is read for its digest; of larger files the size
// and the time of the last change count.
const maxScript = 16 << 20

// digest identifies what the files hold that the command runs and that commands in the sandbox
// can change: its program, and those that its arguments name.
func (c *Command) digest(program string) string {
	sum, any := sha256.New(), false
	for i, name := range append([]string{program}, c.Args[1:]...) {
		if i > 0 && strings.HasPrefix(name, "-") || name == "" || len(name) > 4096 {
			continue
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(c.Dir, name)
		}
		real, err := filepath.EvalSymlinks(name)
		if err != nil || c.Policy.LevelAt(real) != sandbox.LevelWrite {
			continue
		}
		info, err := os.Stat(real)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		any = true
		_, _ = io.WriteString(sum, real+"\x00"+info.Mode().String()+"\x00") // a hash takes all
		f, err := plainfile.Open(real)                                      // a command may have put a pipe there meanwhile
		if info.Size() > maxScript || err != nil {
			_, _ = io.WriteString(sum, strconv.FormatInt(info.Size(), 10)+info.ModTime().String())
		}
		if err == nil {
			_, _ = io.Copy(sum, io.LimitReader(f, maxScript))
			f.Close()
		}
	}
	if !any {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}
