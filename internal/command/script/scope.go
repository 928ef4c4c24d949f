// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/sallyport-dev/sallyport/internal/command/programs"
)

// blanks separate the words of an expansion outside quotes, unless a script sets IFS.
const blanks = " \t\n"

// An origin is where the values of an expansion come from that are not listed.
type origin int

const (
	known     origin = iota // all values are listed
	inherited               // the environment: the script cannot choose it
	computed                // the script, in a way that is not followed
)

// An assignment is one place that sets a variable.
type assignment struct {
	word    *syntax.Word     // the value; nil is empty
	words   []*syntax.Word   // of an array or a loop
	list    bool             // words counts
	each    bool             // one of words after the other
	add     bool             // += of a text or an array
	unknown bool             // by read, printf -v and the like
	fixed   []string         // values given by the command line; nil is none
	in      *syntax.FuncDecl // where it stands; nil is outside of functions
}

// A callSite is a call of a function by its name.
type callSite struct {
	args []*syntax.Word
	in   *syntax.FuncDecl
}

// A region is a part of a script in which a variable is set.
type region struct{ from, to uint }

// A variable has all values that the script ever gives to it, in the order of the text.
type variable struct {
	assigned []assignment
	set      []region
	busy     bool // being evaluated
	done     bool
	texts    []string
	lists    [][]string // of an array
	unknown  bool       // there are other values
}

// A scope is what names mean in a script or in a call of a function.
type scope struct {
	outer   *scope
	vars    map[string]*variable
	funcs   map[string][]*syntax.FuncDecl
	aliases map[string][]string
	calls   map[string][]callSite
	called  map[*syntax.FuncDecl]bool       // walked for a call
	given   map[*syntax.FuncDecl][][]string // the arguments of all calls
	noting  int                             // scripts in scripts that are being noted
	walking *syntax.FuncDecl                // what collect is in
	self    string                          // $0; "" is unknown
	params  [][]string                      // readings of "$@"; nil is those of outer
	sets    [][]*syntax.Word
	shifted bool
	wild    bool       // any variable may be set, by eval and the like
	unnamed []callSite // calls whose name is an expansion: it may be eval
	call    bool       // of a function: sets, shifted and wild are those of outer
	at      uint       // where outer runs this script
	opened  map[string]input
}

// top is the scope of the script that a function belongs to.
func (sc *scope) top() *scope {
	for sc.call {
		sc = sc.outer
	}
	return sc
}

// variable returns the variable with a name for an assignment to it.
func (sc *scope) variable(name string) *variable {
	if sc.vars == nil {
		sc.vars = map[string]*variable{}
	}
	v := sc.vars[name]
	if v == nil {
		v = new(variable)
		sc.vars[name] = v
	}
	return v
}

func (sc *scope) assign(name string, a assignment) {
	a.in = sc.walking
	v := sc.variable(name)
	v.assigned = append(v.assigned, a)
}

// collect notes what the statements set and define, wherever that happens.
func (sc *scope) collect(stmts []*syntax.Stmt) {
	for _, s := range stmts {
		syntax.Walk(s, sc.note)
		sc.noteSet(s, stmts[len(stmts)-1].End())
	}
}

// own reports whether a name is a function or an alias of the script.
func (sc *scope) own(name string) bool {
	for s := sc; s != nil; s = s.outer {
		if len(s.funcs[name]) > 0 || len(s.aliases[name]) > 0 {
			return true
		}
	}
	return false
}

