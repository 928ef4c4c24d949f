// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A bounded is how a command with limits ended.
type bounded struct {
	code   int
	lost   error
	out    string
	after  executor.Exit
	wall   time.Duration
	script string
}

// by is what held a limit, with "!" when it was met.
func (b *bounded) by(limit string) string {
	for _, l := range b.after.Limits {
		if l.Limit == limit {
			if l.Hit {
				return l.By + "!"
			}
			return l.By
		}
	}
	return ""
}

// bounded runs a line of shell under limits.
func (a *arena) bounded(t testing.TB, l executor.Resources, line string) *bounded {
	t.Helper()
	b, err := a.tryBounded(t, l, line)
	must(t, err)
	return b
}

func (a *arena) tryBounded(t testing.TB, l executor.Resources, line string) (*bounded, error) {
	t.Helper()
	null, err := os.Open(os.DevNull)
	must(t, err)
	defer null.Close()
	r, w := pipe(t)
	request := a.request(&job{args: sh(line)})
	request.Resources, request.Explain = l, true
	begin := time.Now()
	c, err := a.start(request, nil, null, w, w)
	w.Close()
	if err != nil {
		r.Close()
		return nil, err
	}
	text := drain(r)
	b := &bounded{script: c.Sandbox().Script}
	b.code, _, b.lost = c.Wait()
	_ = c.Kill() // nobody is left, or it ends them
	must(t, c.WaitAll())
	b.wall = time.Since(begin)
	b.after.Code = b.code
	must(t, c.Close(&b.after))
	b.code, b.out = b.after.Code, <-text
	return b, nil
}

// ways are the ways in which limits can be held by this user.
func ways(t *testing.T, f func(t *testing.T, a *arena)) {
	for _, none := range []bool{false, true} {
		name := "as found"
		if none {
			name = "without groups"
		}
		t.Run(name, func(t *testing.T) {
			a := newArena(t)
			a.host.groups.Disabled = none
			f(t, a)
			must(t, a.host.Close())
			for _, dir := range a.host.groups.Where() {
				left, err := filepath.Glob(fmt.Sprintf("%s/sallyport-*-%d-*", dir, os.Getpid()))
				if err != nil || len(left) > 0 {
					t.Errorf("left are %q, %v", left, err)
				}
			}
		})
	}
}

func TestMemoryLimit(t *testing.T) {
	testenv.RunAsOrdinary(t)
	ways(t, func(t *testing.T, a *arena) {
		limits := executor.Resources{Memory: 64 << 20}
		// tail keeps in memory what it is to print.
		b := a.bounded(t, limits, `(head -c 400m /dev/zero; sleep 60) | tail -c 400m | wc -c`)
		if b.code != 137 || b.lost != nil || b.after.Limit != executor.LimitMemory ||
			!strings.HasSuffix(b.by(executor.LimitMemory), "!") {
			t.Errorf("exit %d, %v, %q, %s", b.code, b.lost, b.out, fmt.Sprintf("%+v", b.after.Limits))
		}
		b = a.bounded(t, limits, `head -c 8m /dev/zero | tail -c 8m | wc -c`)
		if b.code != 0 || b.out != "8388608\n" || b.after.Limit != "" ||
			strings.HasSuffix(b.by(executor.LimitMemory), "!") {
			t.Errorf("exit %d, %q, %+v", b.code, b.out, b.after.Limits)
		}
		if p := b.after.Usage.PeakMemory; p != nil && (*p < 8<<20 || *p > 64<<20) {
			t.Errorf("at most %d bytes by %s", *p, b.after.Usage.PeakMemoryBy)
		}
	})
}

