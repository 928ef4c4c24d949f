// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"fmt"
	mathbits "math/bits"
	"slices"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var bothArches = []string{"amd64", "arm64"}

// reading returns what f means by its documentation, without any program.
func reading(f Filter) func(Data) Action {
	byNR := map[int32][]Rule{}
	for _, r := range f.Rules {
		if nr, ok := SyscallNumber(f.Arch, r.Name); ok {
			byNR[int32(nr)] = append(byNR[int32(nr)], r)
		}
	}
	return func(d Data) Action { return plainly(f, byNR[d.NR], d) }
}

// plainly evaluates the rules of f for the call d.
func plainly(f Filter, rules []Rule, d Data) Action {
	audit, _ := AuditArch(f.Arch)
	if d.Arch != audit {
		return Errno(38)
	}
	if f.Arch == "amd64" && uint32(d.NR) >= 1<<30 && d.NR != -1 {
		return Errno(38)
	}
	for _, r := range rules {
		if allHold(r.When, d.Args) {
			return r.Action
		}
	}
	return f.Default
}

func allHold(when []Cond, args [6]uint64) bool {
	for _, c := range when {
		if !holds(c, args[c.Arg]) {
			return false
		}
	}
	return true
}

func holds(c Cond, v uint64) bool {
	if c.Int {
		v = uint64(uint32(v))
	}
	switch c.Op {
	case Eq:
		return v == c.Value
	case Ne:
		return v != c.Value
	case MaskedEq:
		return v&c.Mask == c.Value
	case MaskedNe:
		return v&c.Mask != c.Value
	}
	panic("no such comparison")
}

func mustCompile(t testing.TB, f Filter) []Instruction {
	t.Helper()
	prog, err := f.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(prog); err != nil {
		t.Fatalf("the kernel would refuse the program: %v", err)
	}
	return prog
}

func mustRun(t rapid.TB, prog []Instruction, d Data) (Action, int) {
	t.Helper()
	ret, steps, err := Run(prog, d)
	if err != nil {
		t.Fatal(err)
	}
	return Action(ret), steps
}

var (
	edges = []uint64{
		0, 1, 2, 0xf, 0x10, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<32 + 1, 1<<32 + 2,
		2 << 32, 1<<63 - 1, 1 << 63, 1<<64 - 1, 0xf0f0f0f0f0f0f0f0,
	}
	genValue  = rapid.OneOf(rapid.SampledFrom(edges), rapid.Uint64(), rapid.Uint64Range(0, 20))
	genAction = rapid.SampledFrom([]Action{Allow, Errno(1), Errno(38), Errno(97), Errno(4095), Notify})
)

func genCond(t *rapid.T) Cond {
	c := Cond{
		Arg: rapid.IntRange(0, 5).Draw(t, "arg"),
		Int: rapid.Bool().Draw(t, "int"),
		Op:  CondOp(rapid.IntRange(int(Eq), int(MaskedNe)).Draw(t, "op")),
	}
	c.Value = genValue.Draw(t, "value")
	if c.Int {
		c.Value = uint64(uint32(c.Value))
	}
	if c.Op == MaskedEq || c.Op == MaskedNe {
		c.Mask = genValue.Draw(t, "mask")
		if c.Int {
			c.Mask = uint64(uint32(c.Mask))
		}
		if c.Mask == 0 {
			c.Mask = 0xf
		}
		c.Value &= c.Mask
	}
	return c
}

func genFilter(t *rapid.T) Filter {
	f := Filter{Arch: rapid.SampledFrom(bothArches).Draw(t, "arch"), Default: genAction.Draw(t, "default")}
	var names []string
	for _, n := range archOf(f.Arch).names {
		if n != "" {
			names = append(names, n)
		}
	}
	// neighbors, and one that is missing on one side
	names = append(names, "read", "write", "open", "sync_file_range2")
	names = slices.DeleteFunc(names, func(n string) bool { return !known(n) })
	n := rapid.IntRange(0, 60).Draw(t, "rules")
	for range n {
		r := Rule{Name: rapid.SampledFrom(names).Draw(t, "name"), Action: genAction.Draw(t, "action")}
		for range rapid.SampledFrom([]int{0, 0, 1, 1, 2, 3}).Draw(t, "conds") {
			r.When = append(r.When, genCond(t))
		}
		f.Rules = append(f.Rules, r)
		if rapid.Bool().Draw(t, "again") { // another rule for the same call
			r.When, r.Action = []Cond{genCond(t)}, genAction.Draw(t, "action2")
			f.Rules = append(f.Rules, r)
		}
	}
	return f
}

