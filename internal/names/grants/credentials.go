// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

const (
	// CredentialPrefix begins the names of the grants for stores, such as "credentials:aws".
	CredentialPrefix = "credentials:"
	// AllCredentials is the grant for all stores.
	AllCredentials = CredentialPrefix + "all"
)

// A Store is a file or directory with secrets that exists.
type Store struct {
	Name string // of its kind, such as "aws"
	Path string // as it is written, links included
	// Copy is what can be shown in the place of a file of settings: the same with [SecretDummy] for each
	// secret. Nil: nothing of it can be shown.
	Copy []byte
}

// Grant returns the name of the grant that opens the store.
func (s Store) Grant() string { return CredentialPrefix + s.Name }

// CredentialGrants returns the names of all grants for stores, sorted.
func CredentialGrants() []string {
	names := []string{AllCredentials}
	for i := range kinds {
		names = append(names, CredentialPrefix+kinds[i].name)
	}
	slices.Sort(names)
	return names
}

// CredentialsOf says for people what a grant opens; empty for a name that is not one of [CredentialGrants].
func CredentialsOf(grant string) string {
	if grant == AllCredentials {
		return "all stores of secrets in home directories"
	}
	for i := range kinds {
		if CredentialPrefix+kinds[i].name == grant {
			return kinds[i].what
		}
	}
	return ""
}

// A SecretSearch says which stores to find.
type SecretSearch struct {
	Homes   []string // home directories, which may be missing
	Granted []string // grants whose stores are left out
	// Env is the environment that says where tools keep their secrets; nil is none. Dir is where
	// relative names in it begin.
	Env func(string) string
	Dir string
}

// FindStores returns the stores that exist in home directories and where variables of this process say, for
// which no grant is in granted. A store that cannot be looked into counts as one. It does not
// look for what has no line in the table; see [KnownSecrets].
func FindStores(homes, granted []string) []Store {
	dir, _ := os.Getwd() // then relative names lead nowhere
	return (&SecretSearch{Homes: homes, Granted: granted, Env: os.Getenv, Dir: dir}).Find()
}

// Find is the function of that name for a search.
func (s *SecretSearch) Find() []Store {
	if slices.Contains(s.Granted, AllCredentials) {
		return nil
	}
	var out []Store
	var git []string // texts of git's settings
	for _, home := range s.Homes {
		d := newDirectories(home)
		d.git = &git
		for i := range kinds {
			if k := &kinds[i]; !s.granted(k.name) {
				out = append(out, d.stores(k)...)
			}
		}
	}
	return once(append(out, s.named(git)...))
}

func (s *SecretSearch) granted(kind string) bool {
	return slices.Contains(s.Granted, CredentialPrefix+kind)
}

// directories knows the names in a home directory and in the directories of it that most stores
// would be in, because most stores are not there.
type directories struct {
	home  string
	names *storeNames                  // nil if there are too many, or they cannot be listed
	below [len(listedDirs)]*storeNames // where the home has the directory
	git   *[]string                    // gets the texts of git's settings; nil: they are not needed
}

// storeNames are those in a directory, in lower case: a file system may take any letter case for the same.
type storeNames struct {
	all map[string]bool
	// first has a bit for the beginning of each: most lines of the table are not there, and this is
	// how most of them are passed over.
	first [64]uint64
}

// bit returns where the bit for the beginning of a name is. Letter case does not matter.
func bit(name string) (at, shift int) {
	var n int
	for i := 1; i < min(len(name), 4); i++ {
		n = n*13 + int(name[i]|0x20)
	}
	return n >> 6 & 63, n & 63
}

var listedDirs = [...]string{".config/", ".local/share/", ".local/state/", ".cache/", ".claude/"}

func newDirectories(home string) *directories {
	d := &directories{home: home, names: listed(home)}
	for i, dir := range listedDirs {
		if has(d.names, dir) {
			d.below[i] = listed(filepath.Join(home, dir))
		}
	}
	return d
}