// TestMemoryFiles: files in memory count where no process has them mapped, and once where one has.
func TestMemoryFiles(t *testing.T) {
	testenv.RunAsOrdinary(t)
	python := testenv.NeedProgram(t, "python3")
	const begin = "import mmap, os, sys, time\nMB = 1 << 20\ndef fill(fd, n):\n    for i in range(n): os.write(fd, b'x' * MB)\n"
	const wait = "time.sleep(60)\n" // it is killed meanwhile
	for _, c := range []struct {
		name, program string
		ends          bool
	}{
		{"a file without a name", "fill(os.memfd_create('x'), 200)\n" + wait, true},
		{"in /dev/shm", "fill(os.open('/dev/shm/x', os.O_CREAT | os.O_RDWR), 200)\n" + wait, true},
		{"in /dev/shm, removed", "fd = os.open('/dev/shm/x', os.O_CREAT | os.O_RDWR)\nos.unlink('/dev/shm/x')\nfill(fd, 200)\n" + wait, true},
		{"many small ones", "all = [os.memfd_create('x') for i in range(200)]\nfor fd in all: fill(fd, 1)\n" + wait, true},
		{"half of each", "fill(os.memfd_create('x'), 50)\nfill(os.open('/dev/shm/x', os.O_CREAT | os.O_RDWR), 50)\nb = b'y' * (40 * MB)\n" + wait, true},
		{"mapped as well", "fd = os.memfd_create('x')\nfill(fd, 55)\nm = mmap.mmap(fd, 55 * MB)\nsum(m[i] for i in range(0, len(m), 4096))\ntime.sleep(0.5)\n", false},
		{"by two processes", "fd = os.memfd_create('x')\nfill(fd, 55)\nos.fork()\ntime.sleep(0.5)\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newArena(t)
			a.host.groups.Disabled = true
			b := a.bounded(t, executor.Resources{Memory: 96 << 20}, python+" -c \""+begin+c.program+"\"")
			if got := b.after.Limit == executor.LimitMemory && b.code == 137; got != c.ends ||
				!c.ends && b.code != 0 {
				t.Errorf("exit %d, %q, %+v", b.code, b.out, b.after)
			}
		})
	}
}

// TestKernelMemory wants memory for the kernel alone, which is full pipes: no call may
// fail for want of it without a word.
func TestKernelMemory(t *testing.T) {
	python := testenv.NeedProgram(t, "python3")
	a := newArena(t)
	for range 4 {
		b := a.bounded(t, executor.Resources{Memory: 40 << 20}, "exec "+python+` -c "
import os
keep = []
try:
    while True:
        r, w = os.pipe()
        os.set_blocking(w, False)
        keep.append(r)
        keep.append(w)
        try:
            os.write(w, b'x'*65536)
        except BlockingIOError:
            pass
except OSError as e:
    os.write(1, b'%d' % e.errno)
    os._exit(0)
"`)
		by := b.by(executor.LimitMemory)
		if !strings.HasPrefix(by, executor.ByCgroupV1) && !strings.HasPrefix(by, executor.ByCgroupV2) {
			return // what watches from outside sees the memory of processes only
		}
		if b.code != 137 || b.out != "" || b.after.Limit != executor.LimitMemory {
			t.Errorf("exit %d, %q, %+v", b.code, b.out, b.after)
		}
	}
}

// TestPIDsLimit starts as many as are allowed, and then too many.
func TestPIDsLimit(t *testing.T) {
	testenv.RunAsOrdinary(t)
	const start = `n=0; while [ $n -lt %d ]; do sleep 60 & n=$((n+1)); done; echo started`
	ways(t, func(t *testing.T, a *arena) {
		limits := executor.Resources{PIDs: 10}
		b := a.bounded(t, limits, fmt.Sprintf(start, 9))
		if !strings.Contains(b.out, "started") || strings.Contains(b.out, "fork") || b.after.Limit != "" {
			t.Errorf("nine: exit %d, %q, %+v", b.code, b.out, b.after)
		}
		b = a.bounded(t, limits, fmt.Sprintf(start+`; wait`, 40))
		by := b.by(executor.LimitPIDs)
		switch by {
		case executor.ByWatch + "!":
			if b.after.Limit != executor.LimitPIDs || b.code != 137 {
				t.Errorf("exit %d, %q, %+v", b.code, b.out, b.after)
			}
		case executor.ByRlimit:
			if !strings.Contains(b.out, "fork") || b.code != 2 || b.after.Limit != "" {
				t.Errorf("exit %d, %q, %+v", b.code, b.out, b.after)
			}
		case executor.ByCgroupV1 + "!", executor.ByCgroupV2 + "!":
			if !strings.Contains(b.out, "fork") || b.code != 2 || b.after.Limit != executor.LimitPIDs {
				t.Errorf("exit %d, %q, %+v", b.code, b.out, b.after)
			}
			if n := b.after.Usage.Processes; n == nil || *n != 10 {
				t.Errorf("processes %v", n)
			}
		default:
			t.Errorf("by %q", by)
		}
		if hostfacts.SystemRoot() && a.host.groups.Disabled != (by == executor.ByWatch+"!") {
			t.Errorf("the system's root: by %q", by)
		}
	})
}

