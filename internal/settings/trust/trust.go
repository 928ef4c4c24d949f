// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trust reads the files with which a project configures sallyport, and knows which
// of them the user has trusted.
//
// [Read] reads the files of one directory once and compares them with the record of what
// was trusted there; [Project.Ask] shows them to the user whole and asks; [Project.Trust]
// records exactly the bytes that were read. A record holds the directory's identity and a
// hash of each file, so what is changed, added or removed later is not trusted, and neither
// is another directory with the same name. Records are in the state directory, which no
// command can reach.
//
// Files that another user or another name could change are refused with a [RefusedError].
// The package does not know what the files say, and looks in no directory above.
//
// [SetInProject] changes the settings of a project if the user trusts all of its files as they are
// then, [SetForUser] the user's own, [InitProject] writes the first file of a project by what it finds
// there. A file is replaced as a whole or not at all, and what it said stays.
package trust

import (
	"errors"
	"fmt"
	"time"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// A State says whether the files of a project may be used. The zero State is [None].
type State int

// The states of a project. Only the files of a Trusted one may be used.
const (
	None      State = iota // there are no files
	Untrusted              // there are files, and nothing was ever trusted here
	Changed                // something was trusted here, and it was not this
	Trusted                // exactly these files were trusted
)

// A Project is what the files of a project say, read once: what was judged is what was
// hashed. [Read] makes it.
type Project struct {
	// Dir is the directory of the project, absolute and without symbolic links. Where the
	// State is None it is the name that was given.
	Dir string
	// Files are those that exist, sorted by name.
	Files []File
	State State
	// Why says what has changed since the project was trusted, as a clause; empty in other
	// states than Changed.
	Why string

	reading //nolint:unused,nolintlint // empty where nothing is trusted
}

// Unchanged reports whether the project in dir, which must be absolute, has files, and exactly those that
// were trusted. Files that cannot be read or compared are not.
func Unchanged(dir string) bool {
	p, err := Read(dir)
	return err == nil && p.State == Trusted
}

// A File is a file of a project with its content.
type File struct {
	Name string // relative to the directory of the project, such as ".sallyport/config.toml"
	Path string // absolute
	Data []byte
}

// The names of the files. A rule file that begins with a dot is not one of the project's.
const (
	configDir       = ".sallyport"
	trustConfigFile = configDir + "/config.toml"
	rulesDir        = configDir + "/rules"
	rulesExt        = ".rules"
)

// ErrNoFiles says that a project has no files that could be trusted.
var ErrNoFiles = errors.New("the project has no files for sallyport")

// A RefusedError reports a file of a project that cannot be trusted, however it reads. None of
// the project's files may be used.
type RefusedError struct {
	Path string
	Why  string // such as "it is a symbolic link"
	Fix  string // a clause
}

// Error returns one sentence with the path, the reason and the fix.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s is refused: %s; %s", text.Word(e.Path), e.Why, e.Fix)
}

// A ChangedError reports a project whose files were trusted and are others now, or gone. What they
// denied would be open without a word, so nothing runs.
type ChangedError struct {
	Dir string
	Why string // a clause
}

// Error returns one sentence with the directory, the reason and the fix.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("the settings of the project %s were trusted, and nothing runs without them: %s; run sallyport trust %[1]s to see what exists now, or sallyport trust --revoke %[1]s to go without",
		text.Word(e.Dir), e.Why)
}

// A RecordError reports a trust record that does not load. Nothing is known about the
// project's files then, and nothing may run that depends on them.
type RecordError struct {
	Path      string // of the record
	Line, Col int    // where it is wrong, from 1
	Dir       string // of the project; empty where it is not known
	Err       error
}

// Error returns one sentence that begins with the place.
func (e *RecordError) Error() string {
	fix := "remove that file"
	if e.Dir != "" {
		fix = "forget it with sallyport trust --revoke " + text.Word(e.Dir)
	}
	return fmt.Sprintf("%s:%d:%d: the trust record does not load: %v; %s", text.Word(e.Path), e.Line,
		e.Col, e.Err, fix)
}

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Err }

// A Record is what was trusted in one directory.
type Record struct {
	Version int       `json:"v"`
	Dir     string    `json:"dir"` // absolute, without symbolic links
	Device  uint64    `json:"device"`
	Inode   uint64    `json:"inode"`
	Born    int64     `json:"born"` // when the directory was made, in ns since 1970; 0 if that is not known
	Time    time.Time `json:"time"` // when it was trusted
	Files   []Hash    `json:"files"`
}

// A Hash is the name of a file and the SHA-256 hash of its content, in hexadecimal.
type Hash struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}
