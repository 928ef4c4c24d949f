// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const begin, end = "*** Begin Patch\n", "*** End Patch"
	tests := []struct {
		name, text, wrong string
		want              *Patch
	}{
		{"a second end mark", begin + "*** Delete File: a\n" + end + "\n" + end, "",
			&Patch{Hunks: []Hunk{{Kind: Delete, Path: "a"}}}},
		{"three end marks", begin + end + "\n" + end + "\n" + end, errLast.Error(), nil},
		{"only the first line", "*** Begin Patch", errLast.Error(), nil},
		{"carriage returns of the text itself", begin + "*** Add File: a\n+b\r\r\n" + end, "",
			&Patch{Hunks: []Hunk{{Kind: Add, Path: "a", Lines: []string{"b\r"}}}}},
		{"a last mark that is indented", begin + "*** Update File: a\n+b\n  " + end, "",
			&Patch{Hunks: []Hunk{{Kind: Update, Path: "a", Chunks: []Chunk{{Lines: []Line{{'+', "b"}}}}}}}},
		{"an environment after a hunk", begin + "*** Delete File: a\n*** Environment ID: b\n" + end,
			"Invalid patch hunk on line 3: '*** Environment ID: b' is not a valid hunk header. Valid hunk " +
				"headers: '*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(test.text)
			wrong := ""
			if err != nil {
				wrong = err.Error()
			}
			if wrong != test.wrong || !cmp.Equal(got, test.want) {
				t.Errorf("got %+v, %q; want %+v, %q", got, wrong, test.want, test.wrong)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/vectors/*/patch.txt")
	if err != nil || len(files) == 0 {
		f.Fatal("no vectors", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(first.String())
		if err != nil || !cmp.Equal(first, again) {
			t.Fatalf("%q\nprints %q\n%v %s", text, first.String(), err, cmp.Diff(first, again))
		}
	})
}