// stay keeps a command that is over a limit there until that is seen: a busy machine
// may look at it late.
const stay = `; sleep 60`

func TestDiskLimit(t *testing.T) {
	testenv.RunAsOrdinary(t)
	python := testenv.NeedProgram(t, "python3")
	a := newArena(t)
	const limit = 24 << 20
	for _, test := range []struct {
		name, line string
		hit        bool
	}{
		{"workspace", `head -c 400m /dev/zero >fill` + stay, true},
		{"private tmp", `head -c 400m /dev/zero >/tmp/fill` + stay, true},
		{"file without a name", `exec 3>gone; rm gone; head -c 400m /dev/zero >&3` + stay, true},
		{"file without a name, mapped only", python + ` -c "
import ctypes, os, time
libc, size = ctypes.CDLL(None), 300 << 20
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
fd = os.open('gone', os.O_CREAT | os.O_RDWR)
os.unlink('gone')
os.truncate(fd, size)
at = libc.mmap(None, size, 3, 1, fd, 0) # module mmap would have it open
os.close(fd)
ctypes.memset(at, 7, size)
libc.msync(ctypes.c_void_p(at), ctypes.c_size_t(size), 4)
time.sleep(20)"`, true},
		{"directory that is closed", `mkdir shut; exec 3>shut/fill; chmod 0 shut; head -c 400m /dev/zero >&3` + stay, true},
		{"many files", `n=0; while [ $n -lt 100 ]; do head -c 4m /dev/zero >f$n; n=$((n+1)); done` + stay, true},
		{"little", `head -c 4m /dev/zero >little; head -c 4m /dev/zero >/tmp/little`, false},
		{"nothing", `:`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := a.bounded(t, executor.Resources{Disk: limit}, test.line)
			must(t, os.RemoveAll(a.ws+"/fill"))
			_ = os.Chmod(a.ws+"/shut", 0o700) // where there is one
			must(t, os.RemoveAll(a.ws+"/shut"))
			want := executor.ByWatch
			if test.hit {
				want += "!"
			}
			if got := b.by(executor.LimitDisk); got != want ||
				test.hit != (b.after.Limit == executor.LimitDisk) || test.hit != (b.code == 137) {
				t.Errorf("by %s, exit %d, %q", got, b.code, b.after.Limit)
			}
		})
	}
}

// TestOthersDisk has somebody else fill the same file system, in a directory that is
// no business of the command's.
func TestOthersDisk(t *testing.T) {
	a := newArena(t)
	null, err := os.Open(os.DevNull)
	must(t, err)
	defer null.Close()
	gate, release := pipe(t)
	_ = gate.Fd() // blocks from now on
	request := a.request(&job{args: sh(`echo small >small; read line; exit 0`)})
	request.Resources = executor.Resources{Disk: 8 << 20}
	c, err := a.start(request, nil, gate, null, null)
	must(t, err)
	gate.Close()
	write(t, a.out+"/others", strings.Repeat("x", 64<<20))
	release.Close()
	code, _, err := c.Wait()
	must(t, c.WaitAll())
	var after executor.Exit
	must(t, c.Close(&after))
	if code != 0 || err != nil || after.Limit != "" || after.Limits[0].Hit {
		t.Errorf("exit %d, %v, %+v", code, err, after)
	}
}

