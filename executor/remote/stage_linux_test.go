// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestStagedRunner: a Runner stages commands at an exec-server, and shows, applies and discards there.
func TestStagedRunner(t *testing.T) {
	testenv.NeedUserNS(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	e := remote.New(remote.Options{URL: serveWeb(t, newServer(t)), Token: "secret"})
	closed(t, e)
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(), Executor: e}
	closed(t, r)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "a")
	for _, script := range []string{"echo x >a", "cat a && echo y >b"} {
		res, err := r.Run(t.Context(), &sallyport.Cmd{Script: script, Dir: dir,
			Stage: &executor.Staging{Name: "s"}})
		if err != nil || res.ExitCode != 0 || res.Stage == nil || len(res.Changes()) != res.Stage.Total ||
			res.Stage.Total == 0 {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file itself was written")
	}
	s, err := r.Stage(t.Context(), dir, "s")
	if err != nil {
		t.Fatal(err)
	}
	var diff bytes.Buffer
	if err := s.Diff(t.Context(), &diff, "b"); err != nil || !strings.Contains(diff.String(), "+y\n") ||
		strings.Contains(diff.String(), "+x\n") {
		t.Errorf("%s, %v", &diff, err)
	}
	done, err := s.Apply(t.Context(), "a")
	if text, _ := os.ReadFile(file); err != nil || string(text) != "x\n" || done.Left != 1 {
		t.Errorf("%q, %+v, %v", text, done, err)
	}
	if err := s.Discard(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := r.Stage(t.Context(), dir, "s"); !errors.Is(err, executor.ErrNoStage) {
		t.Errorf("after all was discarded: %v", err)
	}
	_, err = r.Run(t.Context(), &sallyport.Cmd{Script: "echo z >z", Dir: dir,
		Stage: &executor.Staging{ID: "0123456789abcdef"}})
	if stage := new(executor.StageError); !errors.As(err, &stage) || !errors.Is(err, executor.ErrNoStage) {
		t.Errorf("a stage that there is not: %v", err)
	}
}
