// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestGivenIsAskedAbout: all who are asked are shown what the caller gives to the command beside its words.
// The MCP server, the wire and hooks have tests of their own.
func TestGivenIsAskedAbout(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	d := newDesk(t)
	saved, approver := filepath.Join(d.home, "saved"), filepath.Join(d.home, "approver")
	const none = "echo '{\"decision\":\"none\"}'\n"
	if err := testenv.WriteProgram(approver, "#!/bin/sh\ncat >"+saved+"\n"+none); err != nil {
		t.Fatal(err)
	}
	flags := ` run --escalate --approver ` + approver + ` -e "$LOADS" -e API_KEY=abc -e OWN `
	for name, test := range map[string]struct {
		line string // behind the flags
		want []string
		json string
	}{
		"variables and a file": {"sallyport" + flags + "-- sh <copy",
			[]string{`variable: LD_PRELOAD=./x\n.so`, "variable: API_KEY=***", "variable: OWN=mine",
				"standard input: a file"},
			`"variables":["API_KEY=***","LD_PRELOAD=./x\n.so","OWN=mine"],"input":"a file"`},
		"a pipe": {": | sallyport" + flags + "-- sh", []string{"standard input: a pipe"},
			`"input":"a pipe or socket"`},
		"a login shell": {"sallyport" + flags + "--login --shell sh -c true", []string{"shell: /", "sh -lc"},
			`"-lc","true"`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(d.work, "copy"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			run := d.command(t, "sh", "-c", test.line)
			run.Env = append(run.Env, "OWN=mine", "LOADS=LD_PRELOAD=./x\n.so")
			x := testenv.StartTerminal(t, run, 200, 50)
			x.Expect(choicesPlain)
			list, err := d.command(t, "sallyport", "approvals").Output()
			asked, also := os.ReadFile(saved)
			if err != nil || also != nil {
				t.Error(err, also)
			}
			for _, want := range test.want {
				if !strings.Contains(x.Transcript(), want) || !strings.Contains(string(list), want) {
					t.Errorf("no %q in\n%s\n%s", want, x.Transcript(), list)
				}
			}
			if !strings.Contains(string(asked), test.json) {
				t.Errorf("no %s in %s", test.json, asked)
			}
			x.Send("n\r")
			if x.Wait() != 123 {
				t.Errorf("seen: %s", x.Transcript())
			}
		})
	}
}