// genArgs draws arguments, often at the edges of what f's rules for nr compare.
func genArgs(t *rapid.T, f Filter, nr int32) [6]uint64 {
	var args [6]uint64
	for i := range args {
		args[i] = genValue.Draw(t, "arg value")
	}
	name, _ := SyscallName(f.Arch, int(nr))
	for _, r := range f.Rules {
		if r.Name != name {
			continue
		}
		for _, c := range r.When {
			v := c.Value + rapid.SampledFrom([]uint64{0, 0, 0, 1, ^uint64(0), 1 << 32,
				7 << 40}).Draw(t, "off")
			if rapid.Bool().Draw(t, "take") {
				args[c.Arg] = v
			}
		}
	}
	return args
}

// programMeansFilter is the property that the compiled tree and the plain
// meaning of the rules agree.
func programMeansFilter(t *rapid.T) {
	f := genFilter(t)
	prog, err := f.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(prog); err != nil {
		t.Fatal(err)
	}
	audit, _ := AuditArch(f.Arch)
	meant := reading(f)
	check := func(d Data) {
		if got, _ := mustRun(t, prog, d); got != meant(d) {
			t.Fatalf("call %d %#x: program says %v, rules say %v\n%v", d.NR, d.Args, got, meant(d), f)
		}
	}
	var plain [6]uint64
	for i := range plain {
		plain[i] = genValue.Draw(t, "plain")
	}
	for nr := int32(-2); nr <= 600; nr++ {
		check(Data{NR: nr, Arch: audit, Args: plain})
	}
	for _, r := range f.Rules {
		if nr, ok := SyscallNumber(f.Arch, r.Name); ok {
			check(Data{NR: int32(nr), Arch: audit, Args: genArgs(t, f, int32(nr))})
		}
	}
	for range 8 {
		nr := rapid.Int32().Draw(t, "nr")
		check(Data{NR: nr, Arch: audit, Args: plain})
		check(Data{NR: nr & 0x1ff, Arch: rapid.Uint32().Draw(t, "audit"), Args: plain})
		check(Data{NR: nr&0x1ff | 1<<30, Arch: audit, Args: plain})
	}
}

func TestProgramMeansFilter(t *testing.T) { rapid.Check(t, programMeansFilter) }

func FuzzCompile(f *testing.F) { f.Fuzz(rapid.MakeFuzz(programMeansFilter)) }

func TestComparisons(t *testing.T) {
	for op := Eq; op <= MaskedNe; op++ {
		for _, value := range edges {
			for _, asInt := range []bool{false, true} {
				c := Cond{Arg: 3, Op: op, Value: value, Int: asInt}
				if op == MaskedEq || op == MaskedNe {
					c.Mask = value | 1<<40 | 4
				}
				if asInt {
					c.Value, c.Mask = uint64(uint32(c.Value)), uint64(uint32(c.Mask))
				}
				t.Run(c.String(), func(t *testing.T) {
					f := Filter{Arch: "amd64", Default: Allow,
						Rules: []Rule{{Name: "read", When: []Cond{c}, Action: Errno(5)}}}
					prog := mustCompile(t, f)
					for _, v := range edges {
						for _, v := range []uint64{v - 1, v, v + 1, v ^ 1<<40, v ^ 4} {
							d := Data{Arch: auditX8664, Args: [6]uint64{3: v}}
							if got, _ := mustRun(t, prog, d); (got == Errno(5)) != holds(c, v) {
								t.Errorf("%#x: %v", v, got)
							}
						}
					}
				})
			}
		}
	}
}

func TestLayoutIsSockFilter(t *testing.T) {
	var in Instruction
	got := []uintptr{
		unsafe.Sizeof(in), unsafe.Offsetof(in.Code), unsafe.Offsetof(in.JT), unsafe.Offsetof(in.JF),
		unsafe.Offsetof(in.K),
	}
	if want := []uintptr{8, 0, 2, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("size and offsets %v, want %v", got, want)
	}
}

// manyRules is a filter that needs n rules of arguments.
func manyRules(n int) Filter {
	f := Filter{Arch: "amd64", Default: Allow}
	names := slices.DeleteFunc(slices.Clone(archOf("amd64").names), func(s string) bool { return s == "" })
	for i := range n {
		f.Rules = append(f.Rules, Rule{
			Name:   names[i%len(names)],
			When:   []Cond{{Arg: i % 6, Op: Eq, Value: uint64(i)<<32 | uint64(n-i)}},
			Action: Errno(uint16(1 + i%9)),
		})
	}
	return f
}

