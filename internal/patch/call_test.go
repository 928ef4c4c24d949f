// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"testing"
)

func TestCallOf(t *testing.T) {
	t.Parallel()
	const text = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"
	doc := func(before, tag, end string) string {
		return before + "apply_patch <<" + tag + "\n" + text + "\n" + end
	}
	sh := func(script string) []string { return []string{"/bin/bash", "-lc", script} }
	for name, c := range map[string]struct {
		args []string
		dir  string
		is   bool
		err  error
	}{
		"the program":          {[]string{"apply_patch", text}, "", true, nil},
		"its other name":       {[]string{"applypatch", text}, "", true, nil},
		"a document":           {sh(doc("", "EOF", "EOF")), "", true, nil},
		"spaces around":        {sh(" \n" + doc("", " 'PATCH'", "PATCH\n\n")), "", true, nil},
		"double quotes":        {sh(doc("", `"E"`, "E")), "", true, nil},
		"another directory":    {sh(doc("cd sub/a-b && ", "EOF", "EOF")), "sub/a-b", true, nil},
		"quoted, with a space": {sh(doc("cd 'a b' && ", "EOF", "EOF")), "a b", true, nil},
		"sh -c":                {[]string{"sh", "-c", doc("", "EOF", "EOF")}, "", true, nil},
		"PowerShell": {
			[]string{"pwsh.exe", "-NoProfile", "-Command", doc("", "EOF", "EOF")}, "", true, nil,
		},
		"cmd":                     {[]string{"cmd", "/c", doc("", "EOF", "EOF")}, "", true, nil},
		"bare":                    {[]string{text}, "", false, ErrBare},
		"a bare script":           {sh(text), "", false, ErrBare},
		"no patch":                {[]string{"echo", "x"}, "", false, nil},
		"no words":                {nil, "", false, nil},
		"another program":         {[]string{"/usr/bin/apply_patch", text}, "", false, nil},
		"more words":              {[]string{"apply_patch", text, "x"}, "", false, nil},
		"shell text":              {sh("apply_patch '" + text + "'"), "", false, nil},
		"a pipe":                  {sh("cat <<E | apply_patch\n" + text + "\nE"), "", false, nil},
		"a redirection":           {sh("apply_patch < f\n"), "", false, nil},
		"something after":         {sh(doc("", "EOF", "EOF\nls")), "", false, nil},
		"something after its tag": {sh(doc("", "EOF && ls", "EOF")), "", false, nil},
		"something before":        {sh(doc("ls; ", "EOF", "EOF")), "", false, nil},
		"two directories":         {sh(doc("cd a && cd b && ", "EOF", "EOF")), "", false, nil},
		"an expanded directory":   {sh(doc("cd $HOME && ", "EOF", "EOF")), "", false, nil},
		"the last directory":      {sh(doc("cd - && ", "EOF", "EOF")), "", false, nil},
		"a home":                  {sh(doc("cd ~ && ", "EOF", "EOF")), "", false, nil},
		"it ends twice":           {sh(doc("", "EOF", "EOF\nls\nEOF")), "", false, nil},
		"no end":                  {sh(doc("", "EOF", "")), "", false, nil},
		"a dash":                  {sh(doc("", "-EOF", "EOF")), "", false, nil},
		"another flag":            {[]string{"bash", "-ec", doc("", "EOF", "EOF")}, "", false, nil},
		"another shell":           {[]string{"fish", "-c", doc("", "EOF", "EOF")}, "", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := CallOf(c.args)
			if !errors.Is(err, c.err) || (got != nil) != c.is {
				t.Fatalf("%+v, %v", got, err)
			}
			if got != nil && (got.Dir != c.dir || got.Text != text) {
				t.Errorf("%+v", got)
			}
		})
	}
}
