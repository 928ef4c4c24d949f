// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestPublicTypes: what public packages export is of types that other modules can name. An alias of an
// internal type has a name there.
func TestPublicTypes(t *testing.T) {
	sources, err := parseSources(moduleDir(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sources {
		if !strings.HasSuffix(s.path, "_test.go") && !strings.Contains("/"+s.path, "/internal/") &&
			!strings.HasPrefix(s.path, "cmd/") {
			for _, finding := range internalTypes(s) {
				t.Error(finding)
			}
		}
	}
}

// internalTypes returns where a file exports a type of an internal package.
func internalTypes(s source) (found []string) {
	internal := map[string]bool{} // names of packages
	for _, i := range s.file.Imports {
		name := strings.Trim(i.Path.Value, `"`)
		if strings.Contains(name+"/", "/internal/") {
			if name = path.Base(name); i.Name != nil {
				name = i.Name.Name
			}
			internal[name] = true
		}
	}
	var look func(where string, e ast.Node)
	look = func(where string, e ast.Node) {
		ast.Inspect(e, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StructType:
				for _, field := range n.Fields.List {
					if len(field.Names) == 0 || slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) {
						look(where, field.Type)
					}
				}
				return false
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && internal[x.Name] {
					found = append(found, fmt.Sprintf("%s: %s has the type %s.%s, which other modules cannot name", s.path, where, x.Name, n.Sel.Name))
				}
			}
			return true
		})
	}
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv)) {
				look(d.Name.Name, d.Type)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.IsExported() && !spec.Assign.IsValid() {
						look(spec.Name.Name, spec.Type)
					}
				case *ast.ValueSpec:
					if spec.Names[0].IsExported() && spec.Type != nil {
						look(spec.Names[0].Name, spec.Type)
					}
				}
			}
		}
	}
	return found
}

// exportedReceiver reports whether a method is of an exported type.
func exportedReceiver(list *ast.FieldList) bool {
	exported := false
	ast.Inspect(list.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && !exported {
			exported = id.IsExported()
		}
		return true
	})
	return exported
}

func TestPublicTypesFind(t *testing.T) {
	for _, test := range []struct {
		name, text string
		found      bool
	}{
		{"field", "type T struct { F func() (in.X, error) }", true},
		{"hidden field", "type T struct { f in.X }", false},
		{"embedded", "type T struct { *in.X }", true},
		{"hidden type", "type t struct { F in.X }", false},
		{"alias", "type T = in.X", false},
		{"definition", "type T in.X", true},
		{"method of an interface", "type T interface { M(in.X) }", true},
		{"parameter", "func F(x in.X) {}", true},
		{"parameter of a field", "type T struct { F func(x in.X) }", true},
		{"result", "func F() []in.X { return nil }", true},
		{"inside", "func F() { var x in.X; _ = x }", false},
		{"method", "type T int; func (*T) M() in.X { return nil }", true},
		{"hidden method", "type T int; func (T) m() in.X { return nil }", false},
		{"method of a hidden type", "type t int; func (t) M() in.X { return nil }", false},
		{"variable", "var V in.X", true},
		{"another package", "var V out.X", false},
	} {
		s, err := parseSource("p.go", "package p\nimport (in \"m/internal/x\"; \"m/out\")\n"+test.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := internalTypes(s); len(got) > 0 != test.found {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}
