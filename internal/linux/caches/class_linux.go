// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/layers"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A class says which runs of one workspace share their layers: those that may do the same.
// What a run writes is executed by later ones that build with it, so it must not come to a
// run with more rights. The zero class is of runs that may write nothing that lasts.
type class struct {
	writes  bool            // the workspace is writable
	network sandbox.Network // how far the run reaches
	rest    string          // of what else its policy permits; empty for nothing beyond the usual
}

// classOf returns the class of a run in a workspace.
func classOf(r *Request, workspace string) class {
	c := class{writes: r.Plan.LevelAt(workspace) == sandbox.LevelWrite, network: r.Policy.Network}
	var rest []string
	if r.Policy.Root != sandbox.LevelRead {
		rest = append(rest, "/ "+r.Policy.Root.String())
	}
	for _, p := range r.Policy.Paths {
		usual := p.Level == sandbox.LevelWrite && (p.Path == "/tmp" || p.Path == workspace ||
			hostfacts.RealPath(p.Path) == workspace)
		if !p.Auto && !usual {
			rest = append(rest, p.Path+" "+p.Level.String())
		}
	}
	for _, g := range r.Policy.Globs {
		rest = append(rest, g+" glob")
	}
	for _, name := range r.Policy.Named {
		if !strings.HasPrefix(name, GrantPrefix) {
			rest = append(rest, name+" grant")
		}
	}
	for _, name := range r.Allow {
		rest = append(rest, name+" opening")
	}
	if len(rest) > 0 {
		slices.Sort(rest)
		sum := sha256.Sum256([]byte(strings.Join(slices.Compact(rest), "\x00")))
		c.rest = "-" + hex.EncodeToString(sum[:8])
	}
	return c
}

// The names of directories begin with the class: "write-none-slot-0", "write-host-plain".
const (
	writePrefix = "write-"
	oncePrefix  = "once-"
)

func (c class) name() string { return writePrefix + c.network.String() + c.rest }

// slotName returns the name of the directory of a slot.
func (c class) slotName(n int) string {
	if !c.writes {
		return oncePrefix + strconv.Itoa(n)
	}
	return c.name() + "-" + slotPrefix + strconv.Itoa(n)
}

func (c class) plainName() string { return c.name() + "-" + plainDir }

// wider returns the classes whose layers a run may see, but not write to: of runs that may do
// the same and reach further.
func (c class) wider() []class {
	var out []class
	for n := c.network; n <= sandbox.NetworkHost; n++ {
		if w := (class{writes: true, network: n, rest: c.rest}); w != c {
			out = append(out, w)
		}
	}
	return out
}

// lower returns what the run shows of a cache below what it writes: the layers of wider
// classes. They may grow meanwhile, as the host's caches do. [Clear] leaves them alone.
func (s *slot) lower(cache string) []plan.Spot {
	sharing.Lock()
	defer sharing.Unlock()
	if out, known := s.lowers[cache]; known {
		return out // overlays that are mounted do not change
	}
	var out []plan.Spot
	for _, w := range s.class.wider() {
		for _, dir := range []string{
			filepath.Join(s.base, w.slotName(0), cache, layers.UpperDir),
			filepath.Join(s.base, w.plainName(), cache),
		} {
			if exists(dir) && s.holdLower() {
				if spot, err := hostfacts.Look(dir); err == nil && spot.Kind == plan.KindDirectory {
					out = append(out, spot)
				}
			}
		}
	}
	if s.lowers == nil {
		s.lowers = make(map[string][]plan.Spot)
	}
	s.lowers[cache] = out
	return out
}

// holdLower keeps [Clear] from the layers of other classes; false while one is at work.
func (s *slot) holdLower() bool {
	if s.shown == nil {
		s.shown, _ = s.lockDir(shownDir, unix.LOCK_SH|unix.LOCK_NB)
	}
	return s.shown != nil
}

// empty removes what is in a directory that is thrown away after each run.
func empty(dir *os.File) error {
	names, err := os.ReadDir(dir.Name())
	for _, n := range names {
		if err == nil {
			err = safefile.RemoveTreePath(filepath.Join(dir.Name(), n.Name()))
		}
	}
	return err
}
