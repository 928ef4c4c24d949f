// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"maps"
	"slices"
)

// The operations of a compiled filter, from linux/bpf_common.h. While it installs a
// filter the kernel emulates these (and loads of the number and the architecture) to
// find the calls that are always allowed, and then skips the filter for them.
const (
	opLoad = 0x20 // BPF_LD|BPF_W|BPF_ABS: A = word at offset K
	opAnd  = 0x54 // BPF_ALU|BPF_AND|BPF_K: A &= K
	opJump = 0x05 // BPF_JMP|BPF_JA: skip K
	opJEq  = 0x15 // BPF_JMP|BPF_JEQ|BPF_K: A == K
	opJGe  = 0x35 // BPF_JMP|BPF_JGE|BPF_K: A >= K
	opJSet = 0x45 // BPF_JMP|BPF_JSET|BPF_K: A & K != 0
	opRet  = 0x06 // BPF_RET|BPF_K: answer K
)

// Offsets in struct seccomp_data of linux/seccomp.h. Both machines are little endian, so
// the low half of an argument comes first.
const (
	offNR   = 0
	offArch = 4
	offArgs = 16
)

const (
	// maxProgram is BPF_MAXINSNS.
	maxProgram = 4096
	// nearest is the longest distance that a conditional jump is given. Its field
	// holds 255; the rest leaves room for the one instruction that making the other
	// target reachable may put in between.
	nearest = 253
	// x32First and canceled bound the numbers of the x32 convention: bit 30 and
	// above, except -1 (see Filter).
	x32First = 0x40000000
	canceled = 0xffffffff
	// errNoSys is ENOSYS, the answer to foreign conventions.
	errNoSys = 38
)

// Compile returns the program of f. Equal filters give equal programs. The error is an
// [UnsupportedArchError] or wraps [ErrFilter].
//
// A call without conditions is answered after about log2 of the number of rules steps,
// and by loads of the number and the architecture only.
func (f Filter) Compile() ([]Instruction, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	a := archOf(f.Arch)
	spans, err := f.spans(a)
	if err != nil {
		return nil, err
	}
	c := compiler{fallback: f.Default, answers: map[Action]label{}}
	root := c.search(spans)
	foreign := c.answer(f.foreign())
	nr := c.load(offNR, root)
	c.load(offArch, c.branch(opJEq, a.audit, nr, foreign))
	if len(c.rev) > maxProgram {
		return nil, fmt.Errorf("%w: %d instructions, the kernel takes at most %d; use fewer rules", ErrFilter,
			len(c.rev), maxProgram)
	}
	slices.Reverse(c.rev)
	return c.rev, nil
}

// foreign is the answer to calls of another convention.
func (f Filter) foreign() Action {
	if f.NotifyForeign {
		return Notify
	}
	return Errno(errNoSys)
}

// A span is a range of call numbers with equal rules. It ends where the next one starts,
// the last one at the end of the 32-bit numbers. A span without rules gets the default.
type span struct {
	first uint32
	rules []Rule
}

// spans cuts the call numbers into the fewest ranges of equal rules, in order and
// without gaps.
func (f Filter) spans(a *arch) ([]span, error) {
	rules, err := f.rulesByNumber(a)
	if err != nil {
		return nil, err
	}
	out := make([]span, 1, 2*len(rules)+3)
	add := func(first uint32, rs []Rule) {
		if out[len(out)-1].first == first {
			out = out[:len(out)-1]
		}
		if n := len(out); n == 0 || !sameRules(out[n-1].rules, rs) {
			out = append(out, span{first, rs})
		}
	}
	for _, nr := range slices.Sorted(maps.Keys(rules)) {
		add(nr, rules[nr])
		add(nr+1, nil)
	}
	if a.x32 {
		add(x32First, []Rule{{Action: f.foreign()}})
		add(canceled, nil)
	}
	return out, nil
}

// rulesByNumber returns the rules of each call that the machine has, without those that
// change nothing: behind an unconditional one, or at the end with the default answer.
func (f Filter) rulesByNumber(a *arch) (map[uint32][]Rule, error) {
	numbers := a.numbers()
	rules := make(map[uint32][]Rule, len(f.Rules))
	for _, r := range f.Rules {
		nr, ok := numbers[r.Name]
		if !ok {
			if !known(r.Name) {
				return nil, fmt.Errorf("%w: unknown system call %q", ErrFilter, r.Name)
			}
			continue
		}
		if old := rules[nr]; len(old) > 0 && len(old[len(old)-1].When) == 0 {
			continue
		}
		rules[nr] = append(rules[nr], r)
	}
	for nr, rs := range rules {
		for len(rs) > 0 && rs[len(rs)-1].Action == f.Default {
			rs = rs[:len(rs)-1]
		}
		rules[nr] = rs
	}
	return rules, nil
}

