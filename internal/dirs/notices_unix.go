// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package dirs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A PublishedNotice is a notice of this process. Its file is locked for as long as the notice counts, so that
// other runs can tell one whose owner was killed.
type PublishedNotice struct {
	path string
	file *os.File
}

// PublishNotice publishes a notice in a list in the state directory dir. It counts until Withdraw, or
// until this process and those that hold its file have ended.
func PublishNotice(dir string, b NoticeDir, n *Notice) (*PublishedNotice, error) {
	at := filepath.Join(dir, string(b))
	root, err := os.OpenRoot(at)
	if errors.Is(err, os.ErrNotExist) {
		root, err = makeNoticeDir(dir, b)
	}
	if err != nil {
		return nil, noticeError(err)
	}
	defer root.Close()
	name := newID()
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|safefile.NoWait, 0o600)
	if err != nil {
		return nil, noticeError(err)
	}
	p := &PublishedNotice{filepath.Join(at, name), f}
	if err = safefile.WaitLock(f); err == nil {
		_, err = f.Write(n.text()) // locked before it says something: see look
	}
	if err != nil {
		p.Withdraw()
		return nil, noticeError(err)
	}
	return p, nil
}

func makeNoticeDir(dir string, b NoticeDir) (*os.Root, error) {
	root, err := safefile.OpenTreePath(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return safefile.MakeDir(root, string(b))
}

func noticeError(err error) error {
	return fmt.Errorf("other runs cannot be told of this one: %w; set XDG_STATE_HOME to a directory with room", err)
}

// Hold returns the file, for processes that are to hold the notice when this one is killed; nil of a
// nil Posted.
func (p *PublishedNotice) Hold() *os.File {
	if p == nil {
		return nil
	}
	return p.file
}

// Withdraw ends a notice. It may be called twice, and of a nil Posted.
func (p *PublishedNotice) Withdraw() {
	if p == nil || p.file == nil {
		return
	}
	_ = os.Remove(p.path) // what stays is removed by the next look
	_ = p.file.Close()
	p.file = nil
}

// Notices returns what is published in a list in the state directory dir. What cannot be read is
// Unknown; what another run has not written to its end is left out, because that run looks at the
// other list later. An error says that nothing is known.
func Notices(dir string, b NoticeDir) ([]Notice, error) {
	list := filepath.Join(dir, string(b))
	at, err := os.OpenFile(list, os.O_RDONLY|safefile.NoWait, 0) //nolint:forbidigo // it is only read
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, lookError(err)
	}
	defer at.Close()
	names, err := at.Readdirnames(-1)
	if err != nil {
		return nil, lookError(err)
	}
	if len(names) == 0 {
		return nil, nil
	}
	root, err := os.OpenRoot(list)
	if err != nil {
		return nil, lookError(err)
	}
	defer root.Close()
	var out []Notice
	for _, name := range names {
		if n, counts := look(root, name); counts {
			out = append(out, n)
		}
	}
	return out, nil
}

func lookError(err error) error {
	return fmt.Errorf("what other runs do is not known: %w; make the state directory readable", err)
}

// unlocked is how long a file without a lock and without a word may be one that its owner makes.
const unlocked = time.Minute

// look reads a notice, and removes one whose owner is dead.
func look(root *os.Root, name string) (n Notice, counts bool) {
	unknown := Notice{Unknown: true, Program: "what " +
		strconv.Quote(text.Line(filepath.Join(root.Name(), name))) + " is about"}
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return n, false // it was withdrawn meanwhile
	}
	if err != nil {
		return unknown, true
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return unknown, true
	}
	if safefile.Lock(f, unix.LOCK_SH|unix.LOCK_NB) == nil {
		if info.Size() > 0 || time.Since(info.ModTime()) > unlocked {
			_ = root.Remove(name)
		}
		return n, false
	}
	const most = 4 << 20
	var text strings.Builder
	if _, err := io.Copy(&text, io.LimitReader(f, most)); err != nil {
		return unknown, true
	}
	if text.Len() == 0 {
		return n, false // it is not published yet
	}
	if n, err = parse(text.String()); err != nil {
		return unknown, true
	}
	return n, true
}

// end is the last field of a notice that was written to its end.
const end = "end"

var errNotice = errors.New("it is not a whole notice")

// text returns the fields, each with a NUL behind it, which no path has.
func (n *Notice) text() []byte {
	var b []byte
	add := func(words ...string) {
		for _, w := range words {
			b = append(b, w...)
		}
		b = append(b, 0)
	}
	add("run ", n.Run)
	add("pid ", strconv.Itoa(n.PID))
	add("program ", n.Program)
	for _, p := range n.Paths {
		add("path ", p)
	}
	for _, p := range n.Closed {
		add("closed ", p)
	}
	add(end)
	return b
}

// parse is the reverse of text.
func parse(text string) (n Notice, err error) {
	fields := strings.Split(text, "\x00")
	last := len(fields) - 1
	if last < 1 || fields[last] != "" || fields[last-1] != end {
		return n, errNotice
	}
	for _, f := range fields[:last-1] {
		switch what, value, _ := strings.Cut(f, " "); what {
		case "run":
			n.Run = value
		case "pid":
			if n.PID, err = strconv.Atoi(value); err != nil {
				return n, errNotice
			}
		case "program":
			n.Program = value
		case "path":
			n.Paths = append(n.Paths, value)
		case "closed":
			n.Closed = append(n.Closed, value)
		default:
			return n, errNotice
		}
	}
	return n, nil
}