func TestLongJumps(t *testing.T) {
	f := manyRules(700)
	prog, meant := mustCompile(t, f), reading(f)
	if len(prog) < 1500 || !slices.ContainsFunc(prog, func(in Instruction) bool {
		return in.Code == opJump &&
			in.K > 255
	}) {
		t.Fatalf("%d instructions without a long jump test nothing", len(prog))
	}
	for i, r := range f.Rules {
		nr, _ := SyscallNumber("amd64", r.Name)
		d := Data{NR: int32(nr), Arch: auditX8664}
		if got, _ := mustRun(t, prog, d); got != meant(d) {
			t.Errorf("rule %d without its argument: %v", i, got)
		}
		d.Args[r.When[0].Arg] = r.When[0].Value
		if got, _ := mustRun(t, prog, d); got != r.Action {
			t.Errorf("rule %d: %v, want %v", i, got, r.Action)
		}
	}
}

// TestLongChains puts every target of a conditional jump far away: one call has
// all rules, so that first and last are more than 255 instructions apart.
func TestLongChains(t *testing.T) {
	f := Filter{Arch: "arm64", Default: Errno(1)}
	for i := range 400 {
		when := []Cond{{Arg: 0, Op: Eq, Value: uint64(i)}, {Arg: 1, Op: MaskedNe, Mask: 1 << 33}}
		f.Rules = append(f.Rules, Rule{Name: "write", When: when, Action: Errno(uint16(1 + i))})
	}
	prog, meant := mustCompile(t, f), reading(f)
	nr, _ := SyscallNumber("arm64", "write")
	for i := range 402 {
		for _, second := range []uint64{0, 1 << 33} {
			d := Data{NR: int32(nr), Arch: auditAArch64, Args: [6]uint64{uint64(i), second}}
			if got, _ := mustRun(t, prog, d); got != meant(d) {
				t.Fatalf("%v: %v, want %v", d.Args, got, meant(d))
			}
		}
	}
}

func TestCompileErrors(t *testing.T) {
	with := func(c Cond) Filter {
		return Filter{Arch: "amd64", Default: Allow,
			Rules: []Rule{{Name: "read", When: []Cond{c}, Action: Errno(1)}}}
	}
	rule := func(r Rule) Filter { return Filter{Arch: "amd64", Default: Allow, Rules: []Rule{r}} }
	var badArch *UnsupportedArchError
	is := func(target error) func(error) bool {
		return func(err error) bool { return errors.Is(err, target) }
	}
	for _, tc := range []struct {
		name string
		f    Filter
		want func(error) bool
	}{
		{"zero filter", Filter{}, func(err error) bool { return errors.As(err, &badArch) }},
		{"other architecture", Filter{Arch: "riscv64", Default: Allow}, func(err error) bool { return errors.As(err, &badArch) }},
		{"zero default", Filter{Arch: "amd64"}, is(ErrFilter)},
		{"made-up default", Filter{Arch: "amd64", Default: 7}, is(ErrFilter)},
		{"zero action", rule(Rule{Name: "read"}), is(ErrFilter)},
		{"errno 0", rule(Rule{Name: "read", Action: Errno(0)}), is(ErrFilter)},
		{"errno 4096", rule(Rule{Name: "read", Action: Errno(4096)}), is(ErrFilter)},
		{"zero rule name", rule(Rule{Action: Errno(1)}), is(ErrFilter)},
		{"made-up call", rule(Rule{Name: "raed", Action: Errno(1)}), is(ErrFilter)},
		{"zero condition", with(Cond{}), is(ErrFilter)},
		{"argument 6", with(Cond{Arg: 6, Op: Eq}), is(ErrFilter)},
		{"argument -1", with(Cond{Arg: -1, Op: Eq}), is(ErrFilter)},
		{"comparison behind the last", with(Cond{Op: MaskedNe + 1}), is(ErrFilter)},
		{"mask missing", with(Cond{Op: MaskedEq}), is(ErrFilter)},
		{"mask too much", with(Cond{Op: Eq, Mask: 1}), is(ErrFilter)},
		{"value outside mask", with(Cond{Op: MaskedNe, Mask: 6, Value: 1}), is(ErrFilter)},
		{"wide value of an int", with(Cond{Int: true, Op: Eq, Value: 1 << 32}), is(ErrFilter)},
		{"wide mask of an int", with(Cond{Int: true, Op: MaskedEq, Mask: 1 << 32}), is(ErrFilter)},
		{"too long", manyRules(2000), is(ErrFilter)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			prog, err := tc.f.Compile()
			if err == nil || !tc.want(err) || prog != nil {
				t.Errorf("%d instructions, error %v", len(prog), err)
			}
		})
	}
}