// sameRules reports whether two lists have equal conditions and answers.
func sameRules(a, b []Rule) bool {
	return slices.EqualFunc(a, b, func(x, y Rule) bool {
		return x.Action == y.Action &&
			slices.Equal(x.When, y.When)
	})
}

// A label is an instruction, counted from the end of the program.
type label int

// A compiler writes a program from its end to its start. Jumps only lead forward, so
// every target is in place when the jump is written and each distance is known at once.
type compiler struct {
	rev      []Instruction
	fallback Action
	answers  map[Action]label // the latest return instruction of each action
	bodies   []body           // those written, so that calls with equal rules share them
}

// A body is where the checks of a span's rules begin.
type body struct {
	rules []Rule
	at    label
}

// emit writes in before the instructions that are there.
func (c *compiler) emit(in Instruction) label {
	c.rev = append(c.rev, in)
	return label(len(c.rev) - 1)
}

// distance returns how many instructions a jump written next would skip to reach l.
func (c *compiler) distance(l label) int { return len(c.rev) - int(l) - 1 }

// near returns a place that a conditional jump can reach and that does what l does: l
// itself, a copy of an answer, or a long jump to it.
func (c *compiler) near(l label) label {
	if c.distance(l) <= nearest {
		return l
	}
	if in := c.rev[l]; in.Code == opRet {
		return c.answer(Action(in.K))
	}
	return c.emit(Instruction{Code: opJump, K: uint32(c.distance(l))})
}

// answer returns a near place that ends the program with a.
func (c *compiler) answer(a Action) label {
	if l, ok := c.answers[a]; ok && c.distance(l) <= nearest {
		return l
	}
	l := c.emit(Instruction{Code: opRet, K: uint32(a)})
	c.answers[a] = l
	return l
}

// branch writes a conditional jump on the accumulator.
func (c *compiler) branch(code uint16, k uint32, yes, no label) label {
	yes = c.near(yes)
	no = c.near(no)
	return c.emit(Instruction{Code: code, JT: uint8(c.distance(yes)), JF: uint8(c.distance(no)), K: k})
}

// before writes a plain instruction after which the program goes on at next.
func (c *compiler) before(next label, in Instruction) label {
	if d := c.distance(next); d > 0 {
		c.emit(Instruction{Code: opJump, K: uint32(d)})
	}
	return c.emit(in)
}

// load writes a load of the word at offset, followed by next.
func (c *compiler) load(offset uint32, next label) label {
	return c.before(next, Instruction{Code: opLoad, K: offset})
}

// search writes the search of the call number in the accumulator among spans, of which
// there is at least one.
func (c *compiler) search(spans []span) label {
	if len(spans) == 1 {
		return c.body(spans[0].rules)
	}
	mid := len(spans) / 2
	high := c.search(spans[mid:])
	low := c.search(spans[:mid])
	return c.branch(opJGe, spans[mid].first, high, low)
}

// body writes the checks of rules, unless they are there already.
func (c *compiler) body(rules []Rule) label {
	if len(rules) == 0 {
		return c.answer(c.fallback)
	}
	if i := slices.IndexFunc(c.bodies, func(b body) bool { return sameRules(b.rules, rules) }); i >= 0 {
		return c.bodies[i].at
	}
	next := c.answer(c.fallback)
	for _, r := range slices.Backward(rules) {
		// The conditions are tried in order; one that fails leads to the next rule.
		at := c.answer(r.Action)
		for _, cond := range slices.Backward(r.When) {
			at = c.cond(cond, at, next)
		}
		next = at
	}
	c.bodies = append(c.bodies, body{rules, next})
	return next
}

// cond writes one comparison that goes on at yes or at no.
func (c *compiler) cond(cond Cond, yes, no label) label {
	if cond.Op == Ne || cond.Op == MaskedNe {
		yes, no = no, yes
	}
	mask := cond.Mask
	if mask == 0 {
		mask = ^uint64(0)
	}
	low := uint32(offArgs + 8*cond.Arg)
	at := c.equal(low, uint32(mask), uint32(cond.Value), yes, no)
	if cond.Int {
		return at
	}
	return c.equal(low+4, uint32(mask>>32), uint32(cond.Value>>32), at, no)
}

// equal writes the comparison of the bits of one word under mask with value.
func (c *compiler) equal(offset, mask, value uint32, yes, no label) label {
	switch {
	case mask == 0: // and so value is 0
		return yes
	case mask == ^uint32(0):
		return c.load(offset, c.branch(opJEq, value, yes, no))
	case value == 0:
		return c.load(offset, c.branch(opJSet, mask, no, yes))
	}
	test := c.branch(opJEq, value, yes, no)
	return c.load(offset, c.before(test, Instruction{Code: opAnd, K: mask}))
}
