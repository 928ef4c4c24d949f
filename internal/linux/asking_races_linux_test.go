// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// The directories of a race, whose names are of one length: everything is granted in the first, and nothing
// may change in the second.
const raceYes, raceNo = "granted", "forbids"

// A racer makes calls by names that another thread leads from one directory to the other all the time.
type racer struct {
	dir   int                        // of the names
	path  func(name string) *byte    // a name for the kernel
	swap  func(forbidden bool) error // leads the names elsewhere
	calls int
}

// raceMain runs a race for some milliseconds and notes in the workspace how many calls succeeded. Nothing
// reads its output for longer than a minute.
func raceMain(how string, kv map[string]string) int {
	ms, _ := strconv.Atoi(kv["ms"])
	if how == "root directory" && kv["inside"] == "" {
		return inNamespaces(append(slices.Clone(os.Args), "inside=yes"))
	}
	r, err := newRacer(how, kv["at"], kv["ws"])
	var out *os.File
	if err == nil {
		out, err = os.Create(kv["ws"] + "/calls") // which a root directory may hide later
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	var stop atomic.Bool
	swapped := make(chan error)
	go func() {
		for n := 0; ; n++ {
			if err := r.swap(n%2 == 0); err != nil || stop.Load() {
				swapped <- err
				return
			}
		}
	}()
	for end := time.Now().Add(time.Duration(ms) * time.Millisecond); time.Now().Before(end); {
		r.round()
	}
	stop.Store(true)
	err = <-swapped
	_, failed := fmt.Fprintln(out, r.calls, err)
	if err := errors.Join(err, failed, out.Close()); err != nil {
		return 1
	}
	return 0
}

// inNamespaces runs a program where it may change its root directory.
func inNamespaces(args []string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		AmbientCaps: []uintptr{unix.CAP_SYS_CHROOT, unix.CAP_SYS_ADMIN}}
	if err := cmd.Run(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// newRacer prepares a race in the workspace.
func newRacer(how, at, ws string) (*racer, error) {
	r := &racer{dir: unix.AT_FDCWD, path: relative}
	g, err := unix.Open(at+"/"+raceYes, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f, err := unix.Open(at+"/"+raceNo, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	pick := map[bool]int{false: g, true: f}
	exchange := func(bool) error {
		return unix.Renameat2(unix.AT_FDCWD, ws+"/one", unix.AT_FDCWD, ws+"/two", unix.RENAME_EXCHANGE)
	}
	switch how {
	case "path string":
		return rewriting(at), nil
	case "symbolic link":
		r.path, r.swap = within(ws+"/one"), exchange
		return r, errors.Join(os.Symlink(at+"/"+raceYes, ws+"/one"), os.Symlink(at+"/"+raceNo, ws+"/two"))
	case "parent":
		r.path, r.swap = within(ws+"/one/way"), exchange
		return r, errors.Join(os.Mkdir(ws+"/one", 0o755), os.Mkdir(ws+"/two", 0o755),
			os.Symlink(at+"/"+raceYes, ws+"/one/way"), os.Symlink(at+"/"+raceNo, ws+"/two/way"))
	case "descriptor":
		if r.dir, err = unix.FcntlInt(uintptr(g), unix.F_DUPFD_CLOEXEC, 100); err != nil {
			return nil, err
		}
		r.swap = func(forbidden bool) error { return unix.Dup3(pick[forbidden], r.dir, unix.O_CLOEXEC) }
	case "working directory":
		r.swap = func(forbidden bool) error { return unix.Fchdir(pick[forbidden]) }
		return r, r.swap(false)
	case "root directory":
		r.path = within("")
		r.swap = func(forbidden bool) error {
			return errors.Join(unix.Fchdir(pick[forbidden]),
				unix.Chroot("."))
		}
		return r, nil // the workspace is needed once more
	}
	return r, nil
}

// relative gives a name to the kernel as it is.
func relative(name string) *byte {
	p, _ := unix.BytePtrFromString(name)
	return p
}

// within gives names in a directory.
func within(dir string) func(name string) *byte {
	return func(name string) *byte { return relative(dir + "/" + name) }
}

// rewriting has the names themselves changed in memory.
func rewriting(at string) *racer {
	names := map[string][]byte{}
	for _, name := range []string{"new", "moved", "dir", "sym"} {
		names[name] = append([]byte(at+"/"+raceYes+"/"+name), 0)
	}
	return &racer{
		dir: unix.AT_FDCWD, path: func(name string) *byte { return &names[name][0] },
		swap: func(forbidden bool) error {
			word := raceYes
			if forbidden {
				word = raceNo
			}
			for _, b := range names {
				copy(b[len(at)+1:], word)
			}
			return nil
		},
	}
}

// round makes each kind of call once.
func (r *racer) round() {
	dir, p := uintptr(r.dir), func(name string) uintptr { return uintptr(unsafe.Pointer(r.path(name))) }
	call := func(nr uintptr, args ...uintptr) {
		args = append(args, 0, 0, 0, 0, 0)
		fd, _, errno := unix.Syscall6(nr, dir, args[0], args[1], args[2], args[3], 0)
		if errno == 0 {
			r.calls++
		}
		if errno == 0 && nr == unix.SYS_OPENAT {
			_ = unix.Close(int(fd))
		}
	}
	times := []unix.Timespec{{Sec: 1}, {Sec: 1}}
	text := relative("nowhere")
	call(unix.SYS_OPENAT, p("new"), unix.O_CREAT|unix.O_TRUNC|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	call(unix.SYS_FCHMODAT, p("new"), 0o640)
	call(unix.SYS_UTIMENSAT, p("new"), uintptr(unsafe.Pointer(&times[0])))
	call(unix.SYS_RENAMEAT2, p("new"), dir, p("moved"))
	call(unix.SYS_UNLINKAT, p("moved"))
	call(unix.SYS_MKDIRAT, p("dir"), 0o700)
	call(unix.SYS_UNLINKAT, p("dir"), unix.AT_REMOVEDIR)
	if _, _, errno := unix.Syscall(unix.SYS_SYMLINKAT, uintptr(unsafe.Pointer(text)), dir,
		p("sym")); errno == 0 {
		r.calls++
	}
	call(unix.SYS_UNLINKAT, p("sym"))
}

// TestAskingRaces: a command that leads the names of its calls elsewhere while they wait changes nothing but
// what was asked about. In the long form each attack takes 15 seconds; it was run with a minute each
// (docs/attacks.md).
func TestAskingRaces(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, how := range []string{"path string", "symbolic link", "parent", "descriptor", "working directory",
		"root directory"} {
		t.Run(how, func(t *testing.T) {
			a := newArena(t)
			at := a.out + "/race"
			for _, dir := range []string{raceYes, raceNo + "/dir"} {
				must(t, os.MkdirAll(filepath.Join(at, dir), 0o755))
			}
			for _, name := range []string{"/new", "/moved"} {
				write(t, at+"/"+raceNo+name, "stays")
			}
			must(t, os.Symlink("stays", at+"/"+raceNo+"/sym"))
			before := snapshot(t, at+"/"+raceNo)
			var yes, no atomic.Int32
			j := &job{ask: func(_ context.Context, q executor.AccessQuestion) bool {
				for _, name := range q.Paths {
					if !strings.HasPrefix(name, at+"/"+raceYes+"/") {
						no.Add(1)
						return false
					}
				}
				yes.Add(1)
				return true
			}}
			j.args = []string{os.Getenv(programVar), partAsked, how, "ws=" + a.ws, "at=" + at,
				fmt.Sprintf("ms=%d", testenv.Rounds(1000, 15_000))}
			if how == "root directory" {
				j.allow = []string{"userns"}
			}
			res, err := a.run(t, j)
			must(t, err)
			if after := snapshot(t, at+"/"+raceNo); after != before {
				t.Errorf("changed:\n%s\nbefore:\n%s", after, before)
			}
			var calls int
			text, err := os.ReadFile(a.ws + "/calls")
			if _, scanned := fmt.Sscan(string(text), &calls); scanned != nil || calls == 0 ||
				calls > int(yes.Load()) || res.code != 0 {
				t.Errorf("%+v, %q, %v", res, text, err)
			}
			t.Logf("%d calls made, %d times yes, %d times no", calls, yes.Load(), no.Load())
		})
	}
}
