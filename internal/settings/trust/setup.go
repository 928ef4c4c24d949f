// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package trust

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

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
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
	value := syntax.QuoteTOML(s.Value)
	if s.List {
		value = "[" + value + "]"
	}
	return syntax.JoinKeys(s.Path) + " = " + value
}

// A CheckFile returns what is wrong with the text that a file will have.
type CheckFile func(name string, text []byte) error

// change returns the text of a file with settings. What is wrong with the text as it is has the
// place that the user sees.
func change(name string, txt []byte, settings []Setting, check CheckFile) ([]byte, error) {
	if err := check(name, txt); err != nil {
		return nil, err
	}
	for _, s := range settings {
		var err error
		if txt, err = syntax.AddTOML(txt, s.Path, s.Value, s.List); err != nil {
			return nil, fmt.Errorf("%s:%w", text.Word(name), err)
		}
	}
	return txt, check(name, txt)
}

// SetForUser adds settings to the user's file, whose name is absolute. If it is missing it is made,
// as are the directories on the way to it. A link is followed.
func SetForUser(name string, settings []Setting, check CheckFile) error {
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
	return safefile.ReplaceIn(dir, filepath.Base(name), old, text, 0o600, nil)
}

// SetInProject adds settings to the file of the project in dir, which must be absolute, and trusts
// the project. Before anything is written it shows all files of the project as they will be on
// the controlling terminal, and asks; it returns false if the answer is not yes. Where nothing
// would change and the project is trusted it asks nothing. It blocks until the user answers or
// ctx ends.
func SetInProject(ctx context.Context, dir string, settings []Setting,
	check CheckFile) (yes bool, err error) {
	p, err := Read(dir)
	if err != nil {
		return false, err
	}
	if err := p.found(); err != nil {
		return false, err
	}
	text, old, err := p.with(settings, check)
	if err != nil || bytes.Equal(text, old) && p.State == Trusted {
		return err == nil, err
	}
	tell(p, settings)
	if yes, err := p.Ask(ctx); !yes || err != nil {
		return false, err
	}
	return true, p.put(old, text)
}

// Keep adds settings to the file of the project in dir, which must be absolute, for a person who has just
// been asked about them. It shows nothing, so it is an error where the project has files that are not
// trusted.
func Keep(dir string, settings []Setting, check CheckFile) error {
	p, err := Propose(dir, settings, check)
	if err != nil {
		return err
	}
	return p.Write()
}

// A Proposal is what settings would make of the file of a project whose other files are trusted.
type Proposal struct {
	Path     string // of the file, absolute
	Old, New []byte // its text; Old is nil where there is none yet
	project  *Project
}

// Propose returns what [Keep] would write.
func Propose(dir string, settings []Setting, check CheckFile) (*Proposal, error) {
	p, err := Read(dir)
	if err != nil {
		return nil, err
	}
	if p.State != Trusted && p.State != None {
		return nil, fmt.Errorf("the settings of %s are not trusted", projectDir)
	}
	if err := p.found(); err != nil {
		return nil, err
	}
	text, old, err := p.with(settings, check)
	return &Proposal{filepath.Join(p.Dir, ProjectFile), old, text, p}, err
}

// Write writes the file and trusts the project, unless that is so already. The error is [ErrChanged] where
// the project was changed since.
func (p *Proposal) Write() error {
	if bytes.Equal(p.New, p.Old) && p.project.State == Trusted {
		return nil
	}
	return p.project.put(p.Old, p.New)
}

// with puts settings into the file of settings as it was read, which it may add. Old is the text before.
func (p *Project) with(settings []Setting, check CheckFile) (text, old []byte, err error) {
	f := File{Name: ProjectFile, Path: filepath.Join(p.Dir, ProjectFile)}
	at := slices.IndexFunc(p.Files, func(f File) bool { return f.Name == ProjectFile })
	if at < 0 {
		at = 0 // it is the first by name
		p.Files = slices.Insert(p.Files, at, f)
	}
	old = p.Files[at].Data
	if text, err = change(f.Path, old, settings, check); err == nil {
		p.Files[at].Data = text
	}
	return text, old, err
}

// tell says in the question what the command does.
func tell(p *Project, settings []Setting) {
	if p.State == Untrusted {
		p.Why = "never trusted before"
	}
	for _, s := range settings {
		p.Why = strings.TrimPrefix(p.Why+", with "+s.String(), ", ")
	}
	p.State = Changed
}

// ErrChanged says that files were changed by someone else at the same time.
var ErrChanged = safefile.ErrChanged

// confirm trusts the files of a project if they are those that were shown.
func confirm(shown *Project) error {
	p, err := Read(shown.Dir)
	if err != nil {
		return err
	}
	same := func(a, b File) bool { return a.Name == b.Name && bytes.Equal(a.Data, b.Data) }
	if !slices.EqualFunc(p.Files, shown.Files, same) {
		return fmt.Errorf("%s is not trusted: %w", projectDir, ErrChanged)
	}
	if p.State == Trusted {
		return nil
	}
	return p.Trust()
}
