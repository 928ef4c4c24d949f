// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/internal/linux/apply"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// form is that of a [Record] of this version.
const form = 1

// A Record is what a stage knows of itself. Users can read and edit it, so readers use [Parse].
type Record struct {
	_         struct{} `rule:"name=Record,strict"`
	Form      int      `json:"form" rule:"need"`
	ID        string   `json:"id" rule:"need,filled"`
	Name      string   `json:"name"`                  // empty for none
	Owner     string   `json:"owner"`                 // whom an exec-server made it for; empty for the user
	Workspace string   `json:"workspace" rule:"need"` // absolute, without symbolic links
	Created   int64    `json:"created" rule:"need"`   // nanoseconds since 1970
	Commands  int      `json:"commands"`              // that have used it
	Roots     []Root   `json:"roots,omitempty"`       // in the order of their numbers
	Policies  []Policy `json:"policies,omitempty"`    // of the commands, without equal ones
	Began     int64    `json:"began,omitempty"`       // when the run that goes on began, or was killed; 0 for none
	Boot      string   `json:"boot,omitempty"`        // the start of the machine in which the first command ran
}

// A Root is a directory or file of the host that is seen through a layer.
type Root struct {
	_    struct{} `rule:"name=Root,strict"`
	Path string   `json:"path" rule:"need"` // absolute, without symbolic links
	// File says that it is a single file: its upper directory has a copy with the same last name.
	File bool `json:"file,omitempty"`
	// ID is that of the directory, of a file that of its directory, when the stage met it.
	ID apply.ID `json:"id" rule:"need"`
}

// Host returns the directory of the host over which the layer lies.
func (r *Root) Host() string {
	if r.File {
		return path.Dir(r.Path)
	}
	return r.Path
}

// A Policy is what a command of a stage was allowed, as far as that is about files.
type Policy struct {
	_       struct{} `rule:"name=Policy,strict"`
	Dir     string   `json:"dir" rule:"need"` // the working directory
	Entries []Entry  `json:"entries"`         // bound
	Named   []string `json:"named,omitempty"` // grants
	Depth   int      `json:"glob_depth,omitempty"`
	Tmp     string   `json:"tmp,omitempty"` // as in executor.Spec
}

// An Entry is one of a policy.
type Entry struct {
	_     struct{}      `rule:"name=Entry,strict"`
	Path  string        `json:"path" rule:"need"`
	Glob  bool          `json:"glob,omitempty"` // Path is a pattern
	Level sandbox.Level `json:"level" rule:"need"`
	Skip  bool          `json:"skip_missing,omitempty"`
}

// PolicyOf returns what a record keeps of a policy that is bound.
func PolicyOf(p sandbox.Policy, dir, tmp string) Policy {
	out := Policy{Dir: dir, Named: p.Named(), Depth: p.GlobScanDepth(), Tmp: tmp, Entries: []Entry{}}
	for _, e := range p.Entries() {
		if e.Place.Kind != sandbox.PlaceSpecial { // one of a newer version, which is ignored
			out.Entries = append(out.Entries, Entry{Path: e.Place.Path, Level: e.Level, Skip: e.SkipMissing,
				Glob: e.Place.Kind == sandbox.PlaceGlob})
		}
	}
	return out
}

// Sandbox returns the policy, without a network.
func (p *Policy) Sandbox() (sandbox.Policy, error) {
	entries := make([]sandbox.Entry, len(p.Entries))
	for i, e := range p.Entries {
		if entries[i] = sandbox.PathEntry(e.Path, e.Level); e.Glob {
			entries[i] = sandbox.GlobEntry(e.Path)
		}
		entries[i].SkipMissing = e.Skip
	}
	out, err := sandbox.New(sandbox.Managed, sandbox.NetworkNone, entries...)
	for _, name := range p.Named {
		out = out.With(sandbox.Grant{Name: name})
	}
	return out.WithGlobScanDepth(p.Depth), err
}

func (p *Policy) equal(o *Policy) bool {
	return p.Dir == o.Dir && p.Depth == o.Depth && p.Tmp == o.Tmp && slices.Equal(p.Named, o.Named) &&
		slices.Equal(p.Entries, o.Entries)
}

// Time returns when the stage was made.
func (r *Record) Time() time.Time { return time.Unix(0, r.Created) }

// Parse reads a record. The error is a clause.
func Parse(text []byte) (*Record, error) {
	r := new(Record)
	if err := strict.Unmarshal(text, r); err != nil {
		return nil, err
	}
	switch {
	case r.Form != form:
		return nil, fmt.Errorf("it has the form %d, which this version does not know", r.Form)
	case !validID(r.ID):
		return nil, errors.New("the id has other characters than letters and digits")
	case r.Created <= 0 || r.Commands < 0 || r.Began < 0:
		return nil, errors.New("a number is negative")
	case !clean(r.Workspace):
		return nil, errors.New("the workspace is not an absolute path")
	}
	if err := CheckName(r.Name); r.Name != "" && err != nil {
		return nil, err
	}
	for i, o := range r.Roots {
		overlaps := func(p Root) bool { return p.Path == o.Path }
		if !clean(o.Path) || o.Path == "/" || slices.ContainsFunc(r.Roots[:i], overlaps) {
			return nil, errors.New("a root is there twice, or is not an absolute path")
		}
	}
	for i := range r.Policies {
		if _, err := r.Policies[i].Sandbox(); err != nil || !clean(r.Policies[i].Dir) {
			return nil, fmt.Errorf("policy %d is invalid", i+1)
		}
	}
	return r, nil
}

func clean(p string) bool {
	return path.IsAbs(p) && path.Clean(p) == p && utf8.ValidString(p) && !strings.ContainsRune(p, 0)
}

// idLength is that of ids.
const idLength = 16

func validID(id string) bool {
	return len(id) == idLength && strings.Trim(id, "0123456789abcdef") == ""
}

// maxName is how long a name may be, in bytes.
const maxName = 64

// CheckName returns why a text cannot be the name of a stage, as a clause with the fix. A name is never taken
// for a path or an option.
func CheckName(name string) error {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	if name == "" || len(name) > maxName || strings.Trim(name, plain) != "" || strings.ContainsAny(name[:1], "-.") {
		return errors.New("the name of a stage has letters, digits, - _ and . only, begins with a letter or " +
			"digit, and has " +
			strconv.Itoa(maxName) + " of them at most")
	}
	return nil
}
