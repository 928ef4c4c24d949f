// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hostfacts

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Mount is one line of mountinfo, see proc_pid_mountinfo(5).
type Mount struct {
	ID, Parent int
	Device     string // of the file system, as MAJOR:MINOR
	Root       string // the directory or file of that file system that is mounted
	Point      string // where it is mounted
	Served     bool   // a program or another machine answers for its files
}

// ParseMounts returns the mounts in the text of mountinfo, in its order. Lines of another
// form are left out.
func ParseMounts(text string) []Mount {
	out := make([]Mount, 0, strings.Count(text, "\n")+1)
	for line := range strings.Lines(text) {
		const fields = 5 // and options, which vary
		var f [fields]string
		ok := true
		for i := range f {
			f[i], line, ok = strings.Cut(line, " ")
			if !ok || f[i] == "" {
				break
			}
		}
		id, err := strconv.Atoi(f[0])
		parent, perr := strconv.Atoi(f[1])
		_, kind, _ := strings.Cut(line, " - ")
		m := Mount{id, parent, f[2], UnescapeMount(f[3]), UnescapeMount(f[4]), served(kind)}
		if ok && err == nil &&
			perr == nil && strings.HasPrefix(m.Point, "/") {
			out = append(out, m)
		}
	}
	return out
}

// served reports whether a program or another machine answers for the files of a file system; text begins
// with its kind.
func served(text string) bool {
	kind, _, _ := strings.Cut(text, " ")
	kind, _, _ = strings.Cut(kind, ".") // of fuse, such as fuse.sshfs
	return slices.Contains([]string{"fuse", "fuseblk", "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs",
		"lustre", "beegfs", "coda", "virtiofs"}, kind) //nolint:misspell // a name
}

// UnescapeMount replaces the octal escapes of mountinfo.
func UnescapeMount(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// A MountTable says what a process sees where. The zero MountTable knows no mount.
type MountTable struct {
	root   *Mount // nil: the root directory is no mount, as after a bare chroot(2)
	all    []Mount
	served []Mount
	// The rest is nil where no file system is mounted twice.
	at     map[string][]*Mount // by mount point
	points []string            // the same, sorted
	device map[string][]*Mount
}

// Mounts reads what is mounted where, and again only when that has changed: poll(2) on the
// table says so, see proc_pid_mountinfo(5). The zero Mounts is ready for use, also by several
// goroutines at once; Close gives back its descriptor.
type Mounts struct {
	mu    sync.Mutex
	fd    int         // of the table
	table *MountTable // nil: fd is not open
}

// Table returns the table of this process.
func (m *Mounts) Table() (*MountTable, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.table != nil {
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(m.fd), Events: unix.POLLPRI}},
			0); n == 0 && err == nil {
			return m.table, nil
		}
	} else {
		// Package os would have the poller watch the file, which takes as long as to read it.
		fd, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		m.fd = fd
	}
	text, err := readAll(m.fd)
	if err != nil {
		unix.Close(m.fd)
		m.table = nil
		return nil, err
	}
	m.table = NewMountTable(ParseMounts(text))
	return m.table, nil
}

// Close forgets the table.
func (m *Mounts) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.table != nil {
		unix.Close(m.fd)
		m.table = nil
	}
}

// readAll reads a file of a process file system from its beginning.
func readAll(fd int) (string, error) {
	const page = 4096 // the most that one read returns
	text := make([]byte, 0, 2*page)
	for {
		text = slices.Grow(text, page)
		n, err := unix.Pread(fd, text[len(text):cap(text)], int64(len(text)))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return "", err
		case n == 0:
			return string(text), nil
		default:
			text = text[:len(text)+n]
		}
	}
}

// NewMountTable makes a table of mounts. It keeps the slice.
func NewMountTable(mounts []Mount) *MountTable {
	t := &MountTable{all: mounts}
	known := make(map[int]bool, len(mounts))
	device := make(map[string][]*Mount, len(mounts))
	for i := range mounts {
		m := &mounts[i]
		known[m.ID] = true
		device[m.Device] = append(device[m.Device], m)
		if m.Served {
			t.served = append(t.served, *m)
		}
	}
	for i := range mounts {
		m := &mounts[i]
		if t.root == nil && m.Point == "/" && (!known[m.Parent] || m.Parent == m.ID) {
			t.root = m
		}
	}
	if len(device) == len(mounts) {
		return t
	}
	t.device, t.at = device, make(map[string][]*Mount, len(mounts))
	for i := range mounts {
		m := &mounts[i]
		t.at[m.Point] = append(t.at[m.Point], m)
	}
	t.points = slices.Sorted(maps.Keys(t.at))
	return t
}

// hungAfter is how long the server of a mount may take to answer. Several are asked at once.
const hungAfter = 250 * time.Millisecond