func TestMissingOnOneArchIsSkipped(t *testing.T) {
	f := Filter{Arch: "arm64", Default: Allow, Rules: []Rule{{Name: "open", Action: Errno(1)}}}
	empty := Filter{Arch: "arm64", Default: Allow}
	if diff := cmp.Diff(mustCompile(t, empty), mustCompile(t, f)); diff != "" {
		t.Errorf("open left a trace on arm64:\n%s", diff)
	}
}

func TestCompileIsDeterministic(t *testing.T) {
	for _, arch := range bothArches {
		f := mustDefault(t, Options{Arch: arch})
		first := mustCompile(t, f)
		for range 20 {
			if !slices.Equal(first, mustCompile(t, f)) {
				t.Fatal("two programs for one filter")
			}
		}
	}
}

func mustDefault(t testing.TB, o Options) Filter {
	t.Helper()
	f, err := Default(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestDepth bounds the cost of the calls that no condition concerns: loading and
// checking the architecture, loading the number, the tree, the answer, and at
// most two long jumps.
func TestDepth(t *testing.T) {
	for _, arch := range bothArches {
		for _, o := range []Options{{Arch: arch}, {Arch: arch, OwnPID: true, HostNetwork: true,
			Allow: []string{"userns"}}} {
			t.Run(fmt.Sprint(o), func(t *testing.T) {
				f := mustDefault(t, o)
				prog := mustCompile(t, f)
				conditional := map[string]bool{}
				for _, r := range f.Rules {
					conditional[r.Name] = conditional[r.Name] || len(r.When) > 0
				}
				bound := 6 + mathbits.Len(uint(2*len(f.Rules)))
				worst := 0
				audit, _ := AuditArch(arch)
				for nr := range int32(600) {
					if name, _ := SyscallName(arch, int(nr)); conditional[name] {
						continue
					}
					_, steps := mustRun(t, prog, Data{NR: nr, Arch: audit})
					if worst = max(worst, steps); steps > bound {
						t.Errorf("call %d takes %d steps, more than %d", nr, steps, bound)
					}
				}
				t.Logf("%d rules, %d instructions, at most %d steps without conditions", len(f.Rules),
					len(prog), worst)
			})
		}
	}
}

// TestHotCallsAreConstant checks that the kernel can see that common calls are
// always allowed: on their way through the program nothing but the number and
// the architecture is read.
func TestHotCallsAreConstant(t *testing.T) {
	hot := []string{
		"read", "write", "close", "fstat", "lseek", "mmap", "mprotect", "munmap", "brk",
		"rt_sigaction", "pread64",
		"readv", "writev", "dup3", "nanosleep", "getpid", "connect", "sendto", "recvfrom",
		"execve", "exit_group",
		"wait4", "getdents64", "futex", "epoll_pwait", "newfstatat", "openat2", "statx", "pipe2", "prctl",
		"seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "memfd_secret",
		"name_to_handle_at", "pidfd_open", "mbind", "set_mempolicy", "adjtimex", "clock_adjtime",
	}
	for _, arch := range bothArches {
		prog := mustCompile(t, mustDefault(t, Options{Arch: arch}))
		audit, _ := AuditArch(arch)
		for _, name := range hot {
			nr, ok := SyscallNumber(arch, name)
			if !ok {
				t.Fatalf("%s: no %s", arch, name)
			}
			if got, constant := constantAnswer(prog, audit, uint32(nr)); got != Allow || !constant {
				t.Errorf("%s %s: %v, constant %v", arch, name, got, constant)
			}
		}
	}
}

// constantAnswer follows a program as the kernel does when it prepares its table
// of calls that are always allowed (seccomp_is_const_allow).
func constantAnswer(prog []Instruction, audit, nr uint32) (Action, bool) {
	var a uint32
	for pc := 0; pc < len(prog); pc++ {
		in := prog[pc]
		skip := func(yes bool) {
			if yes {
				pc += int(in.JT)
			} else {
				pc += int(in.JF)
			}
		}
		switch {
		case in.Code == opLoad && in.K == offNR:
			a = nr
		case in.Code == opLoad && in.K == offArch:
			a = audit
		case in.Code == opRet:
			return Action(in.K), true
		case in.Code == opJump:
			pc += int(in.K)
		case in.Code == opJEq:
			skip(a == in.K)
		case in.Code == opJGe:
			skip(a >= in.K)
		default:
			return 0, false
		}
	}
	return 0, false
}

func BenchmarkCompile(b *testing.B) {
	f := mustDefault(b, Options{Arch: "amd64"})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Compile(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDefault(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Default(Options{Arch: "amd64"}); err != nil {
			b.Fatal(err)
		}
	}
}
