// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/dirs"
)

// A Look is one look at what a command is, on which an approval of it rests. Close it. Its methods may
// be called of nil, which saw nothing and finds nothing wrong.
type Look struct {
	Identity
	// Err says why the command cannot be approved; nil if it can.
	Err error

	c       *ApprovedCommand
	at      os.FileInfo // of Dir; nil where it is not known
	files   []*file
	absent  []absent
	posted  *dirs.PublishedNotice
	state   string   // the state directory; empty where there is none on this system
	apart   error    // why the other runs are not known
	written bool     // another command could write a file when it was read
	planted []string // directories of PATH in which another command could put a program
}

// IdentityOf looks at what a command is now. Nothing is held open.
func IdentityOf(c *ApprovedCommand) Identity {
	l := TakeLook(c, false)
	l.Close()
	return l.Identity
}

// TakeLook looks at what a command is now. With opens, which says that an approval would give the command
// more than the sandbox of all, what starts in a sandbox from now on gets its files read-only, until Close.
func TakeLook(c *ApprovedCommand, opens bool) *Look {
	l := &Look{Identity: of(c), c: c}
	if !c.Local {
		return l
	}
	l.Dir, l.at = c.directory()
	g := gather(c)
	l.files, l.absent, l.Program, l.Err = g.files, g.absent, g.program, g.err
	if l.Program != "" {
		l.Args = canonical(c.Args)
	}
	l.meet(opens)
	_, l.written = l.writer()
	for _, f := range l.files {
		if !f.reach || f.open == nil {
			continue
		}
		sum, err := f.read()
		if err != nil {
			l.Err = cmp.Or(l.Err, error(&approval.UnreadableError{Path: f.real, Role: f.role, Err: err}))
			continue
		}
		f.sum = sum
		l.Files = append(l.Files, approval.File{Path: f.real, Role: f.role, Digest: sum})
	}
	return l
}

// meet finds where the runs of this user know of each other, and with post tells them about the files.
func (l *Look) meet(post bool) {
	if len(l.files) == 0 && len(l.absent) == 0 {
		return
	}
	n := &dirs.Notice{Run: l.c.Run, PID: os.Getpid(), Program: l.c.Args[0]}
	for _, f := range l.files {
		n.Paths = append(append(n.Paths, f.real), f.way...)
	}
	for _, a := range l.absent {
		n.Paths = append(n.Paths, a.path)
	}
	slices.Sort(n.Paths)
	n.Paths = slices.Compact(n.Paths)
	dir, err := dirs.Dir()
	if err == nil && post {
		l.posted, err = dirs.PublishNotice(dir, dirs.Fixed, n)
	}
	switch {
	case err == nil:
		l.state = dir
	case !errors.Is(err, errors.ErrUnsupported):
		l.apart = err
	}
}

// writer returns an error if a command in a sandbox runs that can change one of the files, or may.
func (l *Look) writer() (err error, written bool) {
	l.planted = nil
	if l.apart != nil {
		return l.apart, true
	}
	if l.state == "" {
		return nil, false
	}
	all, err := dirs.Notices(l.state, dirs.Writers)
	if err != nil {
		return err, true
	}
	for _, n := range all {
		for _, f := range l.files {
			if slices.ContainsFunc(append([]string{f.real}, f.way...), n.Covers) {
				return &approval.WriterError{Path: f.real, Role: f.role, Run: n.Run, PID: n.PID,
					Program: n.Program}, true
			}
		}
		for _, a := range l.absent {
			if a.dir != "" && n.Covers(a.path) {
				l.planted = append(l.planted, a.dir)
			} else if n.Covers(a.path) {
				return &approval.WriterError{Path: a.path, Role: a.role, Run: n.Run, PID: n.PID,
					Program: n.Program}, true
			}
		}
	}
	return nil, false
}

// Env returns the environment with which the command starts, and the directories that are left out of
// PATH: beside a command in a sandbox that could put a program there, the names of this one lead to what
// was looked at, behind them.
func (l *Look) Env(env []string) (kept, left []string) {
	if l == nil || len(l.planted) == 0 {
		return env, nil
	}
	kept = slices.Clone(env)
	for i, entry := range kept {
		list, ok := strings.CutPrefix(entry, "PATH=")
		if !ok {
			continue
		}
		dirs := slices.DeleteFunc(filepath.SplitList(list),
			func(dir string) bool { return slices.Contains(l.planted, cmp.Or(dir, ".")) })
		if len(dirs) == 0 {
			dirs = []string{os.DevNull} // an empty list means the working directory
		}
		kept[i] = "PATH=" + strings.Join(dirs, string(filepath.ListSeparator))
	}
	slices.Sort(l.planted)
	return kept, slices.Compact(l.planted)
}

// Writer returns a [*approval.WriterError] if a command in a sandbox runs that can change what an
// approval rests on: no approval may open anything then. Another error says that this is not known.
func (l *Look) Writer() error {
	if l == nil {
		return nil
	}
	err, _ := l.writer()
	return err
}

// ProgramDigest returns the SHA-256 of the program; empty where it is not known.
func (l *Look) ProgramDigest() string {
	i := slices.IndexFunc(l.files, func(f *file) bool { return f.real == l.Program })
	if i < 0 || l.files[i].open == nil {
		return ""
	}
	f := l.files[i]
	if f.sum == "" {
		f.sum = digests.of(f)
	}
	return f.sum
}

// Changed names what is not as it was looked at; empty if all is.
func (l *Look) Changed() string {
	if l == nil || !l.c.Local {
		return ""
	}
	dir, at := l.c.directory()
	now := gather(l.c)
	defer closeAll(now.files)
	switch {
	case now.program != l.Program:
		return "the program that the command names"
	case now.err != nil && l.Err == nil, !slices.EqualFunc(l.files, now.files, (*file).is), l.written &&
		l.rewritten():
		return "the file that it runs"
	case dir != l.Dir, (at == nil) != (l.at == nil), at != nil && !os.SameFile(at, l.at):
		return "its directory"
	}
	return ""
}

// is reports whether a name leads to what it led to before, which has not been changed.
func (f *file) is(now *file) bool {
	return f.real == now.real && f.role == now.role && slices.Equal(f.way, now.way) &&
		unchanged(f.info, now.info)
}

// rewritten reads the files again: a command that has them mapped into its memory may have changed
// them while the time of their last change stayed.
func (l *Look) rewritten() bool {
	return slices.ContainsFunc(l.files, func(f *file) bool {
		if !f.reach || f.open == nil {
			return false
		}
		sum, err := f.read()
		return err != nil || sum != f.sum
	})
}

// Start is called right before what was looked at starts. With opens, which says that the approval
// gives the command more than the sandbox of all, no command that can change the files may run, and what
// starts later gets them read-only until Close. What is not as it was is named by changed.
func (l *Look) Start(opens bool) (changed string, err error) {
	if l == nil {
		return "", nil
	}
	if opens {
		err = l.Writer()
	}
	if err == nil {
		changed = l.Changed()
	}
	if err != nil || changed != "" {
		l.Close()
	}
	closeAll(l.files)
	return changed, err
}

// Close gives the files free for other commands. It may be called twice.
func (l *Look) Close() {
	if l == nil {
		return
	}
	closeAll(l.files)
	l.posted.Withdraw()
}

func closeAll(files []*file) {
	for _, f := range files {
		if f.open != nil {
			_ = f.open.Close()
		}
	}
}
