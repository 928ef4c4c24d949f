// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// A foldingFS is a file system behind FUSE that takes every spelling of a name
// for the same, as servers on other systems do. It has what the test needs: the
// directory .git with the file config, and the files plain and .codex.
type foldingFS struct {
	mu    sync.Mutex
	nodes map[uint64]*foldingNode
}

type foldingNode struct {
	mode uint32
	kids map[string]uint64
	data []byte
}

// The requests that the file system knows (linux/fuse.h).
const (
	fuseLookup, fuseForget, fuseGetattr, fuseSetattr = 1, 2, 3, 4
	fuseOpen, fuseRead, fuseWrite, fuseStatfs        = 14, 15, 16, 17
	fuseRelease, fuseFlush, fuseInit, fuseOpendir    = 18, 25, 26, 27
	fuseReaddir, fuseReleasedir, fuseBatchForget     = 28, 29, 42
)

// mountFolding mounts one for the time of t.
func mountFolding(t *testing.T, dir string) *foldingFS {
	t.Helper()
	must(t, os.Mkdir(dir, 0o755))
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	must(t, err)
	f := &foldingFS{nodes: map[uint64]*foldingNode{
		1: {mode: unix.S_IFDIR | 0o755, kids: map[string]uint64{".git": 2, "plain": 4, ".codex": 5}},
		2: {mode: unix.S_IFDIR | 0o755, kids: map[string]uint64{"config": 3}},
		3: {mode: unix.S_IFREG | 0o644, data: []byte("config\n")},
		4: {mode: unix.S_IFREG | 0o644, data: []byte("plain\n")},
		5: {mode: unix.S_IFREG | 0o644, data: []byte("codex\n")},
	}}
	// This process answers for the file system, and a launch that looks at it holds a processor
	// of the runtime. A collection of garbage would wait for the one and stop the other.
	old := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(old) })
	must(t, unix.Mount("folding", dir, "fuse.folding", 0,
		fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,default_permissions,allow_other", fd)))
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.serve(fd)
	}()
	t.Cleanup(func() {
		_ = unix.Unmount(dir, unix.MNT_FORCE|unix.MNT_DETACH) // ends the connection, and with it serve
		<-done
		unix.Close(fd)
	})
	return f
}

func (f *foldingFS) serve(fd int) {
	buf := make([]byte, 1<<20)
	for {
		n, err := unix.Read(fd, buf)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENOENT): // ENOENT: the request was taken back
			continue
		case err != nil:
			return
		}
		m := buf[:n]
		errno, out, quiet := f.answer(binary.LittleEndian.Uint32(m[4:]),
			binary.LittleEndian.Uint64(m[16:]), m[40:])
		if quiet {
			continue
		}
		head := make([]byte, 16, 16+len(out))
		binary.LittleEndian.PutUint32(head, uint32(16+len(out)))
		binary.LittleEndian.PutUint32(head[4:], uint32(-int32(errno)))
		copy(head[8:], m[8:16])
		_, _ = unix.Write(fd, append(head, out...))
	}
}

func (f *foldingFS) answer(op uint32, id uint64, body []byte) (errno unix.Errno, out []byte, quiet bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	le, node := binary.LittleEndian, f.nodes[id]
	switch op {
	case fuseInit:
		out = make([]byte, 64)
		le.PutUint32(out, 7)
		le.PutUint32(out[4:], 31)
		le.PutUint32(out[20:], 65536)
	case fuseLookup:
		kid, ok := node.kids[strings.ToLower(strings.TrimRight(string(body), "\x00"))]
		if !ok {
			return unix.ENOENT, nil, false
		}
		out = make([]byte, 40, 128)
		le.PutUint64(out, kid)
		le.PutUint64(out[16:], 1)
		le.PutUint64(out[24:], 1)
		out = slices.Concat(out, f.attr(kid))
	case fuseSetattr, fuseGetattr:
		if op == fuseSetattr && le.Uint32(body)&8 != 0 { // FATTR_SIZE: truncated by opening
			node.data = nil
		}
		out = append(make([]byte, 16), f.attr(id)...)
	case fuseOpen, fuseOpendir:
		out = make([]byte, 16)
	case fuseRead:
		out = node.data[min(le.Uint64(body[8:]), uint64(len(node.data))):]
	case fuseWrite:
		size := le.Uint32(body[16:])
		node.data = append([]byte(nil), body[40:40+size]...)
		out = make([]byte, 8)
		le.PutUint32(out, size)
	case fuseStatfs:
		out = make([]byte, 80)
	case fuseRelease, fuseReleasedir, fuseFlush, fuseReaddir:
	case fuseForget, fuseBatchForget:
		quiet = true
	default:
		errno = unix.ENOSYS
	}
	return errno, out, quiet
}

