// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A suite is the tests of one package or module.
type suite struct {
	name    string   // such as go/os/exec or python/test_os
	dir     string   // the working directory, and the workspace inside
	command []string // writes what read reads to standard output, or to dir/results
	env     []string // added to our own
	read    func(output []byte) (outcomes, error)
}

// goPackages are the packages of Go's library whose tests look most at the system.
var goPackages = []string{
	"os", "os/exec", "os/signal", "os/user", "net", "net/http", "net/rpc", "path/filepath", "internal/poll",
	"log/syslog", "syscall",
}

// pythonModules are CPython's test modules about the system.
var pythonModules = []string{
	"test_os", "test_subprocess", "test_posix", "test_signal", "test_pty", "test_socket", "test_mmap",
	"test_tempfile",
	"test_shutil", "test_pathlib", "test_threading", "test_select", "test_ssl", "test_io", "test_httpservers",
	"test_socketserver", "test_multiprocessing_fork", "test_multiprocessing_forkserver",
	"test_multiprocessing_spawn",
}

// pythonResources are what "python3 -m test -u" would allow a module; more would be hosts on
// the internet.
var pythonResources = map[string][]string{"test_socketserver": {"network"}}

// resultsName is the file in a suite's directory to which drivers write their lines.
const resultsName = "suites-results"

//go:embed driver.py
var pythonDriver []byte

//go:embed reporter.mjs
var nodeReporter []byte

// findSuites returns the suites for which room has everything, and a line for each
// kind that it does not have.
func findSuites(room string) (all []suite, missing []string) {
	for _, kind := range []struct {
		name string
		find func(room string) ([]suite, error)
	}{
		{"Go's packages", goSuites},
		{"CPython's modules", pythonSuites},
		{"npm packages", nodeSuites},
		{"git's scripts", gitSuites},
	} {
		found, err := kind.find(room)
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", kind.name, err))
			continue
		}
		all = append(all, found...)
	}
	return all, missing
}

func goSuites(room string) ([]suite, error) {
	var all []suite
	for _, pkg := range goPackages {
		program := filepath.Join(room, "go", strings.ReplaceAll(pkg, "/", "-")+".test")
		if _, err := os.Stat(program); err != nil {
			return nil, err
		}
		dir := filepath.Join(room, "go", "src", pkg)
		all = append(all, suite{
			name: "go/" + pkg, dir: dir,
			command: []string{program, "-test.v=test2json", "-test.short", "-test.paniconexit0"},
			// The tests that start the go command get a cache that they may write.
			env: []string{"GOCACHE=" + filepath.Join(dir, ".gocache"), "GOFLAGS=", "GOENV=off",
				"GOTOOLCHAIN=local"},
			read: func(output []byte) (outcomes, error) {
				return convertGo(filepath.Join(room, "bin", "test2json"), output)
			},
		})
	}
	return all, nil
}

// convertGo has the output of a test binary converted. Started by test2json, it would
// ignore the signals that test2json ignores.
func convertGo(test2json string, output []byte) (outcomes, error) {
	cmd := exec.Command(test2json)
	cmd.Stdin = bytes.NewReader(output)
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("test2json: %w", err)
	}
	return readGo(text)
}

func pythonSuites(room string) ([]suite, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil, err
	}
	try := exec.Command(python, "-c", "import test.test_os")
	try.Dir = room // it makes a file
	if out, err := try.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s has no test modules: %s", python, lastLine(string(out)))
	}
	var all []suite
	for _, module := range pythonModules {
		dir := filepath.Join(room, "python", module)
		driver, err := place(dir, "driver.py", pythonDriver)
		if err != nil {
			return nil, err
		}
		all = append(all, suite{
			name: "python/" + module, dir: dir,
			command: append([]string{python, driver, module, filepath.Join(dir, resultsName)},
				pythonResources[module]...),
			read: readLines(filepath.Join(dir, resultsName)),
		})
	}
	return all, nil
}

