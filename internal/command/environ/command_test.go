// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"errors"
	"strings"
	"testing"
)

// TestCommand has what every command gets, and variables of its own on another system.
func TestCommand(t *testing.T) {
	token := "X=ghp_" + strings.Repeat("a1B2", 9)
	base := []string{"Path=C:\\", "PATHEXT=.EXE", "A_KEY=k", "Mode=test"}
	for _, tt := range []struct {
		name    string
		command Command
		policy  Policy
		want    string
		own     string
		err     string
	}{
		{"a spelling of its own", Command{Env: []string{"PATH=D:\\", "pathext=.X"}, Base: base, System: "windows"}, Policy{}, "PATH=D:\\|pathext=.X", "", ""},
		{"set in another spelling", Command{Env: []string{"Path=D:\\"}, Base: base, System: "windows"}, Policy{Set: map[string]string{"PATH": "E:\\", "PATHEXT": ".X"}}, "PATH=E:\\|PATHEXT=.X", "", ""},
		{"of the runtime only", Command{Env: []string{"mode=1"}, System: "windows"}, Policy{RuntimeOnly: []string{"MODE"}}, "", "", "RuntimeOnly"},
		{"the runtime has it", Command{Env: []string{"A=1", "PWD=/x"}}, Policy{Runtime: map[string]string{"A": "2"}, RuntimeOnly: []string{"A"}}, "A=2", "A=2", ""},
		{"stale", Command{Env: []string{"CODEX_SANDBOX_NETWORK_DISABLED=1"}}, Policy{}, "", "", ""},
		{"a private /tmp", Command{Env: []string{"TMPDIR=/x", "TMP=/y", "TEMP=/y", "TMPDIRS=/z"}, PrivateTmp: true}, Policy{},
			"TEMP=/tmp|TMP=/tmp|TMPDIR=/tmp|TMPDIRS=/z", "TEMP=/tmp|TMP=/tmp|TMPDIR=/tmp", ""},
		{"the /tmp of all", Command{Env: []string{"TMPDIR=/x"}}, Policy{}, "TMPDIR=/x", "", ""},
		{"for no command", Command{Env: []string{"OPENAI_IDENTITY_TOKEN_FILE=x"}}, Policy{}, "", "", "no command gets it"},
		{"excluded", Command{Env: []string{"A=1"}}, Policy{Exclude: []string{"A*"}}, "", "", "Exclude"},
		{"not included", Command{Env: []string{"A=1"}}, Policy{IncludeOnly: []string{"B*"}}, "", "", "IncludeOnly"},
		{"no variable", Command{Env: []string{"A=1", "nonsense"}}, Policy{}, "", "", "entry 2 is not NAME=value"},
		{"an own list excluded", Command{Env: []string{"Mode=test"}, Base: base}, Policy{Exclude: []string{"Mode"}}, "", "", "Exclude"},
		{"all, and more", Command{Env: append([]string{"B=1"}, base...), Base: base}, Policy{Exclude: []string{"Mode", "PATH*"}}, "B=1", "", ""},
		{"a copy without some", Command{Env: []string{"A_KEY=k", "Mode=test", token}, Base: append(base, token)}, Policy{}, "Mode=test", "", ""},
		{"read-only, offline", Command{Offline: true, ReadOnlyGit: true}, Policy{},
			"CODEX_SANDBOX_NETWORK_DISABLED=1|GIT_OPTIONAL_LOCKS=0|PIP_DISABLE_PIP_VERSION_CHECK=1|npm_config_update_notifier=false",
			"CODEX_SANDBOX_NETWORK_DISABLED=1|GIT_OPTIONAL_LOCKS=0|PIP_DISABLE_PIP_VERSION_CHECK=1|npm_config_update_notifier=false", ""},
		{"the last of two", Command{Env: []string{"A=1", "Mode=test", "A=2"}, Base: base}, Policy{}, "A=2|Mode=test", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := tt.command
			c.Dir, c.Sandbox, c.Network = "/w", "read-only", "none"
			res, own, err := c.Apply(tt.policy)
			if tt.err != "" {
				if ne := new(NameError); !errors.As(err, &ne) || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("the error is %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			always := "PWD=/w|SALLYPORT=1|SALLYPORT_NETWORK=none|SALLYPORT_SANDBOX=read-only"
			got := "|" + strings.Join(res.Env, "|")
			for entry := range strings.SplitSeq(always, "|") {
				if !strings.Contains(got, "|"+entry) {
					t.Errorf("%s is missing in %s", entry, got)
				}
				got = strings.Replace(got, "|"+entry, "", 1)
			}
			if got = strings.TrimPrefix(got, "|"); got != tt.want {
				t.Errorf("it got %s, want %s", got, tt.want)
			}
			text := "|" + strings.Join(own, "|")
			for _, entry := range []string{"SALLYPORT=1", "SALLYPORT_NETWORK=none",
				"SALLYPORT_SANDBOX=read-only"} {
				text = strings.Replace(text, "|"+entry, "", 1)
			}
			if text = strings.TrimPrefix(text, "|"); text != tt.own {
				t.Errorf("a profile must not change %s, want %s", text, tt.own)
			}
		})
	}
}
