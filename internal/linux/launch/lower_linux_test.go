// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// drawn builds a script from bytes: no script that they can describe is left out
// for being senseless.
type drawn struct{ data []byte }

func (d *drawn) byte() byte {
	if len(d.data) == 0 {
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return b
}

func (d *drawn) word() string {
	n := min(int(d.byte()%24), len(d.data))
	s := string(d.data[:n])
	d.data = d.data[n:]
	return s
}

func (d *drawn) number() uint64 {
	var v uint64
	for range d.byte() % 9 {
		v = v<<8 | uint64(d.byte())
	}
	return v
}

func (d *drawn) step() Step {
	s := Step{Op: Op(d.byte() % (uint8(opEnd) + 2)), Path: d.word(), Tree: int(int8(d.byte())) % 6}
	flags := d.byte()
	s.Recursive, s.Private, s.Own = flags&1 != 0, flags&2 != 0, flags&4 != 0
	s.Value, s.From, s.Mode = d.number(), int(int8(d.byte()))%6, uint32(d.number())
	s.Stdio, s.Resource = int(int8(d.byte())), int(int8(d.byte()))
	s.Soft, s.Hard, s.Set, s.Clear, s.Offset = d.number(), d.number(), d.number(), d.number(),
		int64(d.number())
	if flags&8 != 0 {
		s.ID = ID{Dev: d.number(), Ino: d.number()}
	}
	if flags&16 != 0 {
		s.Ruleset = &Ruleset{Handled: d.number(), HandledNet: d.number(), Scoped: d.number()}
		for range d.byte() % 8 {
			s.Ruleset.Rules = append(s.Ruleset.Rules, Rule{Path: d.word(), Stdio: int(int8(d.byte())),
				Access: d.number()})
		}
	}
	if flags&32 != 0 {
		s.Filter = make(Filter, d.number()%5000)
	}
	if flags&64 != 0 {
		s.Layers = &Layers{Upper: Layer{d.word(), ID{d.number(), d.number()}}, Work: Layer{Path: d.word()}}
	}
	for range d.byte() % 4 {
		s.Argv, s.Env = append(s.Argv, d.word()), append(s.Env, d.word())
	}
	return s
}

// FuzzLower: whatever the script, lowering gives a well-formed list or a
// *ScriptError. Nothing is performed.
func FuzzLower(f *testing.F) {
	for o := OpNone; o < opEnd; o++ {
		f.Add([]byte{byte(o), 1, 'x', 1, byte(o), 1, byte(OpStartCommand)})
	}
	f.Add([]byte("\x07\x041234\x01\x00\x02ab\x01\x18\x03abc"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := &drawn{data: data}
		s := &Script{Namespaces: Namespaces(d.number())}
		for len(d.data) > 0 && len(s.Steps) < 40 {
			s.Steps = append(s.Steps, d.step())
		}
		whole := &Script{Namespaces: s.Namespaces & namespaceMask,
			Steps: append(s.Steps[:len(s.Steps):len(s.Steps)],
				Step{Op: OpStartCommand}, Step{Op: OpExec, Path: "/x"})}
		for _, script := range []*Script{s, whole} {
			if len(script.Steps) == 0 {
				continue // Start refuses it before
			}
			for _, old := range []bool{false, true} {
				low, err := lower(script, fds{stdio: [3]int{3, 4, 5}, self: 6, status: 7, reaper: 8,
					numbers: [layerCount]int{9, 10, 11, 12, 13, 14, 15, 16, 17}}, old, notBegun)
				var mistake *ScriptError
				if err != nil {
					if !errors.As(err, &mistake) || mistake.Step < 0 || mistake.Step >= len(script.Steps) {
						t.Fatalf("%v for %d steps", err, len(script.Steps))
					}
					continue
				}
				wellFormed(t, script, low)
			}
		}
	})
}

// wellFormed checks what the assembly relies on.
func wellFormed(t *testing.T, s *Script, low *lowering) {
	t.Helper()
	if len(low.calls) != len(low.origin) {
		t.Fatalf("%d calls, %d origins", len(low.calls), len(low.origin))
	}
	isSlot := func(at uintptr) bool {
		return slices.ContainsFunc(low.keep, func(kept any) bool {
			words, ok := kept.([]uint64)
			return ok && at >= uintptr(unsafe.Pointer(&words[0])) &&
				at <= uintptr(unsafe.Pointer(&words[len(words)-1])) && at%8 == 0
		})
	}
	if low.fork < 0 || low.calls[low.fork].flags&flagFork == 0 {
		t.Fatal("no fork call")
	}
	last := low.calls[len(low.calls)-1]
	if last.nr != unix.SYS_EXECVE || last.flags&(flagIgnore|flagIgnoreOne) != 0 {
		t.Error("the list does not end in an execve that counts")
	}
	reaper := -1
	for i, c := range low.calls {
		for a := range 4 {
			if c.flags&(1<<a) != 0 && !isSlot(c.args[a]) {
				t.Errorf("call %d reads a slot at %#x", i, c.args[a])
			}
		}
		if c.flags&(flagStore|flagFork) != 0 && !isSlot(c.out) {
			t.Errorf("call %d writes a slot at %#x", i, c.out)
		}
		if c.flags&flagIgnoreOne != 0 && c.flags&flagWant != 0 {
			t.Errorf("call %d uses want for two things", i)
		}
		if i > 0 && low.origin[i].step < low.origin[i-1].step {
			t.Errorf("call %d belongs to step %d, the one before to %d", i, low.origin[i].step,
				low.origin[i-1].step)
		}
		if low.origin[i].step >= len(s.Steps) {
			t.Errorf("call %d belongs to step %d of %d", i, low.origin[i].step, len(s.Steps))
		}
		if low.origin[i].step == low.origin[low.fork].step && c.nr == unix.SYS_EXECVEAT {
			reaper = i
		}
	}
	// The first task must not run into the list of the second one.
	if reaper < low.fork || reaper+1 != low.second {
		t.Errorf("the first task's list ends at %d, its fork is at %d", reaper, low.fork)
	}
}

// TestLayout: the assembly knows where these fields are.
func TestLayout(t *testing.T) {
	var c context
	var k call
	cases := []struct {
		name      string
		got, want uintptr
	}{
		{"context.nr", unsafe.Offsetof(c.nr), 0}, {"context.args", unsafe.Offsetof(c.args), 8},
		{"context.script", unsafe.Offsetof(c.script), 48},
		{"context.errno", unsafe.Offsetof(c.errno), 56}, {"context.failed", unsafe.Offsetof(c.failed), 64},
		{"context.then", unsafe.Offsetof(c.then), 72},
		{"call.nr", unsafe.Offsetof(k.nr), 0}, {"call.args", unsafe.Offsetof(k.args), 8},
		{"call.flags", unsafe.Offsetof(k.flags), 56}, {"call.out", unsafe.Offsetof(k.out), 64},
		{"call.want", unsafe.Offsetof(k.want), 72}, {"call", unsafe.Sizeof(k), 80},
		{"clone_args", unsafe.Sizeof(cloneArgs{}), 88}, {"clone_args.cgroup", unsafe.Offsetof(cloneArgs{}.cgroup), 80},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("at %d, the assembly says %d", c.got, c.want)
			}
		})
	}
}

