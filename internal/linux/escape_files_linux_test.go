// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

func TestFilesOutside(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	must(t, os.Symlink(a.out+"/canary", a.ws+"/planted"))
	unchanged(t, a.out)
	home, err := os.UserHomeDir()
	must(t, err)
	// Somebody must be there to read from the pipe, or nobody could write to it.
	reader, err := unix.Open(a.out+"/pipe", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(reader)
	a.expect(t, wordDenied, &job{}, names(fileAttacks(), linkAttacks()), "home="+home)
	if n, _ := unix.Read(reader, make([]byte, 8)); n > 0 {
		t.Error("something came out of the pipe")
	}
}

func TestMetadataOutside(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	unchanged(t, a.out)
	a.expect(t, wordDenied, &job{}, names(metaAttacks(), modeAttacks()))
	must(t, filepath.WalkDir(a.ws, func(name string, _ os.DirEntry, err error) error {
		must(t, err)
		st, err := os.Lstat(name)
		must(t, err)
		if st.Mode()&(os.ModeSetuid|os.ModeSetgid|os.ModeDevice) != 0 && st.Size() > 0 {
			t.Errorf("%s was left with mode %s", name, st.Mode())
		}
		return nil
	}))
}

func TestMounts(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	unchanged(t, a.out, a.ws+"/.git")
	a.expect(t, wordDenied, &job{}, names(mountAttacks()))
}

// TestOrdinaryWork is the other side: what a command does in its workspace and
// with what it can read must simply work.
func TestOrdinaryWork(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	const script = `set -e
echo a >n1; echo b >>n1; mkdir -p d1/d2; mv n1 d1/n2; ln -s n2 d1/l; ln d1/n2 d1/h; chmod 600 d1/n2
touch -d 2020-01-01 d1/n2; cp file d1/; mv d1/d2 moved; rm -r d1
cat /etc/passwd >/dev/null; ls /usr/bin >/dev/null; test "$(cat "$1/canary")" = canary
echo x >/tmp/x; cat /tmp/x >/dev/null; (exit 3) || test $? = 3; : & wait; kill -0 $$
cat /proc/self/status /proc/meminfo /proc/cpuinfo /sys/devices/system/cpu/online >/dev/null
echo done`
	res, err := a.run(t, &job{args: sh(script, a.out)})
	must(t, err)
	if res.code != 0 || res.out != "done\n" || res.err != "" || res.survivors != 0 {
		t.Errorf("%+v", res)
	}
	a.expect(t, wordOK, &job{}, []string{"devices-work", "own-loopback", "pair-stream", "clone-thread"})
}

func TestStandardDescriptorsReopened(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	write(t, a.base+"/log", "")
	open := func(name string, flags int) *os.File {
		f, err := os.OpenFile(name, flags, 0)
		must(t, err)
		t.Cleanup(func() { f.Close() })
		return f
	}
	t.Run("read-only file as input", func(t *testing.T) {
		unchanged(t, a.out)
		res, err := a.run(t, &job{args: sh(`cat; (echo evil >/proc/self/fd/0) 2>/dev/null && echo BREACH; (echo evil >>/dev/stdin) 2>/dev/null && echo BREACH`), stdin: open(a.out+"/canary", os.O_RDONLY)})
		must(t, err)
		if res.out != "canary" {
			t.Errorf("%+v", res)
		}
	})
	t.Run("file as output", func(t *testing.T) {
		res, err := a.run(t, &job{args: sh(`echo one; echo two >/dev/stdout; echo three >>/proc/self/fd/1`),
			stdout: open(a.base+"/log", os.O_WRONLY|os.O_APPEND)})
		must(t, err)
		b, err := os.ReadFile(a.base + "/log")
		must(t, err)
		// The second line truncates, as it would outside.
		if res.code != 0 || string(b) != "two\nthree\n" {
			t.Errorf("%+v, the file holds %q", res, b)
		}
	})
	t.Run("pipe as output", func(t *testing.T) {
		res, err := a.run(t, &job{args: sh(`echo one; echo two >/dev/stdout; echo three >/dev/stderr; echo four >>/proc/self/fd/2`)})
		must(t, err)
		if res.code != 0 || res.out != "one\ntwo\n" || res.err != "three\nfour\n" {
			t.Errorf("%+v", res)
		}
	})
	t.Run("null devices", func(t *testing.T) {
		null := open(os.DevNull, os.O_RDWR)
		res, err := a.run(t, &job{args: sh(`cat && echo x && echo x >/dev/stdout`), stdin: null,
			stdout: null})
		must(t, err)
		if res.code != 0 || res.out+res.err != "" {
			t.Errorf("%+v", res)
		}
	})
	t.Run("broken pipe", func(t *testing.T) {
		r, w := pipe(t)
		r.Close()
		res, err := a.run(t, &job{args: sh(`echo x`), stdout: w})
		w.Close()
		must(t, err)
		if res.code != 128+int(unix.SIGPIPE) && res.code == 0 {
			t.Errorf("%+v", res)
		}
	})
	t.Run("closed", func(t *testing.T) {
		f := open(os.DevNull, os.O_RDWR)
		f.Close()
		_, err := a.run(t, &job{args: sh(`:`), stdin: f})
		if err == nil {
			t.Error("a closed file was taken as standard input")
		}
	})
	t.Run("none", func(t *testing.T) {
		c, err := a.host.Start(t.Context(), a.request(&job{args: sh(`:`)}), [3]*os.File{nil, nil, nil})
		if err == nil {
			_ = c.Kill()
			t.Error("nil was taken as standard input")
		}
	})
}

// TestTerminalOfTheCaller passes in a terminal: nothing may be typed into it.
func TestTerminalOfTheCaller(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	master, slave := terminal(t)
	got := a.attack(t, &job{stdin: slave}, []string{"tiocsti", "terminal", "session", "line-disc"})
	for n, v := range got {
		if v.word != wordDenied {
			t.Errorf("%s: %v", n, v)
		}
	}
	if len(got) != 4 {
		t.Errorf("outcomes: %v", got)
	}
	// What was typed in could be read from the slave now.
	must(t, unix.SetNonblock(int(slave.Fd()), true))
	if n, err := unix.Read(int(slave.Fd()), make([]byte, 8)); n > 0 {
		t.Errorf("%d bytes were typed in (%v)", n, err)
	}
	_ = master
	t.Run("output", func(t *testing.T) {
		res, err := a.run(t, &job{args: sh(`test -t 1 && echo to the terminal >/dev/stdout`), stdout: slave})
		must(t, err)
		b := make([]byte, 64)
		n, err := master.Read(b)
		if res.code != 0 || err != nil || !bytes.Contains(b[:n], []byte("to the terminal")) {
			t.Errorf("%+v %q %v", res, b[:n], err)
		}
	})
}

// terminal opens a terminal pair.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { master.Close() })
	must(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, master.Fd(), unix.TIOCGPTPEER,
		unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		t.Fatal(errno)
	}
	slave = os.NewFile(fd, "slave")
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// TestDescriptorsOfTheCaller leaves descriptors open that every plain child
// would inherit.
func TestDescriptorsOfTheCaller(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	leak(t, a)
	a.expect(t, wordDenied, &job{}, []string{"descriptors"})
	res, err := a.run(t, &job{args: sh(`ls /proc/self/fd`)})
	must(t, err)
	if res.out != "0\n1\n2\n3\n" { // 3 is the directory that ls reads
		t.Errorf("%+v", res)
	}
}

// leak opens a file and a directory outside without close-on-exec.
func leak(t *testing.T, a *arena) {
	t.Helper()
	for name, flags := range map[string]int{a.out + "/canary": unix.O_RDWR, a.out: unix.O_RDONLY,
		"/dev/null": unix.O_RDWR} {
		fd, err := unix.Open(name, flags, 0)
		must(t, err)
		t.Cleanup(func() { unix.Close(fd) })
	}
}

func TestTemporaryDirectory(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	shared, err := os.MkdirTemp("/tmp", "sallyport-shared-")
	must(t, err)
	defer os.RemoveAll(shared)
	run := func(j *job) result {
		t.Helper()
		res, err := a.run(t, j)
		must(t, err)
		return res
	}
	t.Run("private", func(t *testing.T) {
		if res := run(&job{args: sh(`ls -A /tmp; test ! -e "$1"; echo kept >/tmp/kept`,
			shared)}); res.code != 0 || res.out != "" {
			t.Errorf("%+v", res)
		}
		if _, err := os.Lstat("/tmp/kept"); err == nil {
			t.Error("the host sees it")
		}
		if res := run(&job{args: sh(`cat /tmp/kept`)}); res.out != "kept\n" {
			t.Errorf("a later command of the same host: %+v", res)
		}
		var other Host
		defer other.Close()
		if res := mustRun(t, &arena{host: &other, base: a.base, ws: a.ws, out: a.out},
			&job{args: sh(`ls -A /tmp`)}); res.out != "" {
			t.Errorf("another host sees %q", res.out)
		}
	})
	t.Run("host", func(t *testing.T) {
		if res := run(&job{args: sh(`echo x >"$1/x"`, shared), tmp: "host"}); res.code != 0 {
			t.Errorf("%+v", res)
		}
		if _, err := os.Lstat(shared + "/x"); err != nil {
			t.Error(err)
		}
	})
	t.Run("host read-only", func(t *testing.T) {
		p := sandbox.ReadOnly()
		if res := run(&job{args: sh(`cat "$1/x" && ! echo x >"$1/y"`, shared), tmp: "host",
			policy: &p}); res.code != 0 {
			t.Errorf("%+v", res)
		}
	})
	t.Run("directory", func(t *testing.T) {
		must(t, os.Mkdir(a.base+"/mytmp", 0o700))
		if res := run(&job{args: sh(`echo x >/tmp/x; ls /tmp`), tmp: a.base + "/mytmp"}); res.out != "x\n" {
			t.Errorf("%+v", res)
		}
		if _, err := os.Lstat(a.base + "/mytmp/x"); err != nil {
			t.Error(err)
		}
	})
	for name, tmp := range map[string]string{"missing directory": a.base + "/none", "file": a.out + "/canary",
		"word": "elsewhere"} {
		t.Run(name, func(t *testing.T) {
			if _, err := a.run(t, &job{args: sh(`:`), tmp: tmp}); err == nil {
				t.Error("it was taken")
			}
		})
	}
}

func mustRun(t testing.TB, a *arena, j *job) result {
	t.Helper()
	res, err := a.run(t, j)
	must(t, err)
	return res
}

// TestPrivateDirectoryEnds looks at the directory itself: gone with its host, swept
// when its host crashed, never visible to a command.
func TestPrivateDirectoryEnds(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	mustRun(t, a, &job{args: sh(`mkdir -p /tmp/deep/er && echo x >/tmp/deep/er/x && chmod 0 /tmp/deep/er /tmp/deep && ln -s / /tmp/link`)})
	own, err := a.host.onDisk()
	must(t, err)
	state, mine := own.state, own.tmp.Path
	for _, d := range []string{state, state + "/tmp", mine} {
		st, err := os.Lstat(d)
		must(t, err)
		if st.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %s", d, st.Mode())
		}
	}
	for _, n := range []string{"list-at", "write-at", "chmod-at"} {
		if v := a.attack(t, &job{}, []string{n}, "at="+state)[n]; v.word != wordDenied {
			t.Errorf("%s on the state directory: %v", n, v)
		}
	}
	crashed, err := os.MkdirTemp(filepath.Dir(mine), "run-")
	must(t, err)
	must(t, os.MkdirAll(crashed+"/a/b", 0o700))
	must(t, os.Chmod(crashed+"/a", 0))
	var next Host
	if _, err := next.onDisk(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(crashed); err == nil {
		t.Error("the directory of a crashed host was not swept")
	}
	if _, err := os.Lstat(mine); err != nil {
		t.Error("the directory of a living host was swept")
	}
	must(t, next.Close())
	must(t, a.host.Close())
	must(t, a.host.Close())
	left, err := os.ReadDir(filepath.Dir(mine))
	must(t, err)
	if len(left) != 0 {
		t.Errorf("%d directories are left", len(left))
	}
	if _, err := a.run(t, &job{args: sh(`:`)}); err == nil {
		t.Error("a closed host starts commands")
	}
}
