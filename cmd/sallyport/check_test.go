// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// A vector is one row of rules/testdata/execpolicy; its README says what is binding.
type vector struct {
	ID      string
	Rules   []string
	Argv    []string
	Resolve bool `json:"resolve_host_executables"`
	Exit    int
	Out     map[string]any
	Error   struct {
		Stage, File, Class, Message, Example string
		Line, Column                         int
		Unmatched                            []string
	}
}

// notSupported are vectors that are refused here, and the line of the error.
var notSupported = map[string]int{"ep-sl_types-225": 1}

// TestCheckVectors asks the program what package rules is asked in its own tests.
func TestCheckVectors(t *testing.T) {
	dir, err := filepath.Abs("../../rules/testdata/execpolicy")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "rows.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		var v vector
		if err := json.Unmarshal([]byte(strings.ReplaceAll(lines.Text(), "{CWD}", dir)), &v); err != nil {
			t.Fatal(err)
		}
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			checkVector(t, dir, v)
		})
	}
	if n != 286 {
		t.Errorf("%d vectors, want 286", n)
	}
}

func checkVector(t *testing.T, dir string, v vector) {
	args := []string{"check", "--json"}
	for _, name := range v.Rules {
		args = append(args, "--rules", name)
	}
	if v.Resolve {
		args = append(args, "--resolve-host-executables")
	}
	cmd := exec.CommandContext(t.Context(), "sallyport", append(append(args, "--"), v.Argv...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME=/home/user", "XDG_CONFIG_HOME="+filepath.Join(dir, "none"),
		"GORACE="+noRaceSleep)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // its exit code is compared
	if line := notSupported[v.ID]; line > 0 {
		v.Exit, v.Error.Stage, v.Error.File, v.Error.Class, v.Error.Line = 1, "parse", v.Rules[0],
			"starlark", line
	}
	if code := cmd.ProcessState.ExitCode(); code != v.Exit {
		t.Fatalf("exit code %d, want %d: %s", code, v.Exit, stderr.String())
	}
	if v.Exit == 0 {
		var out map[string]any
		if err := json.Unmarshal([]byte(stdout.String()), &out); err != nil ||
			!reflect.DeepEqual(out, v.Out) || stderr.String() != "" {
			t.Errorf("%s%s\nwant %v", stdout.String(), stderr.String(), v.Out)
		}
		return
	}
	wants := []string{fmt.Sprintf("Error: failed to %s policy at %s\n\nCaused by:\n", v.Error.Stage,
		v.Error.File)}
	switch v.Error.Class {
	case "rule":
		wants = append(wants, fmt.Sprintf("error: %s", v.Error.Message),
			fmt.Sprintf("\n     --> %s:%d:%d\n", v.Error.File, v.Error.Line, v.Error.Column),
			fmt.Sprintf("\nsallyport: %s/%s:%d:%d: %s", dir, v.Error.File, v.Error.Line, v.Error.Column,
				v.Error.Message))
	case "starlark":
		wants = append(wants, fmt.Sprintf("\n     --> %s:%d:", v.Error.File, v.Error.Line))
	case "example_unmatched":
		list, err := json.Marshal(v.Error.Unmatched)
		if err != nil {
			t.Fatal(err)
		}
		wants = append(wants, "unmatched examples: "+strings.ReplaceAll(string(list), `","`, `", "`))
	case "example_matched":
		wants = append(wants, "expected example to not match rule `", "`: "+v.Error.Example+"\n")
	}
	for _, want := range wants {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("no %q in:\n%s", want, stderr.String())
		}
	}
	if stdout.String() != "" {
		t.Errorf("standard output: %s", stdout.String())
	}
}
