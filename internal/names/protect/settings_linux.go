// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/git"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// settingsDepth is how many directories below that of the settings have files that are read.
const settingsDepth = 1

// closeSettings keeps the settings of the user and of the administrator as they are, whatever
// the policy opens around them: a command that could write there would choose what later runs
// may do. What links in them lead to is settings, too.
func (g *inspection) closeSettings(r *Request) error {
	for _, dir := range r.Settings {
		if err := g.closeSetting(dir, r.Protector != nil, settingsDepth); err != nil {
			return err
		}
	}
	if r.SettingsFile == "" {
		return nil
	}
	return g.closeSetting(r.SettingsFile, false, -1)
}

// closeSetting makes a directory or file of settings read-only where the command could write
// to it, and what the links in it lead to. A missing one is made, which is for directories.
func (g *inspection) closeSetting(name string, makes bool, depth int) error {
	real, links, exists, err := walkFast(name)
	for _, l := range links {
		if g.level(filepath.Dir(l.Path)) != sandbox.LevelWrite {
			continue
		}
		if g.mounts && g.fixes {
			if err := g.fix([]plan.Link{l}, whySettings); err != nil {
				return err
			}
		} else {
			return &sandbox.UnsupportedError{
				Need: "a fixed place for the settings in " + name,
				Have: fmt.Sprintf("they are reached by the symbolic link %s, which the command could change", l.Path),
				Hint: "replace the link by what it leads to, or make only directories below writable",
			}
		}
	}
	if err != nil {
		if g.exposed(hostfacts.Deepest(name)) {
			return uninspected(name, err,
				"settings in a writable place must be known; change the mode of the directories on the way")
		}
		return nil // what this process cannot reach, its commands cannot either
	}
	if err := g.openedSetting(name, real); err != nil {
		return err
	}
	if g.exposed(real) {
		spot, err := hostfacts.Look(real)
		if missing(err) {
			spot, err = g.missingSetting(name, real, makes, depth)
		}
		if err == nil {
			err = g.coverSetting(name, spot)
		}
		if err != nil {
			return err
		}
	}
	if !exists || depth < 0 {
		return nil
	}
	return g.closeLinked(real, depth)
}

// walkFast is [hostfacts.Walk]. Most paths have no link, which the kernel says in one call, or
// do not exist.
func walkFast(name string) (real string, links []plan.Link, exists bool, err error) {
	if exists, direct := hostfacts.Direct(name); direct {
		return filepath.Clean(name), nil, exists, nil
	}
	real, links, err = hostfacts.Walk(name, nil)
	return real, links, true, err // or it is missing behind a link
}

// exposed reports whether the command can write to a path, also by the /tmp that it gets.
func (g *inspection) exposed(path string) bool {
	return g.writable(path) || g.tmp != nil && g.tmp.Asked && hostfacts.Below(path, g.tmp.Source.Path)
}

// coverSetting makes settings read-only that the command could write to; what is missing is
// claimed already.
func (g *inspection) coverSetting(name string, spot plan.Spot) error {
	switch {
	case !g.mounts:
		return &sandbox.UnsupportedError{
			Need: "the settings in " + name + " out of reach of the command",
			Have: "they are in a writable root, and nothing can be mounted over them at this level",
			Hint: "make only directories beside them writable",
		}
	case spot.Kind == plan.KindOther:
		return &executor.RootError{Path: spot.Path,
			Why: "is neither a directory nor a file, but settings are read from it", Fix: "remove it"}
	case spot.Kind != plan.KindMissing:
		// Where the policy denies it, it stays denied.
		g.add(plan.Rule{Spot: spot, Level: min(sandbox.LevelRead, g.level(spot.Path)),
			Why: whySettings, Auto: true})
	}
	return nil
}

// closeLinked closes what the links in a directory of settings lead to. What cannot be listed
// is not searched: the command cannot change the mode of the directory.
func (g *inspection) closeLinked(dir string, depth int) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil //nolint:nilerr // it is missing, a file, or see above
	}
	f := os.NewFile(uintptr(fd), dir)
	entries, _ := f.ReadDir(-1)
	f.Close()
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			err = g.closeSetting(at, false, depth-1)
		case e.IsDir() && depth > 0:
			err = g.closeLinked(at, depth-1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// missingSetting makes a directory of settings, with those on the way to it, because nothing
// that only watches for it is as strong: a command could move one with settings in it to its
// place, and they would stay when sallyport is killed. A missing file cannot be covered.
func (g *inspection) missingSetting(name, real string, makes bool, depth int) (plan.Spot, error) {
	none := plan.Spot{Path: real, Kind: plan.KindMissing}
	switch {
	case depth < settingsDepth:
		return none, &sandbox.UnsupportedError{
			Need: "a file at " + real + ", because settings are read from it (" + name + ")",
			Have: "it is missing, and the command could create it",
			Hint: "create it, or remove the link to it",
		}
	case !g.mounts:
		return none, nil // refused by the caller
	case makes:
		err := hostfacts.MakeDirectories(real)
		if err == nil {
			return hostfacts.Look(real)
		}
		if !errors.Is(err, hostfacts.ErrOthers) {
			return none, &executor.RootError{Path: real, Why: "cannot be created: " + hostfacts.Reason(err),
				Fix: "create it yourself: settings are read from it, and the command could create it"}
		}
	}
	g.claimMissing(git.Path{Path: real, Missing: true, Why: whySettings})
	return none, nil
}