// TestLeft: places and trees are left to the one call that closes all, unless they are too many, a limit
// leaves no numbers for what is opened next, or the table of descriptors is another task's, too.
func TestLeft(t *testing.T) {
	const attached = 4 // each takes a tree and a place
	for name, c := range map[string]struct {
		trees int
		limit uint64
		want  int // calls that close one descriptor
	}{
		"few":        {trees: attached},
		"high limit": {trees: attached, limit: 1 << 20},
		"low limit":  {trees: attached, limit: 64, want: 3 * attached},
		"many":       {trees: maxLeft, want: 2 * maxLeft},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s Script
			for i := 1; i <= c.trees; i++ {
				s.Steps = append(s.Steps, Step{Op: OpClone, Tree: i, Path: "/a"},
					Step{Op: OpAttach, Tree: i, Path: "/b"})
			}
			if c.limit > 0 {
				s.Steps = append(s.Steps, Step{Op: OpLimit, Resource: unix.RLIMIT_NOFILE, Soft: c.limit,
					Hard: c.limit})
			}
			s.Steps = append(s.Steps, Step{Op: OpStartCommand}, Step{Op: OpCloseFiles},
				Step{Op: OpExec, Path: "/x"})
			l, err := lower(&s, fds{}, false, notBegun)
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			for _, o := range l.origin {
				if o.name == "close" {
					got++
				}
			}
			if got != c.want {
				t.Errorf("%d calls close one descriptor, not %d", got, c.want)
			}
		})
	}
	low := newLowering(fds{}, 2) // as for a preforked task
	low.lowerStep(&Step{Op: OpClone, Tree: 1, Path: "/a"})
	low.lowerStep(&Step{Op: OpAttach, Tree: 1, Path: "/b"})
	if len(low.left) > 0 {
		t.Error("what other tasks share is left open")
	}
}
