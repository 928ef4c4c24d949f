// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// What one text may use. Limits that a person can reach by accident have messages.
const (
	maxSteps = 10_000_000
	maxItems = 1 << 20  // elements of a product, words of all rules and examples
	maxBytes = 16 << 20 // of a product, of the words of all rules and examples
	maxRange = maxSteps / 4

	maxIntBits = 1 << 16
	maxWords   = 1_000 // of one pattern

	// The limits are looked at after so many steps: memory can double a few times between.
	checkSteps = 8
	// What fills memory takes its time, so that memory is looked at no more often than this.
	memoryInterval = 2 * time.Millisecond
)

// These are variables, because a busy machine may need longer for one limit than another one allows.
var (
	maxTime          = 10 * time.Second
	maxMemory uint64 = 256 << 20 // bytes more than at the beginning, in the whole process
)

// interpreterFailed is a defect of the interpreter, or a string that it cannot make.
const interpreterFailed = "the interpreter failed"

var dialect = syntax.FileOptions{TopLevelControl: true, GlobalReassign: true, Recursion: true}

// A program is one text while it is executed, and what it has said.
type program struct {
	file  string
	calls map[[2]int32]syntax.Position // the beginning of a call, by its opening parenthesis
	words int                          // of all rules and examples so far
	bytes int                          // in them
	limit string                       // the limit that was reached

	shifts map[int][]shift // of the text that is executed

	rules    []rule
	examples []examples
	hosts    map[string][]string
	networks []NetworkRule
}

// execute runs a text. An error is a [LoadError].
func execute(name string, text []byte) (p *program, err error) {
	source, err := scan(name, text)
	if err != nil {
		return nil, err
	}
	defer func() {
		if what := recover(); what != nil { // an allocation that no machine has room for, at best
			err = &LoadError{Pos: Pos{File: name}, Text: fmt.Sprintf("%s: %v", interpreterFailed, what)}
		}
	}()
	if p = newProgram(name); p.plain(string(source.text)) {
		return p, nil
	}
	return interpret(name, source)
}

func newProgram(name string) *program {
	return &program{file: name, calls: map[[2]int32]syntax.Position{}, hosts: map[string][]string{}}
}

// interpret runs a text. An error is a [LoadError].
func interpret(name string, source *scanner) (*program, error) {
	p := newProgram(name)
	text, shifts := source.edited()
	p.shifts = shifts
	file, err := dialect.Parse(name, text, 0)
	if err != nil {
		return nil, p.syntaxError(err, source)
	}
	products := bytes.IndexByte(text, '*') >= 0
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok {
			p.calls[[2]int32{call.Lparen.Line, call.Lparen.Col}] = start(call.Fn)
		}
		if products && n != nil {
			bound(n)
		}
		return true
	})
	known := p.builtins()
	code, err := starlark.FileProgram(file, known.Has)
	if err != nil {
		return nil, p.syntaxError(err, source)
	}
	if err := p.refuse(file); err != nil {
		return nil, err
	}
	thread := &starlark.Thread{Name: name}
	p.watch(thread)
	if _, err := code.Init(thread, known); err != nil {
		return nil, p.runError(err)
	}
	return p, nil
}

// start returns where an expression begins; parentheses around what is called do not count.
func start(x syntax.Expr) syntax.Position {
	if paren, ok := x.(*syntax.ParenExpr); ok {
		return start(paren.X)
	}
	return syntax.Start(x)
}

// refuse refuses what this interpreter has and the language, or [bound], has not.
func (p *program) refuse(file *syntax.File) (err error) {
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Ident:
			b, ok := n.Binding.(*resolve.Binding)
			if n.Name == "print" && ok && b.Scope == resolve.Universal {
				err = &LoadError{Pos: p.pos(n.NamePos), Text: "undefined: print"}
			}
		case *syntax.AssignStmt:
			if n.Op == syntax.STAR_EQ {
				err = &LoadError{Pos: p.pos(n.OpPos), Text: "*= is for names only; use x[i] = x[i] * y"}
			}
		}
		return err == nil
	})
	return err
}

// watch ends a thread that goes over a limit.
func (p *program) watch(thread *starlark.Thread) {
	begin := time.Now()
	next, most := begin.Add(memoryInterval), uint64(0) // when memory is looked at, how much there may be
	thread.OnMaxSteps = func(t *starlark.Thread) {
		now := time.Now()
		switch due := now.After(next); {
		case p.limit != "":
		case t.Steps >= maxSteps:
			p.limit = fmt.Sprintf("the file takes more than %d steps; is there a loop without end?", maxSteps)
		case now.Sub(begin) > maxTime:
			p.limit = fmt.Sprintf("the file takes longer than %v", maxTime)
		case due && most > 0 && heap() > most && collected() > most:
			p.limit = fmt.Sprintf("the file takes more than %d MiB of memory", maxMemory>>20)
		default:
			if due && most == 0 {
				most = heap() + maxMemory
			}
			if due {
				next = now.Add(memoryInterval)
			}
			t.SetMaxExecutionSteps(t.Steps + checkSteps)
			return
		}
		t.Cancel(p.limit)
	}
	thread.SetMaxExecutionSteps(checkSteps)
}