// note is a visitor of all nodes.
func (sc *scope) note(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.FuncDecl:
		if n.Name != nil {
			if sc.funcs == nil {
				sc.funcs = map[string][]*syntax.FuncDecl{}
			}
			sc.funcs[n.Name.Value] = append(sc.funcs[n.Name.Value], n)
		}
		outside := sc.walking
		sc.walking = n
		syntax.Walk(n.Body, sc.note)
		sc.walking = outside
		return false
	case *syntax.Assign:
		sc.noteAssign(n)
	case *syntax.ParamExp:
		if n.Exp != nil && n.Param != nil && (n.Exp.Op == syntax.AssignUnset ||
			n.Exp.Op == syntax.AssignUnsetOrNull) {
			sc.assign(n.Param.Value, assignment{word: n.Exp.Word})
		}
	case *syntax.WordIter:
		sc.assign(n.Name.Value, assignment{words: n.Items, list: true, each: true,
			unknown: !n.InPos.IsValid()})
	case *syntax.BinaryArithm:
		sc.noteNumber(n.X)
	case *syntax.UnaryArithm:
		sc.noteNumber(n.X)
	case *syntax.DeclClause:
		for _, a := range n.Args {
			if a.Name != nil && a.Value != nil && slices.ContainsFunc(programs.SplitWord(a.Value),
				func(p programs.Piece) bool { return p.Punct("{") }) {
				sc.assign(a.Name.Value, assignment{unknown: true}) // braces are expanded here
			}
			if a.Naked && a.Name == nil && a.Value != nil {
				if text := programs.Literal(a.Value); text == "" || strings.HasPrefix(text, "-") &&
					strings.ContainsAny(text, "nil") {
					sc.wild = true // a name or value from elsewhere, a reference, numbers
				}
			}
		}
	case *syntax.CallExpr:
		sc.noteCall(n)
		for _, a := range n.Assigns { // of the command, in scripts that it runs
			sc.noteRegion(a, n.Pos(), n.End())
		}
	case *syntax.BinaryCmd:
		if n.Op == syntax.AndStmt {
			sc.noteSet(n.X, n.End())
		}
	}
	for _, stmts := range lists(n) {
		for _, s := range stmts {
			sc.noteSet(s, stmts[len(stmts)-1].End())
		}
	}
	return true
}

// lists returns the lists of statements of a node that are performed one after the other.
func lists(n syntax.Node) [][]*syntax.Stmt {
	switch n := n.(type) {
	case *syntax.Block:
		return [][]*syntax.Stmt{n.Stmts}
	case *syntax.Subshell:
		return [][]*syntax.Stmt{n.Stmts}
	case *syntax.CmdSubst:
		return [][]*syntax.Stmt{n.Stmts}
	case *syntax.IfClause:
		return [][]*syntax.Stmt{n.Cond, n.Then}
	case *syntax.WhileClause:
		return [][]*syntax.Stmt{n.Do}
	case *syntax.ForClause:
		return [][]*syntax.Stmt{n.Do}
	case *syntax.CaseItem:
		return [][]*syntax.Stmt{n.Stmts}
	}
	return nil
}

// noteSet notes that the variables which a statement sets are set up to a position.
func (sc *scope) noteSet(s *syntax.Stmt, to syntax.Pos) {
	if s.Background || s.Negated {
		return
	}
	var assigns []*syntax.Assign
	switch cmd := s.Cmd.(type) {
	case *syntax.CallExpr:
		if len(cmd.Args) == 0 {
			assigns = cmd.Assigns
		}
	case *syntax.DeclClause:
		assigns = cmd.Args
	case *syntax.BinaryCmd:
		if cmd.Op == syntax.AndStmt {
			sc.noteSet(cmd.Y, to)
		}
	case *syntax.ForClause:
		if loop, ok := cmd.Loop.(*syntax.WordIter); ok {
			sc.noteRegion(&syntax.Assign{Name: loop.Name}, cmd.Pos(), cmd.End())
		}
	}
	for _, a := range assigns {
		sc.noteRegion(a, s.End(), to)
	}
}

// noteRegion notes where a variable is set. Positions in a script in words mean nothing here.
func (sc *scope) noteRegion(a *syntax.Assign, from, to syntax.Pos) {
	if a.Name != nil && a.Index == nil && sc.noting == 0 {
		v := sc.variable(a.Name.Value)
		v.set = append(v.set, region{from.Offset(), to.Offset()})
	}
}

func (sc *scope) noteAssign(a *syntax.Assign) {
	switch {
	case a.Name == nil:
	case a.Naked:
		sc.assign(a.Name.Value, assignment{}) // of local: empty
	case a.Array != nil:
		as := assignment{list: true, add: a.Append}
		for _, e := range a.Array.Elems {
			if e.Value != nil {
				as.words = append(as.words, e.Value)
			}
			as.unknown = as.unknown || e.Index != nil
		}
		sc.assign(a.Name.Value, as)
	default:
		sc.assign(a.Name.Value, assignment{word: a.Value, add: a.Append, unknown: a.Index != nil})
	}
}

// noteNumber notes a variable that arithmetic may set.
func (sc *scope) noteNumber(x syntax.ArithmExpr) {
	if w, ok := x.(*syntax.Word); ok {
		if name := programs.Literal(w); syntax.ValidName(name) {
			sc.assign(name, assignment{unknown: true})
		}
	}
}

