// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/run/tty"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// escapeDriver names the variable with which this binary is a program that runs its arguments in a shared
// sandbox: the value is the workspace.
const escapeDriver = "SALLYPORT_TEST_DRIVER"

// escapeMain runs a command as the third of a shared sandbox. The first one may write to all around the
// workspace and goes on meanwhile; the second one has made the mounts with which the third begins.
func escapeMain(ws string, args []string) int {
	code, err := escapeRun(ws, args)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	return code
}

func escapeRun(ws string, args []string) (code int, err error) {
	ctx := context.Background()
	narrow := sandbox.WorkspaceWrite(ws)
	r := &sallyport.Runner{Policy: narrow.WithEntries(sandbox.PathEntry(filepath.Dir(ws),
		sandbox.LevelWrite))}
	defer func() {
		if cerr := r.Close(); err == nil {
			err = cerr
		}
	}()
	in, err := r.Open(ctx, sallyport.SandboxOptions{})
	if err != nil {
		return 0, err
	}
	wide, err := in.Start(ctx, &sallyport.Cmd{Dir: ws, Shell: "sh",
		Script: "touch ../wide && rm ../wide && echo ready; exec sleep 1000"})
	if err != nil {
		return 0, err
	}
	defer wide.Close()
	if reply, err := wide.Await(ctx, sallyport.Until{Match: regexp.MustCompile("ready"),
		For: time.Minute}); err != nil || reply.Reason != sallyport.ReasonMatch {
		return 0, fmt.Errorf("the first command is not ready: %v, %w", reply, err)
	}
	r.Update(narrow, ws)
	if _, err := in.Run(ctx, &sallyport.Cmd{Dir: ws, Args: []string{"/bin/true"}}); err != nil {
		return 0, err
	}
	c := &sallyport.Cmd{Dir: ws, Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if tty.Is(os.Stdin) {
		c.TTY = &sallyport.Size{}
	}
	res, err := in.Run(ctx, c)
	if err != nil {
		return 0, err
	}
	return res.ExitCode, nil
}

// TestSharedEscapes plays the suite of escapes whose run.sh is in the directory SALLYPORT_TEST_ESCAPE, each
// case in a shared sandbox beside a command with more rights.
func TestSharedEscapes(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.Long(t)
	testenv.NeedUserNS(t)
	suite := os.Getenv("SALLYPORT_TEST_ESCAPE")
	run := testenv.NeedPeer(t, filepath.Join(suite, "run.sh"))
	testenv.NeedProgram(t, "gcc")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.MkdirTemp("/var/tmp", "sallyport-escape-") // commands have a /tmp of their own
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	cmd := exec.Command("bash", run, "env "+escapeDriver+"={ws} "+self)
	cmd.Env = append(testenv.Environ(), "ESC_BASE="+base, "ESC_CASES="+filepath.Join(suite, "cases")+":"+
		filepath.Join(suite, "more"), "XDG_STATE_HOME="+base+"/state")
	out, err := cmd.CombinedOutput()
	played := map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		w := strings.Fields(lines.Text())
		if len(w) < 3 || !strings.HasPrefix(w[2], "[") {
			continue
		}
		class := strings.Trim(w[2], "[]")
		played[class+" "+w[1]]++
		if w[1] == "FAIL" && class != "resource" {
			t.Error(lines.Text())
		} else if w[1] != "PASS" {
			t.Log(lines.Text())
		}
	}
	t.Log(played)
	if played["control PASS"] < 5 || played["core PASS"] < 50 || played["surface PASS"] < 10 {
		t.Errorf("too few were played, %v\n%s", err, out)
	}
}

// playDriver does not return where this binary is the driver.
func playDriver() {
	if ws := os.Getenv(escapeDriver); ws != "" {
		_ = os.Unsetenv(escapeDriver)
		os.Exit(escapeMain(ws, os.Args[1:]))
	}
}
