// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setup writes files of settings: the first one of a project, and what the user allows
// from now on.
//
// [Project] changes the settings of a project if the user trusts all of its files as they are
// then, [User] the user's own. [Init] writes the first file of a project by what it finds there.
// A file is replaced as a whole or not at all, and what it said stays. The package does not know
// what a setting means.
package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/printable"
	"github.com/sallyport-dev/sallyport/internal/toml"
	"github.com/sallyport-dev/sallyport/internal/trust"
)

// The names of the file of a project.
const (
	projectDir = ".sallyport"
	fileName   = "config.toml"
	// ProjectFile is the file of settings of a project, relative to its directory.
	ProjectFile = projectDir + "/" + fileName
)

// A Setting is a value that a file gets.
type Setting struct {
	Path  []string // the parts of its key
	Value string
	List  bool // the value is an element of the key's array
}

// String is the setting as it stands in a sentence.
func (s Setting) String() string {
	value := toml.Quote(s.Value)
	if s.List {
		value = "[" + value + "]"
	}
	return toml.Join(s.Path) + " = " + value
}

// A Check returns what is wrong with the text that a file will have.
type Check func(name string, text []byte) error

// change returns the text of a file with settings. What is wrong with the text as it is has the
// place that the user sees.
func change(name string, text []byte, settings []Setting, check Check) ([]byte, error) {
	if err := check(name, text); err != nil {
		return nil, err
	}
	for _, s := range settings {
		var err error
		if text, err = toml.Add(text, s.Path, s.Value, s.List); err != nil {
			return nil, fmt.Errorf("%s:%w", printable.Word(name), err)
		}
	}
	return text, check(name, text)
}

// User adds settings to the user's file, whose name is absolute. If it is missing it is made,
// as are the directories on the way to it. A link is followed.
func User(name string, settings []Setting, check Check) error {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	dir, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	old, err := dir.ReadFile(filepath.Base(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := change(name, old, settings, check)
	if err != nil || bytes.Equal(text, old) {
		return err
	}
	return replace(dir, filepath.Base(name), old, text, 0o600)
}

// Project adds settings to the file of the project in dir, which must be absolute, and trusts
// the project. Before anything is written it shows all files of the project as they will be on
// the controlling terminal, and asks; it returns false if the answer is not yes. Where nothing
// would change and the project is trusted it asks nothing. It blocks until the user answers or
// ctx ends.
func Project(ctx context.Context, dir string, settings []Setting, check Check) (yes bool, err error) {
	p, err := trust.Read(dir)
	if err != nil {
		return false, err
	}
	if p.Dir, err = filepath.EvalSymlinks(p.Dir); err != nil {
		return false, err
	}
	f := trust.File{Name: ProjectFile, Path: filepath.Join(p.Dir, ProjectFile)}
	at := slices.IndexFunc(p.Files, func(f trust.File) bool { return f.Name == ProjectFile })
	if at < 0 {
		at = 0 // it is the first by name
		p.Files = slices.Insert(p.Files, at, f)
	}
	old := p.Files[at].Data
	text, err := change(f.Path, old, settings, check)
	if err != nil || bytes.Equal(text, old) && p.State == trust.Trusted {
		return err == nil, err
	}
	p.Files[at].Data = text
	tell(p, settings)
	if yes, err := p.Ask(ctx); !yes || err != nil {
		return false, err
	}
	if err := write(p.Dir, old, text); err != nil {
		return false, err
	}
	return true, confirm(p)
}

// tell says in the question what the command does.
func tell(p *trust.Project, settings []Setting) {
	if p.State == trust.Untrusted {
		p.Why = "never trusted before"
	}
	for _, s := range settings {
		p.Why = strings.TrimPrefix(p.Why+", with "+s.String(), ", ")
	}
	p.State = trust.Changed
}

// ErrChanged says that files were changed by someone else at the same time.
var ErrChanged = errors.New("it was changed by another program at the same time; try again")

// confirm trusts the files of a project if they are those that were shown.
func confirm(shown *trust.Project) error {
	p, err := trust.Read(shown.Dir)
	if err != nil {
		return err
	}
	same := func(a, b trust.File) bool { return a.Name == b.Name && bytes.Equal(a.Data, b.Data) }
	if !slices.EqualFunc(p.Files, shown.Files, same) {
		return fmt.Errorf("%s is not trusted: %w", projectDir, ErrChanged)
	}
	return p.Trust()
}
