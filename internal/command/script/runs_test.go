// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// marker is the program that the lines of runs.txt run.
const marker = "zap"

// readRuns returns the lines of runs.txt, each a way to run the marker, and whether it can be run
// here without harm: those that begin with "-" would use the network, or leave something behind.
func readRuns(t *testing.T) (lines []string, run []bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "runs.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		lines, run = append(lines, line[2:]), append(run, line[0] == '+')
	}
	return lines, run
}

// covers reports whether a reading has the marker among what runs, or says that it does not know.
func covers(r *Reading) bool {
	return len(r.Unknown) > 0 || match(r, []string{marker}) != No ||
		match(&Reading{Uses: r.Perhaps()}, []string{marker}) != No
}

// TestRuns: whatever a line has a program run, the reading says so or says that it does not know.
func TestRuns(t *testing.T) {
	lines, _ := readRuns(t)
	for _, line := range lines {
		if !covers(Read([]string{"bash", "-c", line})) {
			t.Errorf("%s: nothing says that it may run %s", line, marker)
		}
	}
	if len(lines) < 200 {
		t.Errorf("%d lines, want 200", len(lines))
	}
}

// TestRunsReally runs the lines in the shells of this machine, and compares: what ran must have
// been read. Most of them run what they seem to, so that the table is no guess.
func TestRunsReally(t *testing.T) {
	needBash(t)
	testenv.NeedProgram(t, "git")
	lines, run := readRuns(t)
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	prepare(t, dir, log)
	really := 0
	for i, line := range lines {
		if !run[i] {
			continue
		}
		ran := ""
		for _, shell := range []string{"bash", "dash", "zsh"} {
			if ran == "" && ranIn(t, shell, dir, log, line) {
				ran = shell
			}
		}
		if ran == "" {
			t.Logf("did not run: %s", line)
			continue
		}
		really++
		if !covers(Read([]string{ran, "-c", line})) {
			t.Errorf("%s runs %s, and nothing says so: %s", ran, marker, line)
		}
	}
	if really < 60 {
		t.Errorf("%d of %d lines ran the marker, want 60", really, len(lines))
	}
}

// prepare makes a repository with a file, and a directory of programs with the marker.
func prepare(t *testing.T, dir, log string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := "#!/bin/sh\necho ran >> '" + log + "'\n"
	if err := testenv.WriteProgram(filepath.Join(dir, "bin", marker), text); err != nil {
		t.Fatal(err)
	}
	setup := exec.Command("bash", "-c",
		"git init -q .; echo x > f; git add f; git -c user.name=a -c user.email=a@b commit -qm x; echo y >> f")
	setup.Dir, setup.Env = dir, environment(dir)
	if out, err := setup.CombinedOutput(); err != nil {
		t.Fatalf("no repository: %v: %s", err, out)
	}
}

func environment(dir string) []string {
	return []string{"PATH=" + filepath.Join(dir, "bin") + ":/usr/bin:/bin", "HOME=" + dir, "LC_ALL=C.UTF-8",
		"TERM=dumb", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@b"}
}

// ranIn reports whether a shell that gets a line runs the marker.
func ranIn(t *testing.T, shell, dir, log, line string) bool {
	t.Helper()
	name, err := exec.LookPath(shell)
	if err != nil {
		return false
	}
	if err := os.Remove(log); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, name, "-c", line)
	c.Dir, c.Env, c.WaitDelay = dir, environment(dir), time.Second
	_ = c.Run() // its exit code is that of the line
	_, err = os.Stat(log)
	return err == nil
}

// TestRunsNothing: lines that speak of the marker and run something else are not asked about.
func TestRunsNothing(t *testing.T) {
	for _, line := range []string{
		`python3 -m pip install zap`, `python3 -m pytest tests -k 'zap and x'`,
		`python3 -m json.tool <<< '{"a": "zap x"}'`,
		`awk -v name='zap x' '{print name}' f`, `awk '/zap|x/ {print}' <<< 'zap x'`,
		`awk -f prog.awk <(echo 'zap x')`,
		`sed 's/2e zap/x/' f`, `sed 's/the/e/' <<< 'zap x'`, `sed -n '/done/p' <<< 'zap x'`,
		`perl -ne 'print if /x/' <<< 'zap x'`,
		`./tool 'print("hello zap")'`, `./tool --filter "name in ('zap', 'x')"`,
		`sqlite3 x.db "select * from t where c in ('zap x')"`,
		`apt-get -o Dpkg::Options::=--force-confdef install zap`, `apt-get -o Acquire::Retries=3 update`,
		`aws s3 zap s3://x`, `gcloud storage zap gs://x`, `heroku ps zap`, `ip link set zap up`,
		`consul kv get zap`, `bazel build //x:zap`,
		`cmake --build . --target zap`, `cmake -DCMAKE_PREFIX_PATH=zap .`, `mise install zap`, `rake -P zap`,
		`c='zap x' awk '{print ENVIRON["c"]}'`, `TAR_OPTIONS="--exclude='zap x'" tar cf x.tar f`,
		`diff <(ls a) <(echo zap x)`,
	} {
		r := Read([]string{"bash", "-c", line})
		if len(r.Unknown) > 0 || match(r, []string{marker}) != No ||
			match(&Reading{Uses: r.Perhaps()}, []string{marker}) != No {
			t.Errorf("%s: would be asked about, for %s", line, marker)
		}
	}
}
