// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"os"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/rules"
)

// TestRuns: a rule that forbids a program forbids it, or has it asked about, in whatever way it is
// run, and a rule that prompts prompts. Without such a rule nothing is asked.
func TestRuns(t *testing.T) {
	lines, err := os.ReadFile("../script/testdata/runs.txt")
	if err != nil {
		t.Fatal(err)
	}
	forbids, prompts, other := load(t, `prefix_rule(["zap"], "forbidden")`),
		load(t, `prefix_rule(["zap"], "prompt")`), load(t, `prefix_rule(["zap"])`)
	for line := range strings.Lines(string(lines)) {
		line = strings.TrimSuffix(line[2:], "\n")
		q := Question{Command: []string{"bash", "-c", line}, Host: rules.Host{Dir: "/w"}}
		for _, test := range []struct {
			set  *rules.Set
			skip bool
		}{{forbids, false}, {prompts, false}, {other, true}} {
			q.Rules = test.set
			if d := Judge(&q); (d.Answer == Skip) != test.skip {
				t.Errorf("%s: %s, want to skip %v", line, textOf(d), test.skip)
			}
		}
	}
}

// TestQuietWords: words that programs take for data are not commands, whatever rules there are.
func TestQuietWords(t *testing.T) {
	set := load(t, `prefix_rule([["rm", "touch", "curl", "docker", "git", "sudo", "python3", "node", "make", "sh", "ssh"]], "forbidden")`)
	for _, line := range []string{
		"grep -n rm file", "which docker", "man git", "apt-get install -y curl git", "pip install docker",
		"npm install node", "brew install make",
		"echo sudo rm", "ls docker", "cp rm touch", "cat ssh", "find . -name docker", "pgrep node",
		"pkill -f python3",
		"cargo build --bin rm", "go test -run touch ./...", "kill 1", "sed -n '/rm/p' f",
		"awk '{print $1}' docker", "jq .docker package.json",
		"tar czf docker.tgz docker", "systemctl status docker", "npm run docker", "just docker",
		"printf '%s' git", "mkdir -p git", "type sudo",
		"rg 'sudo rm' src", "grep -rn 'docker run' .", "chmod +x make", "tee docker", "sort git",
		"uv pip install docker", "gh pr list --search git",
		"poetry add node", "terraform plan -target docker", "journalctl -u docker", "dpkg -l git",
		"export A=git", "test -d git", "pytest -k docker",
	} {
		if d := Judge(&Question{Command: []string{"bash", "-c", line}, Rules: set,
			Host: rules.Host{Dir: "/w"}}); d.Answer != Skip {
			t.Errorf("%s: %s", line, textOf(d))
		}
	}
}