func (f *foldingFS) attr(id uint64) []byte {
	b, n := make([]byte, 88), f.nodes[id]
	binary.LittleEndian.PutUint64(b, id)
	binary.LittleEndian.PutUint64(b[8:], uint64(len(n.data)))
	binary.LittleEndian.PutUint32(b[60:], n.mode)
	binary.LittleEndian.PutUint32(b[64:], 1)
	return b
}

func (f *foldingFS) content(id uint64) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return string(f.nodes[id].data)
}

// TestSpellings: a rule for a directory holds for every spelling of its name, and
// one for a file that would hold for one spelling only is refused.
func TestSpellings(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	if unix.Access("/dev/fuse", unix.W_OK) != nil {
		t.Log("this user may not use /dev/fuse; root's run of the test did")
		return
	}
	a := newArena(t)
	ws := a.base + "/folding"
	f := mountFolding(t, ws)
	entries := func(more ...sandbox.Entry) *sandbox.Policy {
		for _, n := range []string{".agents", ".sallyport"} { // no directory can be made here
			e := sandbox.PathEntry(ws+"/"+n, sandbox.LevelWrite)
			e.SkipMissing = true
			more = append(more, e)
		}
		p, err := sandbox.New(sandbox.Managed, sandbox.NetworkNone,
			append(more, sandbox.SpecialEntry(sandbox.TokenRoot, sandbox.LevelRead),
				sandbox.PathEntry(ws, sandbox.LevelWrite))...)
		must(t, err)
		return &p
	}
	open := sandbox.PathEntry(ws+"/.codex", sandbox.LevelWrite) // a protected name that is a file
	t.Run("directory", func(t *testing.T) {
		res := mustRun(t, a, &job{dir: ws, policy: entries(open),
			args: sh(`for n in .git .GIT .Git .git; do (echo evil >$n/config) 2>/dev/null && echo BREACH; cat $n/config; done; echo fine >plain`)})
		if res.out != strings.Repeat("config\n", 4) || f.content(3) != "config\n" ||
			f.content(4) != "fine\n" {
			t.Errorf("%+v", res)
		}
	})
	t.Run("denied directory", func(t *testing.T) {
		res := mustRun(t, a, &job{dir: ws,
			policy: entries(open, sandbox.PathEntry(ws+"/.git", sandbox.LevelDeny)),
			args:   sh(`for n in .git .GIT .Git; do cat $n/config 2>/dev/null && echo BREACH; done; echo end`)})
		if res.out != "end\n" {
			t.Errorf("%+v", res)
		}
	})
	t.Run("directory under two spellings", func(t *testing.T) {
		// .git is protected already, and the second mount finds the first.
		if _, err := a.run(t, &job{dir: ws,
			policy: entries(open, sandbox.PathEntry(ws+"/.GIT", sandbox.LevelDeny)),
			args:   sh(`:`)}); !badRoot(err) {
			t.Errorf("%v", err)
		}
	})
	for name, policy := range map[string]*sandbox.Policy{
		"protected file":                entries(),
		"denied file":                   entries(open, sandbox.PathEntry(ws+"/plain", sandbox.LevelDeny)),
		"denied file, another spelling": entries(open, sandbox.PathEntry(ws+"/Plain", sandbox.LevelDeny)),
		"read-only file":                entries(open, sandbox.PathEntry(ws+"/plain", sandbox.LevelRead)),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := a.run(t, &job{dir: ws, policy: policy, args: sh(`cat PLAIN; echo evil >.CODEX`)})
			var unsupported *sandbox.UnsupportedError
			if !errors.As(err, &unsupported) || !strings.Contains(unsupported.Have, "same file") {
				t.Errorf("%v", err)
			}
		})
	}
}