// heap returns the size of all objects of this process, in bytes, those that are garbage
// included.
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// collected is heap without the garbage. It blocks for a garbage collection.
func collected() uint64 {
	runtime.GC()
	return heap()
}

// pos returns a place in the text as it was written.
func (p *program) pos(at syntax.Position) Pos {
	col := int(at.Col)
	for _, s := range p.shifts[int(at.Line)] {
		if int(at.Col) > s.col {
			col -= s.added
		}
	}
	return Pos{p.file, int(at.Line), col}
}

// syntaxError returns what the parser or the resolver found.
func (p *program) syntaxError(err error, source *scanner) error {
	var (
		parse  syntax.Error
		unsure resolve.ErrorList
	)
	switch {
	case errors.As(err, &parse):
		if open := source.unclosed(); open != nil && strings.HasPrefix(parse.Msg, "got end of file") {
			return open
		}
		text := parse.Msg
		if strings.HasPrefix(text, "got ':'") || strings.HasPrefix(text, "got '-'") {
			text += "; type annotations are not supported, remove them"
		}
		return &LoadError{Pos: p.pos(parse.Pos), Text: text}
	case errors.As(err, &unsure):
		return &LoadError{Pos: p.pos(unsure[0].Pos), Text: unsure[0].Msg}
	}
	return &LoadError{Pos: Pos{File: p.file}, Text: err.Error()}
}

// runError returns why the execution failed, at the innermost call in the file.
func (p *program) runError(err error) error {
	out := &LoadError{Pos: Pos{File: p.file}, Text: err.Error()}
	if p.limit != "" {
		out.Text = p.limit
	}
	var eval *starlark.EvalError
	if !errors.As(err, &eval) {
		return out
	}
	for _, frame := range eval.CallStack {
		if frame.Pos.Filename() != p.file {
			continue // a built-in function
		}
		name := frame.Name
		if name == "<toplevel>" {
			name = "<module>"
		}
		out.Stack = append(out.Stack, Frame{p.callPos(frame.Pos), name})
	}
	const ends = 10 // of a recursion
	if n := len(out.Stack); n > 2*ends {
		out.Stack = slices.Concat(out.Stack[:ends], out.Stack[n-ends:])
	}
	if n := len(out.Stack); n > 0 {
		out.Pos = out.Stack[n-1].Pos
	}
	return out
}

// callPos returns the beginning of the call whose parenthesis is at a place, else the place.
func (p *program) callPos(at syntax.Position) Pos {
	if start, ok := p.calls[[2]int32{at.Line, at.Col}]; ok {
		at = start
	}
	return p.pos(at)
}

// product is the name of the function that multiplies. No file can call it by name.
const product = "*"

// bound replaces the operator * directly below n by a call of [multiply], which has a limit:
// one multiplication could fill the memory before anything is checked.
func bound(n syntax.Node) {
	if set, ok := n.(*syntax.AssignStmt); ok && set.Op == syntax.STAR_EQ {
		if name, ok := set.LHS.(*syntax.Ident); ok {
			set.RHS = &syntax.BinaryExpr{X: &syntax.Ident{NamePos: name.NamePos, Name: name.Name},
				OpPos: set.OpPos, Op: syntax.STAR, Y: set.RHS}
			set.Op = syntax.EQ
		}
	}
	fields := reflect.ValueOf(n).Elem()
	for i := range fields.NumField() {
		field := fields.Field(i)
		if !field.CanInterface() {
			continue
		}
		switch x := field.Addr().Interface().(type) {
		case *syntax.Expr:
			boundOne(x)
		case *[]syntax.Expr:
			for i := range *x {
				boundOne(&(*x)[i])
			}
		}
	}
}

func boundOne(x *syntax.Expr) {
	if b, ok := (*x).(*syntax.BinaryExpr); ok && b.Op == syntax.STAR {
		fn := &syntax.Ident{NamePos: b.OpPos, Name: product}
		*x = &syntax.CallExpr{Fn: fn, Lparen: b.OpPos, Args: []syntax.Expr{b.X, b.Y}, Rparen: b.OpPos}
	}
}
