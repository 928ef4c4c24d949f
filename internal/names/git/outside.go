// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/names/gitstate"
)

// An Outside is what git outside of the sandbox reads besides the repository. The
// zero value is an environment without any such file; [Surroundings] fills one in.
type Outside struct {
	Home     string           // value of "~" for git; empty if it has none
	Configs  []string         // configurations of the user, present or not; relative ones are ignored
	System   []string         // configurations of the system, the same
	Template string           // value of GIT_TEMPLATE_DIR; empty if it has none
	Given    []gitstate.Entry // settings of GIT_CONFIG_COUNT; nil if it has none

	said *configReader // what Configs and System say; nil: they are read each time
}

// Surroundings returns what git reads in an environment, whose variables lookup
// returns as [os.LookupEnv] does. Besides the files that GIT_CONFIG_GLOBAL and
// GIT_CONFIG_SYSTEM name it has those of an environment without these variables,
// because another shell may have neither.
func Surroundings(lookup func(string) (string, bool)) Outside {
	get := func(name string) string {
		if value, ok := lookup(name); ok {
			return value
		}
		return ""
	}
	o := Outside{
		Home: get("HOME"), Template: get("GIT_TEMPLATE_DIR"),
		// As distributions build git, and as git's own Makefile and Homebrew do.
		System: []string{"/etc/gitconfig", "/usr/local/etc/gitconfig", "/opt/homebrew/etc/gitconfig"},
	}
	if system := get("GIT_CONFIG_SYSTEM"); filepath.IsAbs(system) {
		o.System = append(o.System, system)
	}
	for _, config := range [][2]string{
		{o.Home, ".gitconfig"}, {get("XDG_CONFIG_HOME"), "git/config"}, {o.Home, ".config/git/config"}, {get("GIT_CONFIG_GLOBAL"), ""},
	} {
		if filepath.IsAbs(config[0]) {
			o.Configs = append(o.Configs, filepath.Join(config[0], filepath.FromSlash(config[1])))
		}
	}
	o.Given = givenSettings(get)
	return o
}

// givenSettings returns the settings that GIT_CONFIG_COUNT and the variables with numbers give to git.
func givenSettings(get func(string) string) (given []gitstate.Entry) {
	count, err := strconv.Atoi(get("GIT_CONFIG_COUNT"))
	for i := 0; err == nil && i < min(count, maxConfigs); i++ {
		section, rest, _ := strings.Cut(get("GIT_CONFIG_KEY_"+strconv.Itoa(i)), ".")
		middle, last := "", rest
		if at := strings.LastIndexByte(rest, '.'); at >= 0 {
			middle, last = rest[:at+1], rest[at+1:]
		}
		key := strings.ToLower(section) + "." + middle + strings.ToLower(last)
		if value := get("GIT_CONFIG_VALUE_" + strconv.Itoa(i)); kindOf(key) != 0 {
			// git refuses relative includes there
			given = append(given, gitstate.Entry{Key: key, Value: value})
		}
	}
	return given
}

// AtOnce returns o with a memory of what the configurations of the user and the
// system say now, for many repositories at one moment.
func (o Outside) AtOnce() Outside {
	o.said = o.read()
	return o
}

// Protected returns what git obeys in every repository, in a stable order: the
// configurations of the user and the system with what they include, the directories
// of hooks that they name by absolute paths, and the targets of the symbolic links
// among these. The error is that of [Repository.Protected].
func (o Outside) Protected() ([]Path, error) {
	said := o.read()
	c := &configReader{}
	c.add(said.paths...)
	for _, s := range said.hooks {
		if filepath.IsAbs(s.path) {
			c.setting("", s)
		}
	}
	return c.paths, errors.Join(slices.Concat(said.errs, c.errs)...)
}

// read reads the configurations of the user and the system.
func (o Outside) read() *configReader {
	if o.said != nil {
		return o.said
	}
	c := &configReader{home: o.Home}
	if o.Template != "" {
		c.hooks = append(c.hooks, setting{"GIT_TEMPLATE_DIR", o.Template, setsDir})
	}
	for _, name := range o.System {
		if filepath.IsAbs(name) {
			c.config("", name, "git config of the system", 0)
		}
	}
	for _, name := range o.Configs {
		if filepath.IsAbs(name) {
			c.config("", name, "git config of the user", 0)
		}
	}
	c.entries(o.Given, "", 0)
	return c
}

// Limits of what is read of configurations.
const (
	maxConfig  = 16 << 20 // bytes of a file; people write kilobytes
	maxInclude = 10       // files that include each other (MAX_INCLUDE_DEPTH of git's config.c)
	maxConfigs = 512      // files in all
)

// errTooMany is why reading configurations ends early.
var errTooMany = errors.New("it includes too many files")

// A ConfigError reports a configuration that git refuses to read beyond a line; every
// git command ends there.
type ConfigError struct {
	Path string // the file
	Line int    // where reading ended, from 1; 0 if it could not begin
	Err  error  // why it could not begin, or nil
}

// Error returns the place, the reason and the fix.
func (e *ConfigError) Error() string {
	if e.Err != nil {
		return message(e.Path, "cannot be read", e.Err, "fix it or move it away")
	}
	return message(e.Path, fmt.Sprintf("is not a git configuration at line %d", e.Line), nil,
		"fix it or move it away")
}

// Unwrap returns why reading could not begin, or nil.
func (e *ConfigError) Unwrap() error { return e.Err }

// A configReader follows configurations and the files that they include. Start is
// empty for absolute names in its methods.
type configReader struct {
	list
	home     string
	hooks    []setting
	linkRefs bool     // core.preferSymlinkRefs is set somewhere
	hash     int      // bytes of an object name
	read     []string // files that were read
	errs     []error
}

