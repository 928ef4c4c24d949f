// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"path"
	"slices"
	"strings"
)

// Level is what an entry allows for its paths. The zero Level is LevelDeny. Levels are
// ordered: a higher level allows everything that a lower one does.
type Level uint8

// The levels, strictest first.
const (
	LevelDeny  Level = iota // nothing
	LevelRead               // read and run
	LevelWrite              // read, run and write
)

var levelWords = []string{"deny", "read", "write"}

// String returns "deny", "read" or "write".
func (l Level) String() string { return wordOf(levelWords, l) }

// ParseLevel returns the Level for a word of String, or for the older word "none", which
// means deny. Any other word is an error.
func ParseLevel(word string) (l Level, err error) {
	if word != "none" {
		err = parseWord("access level", levelWords, []byte(word), &l)
	}
	return l, err
}

// MarshalText implements [encoding.TextMarshaler] with the word of String.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]; see [ParseLevel].
func (l *Level) UnmarshalText(text []byte) error {
	v, err := ParseLevel(string(text))
	if err == nil {
		*l = v
	}
	return err
}

// allows returns whether the level allows the file operation.
func (l Level) allows(o Op) bool {
	switch o {
	case Read, Exec:
		return l >= LevelRead
	case Write:
		return l >= LevelWrite
	default:
		return false
	}
}

// PlaceKind says how a Place names its files.
type PlaceKind uint8

// The kinds of places. The zero kind is PlacePath.
const (
	PlacePath    PlaceKind = iota // Place.Path is a path
	PlaceGlob                     // Place.Path is a glob pattern
	PlaceSpecial                  // Place.Token is a token that Bind turns into paths
)

// The special tokens.
const (
	TokenRoot         = "root"          // the whole file system, "/"
	TokenMinimal      = "minimal"       // the files of the platform: enough to run a system binary
	TokenProjectRoots = "project_roots" // the workspaces; may have a Subpath
	TokenTmpDir       = "tmpdir"        // the directory that TMPDIR names
	TokenSlashTmp     = "slash_tmp"     // /tmp
)

// workspaceGlobPrefix begins a pattern that applies below every workspace, as in permission
// profiles of peers.
const workspaceGlobPrefix = "codex-project-roots://"

// Place names the files of an [Entry]. The zero Place is an empty path, which [New] and
// [Policy.Resolve] reject.
type Place struct {
	Kind PlaceKind
	// Path is the path or the glob pattern. [Policy.Bind] makes it absolute where it is
	// relative or begins with "~/".
	Path string
	// Token is one of the Token constants, or a token of a newer version, which is kept and
	// ignored.
	Token string
	// Subpath is a relative path below each workspace. It is only for TokenProjectRoots, and
	// kept for unknown tokens.
	Subpath string
	// Raw is the JSON value of an unknown token as it arrived, so that it can be passed on
	// unchanged. It is empty for all others.
	Raw string
}

// String returns the path, the pattern, or ":token" with its subpath.
func (pl Place) String() string {
	if pl.Kind != PlaceSpecial {
		return pl.Path
	}
	if pl.Subpath != "" {
		return ":" + pl.Token + "/" + pl.Subpath
	}
	return ":" + pl.Token
}

// Known returns whether the token of a special place is one of the Token constants.
func (pl Place) Known() bool {
	switch pl.Token {
	case TokenRoot, TokenMinimal, TokenProjectRoots, TokenTmpDir, TokenSlashTmp:
		return true
	}
	return false
}

// Absolute returns the absolute clean path of a place that needs no binding.
func (pl Place) Absolute() (string, bool) {
	switch {
	case pl.Kind == PlaceSpecial && pl.Token == TokenRoot:
		return "/", true
	case pl.Kind == PlacePath && path.IsAbs(pl.Path):
		return path.Clean(pl.Path), true
	}
	return "", false
}

// Entry gives a level to a place and to everything below it.
type Entry struct {
	Place Place
	Level Level
	// SkipMissing says that a path that does not exist is left out. Otherwise a sandbox must
	// protect it from being created, or fail.
	SkipMissing bool
}

// PathEntry returns an entry for a path.
func PathEntry(name string, level Level) Entry {
	return Entry{Place: Place{Kind: PlacePath, Path: name}, Level: level}
}

// GlobEntry returns an entry that denies everything that matches the pattern; see
// [CompileGlob].
func GlobEntry(pattern string) Entry {
	return Entry{Place: Place{Kind: PlaceGlob, Path: pattern}, Level: LevelDeny}
}

// SpecialEntry returns an entry for one of the Token constants.
func SpecialEntry(token string, level Level) Entry {
	return Entry{Place: Place{Kind: PlaceSpecial, Token: token}, Level: level}
}

// String returns the place and the level, such as "/repo=write".
func (e Entry) String() string { return e.Place.String() + "=" + e.Level.String() }

// Check returns a *PolicyError for an entry that is invalid whatever it is bound to.
func (e Entry) Check() error {
	if reason := e.invalid(); reason != "" {
		return &PolicyError{Entry: e.String(), Reason: reason}
	}
	return nil
}

// invalid returns why an entry is invalid, or "".
func (e Entry) invalid() string {
	pl := e.Place
	switch {
	case e.Level > LevelWrite:
		return "the access level is unknown"
	case strings.ContainsRune(pl.Path+pl.Token+pl.Subpath, 0):
		return "a name must not contain a NUL byte"
	case pl.Kind > PlaceSpecial:
		return "the kind of place is unknown"
	case pl.Kind == PlacePath && pl.Path == "":
		return "the path is empty"
	case pl.Kind == PlaceGlob && pl.Path == "":
		return "the pattern is empty"
	case pl.Kind == PlaceGlob && e.Level != LevelDeny:
		return "a glob pattern can only deny"
	case pl.Kind == PlaceGlob && path.IsAbs(pl.Path):
		_, reason := compileGlob(pl.Path)
		return reason
	case pl.Kind != PlaceSpecial:
		return ""
	case pl.Token == "":
		return "the special token is empty"
	case !pl.Known() || pl.Subpath == "":
		return ""
	case pl.Token != TokenProjectRoots:
		return "only " + TokenProjectRoots + " can have a subpath"
	case path.IsAbs(pl.Subpath):
		return "the subpath must be relative"
	case slices.Contains(strings.Split(pl.Subpath, "/"), ".."):
		return `the subpath must not contain ".."`
	}
	return ""
}

// ProtectedNames returns the names that stay read-only at the top of every writable root
// unless an entry for that very path says otherwise: tools outside the sandbox run or obey
// what is in them. The slice belongs to the caller.
func ProtectedNames() []string { return []string{".git", ".agents", ".codex", ".sallyport"} }

// isProtectedName returns whether name is one of ProtectedNames.
func isProtectedName(name string) bool { return slices.Contains(ProtectedNames(), name) }
