// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/sallyport-dev/sallyport/internal/linux/notify"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVar) != "" {
		os.Exit(child(os.Args[1:]))
	}
	testenv.DefaultSignals()
	goleak.VerifyTestMain(m)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// selfRequest returns a request of this process.
func selfRequest(t testing.TB) *request {
	s, err := newSupervisor(Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.cancel()
		s.closeFiles()
	})
	return &request{Supervisor: s, n: notify.Notification{PID: uint32(os.Getpid())}, scratch: new(scratch)}
}

// tree makes files and links to find, and returns the directory without links in its
// name.
func tree(t testing.TB) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(dir+"/a/b/c", 0o755))
	must(os.WriteFile(dir+"/a/f", nil, 0o600))
	must(os.WriteFile(dir+"/a/b/g", nil, 0o600))
	for name, to := range map[string]string{
		"rel": "a/b", "up": "a/../a/b/..", "abs": dir + "/a", "file": "a/f", "dangling": "a/none", "loop": "loop", "chain": "rel/c/../../f",
		"a/b/back": "../..", "proc": "/proc/self/cwd", "slash": "a/b/",
	} {
		must(os.Symlink(to, dir+"/"+name))
	}
	return dir
}

func TestFind(t *testing.T) {
	dir := tree(t)
	t.Chdir(dir)
	r := selfRequest(t)
	open, err := os.Open(dir + "/a/b")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	fd := int32(open.Fd())
	self := fmt.Sprintf("/proc/self/fd/%d", fd)
	for _, c := range []struct {
		name   string
		dir    int32
		path   string
		follow bool
		want   string // below the tree, or absolute; "-" and an errno where it leads nowhere
		there  bool
	}{
		{"a file", atCwd, "a/f", true, "a/f", true},
		{"missing", atCwd, "a/new", true, "a/new", false},
		{"missing here", atCwd, "new", true, "new", false},
		{"dots", atCwd, "./a/.//b/../f", true, "a/f", true},
		{"above", atCwd, "../../../../../../../../../../etc/passwd", true, "/etc/passwd", true},
		{"slashes at the end", atCwd, "a/b//", true, "a/b", true},
		{"the directory itself", atCwd, ".", true, "", true},
		{"the root", atCwd, "/", true, "/", true},
		{"its parent", atCwd, "a/..", true, "", true},
		{"by a descriptor", fd, "g", true, "a/b/g", true},
		{"missing by a descriptor", fd, "new", true, "a/b/new", false},
		{"above a descriptor", fd, "../f", true, "a/f", true},
		{"absolute beside a descriptor", fd, dir + "/a/f", true, "a/f", true},
		{"bad descriptor", 9999, "x", true, "-ENOENT", false},
		{"negative descriptor", -5, "x", true, "-EBADF", false},
		{"link to a directory", atCwd, "rel/g", true, "a/b/g", true},
		{"missing behind a link", atCwd, "rel/new", true, "a/b/new", false},
		{"absolute link", atCwd, "abs/new", true, "a/new", false},
		{"link with dots", atCwd, "up/f", true, "a/f", true},
		{"link at the end", atCwd, "file", true, "a/f", true},
		{"link itself", atCwd, "file", false, "file", true},
		{"dangling", atCwd, "dangling", true, "a/none", false},
		{"dangling itself", atCwd, "dangling", false, "dangling", true},
		{"links through links", atCwd, "chain", true, "a/f", true},
		{"back and forth", atCwd, "rel/back/rel/back/a/f", true, "a/f", true},
		{"a loop", atCwd, "loop", true, "-ELOOP", false},
		{"a loop on the way", atCwd, "loop/x", true, "-ELOOP", false},
		{"a file on the way", atCwd, "a/f/x", true, "-ENOTDIR", false},
		{"nothing on the way", atCwd, "a/none/x", true, "-ENOENT", false},
		{"nothing", atCwd, "", true, "-ENOENT", false},
		{"a link of the process", atCwd, self, true, "a/b", true},
		{"through a link of the process", atCwd, self + "/g", true, "a/b/g", true},
		{"missing through one", atCwd, self + "/new", true, "a/b/new", false},
		{"the process's directory", atCwd, "/proc/self/cwd/a/f", true, "a/f", true},
		{"the process's root", atCwd, "/proc/self/root" + dir + "/a/f", true, "a/f", true},
		{"the thread's directory", atCwd, "/proc/thread-self/cwd/a/f", true, "a/f", true},
		{"a link to one of the process", atCwd, "proc/a/f", true, "a/f", true},
		{"link with a slash", atCwd, "slash", true, "a/b", true},
		{"a name that is too long", atCwd, strings.Repeat("n", 300), true, "-ENAMETOOLONG", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := c.want
			if !strings.HasPrefix(want, "/") && !strings.HasPrefix(want, "-") {
				want = strings.TrimSuffix(dir+"/"+want, "/")
			}
			if got, there := r.describe(c.dir, c.path, c.follow); got != want || there != c.there {
				t.Errorf("%q (there: %v), want %q (%v)", got, there, want, c.there)
			}
		})
	}
}