// Hung returns the mount points below a directory for whose files a program or another machine answers, but
// does not in time. None of them is touched by this goroutine. A nil table has none.
func (t *MountTable) Hung(dir string) (out []string) {
	if t == nil {
		return nil
	}
	var asked []Mount
	for _, m := range t.served {
		at := m.Point
		if _, inside := underMount(at, dir); inside && at != dir &&
			!slices.ContainsFunc(asked, func(o Mount) bool { return o.Point == at }) {
			asked = append(asked, m)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	looks := make([]<-chan struct{}, len(asked))
	for i, m := range asked {
		looks[i] = look(m)
	}
	end := time.After(hungAfter)
	for i, answered := range looks {
		select {
		case <-answered:
			continue
		case <-end:
		}
		for k, m := range asked[i:] { // the time is over for all
			select {
			case <-looks[i+k]:
			default:
				out = append(out, m.Point)
			}
		}
		break
	}
	return out
}

// looking has the mounts that have not answered yet: each holds up one thread, however often it is asked.
var looking = struct {
	sync.Mutex
	at map[Mount]<-chan struct{}
}{at: map[Mount]<-chan struct{}{}}

// look reads the directory of a mount, and closes the channel when its server has answered.
func look(m Mount) <-chan struct{} {
	looking.Lock()
	defer looking.Unlock()
	if answered, ok := looking.at[m]; ok {
		return answered
	}
	answered := make(chan struct{})
	looking.at[m] = answered
	go readMount(m, answered)
	return answered
}

func readMount(m Mount, answered chan<- struct{}) {
	if fd, err := unix.Open(m.Point, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
		var some [512]byte
		_, _ = unix.ReadDirent(fd, some[:])
		unix.Close(fd)
	}
	looking.Lock()
	delete(looking.at, m)
	looking.Unlock()
	close(answered)
}

// holder returns the mount that a clean path without symbolic links leads to: from the root
// directory, which must be a mount, at each name on the way the mount on top of it.
func (t *MountTable) holder(name string) *Mount {
	on := t.top(t.root, "/")
	for end := 2; end <= len(name); end++ {
		if end == len(name) || name[end] == '/' {
			on = t.top(on, name[:end])
		}
	}
	return on
}

// top returns what is on top at a path that lies in a mount: that mount, where nothing is
// mounted there.
func (t *MountTable) top(on *Mount, at string) *Mount {
	points := t.at[at]
	for range points { // each can be on top of another once
		i := slices.IndexFunc(points, func(m *Mount) bool { return m.Parent == on.ID && m != on })
		if i < 0 {
			break
		}
		on = points[i]
	}
	return on
}

// Aliases returns the other paths at which a clean path without symbolic links is visible,
// because its file system, or a part of it, is mounted several times. Nothing has to exist
// there. It returns false where the mount is not known that the path leads to.
func (t *MountTable) Aliases(name string) ([]string, bool) {
	if t.root == nil || t.device == nil {
		return nil, t.root != nil
	}
	holder := t.holder(name)
	others := t.device[holder.Device]
	rest, _ := underMount(name, holder.Point)
	inside := joinMount(holder.Root, rest)
	var out []string
	for _, o := range others {
		rest, ok := underMount(inside, o.Root)
		if !ok {
			continue
		}
		at := joinMount(o.Point, rest)
		if at != name && !slices.Contains(out, at) && t.holder(at) == o {
			out = append(out, at)
		}
	}
	slices.Sort(out)
	return out, true
}

// Within returns the paths below a directory that may be visible elsewhere although it is
// not: mount points, and what other mounts have as their root.
func (t *MountTable) Within(dir string) []string {
	if t.root == nil || t.device == nil {
		return nil
	}
	out := t.below(dir)
	for _, top := range append([]string{dir}, out...) {
		holder := t.holder(top)
		rest, _ := underMount(top, holder.Point)
		inside := joinMount(holder.Root, rest)
		for _, o := range t.device[holder.Device] {
			if rest, ok := underMount(o.Root, inside); ok && rest != "" && rest != "/" {
				out = append(out, joinMount(top, rest))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Mounted returns a mount point below a directory; empty if there is none.
func (t *MountTable) Mounted(dir string) string {
	prefix := strings.TrimSuffix(dir, "/") + "/"
	for i := range t.all {
		if strings.HasPrefix(t.all[i].Point, prefix) {
			return t.all[i].Point
		}
	}
	return ""
}

// below returns the mount points below a directory that are visible.
func (t *MountTable) below(dir string) []string {
	prefix := strings.TrimSuffix(dir, "/") + "/"
	first, _ := slices.BinarySearch(t.points, prefix)
	var out []string
	for _, at := range t.points[first:] {
		if !strings.HasPrefix(at, prefix) {
			break
		}
		if at != dir && slices.Contains(t.at[at], t.holder(at)) {
			out = append(out, at)
		}
	}
	return out
}

// underMount returns what follows a directory in a path, empty or beginning with a slash. A
// root need not be a path: the kernel appends "//deleted" to it, or names an object.
func underMount(name, dir string) (rest string, ok bool) {
	switch {
	case name == dir:
		return "", true
	case dir == "/":
		return name, strings.HasPrefix(name, "/")
	}
	rest, ok = strings.CutPrefix(name, dir)
	return rest, ok && rest[0] == '/'
}

// joinMount is the inverse of underMount.
func joinMount(dir, rest string) string {
	if dir == "/" && rest != "" {
		return rest
	}
	return dir + rest
}
