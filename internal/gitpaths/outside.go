// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitpaths

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An Outside is what git outside of the sandbox reads besides the repository. The
// zero value is an environment without any such file; [Surroundings] fills one in.
type Outside struct {
	Home    string   // what "~" means to git; empty if it means nothing
	Configs []string // configurations of the user, present or not; relative ones are ignored
	System  []string // configurations of the system, the same; one that is missing is told by this name
	Cache   *Cache   // remembers what is in an index; nil: every index is read

	said *reading // what Configs and System say, if it is known
}

// Surroundings returns what git reads in an environment, whose variables lookup
// returns as [os.LookupEnv] does. Besides the files that GIT_CONFIG_GLOBAL and
// GIT_CONFIG_SYSTEM name it has those of an environment without these variables,
// because another shell may have neither.
func Surroundings(lookup func(string) (string, bool)) Outside {
	var o Outside
	get := func(name string) string {
		value, ok := lookup(name)
		if !ok {
			return ""
		}
		return value
	}
	o.Home = get("HOME")
	// As distributions build git, and as git's own Makefile and Homebrew do.
	o.System = []string{"/etc/gitconfig", "/usr/local/etc/gitconfig", "/opt/homebrew/etc/gitconfig"}
	if system := get("GIT_CONFIG_SYSTEM"); filepath.IsAbs(system) {
		o.System = append(o.System, system)
	}
	if filepath.IsAbs(o.Home) {
		o.Configs = append(o.Configs, filepath.Join(o.Home, ".gitconfig"))
	}
	if xdg := get("XDG_CONFIG_HOME"); filepath.IsAbs(xdg) {
		o.Configs = append(o.Configs, filepath.Join(xdg, "git", "config"))
	}
	if filepath.IsAbs(o.Home) {
		o.Configs = append(o.Configs, filepath.Join(o.Home, ".config", "git", "config"))
	}
	if global := get("GIT_CONFIG_GLOBAL"); filepath.IsAbs(global) {
		o.Configs = append(o.Configs, global)
	}
	return o
}

// Protected returns what git obeys in every repository, in a stable order: the
// configurations of the user and the system with what they include, the folders of
// hooks that they name by absolute paths, and what the symbolic links among these
// lead to. The error is that of [Repository.Protected].
func (o Outside) Protected() ([]Path, error) {
	c := &configReader{home: o.Home, hash: sha1Size}
	c.people(o)
	for _, path := range c.hooks {
		if filepath.IsAbs(path) {
			c.hookFolder(string(filepath.Separator), path, whyHooksPath)
		}
	}
	return c.paths, errors.Join(c.errs...)
}

// Limits of what is read of configurations.
const (
	maxConfig  = 16 << 20 // bytes of a file; people write kilobytes
	maxInclude = 10       // files that include each other (MAX_INCLUDE_DEPTH of git's config.c)
	maxConfigs = 512      // files in all
)

// errTooMany is why reading configurations ends early.
var errTooMany = errors.New("it includes too many files")

// A configReader follows configurations and the files that they include.
type configReader struct {
	list
	home     string
	hooks    []string // values of core.hooksPath, with "~" expanded
	worktree bool     // extensions.worktreeConfig is there
	hash     int      // bytes of an object name
	read     []string // files that were read
	errs     []error
}

// config reads the file name, relative to the folder start, and what it includes.
// Every condition of an include counts as true: which branch or which remote there
// will be when git runs outside, nobody knows. What stands at the name is added to
// the list.
func (c *configReader) config(start, name, why string, depth int) {
	at := c.follow(start, name, why, false)
	if at.missing || at.closed || slices.Contains(c.read, at.real) {
		return
	}
	if len(c.read) == maxConfigs {
		c.errs = append(c.errs, &ConfigError{Path: at.real, Err: errTooMany})
		return
	}
	c.read = append(c.read, at.real)
	text, err := readFile(at.real, maxConfig)
	if errors.Is(err, fs.ErrPermission) || absent(err) {
		return // git goes on without it, or ends, which is safe too
	}
	if err != nil {
		c.errs = append(c.errs, &ConfigError{Path: at.real, Err: plain(err)})
		return
	}
	entries, err := ParseConfig(text)
	var broken *ConfigError
	if errors.As(err, &broken) {
		broken.Path = at.real
		c.errs = append(c.errs, broken)
	}
	// Git takes the folder of the name that it was given, not of what a link leads to.
	folder := start
	if i := lastSeparator(name); i >= 0 {
		folder = name[:i+1]
		if !filepath.IsAbs(name) {
			folder = join(start, folder)
		}
	}
	c.entries(entries, folder, depth)
}

func lastSeparator(name string) int {
	for i := len(name) - 1; i >= 0; i-- {
		if os.IsPathSeparator(name[i]) {
			return i
		}
	}
	return -1
}

