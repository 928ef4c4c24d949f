// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/changes"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// childVar has this program do a task in the place of tests.
const childVar = "SALLYPORT_TEST_APPLY"

func TestMain(m *testing.M) {
	if os.Getenv(childVar) != "" {
		var t childTask
		err := json.NewDecoder(os.Stdin).Decode(&t)
		if err == nil {
			err = t.run()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// childTask is what a child does.
type childTask struct {
	Stage  string // directory of a stage that is laid over Root; empty works in Root itself
	Root   string
	Ops    []op
	Look   bool     // write the description of Root as gob
	Kill   int      // ends itself by SIGKILL at a step of Apply; 0 does not
	Mounts []string // file systems are mounted there, then the stage is applied
	Full   bool     // the stage is applied to a file system without space
	Apply  bool     // apply the stage; nothing is mounted
}

func (c *childTask) run() error {
	switch {
	case c.Apply:
		s, err := openStage(c.Stage, c.Root)
		if err != nil {
			return err
		}
		n := 0
		s.step = func(string) {
			if n++; n == c.Kill {
				_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			}
		}
		_, err = Apply(context.Background(), s, executor.ApplyOptions{})
		return err
	case c.Full:
		return c.full()
	case c.Mounts != nil:
		return c.mounted()
	case c.Look:
		out, err := lookAt(c.Root)
		if err != nil {
			return err
		}
		return gob.NewEncoder(os.Stdout).Encode(out)
	case c.Stage == "":
		return perform(c.Root, c.Ops)
	}
	merged := filepath.Join(c.Stage, "merged")
	if err := os.MkdirAll(merged, 0o700); err != nil {
		return err
	}
	at := func(name string) string { return filepath.Join(c.Stage, name) }
	if err := unix.Mount("overlay", merged, "overlay", 0,
		"userxattr,lowerdir="+c.Root+",upperdir="+at("upper")+
			",workdir="+at("work")); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	return perform(merged, c.Ops)
}

// inNamespaces runs a task in user and mount namespaces of its own, as their root.
func inNamespaces(t testing.TB, task *childTask) {
	t.Helper()
	if out, err := namespaceCommand(t, task).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func namespaceCommand(t testing.TB, task *childTask) *exec.Cmd {
	t.Helper()
	cmd := child(t, task)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}}
	return cmd
}

func child(t testing.TB, task *childTask) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env, cmd.Stdin = append(os.Environ(), childVar+"=1"), bytes.NewReader(text)
	return cmd
}

// A trial is a tree of the host and a stage over it.
type trial struct {
	testing.TB
	root, dir string
	stage     *Stage
}

// newTrial makes a tree with a stage over it, in a directory that is empty.
func newTrial(t testing.TB, top string) *trial {
	t.Helper()
	t.Cleanup(func() {
		if err := safefile.RemoveTreePath(top); err != nil { // directories without rights
			t.Error(err)
		}
	})
	x := &trial{TB: t, root: filepath.Join(top, "host"), dir: filepath.Join(top, "stage")}
	for _, dir := range []string{x.root, x.dir, filepath.Join(x.dir, "upper"), filepath.Join(x.dir, "work")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

// open opens the stage, and records what the host has.
func (x *trial) open() *Stage {
	x.Helper()
	s, err := openStage(x.dir, x.root)
	if err == nil {
		err = s.Base.Update(context.Background(), s.layers(), changes.Now())
	}
	if err != nil {
		x.Fatal(err)
	}
	x.stage = s
	return s
}

// run does operations in the stage.
func (x *trial) run(ops ...op) *Stage {
	x.Helper()
	testenv.NeedUserNS(x)
	started := changes.Now()
	inNamespaces(x, &childTask{Stage: x.dir, Root: x.root, Ops: ops})
	s, err := openStage(x.dir, x.root)
	if err == nil {
		err = s.Base.Update(context.Background(), s.layers(), started)
	}
	if err != nil {
		x.Fatal(err)
	}
	x.stage = s
	return s
}

// openStage opens a stage as its directory says it is.
func openStage(dir, root string) (*Stage, error) {
	base, err := changes.OpenBase(filepath.Join(dir, "base"))
	if err != nil {
		return nil, err
	}
	id, err := Identify(root)
	if err != nil {
		return nil, err
	}
	return &Stage{ID: "4f2a0123456789ab", Dir: dir, Workspace: root, Base: base,
		Roots:  []Root{{Layer: changes.Layer{Root: root, Upper: filepath.Join(dir, "upper")}, ID: id}},
		Closed: func(string) error { return nil }}, nil
}

func (x *trial) apply(o executor.ApplyOptions) *executor.Applied {
	x.Helper()
	a, err := Apply(context.Background(), x.stage, o)
	if err != nil {
		x.Fatalf("apply: %v (%+v)", err, a)
	}
	return a
}

// changes lists what the stage has, as kind and path.
func (x *trial) changes() []string {
	x.Helper()
	all, err := changes.Read(context.Background(), x.stage.layers(), x.stage.Base)
	if err != nil {
		x.Fatal(err)
	}
	var out []string
	for i := range all {
		if !all[i].Way {
			out = append(out, all[i].Kind+" "+all[i].Path)
		}
	}
	return out
}

// clean fails where the tree has a temporary file.
func (x *trial) clean() {
	x.Helper()
	for path := range look(x, x.root) {
		if strings.Contains(path, ".sallyport-") {
			x.Errorf("%s is left", path)
		}
	}
	if _, err := os.Lstat(filepath.Join(x.dir, journalName)); !errors.Is(err, os.ErrNotExist) {
		x.Errorf("the journal is left: %v", err)
	}
}
