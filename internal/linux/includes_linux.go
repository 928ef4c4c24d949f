// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// In the user namespace of an ordinary user files of root seem to be another's. ssh reads what its
// system configuration includes only if it is root's or the user's own, and ends else. So commands see
// copies of these files, which are the user's, read-only. An id map with subordinate ids would be
// no help: root is never among them.

const (
	sshConfig       = "/etc/ssh/ssh_config"
	maxIncluded     = 64
	maxIncludeDepth = 16      // as ssh's own
	maxIncludeSize  = 1 << 18 // far more than any has
)

// addIncludes shows copies of what ssh's system configuration includes.
func (a *attempt) addIncludes(r *plan.Request) error {
	if a.host.Facts().UID == 0 {
		return nil // whose files they seem to be
	}
	texts := sshIncludes(sshConfig)
	if len(texts) == 0 {
		return nil
	}
	own, err := a.host.onDisk()
	if err != nil {
		return err
	}
	copies := maps.Clone(r.Copies)
	if copies == nil {
		copies = map[string]plan.Spot{}
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		spot, err := hostfacts.Look(name)
		ruled := slices.ContainsFunc(r.Rules, func(u plan.Rule) bool { return u.Path == name })
		if err != nil || spot.Kind != plan.KindFile || ruled || !inHostTree(name) ||
			r.LevelAt(name) != sandbox.LevelRead {
			continue // the policy says what the command sees there
		}
		shown, err := own.scans.Copy(texts[name])
		if err != nil {
			return nil //nolint:nilerr // ssh tells which file it does not accept
		}
		copies[name] = shown
		r.Rules = append(slices.Clone(r.Rules), plan.Rule{Spot: spot, Level: sandbox.LevelRead,
			Why: "a copy that is the user's: ssh accepts no other owner but root"})
	}
	slices.SortFunc(r.Rules, func(x, y plan.Rule) int { return strings.Compare(x.Path, y.Path) })
	r.Copies = copies
	return nil
}

// inHostTree reports whether a path is in none of the directories that the command has for itself.
func inHostTree(name string) bool {
	return !slices.ContainsFunc([]string{"/dev", "/proc", "/run", "/sys", "/tmp"},
		func(dir string) bool { return hostfacts.Below(name, dir) })
}

// sshIncludes returns the texts of the files that a configuration of ssh includes and that ssh
// accepts as root's, by their paths without symbolic links. Conditions are not looked at, because
// ssh reads also what does not apply.
func sshIncludes(config string) map[string][]byte {
	texts := map[string][]byte{}
	text, _ := readRoots(config) // nothing is included without one
	addSSHIncludes(texts, text, filepath.Dir(config), 0)
	return texts
}

func addSSHIncludes(texts map[string][]byte, text []byte, dir string, depth int) {
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(strings.Replace(line, "=", " ", 1))
		if len(words) < 2 || !strings.EqualFold(words[0], "include") || depth == maxIncludeDepth {
			continue
		}
		for _, pattern := range words[1:] {
			pattern = strings.Trim(pattern, `"`)
			if !filepath.IsAbs(pattern) {
				pattern = filepath.Join(dir, pattern)
			}
			found, _ := filepath.Glob(pattern) // a bad pattern finds nothing, also for ssh
			for _, name := range found {
				real := hostfacts.RealPath(name)
				if _, known := texts[real]; known || len(texts) == maxIncluded {
					continue
				}
				if more, ok := readRoots(real); ok {
					texts[real] = more
					addSSHIncludes(texts, more, dir, depth+1)
				}
			}
		}
	}
}

// readRoots reads a file that belongs to root and that no one else can change.
func readRoots(name string) ([]byte, bool) {
	const others = 0o022
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Uid != 0 || st.Mode&others != 0 ||
		st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > maxIncludeSize {
		return nil, false
	}
	text := make([]byte, st.Size)
	n, err := f.ReadAt(text, 0)
	return text[:n], err == nil || int64(n) == st.Size
}
