// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// writesEnv makes the test binary a program that writes as many small files as it
// says, and nothing else.
const writesEnv = "SALLYPORT_BENCH_WRITES"

// writesMain is that program: three calls for each file, one of which is observed.
func writesMain(count string) int {
	n, err := strconv.Atoi(count)
	if err != nil {
		return 2
	}
	text := []byte("a few bytes in a small file\n")
	for i := range n {
		fd, err := syscall.Open("f"+strconv.Itoa(i),
			syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC|syscall.O_CLOEXEC, 0o644)
		if err != nil {
			return 1
		}
		if _, err := syscall.Write(fd, text); err != nil {
			return 1
		}
		syscall.Close(fd)
	}
	return 0
}

// sendsEnv makes the test binary a program that sends as many messages to itself as it says.
const sendsEnv = "SALLYPORT_BENCH_SENDS"

// sendsMain is that program.
func sendsMain(count string) int {
	n, err := strconv.Atoi(count)
	if err != nil {
		return 2
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 1
	}
	text := make([]byte, 64)
	for range n {
		if _, err := unix.SendmsgN(pair[0], text, nil, nil, 0); err != nil {
			return 1
		}
		if _, err := unix.Read(pair[1], text); err != nil {
			return 1
		}
	}
	return 0
}

// memory is a directory on a tmpfs, where nothing hides what a notification costs.
func memory(tb testing.TB) string {
	tb.Helper()
	const at = "/dev/shm"
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil || st.Type != unix.TMPFS_MAGIC {
		tb.Fatalf("%s is no tmpfs", at)
	}
	tb.Setenv(placeEnv, at)
	ws := workspace(tb)
	tb.Setenv(placeEnv, "")
	return ws
}

// seen returns a function that runs a program with or without an observer.
func seen(tb testing.TB, host *linux.Host, ws string, env []string, blind bool, args ...string) func() error {
	r := &executor.Spec{
		Args: args, Dir: ws, Env: env, NoCaches: true, NoObserver: blind,
		Policy: sandbox.WorkspaceWrite(ws).Bind(sandbox.Places{Dir: ws, Workspaces: []string{ws},
			SlashTmp: "/tmp"}),
	}
	return started(tb, host, r)
}

// pair compares the two and reports the ratio. Count, when it is not zero, is how many
// calls are observed: what each costs is reported too.
func pair(b *testing.B, rounds, count int, ws string, env []string, clean func() error, args ...string) {
	host := new(linux.Host)
	defer host.Close()
	b.Setenv("XDG_STATE_HOME", filepath.Join(workspace(b), "state"))
	vs := []Variant{{"observed", seen(b, host, ws, env, false, args...)},
		{"unobserved", seen(b, host, ws, env, true, args...)}}
	for b.Loop() {
		times, err := RoundsBetween(rounds, vs, clean)
		if err != nil {
			b.Fatal(err)
		}
		for i := range vs {
			b.ReportMetric(float64(Middle(times[i]).Microseconds()), vs[i].Name+"-us")
		}
		b.ReportMetric(Ratio(times[0], times[1]), "x-unobserved")
		if count > 0 {
			var each []float64
			for i := range times[0] {
				each = append(each, float64(times[0][i]-times[1][i])/1000/float64(count))
			}
			b.ReportMetric(Median(each), "us-each")
		}
	}
}

var plainEnv = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", "TMPDIR=/tmp", "LC_ALL=C"}

// BenchmarkObservedWrites guards: 20 000 small files written to a tmpfs, which is
// almost nothing but observed calls, take at most 2.7 times as long as without an
// observer, and each call at most 15 microseconds more at the median.
func BenchmarkObservedWrites(b *testing.B) {
	testenv.NeedUserNS(b)
	const count = 20_000
	ws := memory(b)
	program := copyOfSelf(b, ws)
	clean := func() error {
		for i := range count {
			if err := os.Remove(filepath.Join(ws, "f"+strconv.Itoa(i))); err != nil && !os.IsNotExist(err) {
				return err
			}
		}
		return nil
	}
	pair(b, 9, count, ws, append(plainEnv, writesEnv+"="+strconv.Itoa(count)), clean, program)
}

// BenchmarkObservedSends guards: 10 000 messages by sendmsg(2), each of which the observer sends
// in the place of the command, take at most 20 times as long, and each at most 60 microseconds
// more at the median.
func BenchmarkObservedSends(b *testing.B) {
	testenv.NeedUserNS(b)
	const count = 10_000
	ws := workspace(b)
	program := copyOfSelf(b, ws)
	pair(b, 9, count, ws, append(plainEnv, sendsEnv+"="+strconv.Itoa(count)),
		func() error { return nil }, program)
}