// describe finds a name and says where it leads.
func (r *request) describe(dir int32, path string, follow bool) (string, bool) {
	p, lerr := r.find(dir, []byte(path), follow)
	if lerr != nil {
		return "-" + unix.ErrnoName(lerr.errno), false
	}
	defer p.close()
	name := r.pathOf(&p)
	if name == "" {
		name = "/"
	}
	return name, p.exists
}

// TestFindLeavesNothing: descriptors are closed on every way.
func TestFindLeavesNothing(t *testing.T) {
	t.Chdir(tree(t))
	r := selfRequest(t)
	names := []string{"a/f", "new", "rel/g", "loop", "loop/x", "a/f/x", "a/none/x", "", "/proc/self/cwd/a/f",
		"abs/none/y", "chain", ".", "/"}
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	r.describe(atCwd, "/etc/passwd", true) // opens the root, which is kept
	r.forget()
	before := count()
	for range 20 {
		for _, n := range names {
			r.describe(atCwd, n, true)
			r.describe(atCwd, n, false)
		}
	}
	r.forget()
	if after := count(); after != before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

// FuzzFind compares with the kernel for names that lead to something, and wants the
// same error for the others.
func FuzzFind(f *testing.F) {
	for _, seed := range []string{
		"a/f", "rel/../f", "up/b/g", "loop/x", "a/f/../f", "chain/", "slash/g", "./rel/back/file",
		"dangling/x", "a/b/c/..", "/proc/self/cwd/rel",
	} {
		f.Add(seed)
	}
	dir := tree(f)
	r := selfRequest(f)
	parts := []string{"a", "b", "c", "f", "g", "rel", "up", "abs", "file", "dangling", "loop", "chain",
		"back", "proc", "slash", "..", ".", "", "none"}
	f.Fuzz(func(t *testing.T, name string) {
		if strings.IndexByte(name, 0) >= 0 || len(name) > 64 {
			return
		}
		var words []string
		for _, b := range []byte(name) { // bytes choose parts, so that most names lead somewhere
			words = append(words, parts[int(b)%len(parts)])
		}
		at := dir + "/" + strings.Join(words, "/")
		got, there := r.describe(atCwd, at, true)
		fd, err := unix.Open(at, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			if there {
				t.Errorf("%s: found %s, the kernel says %v", at, got, err)
			}
			return
		}
		defer unix.Close(fd)
		want, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if err != nil {
			t.Fatal(err)
		}
		if got != want || !there {
			t.Errorf("%s: found %q (%v), the kernel %q", at, got, there, want)
		}
	})
}

// TestPath reads names of this process, at the end of what is mapped too.
func TestPath(t *testing.T) {
	r := selfRequest(t)
	const page = 4096
	mem, err := unix.Mmap(-1, 0, 4*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	}()
	if err := unix.Mprotect(mem[2*page:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	put := func(at int, text string) uint64 {
		copy(mem[at:2*page], text)
		return uint64(uintptr(unsafe.Pointer(&mem[at])))
	}
	for _, c := range []struct {
		name  string
		at    int
		text  string
		want  string
		errno syscall.Errno
	}{
		{"short", 10, "name\x00rest", "name", 0},
		{"empty", 0, "\x00", "", 0},
		{"across pages", page - 3, "across\x00", "across", 0},
		{"at the end", 2*page - 5, "last\x00", "last", 0},
		{"beyond the end", 2*page - 4, "last", "", unix.EFAULT},
		{"longer than the first look", 0, strings.Repeat("n", 1000) + "\x00", strings.Repeat("n", 1000), 0},
		{"as long as can be", 0, strings.Repeat("n", pathMax-1) + "\x00", strings.Repeat("n", pathMax-1), 0},
		{"too long", 0, strings.Repeat("n", pathMax), "", unix.ENAMETOOLONG},
		{"not mapped", 2 * page, "", "", unix.EFAULT},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := uint64(uintptr(unsafe.Pointer(&mem[0]))) + uint64(c.at)
			if c.text != "" {
				at = put(c.at, c.text)
			}
			got, errno := r.name(at, &r.first)
			if string(got) != c.want || errno != c.errno {
				t.Errorf("%q, %v", got, errno)
			}
		})
	}
	if _, errno := r.name(0, &r.first); errno != unix.EFAULT {
		t.Errorf("a nil pointer: %v", errno)
	}
}