// TestCPULimit compares the time on processors with the time that went by.
func TestCPULimit(t *testing.T) {
	testenv.RunAsOrdinary(t)
	const busy = `i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done`
	ways(t, func(t *testing.T, a *arena) {
		b := a.bounded(t, executor.Resources{CPUs: 0.5}, busy+` & `+busy+`; wait`)
		u := b.after.Usage
		if u.CPU == nil || *u.CPU < 50*time.Millisecond {
			t.Fatalf("not enough to measure: %v", u.CPU)
		}
		share, most := float64(*u.CPU)/float64(b.wall), 0.65 // quota is given out in slices
		if b.by(executor.LimitCPUs) == executor.ByAffinity {
			most = 1.05
		}
		if share > most {
			t.Errorf("%v in %v by %s", *u.CPU, b.wall, b.by(executor.LimitCPUs))
		}
	})
}

// TestUsageOfLoad holds the numbers against a known load, without any limit.
func TestUsageOfLoad(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	ballast := make([]byte, 256<<20)
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	b := a.bounded(t, executor.Resources{},
		`i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; times; head -c 16m /dev/zero >written; sync -f written 2>/dev/null || sync written`)
	u := b.after.Usage
	if len(b.after.Limits) != 0 || b.after.Limit != "" {
		t.Errorf("%+v", b.after)
	}
	if u.PeakMemory != nil {
		t.Errorf("the caller, which holds %d bytes, makes a shell have %d", len(ballast), *u.PeakMemory)
	}
	var minutes, seconds float64
	if _, err := fmt.Sscanf(b.out, "%fm%fs", &minutes, &seconds); err != nil || u.User == nil {
		t.Fatalf("%q, %v, %+v", b.out, err, u)
	}
	own := time.Duration((minutes*60 + seconds) * float64(time.Second))
	if off := *u.CPU - own; off < -20*time.Millisecond || off > own/2+200*time.Millisecond ||
		*u.CPU != *u.User+*u.System {
		t.Errorf("%v, and the shell says %v", *u.CPU, own)
	}
	var st unix.Statfs_t
	must(t, unix.Statfs(a.ws, &st))
	const onDisk = 16 << 20
	if st.Type != unix.TMPFS_MAGIC && st.Type != unix.OVERLAYFS_SUPER_MAGIC &&
		(*u.Written < onDisk || *u.Written > 2*onDisk) {
		t.Errorf("%d bytes written", *u.Written)
	}
	// One that has more than the caller ever had is known.
	var caller unix.Rusage
	must(t, unix.Getrusage(unix.RUSAGE_SELF, &caller))
	size := caller.Maxrss<<10*3/2 + 64<<20
	b = a.bounded(t, executor.Resources{},
		fmt.Sprintf(`head -c %d /dev/zero | tail -c %d >/dev/null`, size, size))
	if p := b.after.Usage.PeakMemory; p == nil || *p < size || *p > size*2 ||
		b.after.Usage.PeakMemoryBy != executor.ByRusage {
		t.Errorf("a process with %d bytes: %v by %q", size, p, b.after.Usage.PeakMemoryBy)
	}
	ballast[0]++ // alive until here
}

// TestGroupsClosed: a command cannot change its own limits. At the landlock level
// it sees the host's /sys.
func TestGroupsClosed(t *testing.T) {
	testenv.NeedRoot(t)
	for _, level := range []string{plan.LevelNative, plan.LevelLandlock} {
		t.Run(level, func(t *testing.T) {
			a := newArena(t)
			a.host.Only = level
			b := a.bounded(t, executor.Resources{PIDs: 20, Memory: 64 << 20, CPUs: 1}, `
for f in $(find /sys/fs/cgroup -path '*sallyport-*' -type f 2>/dev/null) /sys/fs/cgroup/*/tasks; do
	echo $$ 2>/dev/null >>$f && echo "BREACH $f"
done; cat /proc/self/cgroup >/dev/null; echo end`)
			if !strings.HasSuffix(b.out, "end\n") || strings.Contains(b.out, "BREACH") {
				t.Errorf("%q", b.out)
			}
		})
	}
}

