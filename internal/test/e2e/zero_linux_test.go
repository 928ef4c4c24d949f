// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestZeroRunner: the zero Runner sees the platform's own files and nothing else.
func TestZeroRunner(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var r sallyport.Runner
	defer r.Close()
	res, err := r.Run(t.Context(),
		&sallyport.Cmd{Args: []string{"/bin/sh", "-c",
			"test ! -e /var && test ! -e /home && read line </etc/passwd && echo fine"}, Dir: "/usr"})
	if err != nil || strings.TrimSpace(res.Stdout.String()) != "fine" {
		t.Fatalf("%+v %v", res, err)
	}
	_, err = r.Run(t.Context(), &sallyport.Cmd{Args: []string{"/bin/true"}, Dir: "/var"})
	var dir *executor.DirError
	var hidden *sandbox.HiddenError
	if !errors.As(err, &dir) || !errors.As(err, &hidden) || hidden.Path != "/var" {
		t.Errorf("%v", err)
	}
	_, err = (&sallyport.Runner{Policy: sandbox.WorkspaceWrite()}).Run(t.Context(),
		&sallyport.Cmd{Args: []string{"/bin/true"}, Dir: "/"})
	var root *executor.RootError
	if !errors.As(err, &root) || root.Path != "/" {
		t.Errorf("%v", err)
	}
}

// TestExplain checks that the launch is printed for those who ask, and for them only.
func TestExplain(t *testing.T) {
	testenv.NeedUserNS(t)
	dir := t.TempDir()
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(dir)}
	defer r.Close()
	for _, explain := range []bool{false, true} {
		res, err := r.Run(t.Context(), &sallyport.Cmd{Args: []string{"true"}, Dir: dir, Explain: explain})
		if err != nil {
			t.Fatal(err)
		}
		if printed := strings.Contains(res.Sandbox.Script, "exec "); printed != explain {
			t.Errorf("with Explain %v the script is %q", explain, res.Sandbox.Script)
		}
	}
}
