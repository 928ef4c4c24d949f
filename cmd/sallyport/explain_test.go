// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExplainVectors asks the program about each eighth row of the vectors of internal/command/script,
// whose own tests read all of them and list the differences, which are stricter. Heuristics are
// asked about where no sandbox protects the files.
func TestExplainVectors(t *testing.T) {
	f, err := os.Open(filepath.FromSlash("../../internal/command/script/testdata/rows.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		if n%8 != 0 {
			continue
		}
		var row struct {
			Argv            []string
			Safe, Dangerous bool
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		t.Run(strings.Join(row.Argv, " "), func(t *testing.T) {
			t.Parallel()
			out, err := exec.CommandContext(t.Context(), "sallyport",
				append([]string{"check", "--no-config", "--explain", "-a", "on-request", "-s", "full-access",
					"--json", "--"}, row.Argv...)...).Output()
			var got struct {
				Decision string
				Commands []struct{ Safe, Dangerous bool }
			}
			if err != nil || json.Unmarshal(out, &got) != nil || len(got.Commands) == 0 {
				t.Fatalf("%s %v", out, err)
			}
			safe, dangerous := true, false
			for _, c := range got.Commands {
				safe, dangerous = safe && c.Safe, dangerous || c.Dangerous
			}
			if safe && !row.Safe || !dangerous && row.Dangerous {
				t.Errorf("safe %v, dangerous %v, the peer says %v, %v", safe, dangerous, row.Safe,
					row.Dangerous)
			}
			if want := map[bool]string{false: "allow", true: "prompt"}[dangerous]; got.Decision != want {
				t.Errorf("decision %s, want %s", got.Decision, want)
			}
		})
	}
	if n != 323 {
		t.Errorf("%d rows, want 323", n)
	}
}