// noteCall notes what a builtin sets.
func (sc *scope) noteCall(call *syntax.CallExpr) {
	words := call.Args
	for len(words) > 0 && (programs.Literal(words[0]) == "command" || programs.Literal(words[0]) == "builtin") {
		words = words[1:]
	}
	if len(words) == 0 {
		return
	}
	name := programs.Literal(words[0])
	words = words[1:]
	if sc.calls == nil {
		sc.calls = map[string][]callSite{}
	}
	sc.calls[name] = append(sc.calls[name], callSite{words, sc.walking})
	switch name {
	case "":
		sc.unnamed = append(sc.unnamed, callSite{call.Args[:1], sc.walking})
	case "printf":
		if len(words) > 1 && programs.Literal(words[0]) == "-v" {
			sc.noteNames(words[1:2])
		}
	case "read", "mapfile", "readarray", "getopts":
		sc.noteNames(words)
	case "trap":
		sc.noteScript(words[:min(1, len(words))])
	case "eval":
		sc.noteScript(words)
	case "unset":
		for _, w := range words {
			if text := programs.Literal(w); syntax.ValidName(text) {
				sc.assign(text, assignment{})
			} else if text == "" {
				sc.wild = true
			}
		}
	case "shift":
		sc.shifted = true
	case "set":
		for len(words) > 0 && strings.HasPrefix(programs.Literal(words[0]), "-") {
			done := programs.Literal(words[0]) == "--"
			if words = words[1:]; done {
				break
			}
		}
		sc.sets = append(sc.sets, words)
	}
}

// noteNames notes variables that a builtin sets.
func (sc *scope) noteNames(words []*syntax.Word) {
	for _, w := range words {
		if text := programs.Literal(w); syntax.ValidName(text) {
			sc.assign(text, assignment{list: true, unknown: true})
		} else if text == "" {
			sc.wild = true
		}
	}
}

// noteScript notes what a script in the words of eval or trap sets. Where that is not known,
// the script itself is not either.
func (sc *scope) noteScript(words []*syntax.Word) {
	var texts []string
	for _, w := range words {
		texts = append(texts, programs.Literal(w))
	}
	if sh := parse(strings.Join(texts, " ")); sh.file != nil && sc.noting < 4 {
		sc.noting++
		sc.collect(sh.file.Stmts)
		sc.noting--
	}
}

// setters are the builtins that set variables.
var setters = []string{"eval", "getopts", "mapfile", "printf", "read", "readarray", "trap"}

// anything reports whether any variable may have any value.
func (sc *scope) anything() bool {
	top := sc.top()
	calls := top.unnamed
	top.unnamed = nil
	for _, c := range calls {
		for _, words := range top.inside(c.in).commands(c.args) {
			if len(words) > 0 && slices.Contains(setters, words[0]) {
				top.wild = true
			}
		}
	}
	if len(calls) > 0 && top.wild {
		for _, v := range top.vars { // what was worked out on the way is not all
			v.done, v.texts, v.lists = false, nil, nil
		}
	}
	return top.wild
}

// find returns a variable, the scope that sets it, and the position there of a use.
func (sc *scope) find(name string, at uint) (*variable, *scope, uint) {
	for s := sc; s != nil; s = s.outer {
		if v := s.vars[name]; v != nil {
			return v, s, at
		}
		if !s.call {
			at = s.at
		}
	}
	return nil, nil, 0
}

// evaluate works out the values of a variable of this scope.
func (v *variable) evaluate(sc *scope) {
	if v.done || v.busy {
		return
	}
	v.busy = true
	var array, text bool
	for _, a := range v.assigned {
		sc := sc.inside(a.in)
		array = array || a.list && !a.each
		text = text || !a.list || a.each
		v.unknown = v.unknown || a.unknown || a.add && !a.list || array && text // t=x sets t[0]
		switch {
		case a.fixed != nil:
			v.texts = append(v.texts, a.fixed...)
		case a.list:
			v.assignList(sc, a)
		case a.unknown && a.word == nil:
		default:
			texts := sc.texts(a.word)
			if a.add {
				texts = appended(v.texts, texts)
			}
			v.texts = append(v.texts, texts...)
		}
		if v.texts = unique(v.texts); len(v.texts) > maxChoices || len(v.lists) > maxReadings {
			v.texts, v.lists, v.unknown = nil, nil, true
		}
	}
	v.busy, v.done = false, true
}

