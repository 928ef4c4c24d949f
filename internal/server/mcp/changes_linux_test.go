// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport/internal/server/mcp"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// staged connects a client to a server whose commands have a stage.
func staged(t *testing.T, opts *sdk.ClientOptions, flags ...string) *client {
	t.Helper()
	testenv.NeedUserNS(t)
	dir := t.TempDir()
	o := options(t, dir, flags...)
	o.Stage = "mcp-test"
	revision := ""
	if opts != nil {
		revision = "2025-11-25"
	}
	return connect(t, mcp.New(o), dir, revision, opts)
}

// absent fails the test if a file of the workspace itself is there.
func (c *client) absent(name string) {
	c.t.Helper()
	if _, err := os.Lstat(filepath.Join(c.dir, name)); err == nil {
		c.t.Errorf("%s itself was written", name)
	}
}

// diffOf reads the diff of the conversation at a run.
func (c *client) diffOf(run string) (string, error) {
	res, err := c.ReadResource(context.Background(),
		&sdk.ReadResourceParams{URI: "sallyport://runs/" + run + "/diff"})
	if err != nil {
		return "", err
	}
	return res.Contents[0].Text, nil
}

// TestStagedConversation: commands see what earlier ones changed, the files stay, and changes shows it.
func TestStagedConversation(t *testing.T) {
	c := staged(t, nil)
	if f := c.call("changes", members{"diff": true}).ok(t); f.Stage.ID != "" || f.ChangesTotal != 0 {
		t.Errorf("before the first command: %+v", f)
	}
	f := c.call("exec", members{"cmd": "echo one > a"}).exits(t, 0)
	if f.Stage.ID == "" || f.Stage.Name != "mcp-test" || f.ChangesTotal != 1 || len(f.Changes) != 1 {
		t.Errorf("%+v", f)
	}
	contains(t, f.text, "1 change is staged", "sallyport apply "+f.Stage.ID)
	next := c.call("exec", members{"cmd": "cat a; mkdir d; echo two > d/b"}).exits(t, 0)
	equal(t, "what the next one sees", []string{next.Output, next.Stage.ID}, []string{"one\n", f.Stage.ID})
	inside := c.call("exec", members{"cmd": "cat b; pwd", "workdir": "d"}).exits(t, 0)
	contains(t, inside.Output, "two\n", "/d\n")
	if bad := c.call("exec", members{"cmd": "true", "workdir": "none"}); !bad.failed {
		t.Errorf("in a directory that nobody has: %+v", bad)
	} else {
		contains(t, bad.text, "does not exist")
	}
	c.absent("a")
	got := c.call("changes", members{"diff": true}).ok(t)
	equal(t, "changes", got.Changes, []change{{"a", "added"}, {"d/b", "added"}})
	contains(t, got.text, "A a\n", "A d/b\n")
	contains(t, got.Diff, "+one\n", "+two\n")
	got = c.call("changes", members{"paths": []string{"d"}}).ok(t)
	equal(t, "changes below d", got.Changes, []change{{"d/b", "added"}})
	if got.Diff != "" {
		t.Errorf("%q", got.Diff)
	}
	if bad := c.call("changes", members{"paths": []string{"none"}}); !bad.failed {
		t.Errorf("%+v", bad)
	}
	diff, err := c.diffOf(next.Run)
	if err != nil || !strings.Contains(diff, "+two\n") {
		t.Errorf("%q, %v", diff, err)
	}
	if _, err := c.diffOf("999"); err == nil {
		t.Error("a run that there is not has a diff")
	}
	for tool, args := range map[string]members{
		"patch": {"patch": "*** Begin Patch\n*** Add File: p\n+x\n*** End Patch\n"},
		"exec":  {"cmd": "touch p", "sandbox_permissions": "require_escalated", "justification": "x"},
	} {
		if bad := c.call(tool, args); !bad.failed || bad.text == "" {
			t.Errorf("%s: %+v", tool, bad)
		}
		c.absent("p")
	}
}

