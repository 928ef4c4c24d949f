// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// childVar makes this binary a process in a user namespace that performs operations: its value is a file with
// a childJob.
const childVar = "SALLYPORT_TEST_CHANGES"

func TestMain(m *testing.M) {
	if job := os.Getenv(childVar); job != "" {
		os.Exit(child(job))
	}
	os.Exit(m.Run())
}

// A childJob is what a child does, in Dir.
type childJob struct {
	Dir         string
	Upper, Work string // of the overlay that is mounted over Dir; empty for none
	Ops         []op
}

// An op is an operation on files, by paths relative to the directory.
type op struct {
	Do   string
	A, B string
	Data string
	Mode uint32
}

func child(name string) int {
	text, err := os.ReadFile(name)
	var job childJob
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(text)).Decode(&job)
	}
	if err == nil && job.Upper != "" {
		err = unix.Mount("overlay", job.Dir, "overlay", 0,
			fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,userxattr",
				job.Dir, job.Upper, job.Work))
	}
	if err == nil {
		err = os.Chdir(job.Dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	unix.Umask(0)
	for i := range job.Ops {
		if err := job.Ops[i].perform(); err != nil {
			fmt.Println(job.Ops[i].Do, job.Ops[i].A, cause(err))
		}
	}
	return 0
}

// cause is an error without paths.
func cause(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

func (o *op) perform() error {
	mode := os.FileMode(o.Mode)
	if mode == 0 {
		mode = 0o644
	}
	switch o.Do {
	case "write":
		return os.WriteFile(o.A, []byte(o.Data), mode)
	case "append", "open":
		f, err := os.OpenFile(o.A, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(o.Data)
		return errors.Join(err, f.Close())
	case "replace":
		return errors.Join(os.WriteFile(o.A+".new", []byte(o.Data), mode), os.Rename(o.A+".new", o.A))
	case "truncate":
		return os.Truncate(o.A, int64(o.Mode))
	case "mkdir":
		return os.Mkdir(o.A, mode|0o100)
	case "mkdirs":
		return os.MkdirAll(o.A, 0o755)
	case "remove":
		return os.Remove(o.A)
	case "removeall":
		return os.RemoveAll(o.A)
	case "rename":
		if info, err := os.Lstat(o.A); err != nil || info.IsDir() { // EXDEV in an overlay
			return syscall.EXDEV
		}
		return os.Rename(o.A, o.B)
	case "symlink":
		return os.Symlink(o.B, o.A)
	case "link":
		return os.Link(o.A, o.B)
	case "chmod":
		return os.Chmod(o.A, os.FileMode(o.Mode))
	case "attr":
		return unix.Lsetxattr(o.A, "user."+o.B, []byte(o.Data), 0)
	case "fifo":
		return unix.Mkfifo(o.A, 0o600)
	case "times":
		return os.Chtimes(o.A, time.Unix(1e9, 0), time.Unix(1e9, 0))
	case "deep":
		return deep(o.A, int(o.Mode))
	}
	return errors.ErrUnsupported
}

// level is the name of each directory of a deep tree: a hundred of them are longer than a path can be.
var level = strings.Repeat("d", 60)

// deep makes a deep tree of directories, with a file at its end.
func deep(name string, depth int) error {
	home, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(name, 0o755), os.Chdir(name)); err != nil {
		return err
	}
	for range depth {
		if err := os.Mkdir(level, 0o755); err != nil && !os.IsExist(err) {
			return err
		}
		if err := os.Chdir(level); err != nil {
			return err
		}
	}
	return errors.Join(os.WriteFile("end", []byte("deep\n"), 0o644), os.Chdir(home))
}

// A stage is directories for overlays over a host's directory.
type stage struct {
	testing.TB
	host, upper, work string
	base              *Base
	layers            []Layer
}

// newStage makes a stage; fill makes the host's files.
func newStage(t testing.TB, fill ...op) *stage {
	t.Helper()
	testenv.NeedUserNS(t)
	top := testenv.RealTemp(t)
	s := &stage{TB: t, host: filepath.Join(top, "host"), upper: filepath.Join(top, "upper"),
		work: filepath.Join(top, "work")}
	for _, d := range []string{s.host, s.upper, s.work} {
		s.must(os.Mkdir(d, 0o755))
	}
	t.Cleanup(func() {
		s.must(safefile.RemoveTreePath(s.host), safefile.RemoveTreePath(s.upper),
			safefile.RemoveTreePath(s.work))
	})
	s.perform(&childJob{Dir: s.host, Ops: fill})
	var err error
	s.base, err = OpenBase(filepath.Join(top, "base"))
	s.must(err)
	s.layers = []Layer{{Root: s.host, Upper: s.upper}}
	return s
}

func (s *stage) must(errs ...error) {
	s.Helper()
	if err := errors.Join(errs...); err != nil {
		s.Fatal(err)
	}
}

// perform performs operations in a user namespace, and returns what failed.
func (s *stage) perform(job *childJob) string {
	s.Helper()
	var text bytes.Buffer
	s.must(gob.NewEncoder(&text).Encode(job))
	name := filepath.Join(s.TempDir(), "job")
	s.must(os.WriteFile(name, text.Bytes(), 0o600))
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childVar+"="+name)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   unix.CLONE_NEWUSER,
		UidMappings:  []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings:  []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		Unshareflags: unix.CLONE_NEWNS, // makes every mount private
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("the child: %v: %s", err, out)
	}
	return string(out)
}

// run runs operations in the stage, and records what they met.
func (s *stage) run(ops ...op) string {
	s.Helper()
	start := Now()
	out := s.perform(&childJob{Dir: s.host, Upper: s.upper, Work: s.work, Ops: ops})
	s.must(s.base.Update(s.Context(), s.layers, start))
	return out
}

// read returns the entries of the stage.
func (s *stage) read() []Entry {
	s.Helper()
	entries, err := Read(s.Context(), s.layers, s.base)
	s.must(err)
	return entries
}

// list describes the changes, one a line.
func (s *stage) list() string {
	s.Helper()
	return listOf(s.read())
}

func listOf(entries []Entry) string {
	var b strings.Builder
	for i := range entries {
		e := &entries[i]
		if e.Way {
			continue
		}
		fmt.Fprintf(&b, "%s %s %s %s %d %d", e.Kind, e.Path, e.File, e.Mode, e.Size, e.OldSize)
		if e.Binary {
			b.WriteString(" binary")
		}
		if e.Entries > 0 {
			fmt.Fprintf(&b, " entries=%d", e.Entries)
		}
		if e.RunsLater {
			b.WriteString(" later")
		}
		if why := e.Conflict(); why != "" {
			b.WriteString(" conflict=" + why)
		}
		b.WriteString("\n")
	}
	return b.String()
}
