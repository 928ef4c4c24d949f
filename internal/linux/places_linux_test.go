// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// mountsVar says that this process has a mount namespace of its own.
const mountsVar = "SALLYPORT_TEST_MOUNTS"

// ownMounts reports whether the test goes on here: in a mount namespace of its
// own, so that what it mounts is seen by nobody else. The first call starts the
// test anew in one, as root and as an ordinary user, who is root of a user
// namespace there.
func ownMounts(t *testing.T) bool {
	t.Helper()
	if os.Getenv(mountsVar) != "" {
		must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		return true
	}
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), mountsVar+"=1")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // it prints where it waits
	cmd.WaitDelay = patience / 6
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+" ") {
		t.Errorf("in a mount namespace of its own: %v\n%s", err, out)
	}
	t.Logf("%s", out)
	return false
}

// mountAt mounts for the time of t.
func mountAt(t *testing.T, source, target, kind string, flags uintptr, data string) {
	t.Helper()
	must(t, os.MkdirAll(target, 0o755))
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		t.Fatalf("mount %s at %s: %v", kind, target, err)
	}
	t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
}

// workIn runs in a workspace under both kinds of root, and checks that what is
// written stays, that .git is kept, and that nothing is written elsewhere.
func (a *arena) workIn(t *testing.T, ws string) {
	t.Helper()
	must(t, os.MkdirAll(ws+"/.git", 0o755))
	const script = `cd "$1" || exit 9; echo "$3" >new && cat new; echo "$3" >"$1/again"
(echo x >.git/x) 2>/dev/null && echo BREACH; mv .git .other 2>/dev/null && echo BREACH; (echo x >"$2/new") 2>/dev/null && echo BREACH; echo end`
	b := *a
	b.ws = ws
	for name, policy := range map[string]*sandbox.Policy{"ordinary root": ptr(b.policy()),
		"minimal root": b.minimal()} {
		t.Run(name, func(t *testing.T) {
			res, err := a.run(t, &job{args: sh(script, ws, a.out, name), dir: ws, policy: policy})
			must(t, err)
			if res.out != name+"\nend\n" {
				t.Errorf("%+v", res)
			}
			for _, f := range []string{"new", "again"} {
				if b, err := os.ReadFile(ws + "/" + f); string(b) != name+"\n" {
					t.Errorf("%s holds %q, %v", f, b, err)
				}
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

// TestWorkspaces puts the workspace on every kind of ground.
func TestWorkspaces(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	for _, c := range []struct {
		name string
		make func(t *testing.T, a *arena) string // returns the workspace
	}{
		{"memory", func(t *testing.T, a *arena) string {
			mountAt(t, "tmpfs", a.base+"/m", "tmpfs", 0, "")
			return a.base + "/m/ws"
		}},
		{"root of a mount", func(t *testing.T, a *arena) string {
			mountAt(t, "tmpfs", a.base+"/m", "tmpfs", 0, "")
			return a.base + "/m"
		}},
		{"overlay", func(t *testing.T, a *arena) string {
			mountAt(t, "tmpfs", a.base+"/layers", "tmpfs", 0, "")
			for _, d := range []string{"lower/ws/.git", "upper", "work"} {
				must(t, os.MkdirAll(a.base+"/layers/"+d, 0o755))
			}
			mountAt(t, "overlay", a.base+"/m", "overlay", 0,
				fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work,userxattr",
					a.base+"/layers"))
			return a.base + "/m/ws"
		}},
		{"bind mount", func(t *testing.T, a *arena) string {
			must(t, os.Mkdir(a.base+"/real", 0o755))
			mountAt(t, a.base+"/real", a.base+"/m", "", unix.MS_BIND, "")
			return a.base + "/m"
		}},
		{"mount on a mount", func(t *testing.T, a *arena) string {
			mountAt(t, "tmpfs", a.base+"/m", "tmpfs", 0, "")
			mountAt(t, "tmpfs", a.base+"/m", "tmpfs", 0, "")
			return a.base + "/m"
		}},
		{"shared mount", func(t *testing.T, a *arena) string {
			mountAt(t, "tmpfs", a.base+"/m", "tmpfs", 0, "")
			must(t, unix.Mount("", a.base+"/m", "", unix.MS_SHARED, ""))
			return a.base + "/m/ws"
		}},
		{"in /tmp", func(t *testing.T, _ *arena) string { return scratch(t, "/tmp") + "/ws" }},
		{"in /dev/shm", func(t *testing.T, _ *arena) string { return scratch(t, "/dev/shm") + "/ws" }},
		{"in /var/tmp", func(t *testing.T, _ *arena) string { return scratch(t, "/var/tmp") + "/ws" }},
		{"in /run", func(t *testing.T, _ *arena) string {
			mountAt(t, "tmpfs", "/run", "tmpfs", 0, "")
			return "/run/user/ws"
		}},
		{"in /root", func(t *testing.T, _ *arena) string {
			mountAt(t, "tmpfs", "/root", "tmpfs", 0, "")
			return "/root/ws"
		}},
		{"/root", func(t *testing.T, _ *arena) string { mountAt(t, "tmpfs", "/root", "tmpfs", 0, ""); return "/root" }},
		{"/dev/shm", func(t *testing.T, _ *arena) string {
			mountAt(t, "tmpfs", "/dev/shm", "tmpfs", 0, "")
			return "/dev/shm"
		}},
		{"spaces and quotes", func(_ *testing.T, a *arena) string { return a.base + "/a b  'c' \"d\" #e" }},
		{"newline", func(_ *testing.T, a *arena) string { return a.base + "/a\nb\t\x01" }},
		{"not UTF-8", func(_ *testing.T, a *arena) string { return a.base + "/a\xff\xfeb" }},
		{"backslash and glob", func(_ *testing.T, a *arena) string { return a.base + `/a\040[b]*?` }},
		{"name of 255 bytes", func(_ *testing.T, a *arena) string { return a.base + "/" + strings.Repeat("x", 255) }},
		{"path of 3000 bytes", func(_ *testing.T, a *arena) string { return a.base + strings.Repeat("/"+strings.Repeat("y", 249), 12) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newArena(t)
			a.workIn(t, c.make(t, a))
			must(t, a.host.Close()) // while what it made can be reached
		})
	}
}

// scratch makes a directory for the time of t.
func scratch(t *testing.T, below string) string {
	t.Helper()
	dir, err := os.MkdirTemp(below, "sallyport-place-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// TestLongPath: a workspace whose path the kernel just takes is worked in or
// refused in words, never half covered.
func TestLongPath(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	const longest = 4095 // PATH_MAX without the zero byte
	dir := a.base
	for longest-len(dir) > 251 {
		dir += "/" + strings.Repeat("z", 249)
		must(t, os.Mkdir(dir, 0o755))
	}
	dir += "/" + strings.Repeat("z", longest-len(dir)-1)
	must(t, os.Mkdir(dir, 0o755))
	b := *a
	b.ws = dir
	for name, policy := range map[string]*sandbox.Policy{"ordinary root": ptr(b.policy()),
		"minimal root": b.minimal()} {
		t.Run(name, func(t *testing.T) {
			_, err := a.run(t, &job{args: sh(`echo x >new`), dir: dir, policy: policy})
			if err == nil || !strings.Contains(err.Error(), "too long") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestSubmount: what is mounted in the workspace belongs to it, as it is mounted.
func TestSubmount(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	a := newArena(t)
	mountAt(t, "tmpfs", a.ws+"/sub", "tmpfs", 0, "")
	mountAt(t, a.out, a.ws+"/frozen", "", unix.MS_BIND, "")
	must(t, unix.Mount("", a.ws+"/frozen", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	must(t, os.MkdirAll(a.ws+"/sub/deny", 0o755))
	write(t, a.ws+"/sub/deny/secret", "secret")
	deny := sandbox.PathEntry(a.ws+"/sub/deny", sandbox.LevelDeny)
	for name, policy := range map[string]*sandbox.Policy{"ordinary root": ptr(a.policy().WithEntries(deny)),
		"minimal root": a.minimal(deny)} {
		t.Run(name, func(t *testing.T) {
			unchanged(t, a.out)
			res := mustRun(t, a, &job{args: sh(`echo in >sub/new; cat sub/new frozen/canary; (echo x >frozen/x) 2>/dev/null && echo BREACH
cat sub/deny/secret 2>/dev/null && echo BREACH; mv sub/deny sub/gone 2>/dev/null && echo BREACH; grep -c nosuid,nodev /proc/self/mountinfo >/dev/null; rmdir sub 2>/dev/null && echo BREACH; echo end`), policy: policy})
			if res.out != "in\ncanaryend\n" {
				t.Errorf("%+v", res)
			}
			if b, err := os.ReadFile(a.ws + "/sub/new"); string(b) != "in\n" {
				t.Errorf("%q %v", b, err)
			}
		})
	}
}

// TestSingleRoots gives things other than ordinary directories to write to.
func TestSingleRoots(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	a := newArena(t)
	write(t, a.base+"/file", "")
	mountAt(t, "tmpfs", a.base+"/m", "tmpfs", 0, "")
	l, err := net.Listen("unix", a.base+"/socket")
	must(t, err)
	defer l.Close()
	add := func(name string) map[string]*sandbox.Policy {
		e := sandbox.PathEntry(a.base+"/"+name, sandbox.LevelWrite)
		return map[string]*sandbox.Policy{"ordinary root": ptr(a.policy().WithEntries(e)),
			"minimal root": a.minimal(e)}
	}
	for name, policy := range add("file") {
		t.Run("file, "+name, func(t *testing.T) {
			res := mustRun(t, a, &job{args: sh(`echo "$2" >"$1/file"; (echo x >"$1/beside") 2>/dev/null && echo BREACH; rm -f "$1/file" 2>/dev/null && echo BREACH; echo end`, a.base, name), policy: policy})
			if b, _ := os.ReadFile(a.base + "/file"); res.out != "end\n" || string(b) != name+"\n" {
				t.Errorf("%+v %q", res, b)
			}
		})
	}
	for name, policy := range add("m") {
		t.Run("mount, "+name, func(t *testing.T) {
			res := mustRun(t, a, &job{args: sh(`echo "$2" >"$1/m/f"; rmdir "$1/m" 2>/dev/null && echo BREACH; echo end`, a.base, name), policy: policy})
			if b, _ := os.ReadFile(a.base + "/m/f"); res.out != "end\n" || string(b) != name+"\n" {
				t.Errorf("%+v %q", res, b)
			}
		})
	}
	for name, policy := range add("socket") {
		t.Run("socket, "+name, func(t *testing.T) {
			if _, err := a.run(t, &job{args: sh(`:`), policy: policy}); !badRoot(err) ||
				!strings.Contains(err.Error(), "neither a directory nor a regular file") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestChains nests levels in each other, four deep.
func TestChains(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	d := a.base + "/d"
	must(t, os.MkdirAll(d+"/rw/ro/rw/deny/rw", 0o755))
	for _, name := range []string{"", "/rw", "/rw/ro", "/rw/ro/rw", "/rw/ro/rw/deny", "/rw/ro/rw/deny/rw"} {
		write(t, d+name+"/f", "text")
	}
	chain := []sandbox.Entry{
		sandbox.PathEntry(d, sandbox.LevelDeny), sandbox.PathEntry(d+"/rw", sandbox.LevelWrite),
		sandbox.PathEntry(d+"/rw/ro", sandbox.LevelRead),
		sandbox.PathEntry(d+"/rw/ro/rw", sandbox.LevelWrite),
		sandbox.PathEntry(d+"/rw/ro/rw/deny", sandbox.LevelDeny),
		sandbox.PathEntry(d+"/rw/ro/rw/deny/rw", sandbox.LevelWrite),
	}
	const script = `for p in "" rw rw/ro rw/ro/rw rw/ro/rw/deny rw/ro/rw/deny/rw; do
r=-; w=-; cat "$1/$p/f" >/dev/null 2>&1 && r=r; (echo x >>"$1/$p/f") 2>/dev/null && w=w; printf '%s%s ' $r $w; done; ls "$1" 2>/dev/null`
	for name, policy := range map[string]*sandbox.Policy{"ordinary root": ptr(a.policy().WithEntries(chain...)), "minimal root": a.minimal(chain...)} {
		t.Run(name, func(t *testing.T) {
			res := mustRun(t, a, &job{args: sh(script, d), policy: policy})
			want := "-- rw r- rw -- rw "
			if name == "minimal root" {
				want += "rw\n" // an ancestor of what is listed shows that
			}
			if res.out != want {
				t.Errorf("%q, want %q; %+v", res.out, want, res)
			}
		})
	}
	t.Run("denied parent of the workspace", func(t *testing.T) {
		p := a.policy().WithEntries(sandbox.PathEntry(a.base, sandbox.LevelDeny))
		res := mustRun(t, a, &job{args: sh(`pwd; echo x >new; cat new; cat "$1/canary" 2>&1; ls "$2" 2>&1; true`, a.out, a.base), policy: &p})
		if !strings.HasPrefix(res.out, a.ws+"\nx\n") || strings.Contains(res.out, "canary\n") ||
			strings.Count(res.out, "Permission denied")+strings.Count(res.out, "No such file") != 2 {
			t.Errorf("%+v", res)
		}
	})
}

// TestStateInWorkspace: the directory that holds our state stays hidden in a
// workspace around it.
func TestStateInWorkspace(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for name, state := range map[string]string{"XDG_STATE_HOME in the workspace": "state",
		"a home as the workspace": ".local/state"} {
		t.Run(name, func(t *testing.T) {
			a := newArena(t)
			t.Setenv("XDG_STATE_HOME", filepath.Join(a.ws, state))
			for root, policy := range map[string]*sandbox.Policy{"ordinary root": ptr(a.policy()),
				"minimal root": a.minimal()} {
				res := mustRun(t, a, &job{args: sh(`s="$1/sallyport"; ls "$s" 2>/dev/null && echo BREACH; (echo x >"$s/x") 2>/dev/null && echo BREACH
mv "$s" moved 2>/dev/null && echo BREACH; rm -rf "$s" 2>/dev/null && echo BREACH; chmod 777 "$s" 2>/dev/null && echo BREACH; echo x >/tmp/x && cat /tmp/x`, state), policy: policy})
				if res.out != "x\n" {
					t.Errorf("%s: %+v", root, res)
				}
			}
		})
	}
}

// TestLinksInRun: where the system keeps its programs behind a link in /run, as
// NixOS does, the link is there although /run is the command's own.
func TestLinksInRun(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	a := newArena(t)
	mountAt(t, "tmpfs", "/run", "tmpfs", 0, "")
	must(t, os.Symlink(a.out, "/run/current-system"))
	must(t, os.Symlink(a.out, "/run/other"))
	show := sandbox.PathEntry("/run/current-system/canary", sandbox.LevelRead)
	for name, policy := range map[string]*sandbox.Policy{"ordinary root": ptr(a.policy()),
		"minimal root": a.minimal(show)} {
		t.Run(name, func(t *testing.T) {
			res := mustRun(t, a, &job{args: sh(`cat /run/current-system/canary; ls /run`), policy: policy})
			if res.out != "canarycurrent-system\n" {
				t.Errorf("%+v", res)
			}
		})
	}
}
