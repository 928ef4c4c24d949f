// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/executor"
)

const hybridOwn = "9:name=systemd:/\n8:pids:/a\n3:cpu,cpuacct:/b/c\n4:memory:/x\n0::/u/v\nbad\n5:hugetlb:relative\n"

const hybridMounts = `24 1 0:22 / / rw - ext4 /dev/vda rw
30 24 0:26 / /sys/fs/cgroup/pids rw,nosuid shared:9 - cgroup cgroup rw,pids
31 24 0:27 /b /cg/with\040space rw - cgroup cgroup rw,cpu,cpuacct
32 24 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate
33 24 0:29 /other /cg/memory rw - cgroup cgroup rw,memory
bad line
34 24 0:30 / /x rw - cgroup
`

func TestParseOwn(t *testing.T) {
	want := map[controller]string{"name=systemd": "/", pids: "/a", cpu: "/b/c", "cpuacct": "/b/c",
		memory: "/x", "": "/u/v"}
	if diff := cmp.Diff(want, parseOwn(hybridOwn)); diff != "" {
		t.Error(diff)
	}
}

func TestDirectories(t *testing.T) {
	own := parseOwn(hybridOwn)
	got := make(map[string]string)
	for _, h := range parseMounts(hybridMounts) {
		c := controller("")
		if len(h.controllers) > 1 {
			c = controller(h.controllers[1])
		}
		got[h.at] = h.by + " " + h.directory(own[c])
	}
	want := map[string]string{
		"/sys/fs/cgroup/pids":    "cgroup-v1 /sys/fs/cgroup/pids/a",
		"/cg/with space":         "cgroup-v1 /cg/with space/c",
		"/sys/fs/cgroup/unified": "cgroup-v2 /sys/fs/cgroup/unified/u/v",
		"/cg/memory":             "cgroup-v1 ", // the mount shows another part
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, test := range []struct{ name, root, own, want string }{
		{"itself", "/a", "/a", "/m"}, {"beside with the same beginning", "/a", "/ab", ""}, {"no path", "/", "", ""},
		{"above a namespace", "/", "/../x", ""}, {"root", "/", "/", "/m"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := (hierarchy{root: test.root, at: "/m"}).directory(test.own); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestParseNumbers(t *testing.T) {
	for _, test := range []struct {
		name, text, key string
		want            uint64
		ok              bool
	}{
		{"events", "low 0\nhigh 0\nmax 3\noom 1\noom_kill 2\n", "oom_kill", 2, true},
		{"first", "max 3\n", "max", 3, true}, {"missing", "low 0\n", "max", 0, false},
		{"a unit", "Rss: 4 kB\nSwapPss:  12 kB\n", "SwapPss:", 12, true}, {"a longer name", "maximum 3\n", "max", 0, false}, {"no number", "max max\n", "max", 0, false}, {"empty", "", "max", 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, ok := parseKey(test.text, test.key); got != test.want || ok != test.ok {
				t.Errorf("%d, %v", got, ok)
			}
		})
	}
	for text, want := range map[string]float64{"50000 100000\n": 0.5, "max 100000\n": 0, "": 0, "1": 0,
		"1 0": 0, "x y": 0} {
		if got := parseCPUMax(text); got != want {
			t.Errorf("cpu.max %q: %v, want %v", text, got, want)
		}
	}
	if got, ok := parseCount("max\n"); got != 0 || ok {
		t.Errorf("max: %d, %v", got, ok)
	}
	for cpus, want := range map[float64]int64{0.01: 1000, 0.0001: 1000, 0.5: 50000, 1.5: 150000,
		1.000001: 100001} {
		if got := quota(cpus); got != want {
			t.Errorf("%v processors: %d, want %d", cpus, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	o := owner{namespace: 4026531836, pid: 12, started: 345}
	if got, ok := parseName(o.name(7)); got != o || !ok {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, name := range []string{"", "sallyport-", "sallyport-1-2-3", "sallyport-1-2-3-4-5",
		"sallyport-1-0-3-4", "sallyport-01-2-3-4", "sallyport-1-2-3-x", "other-1-2-3-4",
		"sallyport-1-99999999999-3-4"} {
		if o, ok := parseName(name); ok {
			t.Errorf("%q belongs to %+v", name, o)
		}
	}
	if got, ok := parseStarted("12 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20"); got != 777 || !ok {
		t.Errorf("%d, %v", got, ok)
	}
	for _, stat := range []string{"", "1 (x) S 1", "1 (x"} {
		if got, ok := parseStarted(stat); ok {
			t.Errorf("%q: %d", stat, got)
		}
	}
}

func TestLower(t *testing.T) {
	a := executor.Resources{Memory: 10, CPUs: 2}
	b := executor.Resources{Memory: 5, PIDs: 3, CPUs: 4, Disk: 1}
	if got, want := lower(a, b), (executor.Resources{Memory: 5, CPUs: 2, PIDs: 3}); got != want {
		t.Errorf("%+v", got)
	}
	if got, want := only(b, func(c controller) bool { return c == pids }),
		(executor.Resources{PIDs: 3}); got != want {
		t.Errorf("%+v", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(hybridOwn, hybridMounts)
	f.Add("0::/\n", `1 1 0:1 / /a\134b\04 rw - cgroup2 x y`)
	f.Fuzz(func(t *testing.T, own, mounts string) {
		paths := parseOwn(own)
		for _, h := range parseMounts(mounts) {
			for _, p := range paths {
				at := h.directory(p)
				if at != "" && (!strings.HasPrefix(at, "/") || strings.Contains(at+"/", "/../")) {
					t.Errorf("%q in %+v is at %q", p, h, at)
				}
			}
		}
		parseCPUMax(mounts)
		if n, ok := parseKey(mounts, "oom_kill"); ok && !strings.Contains(mounts, "oom_kill") {
			t.Errorf("%d", n)
		}
	})
}

func FuzzParseName(f *testing.F) {
	f.Add("sallyport-4026531836-12-345-7")
	f.Add("sallyport-1-2-3-")
	f.Fuzz(func(t *testing.T, name string) {
		o, ok := parseName(name)
		if ok && !strings.HasPrefix(name, o.name(0)[:len(o.name(0))-1]) {
			t.Errorf("%q belongs to %+v", name, o)
		}
		parseStarted(name)
	})
}