// copyOfSelf copies the test binary to where a command sees it.
func copyOfSelf(b *testing.B, ws string) string {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err != nil {
		b.Fatal(err)
	}
	program := filepath.Join(ws, "program")
	if err := testenv.WriteProgram(program, text); err != nil {
		b.Fatal(err)
	}
	return program
}

// BenchmarkObservedClone guards: a clone of a repository with 6 000 files of the size
// that sources have, on a tmpfs, takes at most 1.5 times as long.
func BenchmarkObservedClone(b *testing.B) {
	testenv.NeedUserNS(b)
	git := testenv.NeedProgram(b, "git")
	ws := memory(b)
	from := filepath.Join(ws, "from")
	makeRepository(b, git, from, 6_000)
	clean := func() error { return os.RemoveAll(filepath.Join(ws, "to")) }
	env := append(plainEnv, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	pair(b, 9, 0, ws, env, clean, git, "clone", "-q", "--no-local", from, filepath.Join(ws, "to"))
}

// makeRepository commits files into a new repository.
func makeRepository(tb testing.TB, git, dir string, files int) {
	tb.Helper()
	for i := range files {
		at := filepath.Join(dir, fmt.Sprintf("d%02d", i%60))
		if err := os.MkdirAll(at, 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, fmt.Sprintf("f%04d.txt", i)), sourceText(i),
			0o644); err != nil {
			tb.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "-q"}, {"config", "gc.auto", "0"}, {"config", "maintenance.auto", "false"}, {"add", "."}, {"-c", "user.name=b", "-c", "user.email=b@example.org", "commit", "-q", "-m", "files"},
		{"gc", "-q"}, // as a repository comes from a server
	} {
		cmd := exec.Command(git, append([]string{"-C", dir}, args...)...)
		cmd.Env = append(testenv.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			tb.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}

// sourceText is a file like those of programs: lines of words, 1 to 12 KiB of them.
func sourceText(i int) []byte {
	var b []byte
	for line := 0; len(b) < 1<<10+(i*977)%(11<<10); line++ {
		b = fmt.Appendf(b, "\tvalue%d := compute(%d, %q) // line %d\n", line, i*line,
			strconv.Itoa(i*31+line*7), line)
	}
	return b
}

// BenchmarkObservedBuild guards: a build of this module from an empty cache takes at
// most 1.05 times as long.
func BenchmarkObservedBuild(b *testing.B) {
	testenv.NeedUserNS(b)
	goProgram := testenv.NeedProgram(b, "go")
	ws := workspace(b)
	modules := goEnv(b, "GOMODCACHE")
	copySources(b, ws, filepath.Join("..", "..", ".."))
	clean := func() error { return os.RemoveAll(filepath.Join(ws, "cache")) }
	env := []string{
		"PATH=" + filepath.Dir(goProgram) + ":/usr/bin:/bin", "HOME=" + ws, "GOENV=off", "GOTOOLCHAIN=local",
		"GOFLAGS=-buildvcs=false -mod=mod",
		"GOPROXY=off", "CGO_ENABLED=0", "TMPDIR=/tmp", "GOCACHE=" + filepath.Join(ws, "cache"),
		"GOMODCACHE=" + modules,
	}
	rounds, packages := 1, "./sandbox" // a build takes half a minute, and one says little about the next
	if more, err := strconv.Atoi(os.Getenv(roundsEnv)); err == nil {
		rounds, packages = more, "./..."
	} else if OnlyOnce() {
		packages = "./internal/linux/rlimit"
	}
	pair(b, rounds, 0, ws, env, clean, goProgram, "build", packages)
}

// roundsEnv is how often BenchmarkObservedBuild builds all packages each way, for figures that
// are written down. Without it one package is built.
const roundsEnv = "SALLYPORT_BENCH_ROUNDS"

// BenchmarkObservedSearch guards: a search through a tree of sources, which only
// reads, takes at most 1.08 times as long.
func BenchmarkObservedSearch(b *testing.B) {
	testenv.NeedUserNS(b)
	grep := testenv.NeedProgram(b, "grep")
	goProgram := testenv.NeedProgram(b, "go")
	root, err := exec.Command(goProgram, "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	tree := filepath.Join(string(root[:len(root)-1]), "src", "cmd")
	pair(b, 15, 0, workspace(b), plainEnv, nil, grep, "-rc", "--include=*.go", "^package main", tree)
}

// BenchmarkObservedStart guards: the start of a program that does nothing takes at
// most 1.25 times as long.
func BenchmarkObservedStart(b *testing.B) {
	testenv.NeedUserNS(b)
	pair(b, 300, 0, workspace(b), plainEnv, nil, "/bin/true")
}