// assignList adds the words of an array or a loop.
func (v *variable) assignList(sc *scope, a assignment) {
	lists := sc.commands(a.words)
	fixed := !slices.ContainsFunc(a.words, func(w *syntax.Word) bool { return !programs.Fixed(w) })
	for _, l := range lists {
		if len(l) == 0 {
			v.texts = append(v.texts, "")
		}
		for i, w := range l {
			if w != Rest {
				v.texts = append(v.texts, w)
			} else if !fixed || i == 0 || !programs.Dynamic(l[i-1]) { // not of a pattern, like the word before
				v.unknown = true
			}
		}
	}
	if a.each {
		return
	}
	before := v.lists
	if !a.add || len(before) == 0 {
		before = [][]string{nil}
	}
	for _, b := range before {
		for _, l := range lists {
			v.lists = append(v.lists, append(slices.Clip(b), l...))
		}
	}
	if a.add { // in a loop, or after another one
		v.lists = append(v.lists, append(slices.Clip(v.lists[0]), Rest))
	}
}

// appended returns each text after each of those before.
func appended(before, texts []string) []string {
	if len(before) == 0 {
		return texts
	}
	var all []string
	for _, b := range before {
		for _, t := range texts {
			if len(b)+len(t) > maxWordBytes {
				return []string{Gap}
			}
			all = append(all, b+t)
		}
	}
	return all
}

// lookup returns the values of a variable at a position.
func (sc *scope) lookup(name string, at uint) (texts []string, lists [][]string, from origin) {
	anything := sc.anything() // before values are worked out
	v, owner, at := sc.find(name, at)
	switch {
	case v == nil && name == "IFS":
		return []string{blanks}, nil, known
	case v == nil:
		return nil, nil, inherited
	}
	v.evaluate(owner)
	switch {
	case v.unknown || v.busy || anything:
		from = computed
	case !slices.ContainsFunc(v.set, func(r region) bool { return r.from <= at && at < r.to }):
		from = inherited // it may be unset
	}
	return v.texts, v.lists, from
}

// separators are the readings of IFS; Gap is one that is not known.
func (sc *scope) separators() []string {
	if v, _, _ := sc.find("IFS", 0); v == nil || v.busy {
		return []string{blanks}
	}
	texts, _, from := sc.lookup("IFS", 0)
	all := append([]string{blanks}, texts...)
	if from == computed || slices.ContainsFunc(texts, programs.Dynamic) {
		all = append(all, Gap)
	}
	return all
}

// inside returns the scope of a function that is called somewhere in the script with all
// arguments that it is given there; of nil, the script's own.
func (sc *scope) inside(f *syntax.FuncDecl) *scope {
	if f == nil || f.Name == nil {
		return sc
	}
	in := &scope{outer: sc, call: true}
	if in.params = sc.given[f]; in.params != nil {
		return in
	}
	if sc.given == nil {
		sc.given = map[*syntax.FuncDecl][][]string{}
	}
	unknown := [][]string{{Rest}}
	sc.given[f] = unknown // for calls of itself
	var all [][]string
	for _, c := range sc.calls[f.Name.Value] {
		for _, words := range sc.inside(c.in).commands(c.args) {
			all = append(all, words)
		}
	}
	if len(all) == 0 || len(all) > maxReadings {
		all = unknown
	}
	sc.given[f], in.params = all, all
	return in
}

// arguments are the readings of "$@".
func (sc *scope) arguments() [][]string {
	var all [][]string
	shifted := false
	for s := sc; s != nil; s = s.outer {
		if all == nil {
			all = s.params
		}
		if s.call {
			continue
		}
		shifted = shifted || s.shifted
		sets := s.sets
		s.sets = nil // "$@" in its own words
		for _, words := range sets {
			for _, c := range s.commands(words) {
				all = append(slices.Clip(all), c)
			}
		}
		if s.sets = sets; s.params != nil || all != nil {
			break
		}
	}
	if len(all) == 0 {
		return [][]string{{Rest}}
	}
	if shifted {
		for _, list := range slices.Clone(all) {
			for i := 1; i <= len(list) && i <= maxChoices; i++ {
				all = append(slices.Clip(all), list[i:])
			}
		}
	}
	if len(all) > maxReadings {
		return [][]string{{Rest}}
	}
	return all
}