// config reads the file name, relative to the directory start, and what it includes.
// The condition of an include counts as true: the branch or remote of a later git is
// not known. What exists at the name is added to the list.
func (c *configReader) config(start, name, why string, depth int) {
	at := c.follow(start, name, why)
	if c.shut(at) || at.missing || slices.Contains(c.read, at.real) {
		return
	}
	if len(c.read) == maxConfigs {
		c.errs = append(c.errs, &ConfigError{Path: at.real, Err: errTooMany})
		return
	}
	c.read = append(c.read, at.real)
	text, err := ReadFile(at.real, maxConfig)
	if err != nil && absent(err) {
		return
	}
	if err != nil {
		c.errs = append(c.errs, &ConfigError{Path: at.real, Err: cause(err)})
		return
	}
	entries, broken := gitstate.ParseConfig(text)
	if broken != 0 {
		c.errs = append(c.errs, &ConfigError{Path: at.real, Line: broken})
	}
	// Git takes the directory of the name that it was given, not of a link's target.
	dir, _ := filepath.Split(name)
	if !filepath.IsAbs(name) {
		dir = join(start, dir)
	}
	c.entries(entries, dir, depth)
}

// shut notes a directory on the way that cannot be entered, and reports whether there is one:
// what is behind it is not known.
func (c *configReader) shut(at trail) bool {
	if at.closed {
		c.errs = append(c.errs, &ConfigError{Path: at.real, Err: fs.ErrPermission})
	}
	return at.closed
}

// entries takes what counts out of one file, whose name was in dir.
func (c *configReader) entries(entries []gitstate.Entry, dir string, depth int) {
	for _, entry := range entries {
		if entry.Value == "" && !entry.Plain {
			continue
		}
		switch key := entry.Key; {
		case key == "core.prefersymlinkrefs":
			c.linkRefs = true // or false, and git does not make them
		case strings.HasPrefix(key, "alias.") && !strings.HasPrefix(entry.Value, "!") &&
			!strings.HasSuffix(key, ".command"):
			// words of git's own
		case kindOf(key) == setsProgram:
			for _, word := range programWords(entry.Value) {
				if path, ok := expand(word, c.home); ok {
					c.hooks = append(c.hooks, setting{key, path, setsProgram})
				}
			}
		case kindOf(key) != 0:
			if path, ok := expand(entry.Value, c.home); ok {
				c.hooks = append(c.hooks, setting{key, path, kindOf(key)})
			}
		case key == "extensions.objectformat":
			if strings.EqualFold(entry.Value, "sha256") {
				c.hash = sha256Size
			}
		case key == "include.path", strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path") &&
			len(key) > len("includeif.path"):
			path, ok := expand(entry.Value, c.home)
			switch {
			case !ok || entry.Plain:
			case depth == maxInclude:
				c.errs = append(c.errs, &ConfigError{Path: path, Err: errTooMany})
			default:
				start := dir
				if at, err := follow("", dir); err == nil {
					start = at.real
				}
				c.config(start, path, "git config that another one includes", depth+1)
			}
		}
	}
}

// expand replaces "~/" and "~name/" as git's interpolate_path does. It returns false
// for what leads nowhere: another user's home that is unknown, and the directory that
// git was installed in, which is not a workspace.
func expand(path, home string) (string, bool) {
	if strings.HasPrefix(path, "%(prefix)/") {
		return "", false
	}
	rest, ok := strings.CutPrefix(path, "~")
	if !ok {
		return path, path != ""
	}
	name, rest, slash := strings.Cut(rest, "/")
	if slash {
		rest = "/" + rest
	}
	if name == "" {
		return home + rest, home != ""
	}
	passwd, err := ReadFile(passwdFile, maxPasswd)
	if err != nil {
		return "", false
	}
	dir, ok := passwdHome(passwd, name)
	return dir + rest, ok
}

// The home directories of other users (passwd(5)). Package os/user would link the C
// library, and does not know more on most machines.
const (
	passwdFile = "/etc/passwd"
	maxPasswd  = 16 << 20
)

// passwdHome returns the home directory of a user.
func passwdHome(passwd []byte, name string) (string, bool) {
	for line := range strings.Lines(string(passwd)) {
		fields := strings.Split(strings.TrimRight(line, "\r\n"), ":")
		if len(fields) == 7 && fields[0] == name {
			return fields[5], fields[5] != ""
		}
	}
	return "", false
}

// hookDir adds one directory of hooks, and the targets of the symbolic links in
// it.
func (c *configReader) hookDir(start, name, why string) {
	at := c.follow(start, name, why)
	if c.shut(at) || at.missing || !at.mode.IsDir() {
		return
	}
	// Husky's hooks live in ".husky/_" and each calls the file of its name in ".husky".
	if filepath.Base(at.real) == "_" && filepath.Base(filepath.Dir(at.real)) == ".husky" {
		c.add(Path{Path: filepath.Dir(at.real), IsDir: true, Why: "directory that the hooks of husky call"})
	}
	all, err := listed(at.real)
	if err != nil {
		c.errs = append(c.errs, &ConfigError{Path: at.real, Err: cause(err)})
	}
	for _, entry := range all {
		if entry.IsDir() && entry.Name() == hooksName { // a directory of templates
			c.hookDir(at.real, hooksName, why)
		}
		if entry.Type() == fs.ModeSymlink {
			c.follow(at.real, entry.Name(), "git hook "+entry.Name())
		}
	}
}