// TestFullAccessLimits: without walls limits hold as well, but for the one on disk,
// which nothing could tell.
func TestFullAccessLimits(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	full := bind(sandbox.FullAccess(), a.ws)
	run := func(l executor.Resources, line string) (*bounded, error) {
		request := a.request(&job{args: sh(line), policy: &full})
		request.Resources = l
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		must(t, err)
		defer null.Close()
		c, err := a.start(request, nil, null, null, null)
		if err != nil {
			return nil, err
		}
		b := new(bounded)
		b.code, _, b.lost = c.Wait()
		_ = c.Kill()
		must(t, c.WaitAll())
		must(t, c.Close(&b.after))
		return b, nil
	}
	b, err := run(executor.Resources{Memory: 64 << 20, PIDs: 100},
		`(head -c 400m /dev/zero; sleep 60) | tail -c 400m | wc -c`)
	must(t, err)
	if b.after.Limit != executor.LimitMemory || b.code != 137 {
		t.Errorf("exit %d, %+v", b.code, b.after)
	}
	var no *sandbox.UnsupportedError
	if _, err := run(executor.Resources{Disk: 1 << 20}, `:`); !errors.As(err, &no) ||
		!strings.Contains(no.Need, "disk") {
		t.Errorf("%v", err)
	}
}

// TestPlans looks at what limits add to a script.
func TestPlans(t *testing.T) {
	testenv.RunAsOrdinary(t)
	ways(t, func(t *testing.T, a *arena) {
		b := a.bounded(t, executor.Resources{Memory: 64 << 20, CPUs: 1.5, PIDs: 20, Disk: 1 << 30}, `:`)
		for _, l := range b.after.Limits {
			step := map[string]string{
				executor.ByCgroupV1: "join-cgroup", executor.ByAffinity: "affinity",
				executor.ByRlimit: "limit nproc 21 21",
			}[l.By]
			if !strings.Contains(b.script, step) {
				t.Errorf("%s by %s, but there is no %q in\n%s", l.Limit, l.By, step, b.script)
			}
		}
		if len(b.after.Limits) != 4 || b.code != 0 {
			t.Errorf("%+v", b.after)
		}
	})
}

// TestLimitsAtLevels holds limits where there are fewer walls.
func TestLimitsAtLevels(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, level := range []string{plan.LevelBwrap, plan.LevelLandlock} {
		t.Run(level, func(t *testing.T) {
			if level == plan.LevelBwrap {
				testenv.NeedProgram(t, "bwrap")
			}
			ways(t, func(t *testing.T, a *arena) {
				a.host.Only = level
				limits := executor.Resources{Memory: 64 << 20, CPUs: 1, PIDs: 10, Disk: 16 << 20}
				for limit, line := range map[string]string{
					executor.LimitMemory: `(head -c 400m /dev/zero; sleep 60) | tail -c 400m | wc -c`,
					executor.LimitPIDs:   `n=0; while [ $n -lt 40 ]; do sleep 60 & n=$((n+1)); done; wait`,
					executor.LimitDisk:   `head -c 400m /dev/zero >fill` + stay,
					"":                   `n=0; while [ $n -lt 9 ]; do sleep 0.05 & n=$((n+1)); done; wait; echo nine`,
				} {
					b := a.bounded(t, limits, line)
					must(t, os.RemoveAll(a.ws+"/fill"))
					if b.after.Limit != limit || limit == "" && b.out != "nine\n" || limit != "" &&
						b.code <= 0 || b.lost != nil {
						t.Errorf("%q: exit %d, %v, %q, ended by %q, %+v", limit, b.code, b.lost, b.out,
							b.after.Limit, b.after.Limits)
					}
				}
			})
		})
	}
}
