// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config reads the settings of a user: which files there are, what they say, who wins,
// and what the ceiling of the machine cuts.
//
// [Load] reads all layers and refuses what it does not understand. [Config.Resolve] adds the
// flags of one run and says what holds, and for each value who set it. The table has a row for
// each setting, with the flags of run that set it and the member of a [Run] that gets its value:
// [Keys] are the rows, [RunFlags] the flags.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/rules/files"
)

// The names of files in directories of settings.
const (
	fileName    = "config.toml"
	managedName = "managed.toml"
	managedDir  = "managed.d"
	rulesDir    = "rules"
	rulesSuffix = ".rules"
)

// System is the directory of the ceiling. It is never taken from the environment.
const System = "/etc/sallyport"

// An Input is where settings are.
type Input struct {
	// Managed is the directory of the ceiling; empty means that there is none.
	Managed string
	// RequireSandbox adds a ceiling that allows no full access, unless the managed configuration ends at a
	// mode itself.
	RequireSandbox bool
	// User is the directory of the user's settings; empty means that there is none.
	User string
	// File is read in place of the user's config.toml, and must exist; empty for that one.
	File string
	// OnlyManaged leaves out all layers but the ceiling and the flags.
	OnlyManaged bool
	// Project holds the files of the project that are trusted, and Untrusted says why those
	// that there are do not count; it is a sentence, or empty.
	Project   []ProjectFile
	Untrusted string
	// Environ holds variables as "NAME=value".
	Environ []string
	// Proxies holds the variables that name proxies. They are those of this process, also where
	// Environ is another program's, which must not have it connect to any place. Nil means Environ.
	Proxies []string
	// Dir is the workspace, in which relative names begin; Home the home directory, or empty.
	Dir, Home string
	// Account returns the home directory of the user database, which "~" means in managed files;
	// nil, and empty, if there is none.
	Account func() string
	// Terminal says that a person can be asked.
	Terminal bool
}

// A ProjectFile is a file of .sallyport in a workspace.
type ProjectFile struct {
	Path string // absolute
	Text []byte
}

// A Config is what all layers but the flags say.
type Config struct {
	in       Input
	managed  []*layer
	layers   []*layer // user, project and environment; those that there are
	profiles map[string]*profile
	sources  []rules.Source
	notes    []string
}

// Load reads the settings. The error is a [*FileError], or joins several; nothing may run then.
func Load(in Input) (*Config, error) {
	c := &Config{in: in, profiles: map[string]*profile{}}
	err := c.readManaged()
	if in.RequireSandbox {
		c.requireSandbox()
	}
	if !in.OnlyManaged {
		if in.Untrusted != "" {
			c.notes = append(c.notes, in.Untrusted)
		}
		err = errors.Join(err, c.readUser(), c.readProject(), c.readEnvironment())
	}
	if err != nil {
		return nil, err
	}
	for _, l := range slices.Concat(c.managed, c.layers) {
		for name, p := range l.profiles {
			if other := c.profiles[name]; other != nil {
				c.notes = append(c.notes,
					fmt.Sprintf("%s: the profile %s is not used, because %s has one of that name",
						p.origin.Place(), name, other.origin.Place()))
				continue
			}
			c.profiles[name] = p
		}
	}
	return c, c.checkProfiles()
}

// readManaged reads the ceiling, and the rules beside it.
func (c *Config) readManaged() error {
	dir := c.in.Managed
	if dir == "" {
		return nil
	}
	names := []string{filepath.Join(dir, managedName)}
	below := filepath.Join(dir, managedDir)
	more, err := os.ReadDir(below)
	if err != nil && !absent(below, err) {
		return unreadable(below, err)
	}
	for _, e := range more {
		if strings.HasSuffix(e.Name(), ".toml") {
			names = append(names, filepath.Join(below, e.Name()))
		}
	}
	for i, name := range names {
		text, err := read(name)
		if i == 0 && absent(name, err) {
			continue
		}
		if err != nil {
			return err
		}
		home := ""
		if c.in.Account != nil && bytes.ContainsAny(text, "~:") {
			home = c.in.Account()
		}
		l, err := readFile(Managed, name, text, home)
		if err != nil {
			return err
		}
		c.managed = append(c.managed, l)
		if len(l.required) > 0 {
			c.sources = append(c.sources, rules.Source{Name: name, Required: l.required})
		}
	}
	c.sources = append(c.sources, files.Directory(filepath.Join(dir, rulesDir))...)
	return nil
}

