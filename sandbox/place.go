// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"path"
	"slices"
	"strings"
)

// A Level is what an entry gives to the paths it holds for. The zero Level is
// LevelDeny. Levels are ordered: a higher level allows everything a lower one
// does.
type Level uint8

// The levels, strictest first.
const (
	LevelDeny  Level = iota // neither read nor written; on the wire "deny"
	LevelRead               // read and run, on the wire "read"
	LevelWrite              // read, run and written, on the wire "write"
)

var levelWords = [...]string{"deny", "read", "write"}

// String returns the wire word: "deny", "read" or "write".
func (l Level) String() string { return wordOf(levelWords[:], uint8(l)) }

// ParseLevel returns the Level for a wire word. The older word "none" is
// accepted for "deny"; any other word is an error.
func ParseLevel(word string) (Level, error) {
	if word == "none" {
		return LevelDeny, nil
	}
	i, err := parseWord("access level", levelWords[:], word)
	return Level(i), err
}

// MarshalText implements [encoding.TextMarshaler] with the word of String.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]; see [ParseLevel].
func (l *Level) UnmarshalText(text []byte) error {
	v, err := ParseLevel(string(text))
	if err != nil {
		return err
	}
	*l = v
	return nil
}

// allows reports whether the level lets the file operation through.
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

// A PlaceKind tells how a Place names its files.
type PlaceKind uint8

// The kinds of places. The zero kind is PlacePath.
const (
	PlacePath    PlaceKind = iota // Place.Path is a path
	PlaceGlob                     // Place.Path is a glob pattern
	PlaceSpecial                  // Place.Token is a token that Bind turns into paths
)

// The special tokens, as they stand in a permission profile.
const (
	TokenRoot         = "root"          // the whole file system, "/"
	TokenMinimal      = "minimal"       // the platform's own files: enough to run a system binary
	TokenProjectRoots = "project_roots" // the workspaces; may have a Subpath
	TokenTmpDir       = "tmpdir"        // the folder that TMPDIR names
	TokenSlashTmp     = "slash_tmp"     // /tmp
)

// workspaceGlobPrefix begins a pattern that holds below every workspace. It is
// the peer's spelling in permission profiles.
const workspaceGlobPrefix = "codex-project-roots://"

// A Place names the files of an [Entry]. The zero Place is a path that is
// empty, which [New] and [Policy.Resolve] refuse.
type Place struct {
	Kind PlaceKind
	// Path is the path or the glob pattern. A relative one, and one that
	// begins with "~/", is made absolute by [Policy.Bind].
	Path string
	// Token is one of the Token constants, or a token of a newer version,
	// which is kept and ignored.
	Token string
	// Subpath is a relative path below each workspace; only for
	// TokenProjectRoots (and kept for unknown tokens).
	Subpath string
	// Raw is the JSON value of an unknown token, exactly as it arrived, so
	// that it can be passed on unchanged. Empty for all others.
	Raw string
}

// String returns the place as a person writes it: the path, the pattern, or
// ":token" with its subpath.
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
	case pl.Kind == PlacePath && strings.HasPrefix(pl.Path, "/"):
		return path.Clean(pl.Path), true
	}
	return "", false
}

// An Entry gives a level to a place and to everything below it.
type Entry struct {
	Place Place
	Level Level
	// SkipMissing says that a path that does not exist is left out; otherwise
	// whoever builds the sandbox must guard it or fail.
	SkipMissing bool
}

// PathEntry returns an entry for a path.
func PathEntry(name string, level Level) Entry {
	return Entry{Place: Place{Kind: PlacePath, Path: name}, Level: level}
}

// GlobEntry returns an entry that denies everything that matches the pattern;
// see [CompileGlob] for its syntax.
func GlobEntry(pattern string) Entry {
	return Entry{Place: Place{Kind: PlaceGlob, Path: pattern}, Level: LevelDeny}
}

// SpecialEntry returns an entry for one of the Token constants.
func SpecialEntry(token string, level Level) Entry {
	return Entry{Place: Place{Kind: PlaceSpecial, Token: token}, Level: level}
}

// String returns the entry as a person writes it, such as "/repo=write".
func (e Entry) String() string { return e.Place.String() + "=" + e.Level.String() }

// Check returns a *PolicyError for an entry that is invalid whatever it is bound to.
func (e Entry) Check() error {
	bad := func(reason string) error { return &PolicyError{Entry: e.String(), Reason: reason} }
	pl := e.Place
	if e.Level > LevelWrite {
		return bad("the access level is not known")
	}
	if strings.ContainsRune(pl.Path+pl.Token+pl.Subpath, 0) {
		return bad("a name must not contain a zero byte")
	}
	switch pl.Kind {
	case PlacePath:
		if pl.Path == "" {
			return bad("the path is empty")
		}
	case PlaceGlob:
		if e.Level != LevelDeny {
			return bad("a glob pattern can only deny")
		}
		if strings.HasPrefix(pl.Path, "/") {
			if _, err := CompileGlob(pl.Path); err != nil {
				return bad(reasonOf(err))
			}
		}
		if pl.Path == "" {
			return bad("the pattern is empty")
		}
	case PlaceSpecial:
		return e.checkSpecial()
	default:
		return bad("the kind of place is not known")
	}
	return nil
}

// checkSpecial is check for special places.
func (e Entry) checkSpecial() error {
	bad := func(reason string) error { return &PolicyError{Entry: e.String(), Reason: reason} }
	pl := e.Place
	if pl.Token == "" {
		return bad("the special token is empty")
	}
	if !pl.Known() || pl.Subpath == "" {
		return nil
	}
	if pl.Token != TokenProjectRoots {
		return bad("only " + TokenProjectRoots + " can have a subpath")
	}
	if path.IsAbs(pl.Subpath) {
		return bad("the subpath must be relative")
	}
	if slices.Contains(strings.Split(pl.Subpath, "/"), "..") {
		return bad(`the subpath must not contain ".."`)
	}
	return nil
}

// ProtectedNames returns the names that stay read-only at the top of every
// writable root unless an entry for that very path says otherwise: what lies in
// them is run or obeyed by tools outside the sandbox. The slice is the
// caller's own.
func ProtectedNames() []string {
	return []string{".git", ".agents", ".codex", ".sallyport"}
}

// isProtectedName reports whether name is one of ProtectedNames.
func isProtectedName(name string) bool {
	switch name {
	case ".git", ".agents", ".codex", ".sallyport":
		return true
	}
	return false
}