// listed returns the names in a directory as directories has them.
func listed(dir string) *storeNames {
	info, err := os.Stat(dir)
	switch {
	case os.IsNotExist(err):
		return &storeNames{} // nothing is in it
	case err != nil || !info.IsDir():
		return nil // a named pipe may have taken its place
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	const most = 512
	all, err := f.Readdirnames(most)
	if len(all) == most || err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	n := &storeNames{all: make(map[string]bool, len(all))}
	for _, name := range all {
		n.all[strings.ToLower(name)] = true
		at, shift := bit(name)
		n.first[at] |= 1 << shift
	}
	return n
}

// stores returns those of one kind.
func (d *directories) stores(k *kind) []Store {
	var out []Store
	for _, name := range k.paths {
		if at, _ := d.at(name); at != "" {
			out = append(out, Store{Name: k.name, Path: at})
		}
	}
	for i := range k.files {
		f := &k.files[i]
		switch at, shut := d.at(f.path); {
		case shut:
			out = append(out, Store{Name: k.name, Path: at})
		case at != "":
			found, text := f.store(k.name, at)
			out = append(out, found...)
			if f.form == git && d.git != nil {
				*d.git = append(*d.git, text)
			}
		}
	}
	for _, dir := range k.keys {
		switch at, shut := d.at(dir); {
		case shut:
			out = append(out, Store{Name: k.name, Path: at})
		case at != "":
			for _, path := range keys(at, d.home) {
				out = append(out, Store{Name: k.name, Path: path})
			}
		}
	}
	return out
}

// once leaves out stores whose path another one before has.
func once(all []Store) []Store {
	var out []Store
	for _, s := range all {
		if !slices.ContainsFunc(out, func(o Store) bool { return o.Path == s.Path }) {
			out = append(out, s)
		}
	}
	return out
}

// store returns the store that settings at a path are, or none if there is no secret in them, and their text.
func (f *file) store(kind, path string) (found []Store, text string) {
	b, err := begin(path, mostRead)
	text = string(b)
	hidden := []Store{{Name: kind, Path: path}}
	switch {
	case os.IsNotExist(err) || errors.Is(err, safefile.ErrNotPlain):
		return nil, ""
	case err != nil:
		return hidden, ""
	case f.form == none:
		if slices.ContainsFunc(f.words, func(w string) bool { return strings.Contains(text, w) }) {
			return hidden, text
		}
		return nil, text
	}
	copied, changed, ok := mask(f.form, text)
	switch {
	case len(b) == mostRead || !ok && suspicious(f.form, text):
		return hidden, text
	case ok && changed:
		hidden[0].Copy = []byte(copied)
		return hidden, text
	}
	return nil, text
}

// at returns the path of a name in the home, a link that leads nowhere included; "" if nothing has it.
// Shut says that this could not be found out: the path is that of the directory that is closed then.
func (d *directories) at(name string) (path string, shut bool) {
	if !has(d.names, name) {
		return "", false
	}
	for i, dir := range listedDirs {
		if rest, below := strings.CutPrefix(name, dir); below && !has(d.below[i], rest) {
			return "", false
		}
	}
	path = filepath.Join(d.home, name)
	at := there(path)
	if at == d.home || safefile.Within(d.home, at) {
		return "", false // the home itself is closed, or a link that leads to it
	}
	return at, at != "" && at != path
}

// there returns a path, or of what cannot be looked at the directory on the way that is closed; its owner
// can open it again. It is "" if nothing is there.
func there(path string) string {
	for at := path; ; at = filepath.Dir(at) {
		switch _, err := os.Lstat(at); {
		case err == nil:
			return at
		case os.IsNotExist(err) || errors.Is(err, syscall.ENOTDIR) || at == filepath.Dir(at):
			return ""
		}
	}
}

// has reports whether the first element of a path may be among the names of a directory.
func has(n *storeNames, path string) bool {
	if n == nil {
		return true
	}
	first, _, _ := strings.Cut(path, "/")
	if at, shift := bit(first); n.first[at]&(1<<shift) == 0 {
		return false
	}
	return n.all[strings.ToLower(first)]
}

// mostRead is how much of a file is looked at, in bytes. Of settings with more, nothing is shown.
const mostRead = 64 << 10

// begin returns the beginning of a regular file. It does not wait for the writer of a named pipe.
func begin(path string, most int) ([]byte, error) {
	text, _, err := safefile.Read(path, int64(most))
	return text, err
}
