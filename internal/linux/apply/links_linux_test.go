// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestLinks: names of one file in the stage are names of one file on the host, also when they are applied one
// after the other, unless one was changed between.
func TestLinks(t *testing.T) {
	testenv.RunAsOrdinary(t)
	write := func(path, text string) op { return op{Do: "write", A: path, B: text, N: 1} }
	aged := func(path string) op { return op{Do: "old", A: path, N: 1000} }
	ln := func(from, to string) op { return op{Do: "ln", A: from, B: to} }
	for _, test := range []struct {
		name    string
		stage   []op
		first   string // is applied alone, all if it is empty
		between []op   // on the host
		later   []op   // in the stage
		want    string // names of the file "a"
	}{
		{name: "a mode", stage: []op{{Do: "chmod", A: "a", N: 0o600}, ln("a", "x")}, want: "a x"},
		{name: "a mode first", stage: []op{{Do: "chmod", A: "a", N: 0o600}, ln("a", "x")}, first: "a",
			want: "a x"},
		{name: "a mode last", stage: []op{{Do: "chmod", A: "a", N: 0o600}, ln("a", "x")}, first: "x",
			want: "a x"},
		{name: "content first", stage: []op{write("a", "new"), ln("a", "d/x")}, first: "a", want: "a d/x"},
		{name: "content last", stage: []op{write("a", "new"), ln("a", "d/x")}, first: "d/x", want: "a d/x"},
		{name: "over another file", stage: []op{write("a", "new"), {Do: "rm", A: "b"}, ln("a", "b")},
			first: "a", want: "a b"},
		{name: "three", stage: []op{write("a", "new"), ln("a", "x"), ln("a", "d/y")}, first: "d/y",
			want: "a d/y x"},
		{name: "changed on the host", stage: []op{write("a", "new"), ln("a", "x")}, first: "a",
			between: []op{write("a", "own")}, want: "a"},
		{name: "replaced on the host", stage: []op{write("a", "new"), ln("a", "x")}, first: "a",
			between: []op{{Do: "replace", A: "a", B: "new", N: 1}, aged("a")}, want: "a"},
		{name: "gone from the host", stage: []op{write("a", "new"), ln("a", "x")}, first: "x",
			between: []op{{Do: "rm", A: "x"}}, want: "a"},
		{name: "changed in the stage", stage: []op{write("a", "new"), ln("a", "x")}, first: "a",
			later: []op{write("x", "more")}, want: "a"},
		{name: "made anew in the stage", stage: []op{write("a", "new"), aged("a"), ln("a", "x")}, first: "a",
			later: []op{{Do: "rm", A: "x"}, write("x", "new"), aged("x")}, want: "a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := newTrial(t, mkdir(t, t.TempDir(), "x"))
			x.host(hosts...)
			x.run(test.stage...)
			if test.first != "" {
				a := x.apply(executor.ApplyOptions{Paths: []string{filepath.Join(x.root, test.first)}})
				if len(a.Applied) != 1 || a.Applied[0] != test.first {
					t.Errorf("applied %q", a.Applied)
				}
			}
			x.host(test.between...)
			if test.later != nil {
				x.run(test.later...)
			}
			if a := x.apply(executor.ApplyOptions{}); a.Left != 0 {
				t.Errorf("%+v", a)
			}
			if got := look(t, x.root)["a"].Links; got != test.want {
				t.Errorf("the file has the names %q, want %q", got, test.want)
			}
			x.clean()
		})
	}
}

// TestTamperedLinks: what a stage says of earlier calls leads to no file that its commands could not write.
func TestTamperedLinks(t *testing.T) {
	testenv.NeedUserNS(t)
	aged := op{Do: "old", A: "a", N: 1000}
	for _, at := range []string{`"Y2xvc2Vk"`, `"Li4vaG9zdC9jbG9zZWQ="`} { // closed, ../host/closed
		x := newTrial(t, mkdir(t, t.TempDir(), "x"))
		x.host(hosts...)
		x.host(op{Do: "write", A: "closed", B: "new", N: 1}, op{Do: "old", A: "closed", N: 1000})
		x.run(op{Do: "write", A: "a", B: "new", N: 1}, aged, op{Do: "ln", A: "a", B: "x"})
		x.apply(executor.ApplyOptions{Paths: []string{filepath.Join(x.root, "a")}})
		name := filepath.Join(x.dir, linksName)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		edited := strings.Replace(string(text), `"YQ=="`, at, 1) // a
		if edited == string(text) {
			t.Fatalf("it is %s", text)
		}
		if err := os.WriteFile(name, []byte(edited), 0o600); err != nil {
			t.Fatal(err)
		}
		x.stage.Closed = func(path string) error {
			if filepath.Base(path) == "closed" {
				return os.ErrPermission
			}
			return nil
		}
		x.apply(executor.ApplyOptions{})
		if got := look(t, x.root)["x"].Links; got != "x" {
			t.Errorf("%s: it has the names %q", at, got)
		}
	}
}