// RequireSandboxFlag is the name of what adds the ceiling of Input.RequireSandbox, in its place.
const RequireSandboxFlag = "--require-sandbox"

// requireSandbox adds the ceiling that a managed file with a mode would be.
func (c *Config) requireSandbox() {
	if slices.ContainsFunc(c.managed, func(m *layer) bool { return m.mode() != nil }) {
		return
	}
	by := Origin{Layer: Managed, File: RequireSandboxFlag}
	c.managed = append(c.managed, &layer{kind: Managed, file: RequireSandboxFlag,
		values: Values{"sandbox": {Setting{WorkspaceWrite, by}}}})
}

// readUser reads the user's settings and rules.
func (c *Config) readUser() error {
	name, must := c.in.File, c.in.File != ""
	if !must && c.in.User != "" {
		name = filepath.Join(c.in.User, fileName)
	}
	if c.in.User != "" {
		c.sources = append(c.sources, files.Directory(filepath.Join(c.in.User, rulesDir))...)
	}
	if name == "" {
		return nil
	}
	text, err := read(name)
	if absent(name, err) && !must {
		return nil
	}
	if err != nil {
		return err
	}
	return c.add(User, name, text)
}

// add adds the layer of a file.
func (c *Config) add(kind Layer, name string, text []byte) error {
	l, err := readFile(kind, name, text, "")
	if err == nil {
		c.layers = append(c.layers, l)
	}
	return err
}

// readProject takes the trusted files of the project.
func (c *Config) readProject() error {
	allow := false
	for _, f := range c.in.Project {
		if filepath.Base(f.Path) == fileName {
			if err := c.add(Project, f.Path, f.Text); err != nil {
				return err
			}
			allow = c.layers[len(c.layers)-1].allowRules
		}
	}
	for _, f := range c.in.Project {
		if strings.HasSuffix(f.Path, rulesSuffix) {
			c.sources = append(c.sources, rules.Source{Name: f.Path, Text: f.Text, Narrow: !allow})
		}
	}
	return nil
}

// VariablePrefix begins the variables that set keys at the top of a file.
const VariablePrefix = "SALLYPORT_"

// Variable is the variable that sets a key; empty if none does.
func (k *Key) Variable() string {
	switch {
	case k.Name == "sandbox":
		return VariablePrefix + "PROFILE" // SALLYPORT_SANDBOX is told to commands
	case strings.Contains(k.Name, ".") || k.Later != "":
		return ""
	}
	return VariablePrefix + strings.ToUpper(k.Name)
}

// readEnvironment reads the variables that set keys.
func (c *Config) readEnvironment() error {
	l := &layer{kind: Environment, values: Values{}}
	for _, v := range c.in.Environ {
		name, text, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, VariablePrefix) {
			continue
		}
		k := findKey(func(k *Key) bool { return k.Variable() == name })
		if k == nil {
			continue
		}
		texts := []string{text}
		if k.Type == List {
			texts = strings.Split(text, ",")
		}
		l.values[k.Name] = nil // the last one counts
		for _, t := range texts {
			if err := k.Check(t); err != nil {
				return &FileError{File: name, Text: err.Error()}
			}
			l.values[k.Name] = append(l.values[k.Name], Setting{t, Origin{Layer: Environment, File: name}})
		}
	}
	if len(l.values) > 0 {
		c.layers = append(c.layers, l)
	}
	return nil
}

// absent reports whether an error says that a name is not there at all. A link to something that
// is not there may have meant a ceiling or a denial, so it is an error.
func absent(name string, err error) bool {
	if !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	_, err = os.Lstat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// read returns what a file of settings holds. The error may be a matter of [absent].
func read(name string) ([]byte, error) {
	f, err := safefile.Open(name)
	if err != nil {
		return nil, unreadable(name, err)
	}
	defer f.Close()
	if err := owned(f); err != nil {
		return nil, &FileError{File: name, Text: err.Error()}
	}
	text, err := io.ReadAll(io.LimitReader(f, syntax.MaxTOML+1))
	if err != nil {
		return nil, unreadable(name, err)
	}
	return text, nil
}

// unreadable returns the error for a file that cannot be read.
func unreadable(name string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return &FileError{File: name, Text: fmt.Sprintf("cannot be read: %v", err), Err: err}
}

// Check returns the function that says what is wrong with a text for a file of a layer. The error is a
// [*FileError].
func Check(kind Layer) func(name string, text []byte) error {
	return func(name string, text []byte) error {
		_, err := readFile(kind, name, text, "")
		return err
	}
}
