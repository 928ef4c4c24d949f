// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestAdditionalPermissions: what a call may ask for beyond the sandbox, and how it is refused.
func TestAdditionalPermissions(t *testing.T) {
	for _, test := range []struct {
		name, text string
		off        bool
		want       []sandbox.Grant
		bad        string
	}{
		{name: "paths", text: `{"file_system":{"read":["/data"],"write":["/srv/","sub"]}}`, want: []sandbox.Grant{{Path: "/data", Level: sandbox.LevelRead}, {Path: "/srv", Level: sandbox.LevelWrite}, {Path: "/w/sub", Level: sandbox.LevelWrite}}},
		{name: "off", text: `{"file_system":{"write":["/srv"]}}`, off: true, bad: "additional permissions are disabled"},
		{name: "missing", bad: "missing `additional_permissions`"},
		{name: "empty", text: `{}`, bad: "must include at least one requested permission"},
		{name: "nothing in it", text: `{"network":{"enabled":false},"file_system":{}}`, bad: "must include at least one requested permission"},
		{name: "the network", text: `{"network":{"enabled":true}}`, bad: "network permissions are not supported"},
		{name: "unknown", text: `{"macos":{}}`, bad: "it has network.enabled"},
		{name: "another case", text: `{"FILE_SYSTEM":{"write":["/srv"]}}`, bad: "it has network.enabled"},
		{name: "another case below", text: `{"file_system":{"Write":["/srv"]}}`, bad: "it has network.enabled"},
		{name: "twice", text: `{"file_system":{"write":["/srv"]},"file_system":{"write":["/etc"]}}`, bad: "it has network.enabled"},
		{name: "twice below", text: `{"file_system":{"write":["/srv"],"write":["/etc"]}}`, bad: "it has network.enabled"},
		{name: "the network twice", text: `{"network":{"enabled":true,"enabled":false},"file_system":{"read":["/srv"]}}`, bad: "it has network.enabled"},
		{name: "an empty path", text: `{"file_system":{"read":[""]}}`, bad: "a path is empty"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tools := Tools{AdditionalPermissions: !test.off, Cmd: sallyport.Cmd{Dir: "/w"}}
			call := `{"cmd":"ls","sandbox_permissions":"with_additional_permissions","justification":"because","prefix_rule":["ls"]`
			if test.text != "" {
				call += `,"additional_permissions":` + test.text
			}
			var q Request
			if err := json.Unmarshal([]byte(call+"}"), &q); err != nil {
				t.Fatal(err)
			}
			c, err := tools.command(&q)
			var bad *Error
			switch {
			case test.bad != "":
				if !isKind(err, ErrArgument, &bad) || !strings.Contains(err.Error(), test.bad) {
					t.Errorf("%v", err)
				}
			case err != nil:
				t.Errorf("%v", err)
			case !slices.Equal(c.AskFor, test.want) || c.Unsandboxed || c.Justification != "because" ||
				!slices.Equal(c.PrefixRule, []string{"ls"}):
				t.Errorf("%+v", c)
			}
		})
	}
}