// nodeSuites are the packages below room/node, each with its tests and what they need.
func nodeSuites(room string) ([]suite, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, err
	}
	dirs, err := filepath.Glob(filepath.Join(room, "node", "*", "package.json"))
	if err != nil || len(dirs) == 0 {
		return nil, errors.Join(err, fs.ErrNotExist)
	}
	var all []suite
	for _, file := range dirs {
		dir := filepath.Dir(file)
		reporter, err := place(dir, "suites-reporter.mjs", nodeReporter)
		if err != nil {
			return nil, err
		}
		files, err := nodeTests(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, suite{
			name: "node/" + filepath.Base(dir), dir: dir,
			command: append([]string{node, "--test", "--test-reporter=" + reporter,
				"--test-reporter-destination=" + filepath.Join(dir, resultsName)}, files...),
			read: readLines(filepath.Join(dir, resultsName)),
		})
	}
	return all, nil
}

// nodeTests are the test files of a package: test/*.test.js and test/*.js, as node --test
// itself finds them.
func nodeTests(dir string) ([]string, error) {
	for _, pattern := range []string{"test/*.test.js", "test/*.js"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) > 0 {
			return files, err
		}
	}
	return nil, fmt.Errorf("%s: no test files: %w", dir, fs.ErrNotExist)
}

// gitScripts are test scripts of git about files, repositories, work trees and processes.
var gitScripts = []string{
	"t0000-basic", "t0001-init", "t0006-date", "t0008-ignores", "t0021-conversion", "t0050-filesystem",
	"t0060-path-utils", "t0061-run-command",
	"t1006-cat-file", "t1300-config", "t1400-update-ref", "t1450-fsck",
	"t2000-conflict-when-checking-files-out", "t2200-add-update", "t2400-worktree-add",
	"t3200-branch", "t3404-rebase-interactive", "t3600-rm", "t3700-add", "t3903-stash", "t4000-diff-format",
	"t5000-tar-tree", "t5300-pack-object",
	"t5510-fetch", "t5601-clone", "t6300-for-each-ref", "t7001-mv", "t7300-clean", "t7400-submodule-basic",
	"t7500-commit-template-squash-signoff",
	"t7508-status", "t7600-merge", "t7700-repack", "t9300-fast-import",
}

// gitSuites are scripts of the git that is built at room/git. Their repositories lie in the
// private /tmp: in the workspace they would be protected.
func gitSuites(room string) ([]suite, error) {
	dir := filepath.Join(room, "git", "t")
	if _, err := os.Stat(filepath.Join(dir, "helper", "test-tool")); err != nil {
		return nil, err
	}
	var all []suite
	for _, script := range gitScripts {
		all = append(all, suite{
			name: "git/" + script, dir: dir,
			command: []string{"sh", "./" + script + ".sh", "--root=/tmp", "--no-color"},
			env:     []string{"TEST_OUTPUT_DIRECTORY=" + filepath.Join(dir, "out")},
			read:    readTAP,
		})
	}
	return all, nil
}

// place writes a file into a directory that it makes, and returns its name.
func place(dir, name string, text []byte) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	return path, os.WriteFile(path, text, 0o600)
}

// run runs the suite behind the words of prefix, for at most limit, and returns how its
// tests went. Tests that had not ended then are missing from it.
func (s *suite) run(ctx context.Context, prefix []string, limit time.Duration) (outcomes, error) {
	if err := os.Remove(filepath.Join(s.dir, resultsName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// The program timeout ends the whole process group. A shell stays in front of the tests: as
	// in a terminal or a build, they do not lead a session, so that a terminal that one of them
	// opens does not become theirs.
	timeout := []string{"timeout", "-k", "10", fmt.Sprint(limit.Seconds())}
	words := slices.Concat(timeout, prefix, []string{"sh", "-c", `"$@"; exit $?`, "sh"}, s.command)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), s.env...)
	var output, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &messages
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return nil, err
	}
	found, readErr := s.read(output.Bytes())
	if readErr != nil || len(found) == 0 {
		return nil, fmt.Errorf("no results (%w): %s", errors.Join(err, readErr, ctx.Err()),
			lastLine(messages.String()+output.String()))
	}
	return found, nil
}