// TestStagedAtOnce: commands at the same time have one stage, and one that needs a sandbox of its own gets
// the stage when they have ended.
func TestStagedAtOnce(t *testing.T) {
	c := staged(t, answers(func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		return accept("approved"), nil
	}))
	dir := outside(t)
	wide := members{"cmd": "cat b && echo out > " + dir + "/f", "justification": "x",
		"sandbox_permissions":    "with_additional_permissions",
		"additional_permissions": members{"write": []string{dir}}}
	session := c.call("exec", members{"cmd": "echo a > a; read x; echo b > b", "keep_stdin": true,
		"yield_time_ms": 30_000, "wait_for": []string{"input"}}).ok(t)
	if session.SessionID == "" {
		t.Fatalf("%+v", session)
	}
	for i := range 3 {
		c.call("exec", members{"cmd": fmt.Sprintf("cat a && echo %d > n%d", i, i)}).exits(t, 0)
	}
	if bad := c.call("exec", wide); !bad.failed {
		t.Errorf("a stage has two sandboxes: %+v", bad)
	}
	c.call("write", members{"session_id": session.Run, "chars": "go\n", "yield_time_ms": 30_000}).exits(t, 0)
	c.call("exec", wide).exits(t, 0)
	c.call("exec", members{"cmd": "cat n0 b"}).exits(t, 0)
	if _, err := os.Lstat(dir + "/f"); err == nil {
		t.Error("what was granted was written itself")
	}
	got := c.call("changes", nil).ok(t)
	equal(t, "changes", got.ChangesTotal, 6)
}

// TestChangesBudget: answers stay within the budget, whatever was changed.
func TestChangesBudget(t *testing.T) {
	c := staged(t, nil)
	c.call("exec",
		members{"cmd": `i=0; while [ $i -lt 400 ]; do echo "<&>$i" > "<&>-a-long-name-of-a-file-$i"; i=$((i+1)); done`,
			"yield_time_ms": 60_000}).exits(t, 0)
	for _, tokens := range []int{0, 1, 100, 3000, 100_000} {
		f := c.call("changes", members{"diff": true, "max_output_tokens": tokens}).ok(t)
		if most := 4*tokens + 4096; len(f.text) > most || f.size > most || f.ChangesTotal != 400 ||
			len(f.Changes)+f.ChangesOmitted != 400 {
			t.Errorf("%d tokens: %d bytes of text, %d of JSON, %d changes and %d omitted of %d", tokens,
				len(f.text),
				f.size, len(f.Changes), f.ChangesOmitted, f.ChangesTotal)
		}
	}
}

// TestUnstaged: without a stage there is no tool for changes, and no diff.
func TestUnstaged(t *testing.T) {
	c := open(t, nil)
	list, err := c.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if tool.Name == "changes" {
			t.Error("there is the tool changes")
		}
	}
	if _, err := c.diffOf(c.call("exec", members{"cmd": "true"}).exits(t, 0).Run); err == nil {
		t.Error("there is a diff")
	}
}

// TestAskedWhileStaged: a question in the middle of a staged command is answered by the client's user. What
// is granted outside of the stage is real at once, nothing runs twice, and the rest stays staged.
func TestAskedWhileStaged(t *testing.T) {
	dir := outside(t)
	for _, test := range []struct {
		name, word string
		code       int
		real       string
	}{{"approved", "approved", 0, "x\n"}, {"denied", "denied", 1, ""}} {
		t.Run(test.name, func(t *testing.T) {
			_ = os.Remove(dir + "/f") // of the case before
			var asked []string
			c := staged(t, answers(func(_ context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
				asked = append(asked, p.Message)
				return accept(test.word), nil
			}), "--ask-writes")
			f := c.call("exec", members{"cmd": "echo run >> count; echo x > " + dir +
				"/f; r=$?; echo after > a; exit $r",
				"yield_time_ms": 60_000}).ok(t)
			if f.ExitCode == nil || (*f.ExitCode == 0) != (test.code == 0) {
				t.Fatalf("%+v: %s", f, f.text)
			}
			if len(asked) != 1 {
				t.Fatalf("asked %q", asked)
			}
			contains(t, asked[0], dir+"/f", "waiting")
			if text, _ := os.ReadFile(dir + "/f"); string(text) != test.real {
				t.Errorf("the file outside has %q", text)
			}
			c.absent("a")
			equal(t, "changes", c.call("changes", nil).ok(t).Changes, []change{{"a", "added"},
				{"count", "added"}})
			equal(t, "runs", c.call("exec", members{"cmd": "cat count"}).exits(t, 0).Output, "run\n")
		})
	}
}
