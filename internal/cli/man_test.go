// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// plainRoff undoes the escapes of a manual page.
func plainRoff(page string) string {
	page = regexp.MustCompile(`\\f[BIR]`).ReplaceAllString(page, "")
	return strings.NewReplacer(`\&`, "", `\-`, "-", `\(aq`, "'", `\(ga`, "`", `\(ha`, "^", `\(ti`, "~",
		`\(dq`, `"`, `\e`, `\`).Replace(page)
}

// TestManualSaysWhatHelpSays looks for every line of --help in the manual page, apart from
// the layout of the flags, of which each name, value and explanation must be there.
func TestManualSaysWhatHelpSays(t *testing.T) {
	for _, c := range shownCommands() {
		page := plainRoff(manual(&c))
		above, flags := c.help, c.flags
		if c.flags == nil {
			above, flags = runHelpText+exitCodesHelp,
				func(*options) []syntax.Flag { return new(args.Options).Flags() }
		}
		for line := range strings.Lines(above) {
			if line = strings.TrimSpace(line); !strings.Contains(page, line) {
				t.Errorf("%s: the page has no %q", c.name, line)
			}
		}
		for _, f := range flags(new(options)) {
			head := f.Name()
			if f.Short != 0 {
				head = f.Shortest() + ", " + head
			}
			if f.Value != "" {
				head += " " + f.Value
			}
			if f.Optional != "" {
				head += "[=" + f.Optional + "]"
			}
			if !strings.Contains(page, "\n"+head+"\n"+f.Help+"\n") {
				t.Errorf("%s: %q and its explanation are not on the page", c.name, head)
			}
		}
	}
	page := plainRoff(manual(nil))
	for _, c := range shownCommands() {
		if !strings.Contains(page, "sallyport-"+c.name+"(1)\n"+c.short+"\n") {
			t.Errorf("the page of the program has no %s", c.name)
		}
	}
}

// TestManualRequests lets only the requests that the writer means begin a line, and only its
// escapes stand in the text.
func TestManualRequests(t *testing.T) {
	request := regexp.MustCompile(`^\.(TH|SH|SS|TP|PP|nf|fi)( |$)`)
	escape := regexp.MustCompile(`^\\(&|-|e|f[BIR]|\((aq|ga|ha|ti|dq))`)
	pages := []string{manual(nil)}
	for _, c := range shownCommands() {
		pages = append(pages, manual(&c))
	}
	for _, page := range pages {
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") &&
				!request.MatchString(strings.TrimSpace(line)) {
				t.Errorf("a request by accident: %q", line)
			}
			for i := range line {
				if line[i] == '\\' && !escape.MatchString(line[i:]) && (i == 0 || line[i-1] != '\\') {
					t.Errorf("an escape by accident: %q", line[i:])
				}
			}
		}
	}
}

// TestHelpListsManuals keeps the loop in the help of help complete.
func TestHelpListsManuals(t *testing.T) {
	var names []string
	for _, c := range shownCommands() {
		names = append(names, c.name)
	}
	if want := "for c in " + strings.Join(names, " ") +
		"; do"; !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(helpHelp, "\\\n",
		"")), " "), want) {
		t.Errorf("the help has no %q", want)
	}
}