// entries takes what counts out of one file, whose name was in folder.
func (c *configReader) entries(entries []Entry, folder string, depth int) {
	for _, entry := range entries {
		if entry.Value == "" && !entry.Plain {
			continue
		}
		switch key := entry.Key; {
		case key == "core.hookspath":
			if path, ok := expand(entry.Value, c.home); ok {
				c.hooks = append(c.hooks, path)
			}
		case key == "extensions.worktreeconfig":
			c.worktree = true
		case key == "extensions.objectformat":
			if strings.EqualFold(entry.Value, "sha256") {
				c.hash = sha256Size
			}
		case key == "include.path", strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path") && len(key) > len("includeif.path"):
			path, ok := expand(entry.Value, c.home)
			if !ok || entry.Plain {
				continue
			}
			if depth == maxInclude {
				c.errs = append(c.errs, &ConfigError{Path: path, Err: errTooMany})
				continue
			}
			start := "" // absolute
			if !filepath.IsAbs(path) {
				start = folder
				if at, err := follow(folder, ""); err == nil {
					start = at.real
				}
			}
			if start == "" {
				start = string(filepath.Separator)
			}
			c.config(start, path, "git config that another one includes", depth+1)
		}
	}
}

// expand replaces "~/" and "~name/" as git's interpolate_path does. It returns false
// for what leads nowhere: another user's home that is unknown, and the folder that
// git was installed in, which is no workspace.
func expand(path, home string) (string, bool) {
	if strings.HasPrefix(path, "%(prefix)/") {
		return "", false
	}
	rest, ok := strings.CutPrefix(path, "~")
	if !ok {
		return path, path != ""
	}
	name := rest
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		name, rest = rest[:i], rest[i:]
	} else {
		rest = ""
	}
	if name == "" {
		return home + rest, home != ""
	}
	passwd, err := readFile(passwdFile, maxPasswd)
	if err != nil {
		return "", false
	}
	dir, ok := passwdHome(passwd, name)
	return dir + rest, ok
}

// Where the home folders of other users are told (passwd(5)). Package os/user would
// bring the C library along, and does not know more on most machines.
const (
	passwdFile = "/etc/passwd"
	maxPasswd  = 16 << 20
)

// passwdHome returns the home folder of a user.
func passwdHome(passwd []byte, name string) (string, bool) {
	for line := range strings.Lines(string(passwd)) {
		fields := strings.Split(strings.TrimRight(line, "\r\n"), ":")
		if len(fields) == 7 && fields[0] == name {
			return fields[5], fields[5] != ""
		}
	}
	return "", false
}

// readConfigs reads everything that git outside reads for the repository. All
// places that it names are in the list then, the repository's own files among them.
func (r *Repository) readConfigs(o Outside) *configReader {
	c := &configReader{home: o.Home, hash: sha1Size}
	for dir := r.Work; ; dir = filepath.Dir(dir) {
		// Open has resolved these; the paths belong to the work tree that it saw.
		c.folders = append(c.folders, dir)
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if !r.CommonMissing {
		c.config(r.Common, configName, "git config", 0)
	}
	if !r.DirMissing {
		// Without extensions.worktreeConfig git does not read it yet.
		if path := join(r.Dir, worktreeName); stands(path) {
			c.config(r.Dir, worktreeName, "git config of the work tree", 0)
		}
	}
	c.people(o)
	return c
}

// people reads the configurations of the user and the system.
func (c *configReader) people(o Outside) {
	if o.said != nil {
		s := o.said.read(o)
		for _, p := range s.paths {
			c.add(p)
		}
		c.hooks, c.errs = append(c.hooks, s.hooks...), append(c.errs, s.errs...)
		return
	}
	const system, person = "git config of the system", "git config of the user"
	for _, name := range o.System {
		switch {
		case !filepath.IsAbs(name):
		case stands(name):
			c.config(string(filepath.Separator), name, system, 0)
		default:
			// Most are missing, and walking there costs more than all the rest.
			c.add(Path{Path: name, Missing: true, Why: system})
		}
	}
	for _, name := range o.Configs {
		if filepath.IsAbs(name) {
			c.config(string(filepath.Separator), name, person, 0)
		}
	}
}

// whyHooksPath is why a folder of hooks is protected that is not the usual one.
const whyHooksPath = "folder that core.hooksPath names"

// hookFolders adds the folders that hooks are taken from: the default one, and those
// that core.hooksPath names.
func (r *Repository) hookFolders(c *configReader) {
	if !r.CommonMissing {
		c.hookFolder(r.Common, "hooks", "git hooks")
	}
	for _, path := range c.hooks {
		if filepath.IsAbs(path) {
			c.hookFolder(string(filepath.Separator), path, whyHooksPath)
			continue
		}
		// Hooks run at the top of the work tree, but in the git folder if something
		// was pushed here.
		c.hookFolder(r.Work, path, whyHooksPath)
		if r.Dir != r.Work && !r.DirMissing {
			c.hookFolder(r.Dir, path, whyHooksPath)
		}
	}
}

// hookFolder adds one folder of hooks, and what the symbolic links in it lead to.
func (c *configReader) hookFolder(start, name, why string) {
	at := c.follow(start, name, why, true)
	if at.missing || at.closed || !at.mode.IsDir() {
		return
	}
	// Husky's hooks live in ".husky/_" and each calls the file of its name in ".husky".
	if filepath.Base(at.real) == "_" && filepath.Base(filepath.Dir(at.real)) == ".husky" {
		c.add(Path{Path: filepath.Dir(at.real), Folder: true, Why: "folder that the hooks of husky call"})
	}
	var links []string
	// An unreadable folder has no hooks for git either.
	_ = readFolder(at.real, func(name []byte, kind entryKind) bool {
		if kind == kindLink || kind == kindUnknown {
			links = append(links, string(name))
		}
		return true
	})
	slices.Sort(links)
	for _, link := range links {
		c.follow(at.real, link, "git hook "+link, false)
	}
}
