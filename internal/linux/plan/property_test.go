// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// bases are where rules begin: ordinary directories, and those that a command does
// not see as they are.
var bases = []string{"/w", "/w-b", "/home/u", "/tmp", "/run", "/run/shown", "/sys/x", "/dev/x",
	"/sys/devices/system", "/var"}

// drawPath draws a path below one of the bases.
func drawPath(t *rapid.T) string {
	name := rapid.SampledFrom(bases).Draw(t, "base")
	for _, part := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c-d"}), 0, 4).Draw(t, "parts") {
		name += "/" + part
	}
	return name
}

// pin adds pins above everything that is carved out of a writable root.
func pin(r *Request) {
	var pins []Rule
	taken := func(name string) bool {
		is := func(o Rule) bool { return o.Path == name }
		return slices.ContainsFunc(r.Rules, is) || slices.ContainsFunc(pins, is)
	}
	for _, o := range r.Rules {
		for at := path.Dir(o.Path); r.LevelAt(at) == write && !taken(at); at = path.Dir(at) {
			p := rule(at, write, KindDirectory)
			p.Pin = true
			pins = append(pins, p)
		}
	}
	r.Rules = append(r.Rules, pins...)
	slices.SortFunc(r.Rules, func(a, b Rule) int { return strings.Compare(a.Path, b.Path) })
}

// drawRequest draws a policy whose paths all exist.
func drawRequest(t *rapid.T) *Request {
	r := request()
	levels := map[string]sandbox.Level{}
	for range rapid.IntRange(0, 8).Draw(t, "rules") {
		levels[drawPath(t)] = rapid.SampledFrom([]sandbox.Level{deny, read, write}).Draw(t, "level")
	}
	for name, level := range levels {
		r.Rules = append(r.Rules, rule(name, level, KindDirectory))
	}
	slices.SortFunc(r.Rules, func(a, b Rule) int { return strings.Compare(a.Path, b.Path) })
	for i := range r.Rules {
		leaf := true
		for name := range levels {
			leaf = leaf && (name == r.Rules[i].Path || !within(name, r.Rules[i].Path))
		}
		isBase := slices.Contains(bases, r.Rules[i].Path)
		if leaf && !isBase && rapid.Bool().Draw(t, "file") {
			r.Rules[i].Kind = KindFile
		}
	}
	if rapid.Bool().Draw(t, "pins") {
		pin(r)
	}
	if rapid.Bool().Draw(t, "listed paths only") {
		r.Root = deny
		r.Links = []Link{{"/bin", "usr/bin"}, {"/home/link", "u"}, {"/run/shown/l", "/w"}, {"/tmp/l", "/w"},
			{"/w/l", "a"}}
	}
	if rapid.Bool().Draw(t, "host's /tmp") {
		r.Tmp = nil
	}
	for range rapid.IntRange(0, 3).Draw(t, "overlays") {
		if name := drawPath(t); r.Fits(name) == "" &&
			!slices.ContainsFunc(r.Overlays, func(o Overlay) bool { return o.Path == name }) {
			r.Overlays = append(r.Overlays, overlay(name))
		}
	}
	if rapid.Bool().Draw(t, "host's network") {
		network(sandbox.NetworkHost)(r)
	}
	return r
}

func drawHost(t *rapid.T) *Host {
	h := &Host{
		System: "linux", Arch: "amd64", UID: 1000, GID: 1000, LastCap: 40,
		LandlockABI: rapid.IntRange(2, 8).Draw(t, "abi"),
		Devices:     []string{"null", "tty"}, ProcCovers: []string{"sys", "fs"}, ProcMasks: []string{"kcore"},
		SysShows: []Spot{{Path: "/sys/devices/system", Kind: KindDirectory}},
	}
	if rapid.Bool().Draw(t, "shown") {
		h.RunShows = []Spot{{Path: "/run/shown", Kind: KindDirectory}}
	}
	return h
}

// wanted is the level that the rules give a path.
func wanted(r *Request, name string) sandbox.Level {
	level, best := r.Root, 0
	for _, u := range r.Rules {
		if within(name, u.Path) && len(u.Path) > best {
			level, best = u.Level, len(u.Path)
		}
	}
	return level
}

// system reports whether a command may see something else than the host's file
// at a path that it may read.
func system(r *Request, name string) bool {
	for _, c := range []string{"/dev", "/proc", "/run", "/sys"} {
		if within(name, c) {
			return true
		}
	}
	return r.Tmp != nil && within(name, r.Tmp.At)
}

// shownAnyway reports whether a path may be seen although the root is denied: it
// is in one of the system's own directories, and no rule is about it.
func shownAnyway(r *Request, name string) bool {
	ruled := slices.ContainsFunc(r.Rules, func(u Rule) bool { return within(name, u.Path) })
	return r.Root == deny && !ruled && (within(name, "/sys/devices/system") || within(name, "/run/shown"))
}

// plans checks f for drawn plans.
func plans(t *testing.T, f func(t *rapid.T, h *Host, r *Request, p *Plan)) {
	rapid.Check(t, func(t *rapid.T) {
		h, r := drawHost(t), drawRequest(t)
		p, err := Make(h, r)
		if err != nil {
			t.Fatalf("%v for %v", err, r.Rules)
		}
		f(t, h, r, p)
	})
}

// TestNeverWider: whatever the policy, no path is more open than the most
// specific rule for it, and an ordinary path is exactly as open.
func TestNeverWider(t *testing.T) {
	plans(t, func(t *rapid.T, _ *Host, r *Request, p *Plan) {
		m, err := run(&p.Script, p.Points)
		if err != nil {
			t.Fatalf("%v\n%s", err, p.Script.String())
		}
		names := []string{"/", "/etc/passwd", "/run/shown/x", "/sys/devices/system/cpu", "/tmp/x"}
		for _, u := range r.Rules {
			names = append(names, u.Path, u.Path+"/x", u.Path+"-b")
		}
		for _, o := range r.Overlays {
			names = append(names, o.Path, o.Path+"/x", o.Path+"-b")
		}
		for range 10 {
			names = append(names, drawPath(t))
		}
		for _, name := range names {
			if msg := judge(r, m.look(name), name); msg != "" {
				t.Fatalf("%s: %s\nrules %v\n%s", name, msg, r.Rules, p.Script.String())
			}
		}
	})
}

// judge compares what is seen at a path with what the rules say.
func judge(r *Request, seen view, name string) string {
	want := wanted(r, name)
	overlaid := slices.ContainsFunc(r.Overlays, func(o Overlay) bool { return within(name, o.Path) })
	private := r.Tmp != nil && within(seen.source, r.Tmp.Source.Path)
	switch {
	case seen.over != overlaid:
		return fmt.Sprintf("an overlay is there: %v, is wanted: %v", seen.over, overlaid)
	case seen.over:
		// It may be written, which changes nothing of the host's.
		if want == deny || seen.source != name || seen.ro ||
			seen.attrs != launch.AttrNoSuid|launch.AttrNoDev {
			return fmt.Sprintf("%s is wanted, and the overlay is %v", want, seen)
		}
		return ""
	case private && !within(name, r.Tmp.At):
		return "the private directory is seen here"
	case private, !seen.host:
		// Nothing of the host's, so nothing is too open. But a command must get
		// what a rule gives it.
		if (want == write || want == read) && !system(r, name) {
			return fmt.Sprintf("%s is wanted, and %s stands there", want, seen.source)
		}
		return ""
	case seen.source != name:
		return "it shows " + seen.source
	case want == deny && shownAnyway(r, name) && seen.ro:
		return ""
	case want == deny:
		return "denied, and the host's file is seen"
	case seen.ro != (want != write):
		return fmt.Sprintf("%s is wanted, read-only is %v", want, seen.ro)
	case !seen.ro && seen.attrs&(launch.AttrNoSuid|launch.AttrNoDev) != launch.AttrNoSuid|launch.AttrNoDev:
		return "writable without nosuid and nodev"
	}
	return ""
}

// TestScriptOrder holds the order that walls rest on.
func TestScriptOrder(t *testing.T) {
	plans(t, func(t *rapid.T, _ *Host, r *Request, p *Plan) {
		at := map[launch.Op][]int{}
		for i, s := range p.Script.Steps {
			at[s.Op] = append(at[s.Op], i)
		}
		first := func(o launch.Op) int { return at[o][0] }
		begin, last := first(launch.OpStartCommand), len(p.Script.Steps)-1
		caps := at[launch.OpCaps]
		order := []int{
			first(launch.OpDieWithParent), first(launch.OpSecureBits), first(launch.OpDropBounding),
			first(launch.OpClearAmbient), first(launch.OpNoNewPrivs), first(launch.OpMapUser),
			first(launch.OpRefuseWrite), caps[0], first(launch.OpSeccomp), begin,
			first(launch.OpNewGroup), caps[1], first(launch.OpLandlock), first(launch.OpStdio),
			first(launch.OpChdir),
			first(launch.OpCloseFiles), first(launch.OpResetSignals), first(launch.OpExec),
		}
		if !slices.IsSorted(order) || order[len(order)-1] != last || first(launch.OpDieWithParent) != 0 {
			t.Fatalf("the order is wrong:\n%s", p.Script.String())
		}
		for _, o := range []launch.Op{launch.OpAttach, launch.OpPin, launch.OpClone, launch.OpSetMount,
			launch.OpSetTree, launch.OpReopen, launch.OpSetting} {
			if n := len(at[o]); n > 0 && at[o][n-1] > caps[0] {
				t.Fatalf("a mount changes after rights were taken away:\n%s", p.Script.String())
			}
		}
		if len(caps) != 2 || p.Script.Steps[caps[1]].Value != 0 || p.Script.Steps[caps[0]].Value != 1<<8 {
			t.Fatalf("capabilities:\n%s", p.Script.String())
		}
		network := p.Script.Namespaces&launch.NewNet != 0
		if network != (r.network() == sandbox.NetworkNone) || network != (len(at[launch.OpLoopback]) == 1) {
			t.Fatalf("network %v, namespaces %v", r.network(), p.Script.Namespaces)
		}
	})
}

// TestAttachOrder: directories come before what is in them, and each place of the
// host's is compared with what was planned.
func TestAttachOrder(t *testing.T) {
	plans(t, func(t *rapid.T, _ *Host, r *Request, p *Plan) {
		var places []string
		for _, s := range p.Script.Steps {
			if s.Op != launch.OpAttach && s.Op != launch.OpPin || s.Path == staging && len(places) == 0 {
				continue
			}
			for _, before := range places {
				if before != s.Path && within(before, s.Path) {
					t.Fatalf("%s is attached after %s:\n%s", s.Path, before, p.Script.String())
				}
			}
			places = append(places, s.Path)
		}
		for _, s := range p.Script.Steps {
			i := slices.IndexFunc(r.Rules, func(u Rule) bool { return u.Path == s.Path })
			if i < 0 {
				continue
			}
			ordinary := !system(r, s.Path) && wanted(r, parent(s.Path)) != deny
			if s.Op == launch.OpClone && s.ID != r.Rules[i].ID ||
				(s.Op == launch.OpAttach || s.Op == launch.OpPin) && ordinary && s.ID != r.Rules[i].ID {
				t.Fatalf("%s is not compared:\n%s", s, p.Script.String())
			}
		}
	})
}

func parent(name string) string {
	if i := strings.LastIndexByte(name, '/'); i > 0 {
		return name[:i]
	}
	return "/"
}

// TestWritableCopies: what stays writable was copied before the seal, is private
// and has neither set-user-ID programs nor devices.
func TestWritableCopies(t *testing.T) {
	plans(t, func(t *rapid.T, _ *Host, _ *Request, p *Plan) {
		const safe = launch.AttrNoSuid | launch.AttrNoDev
		sealed := false
		for i, s := range p.Script.Steps {
			switch {
			case s.Op == launch.OpSetMount && s.Path == "/":
				if sealed = s.Recursive && s.Private &&
					s.Set&(safe|launch.AttrReadOnly) == safe|launch.AttrReadOnly; !sealed {
					t.Fatalf("the seal is %s", s)
				}
			case s.Op == launch.OpClone && !sealed && !strings.HasPrefix(s.Path, "/dev/null") &&
				!strings.HasPrefix(s.Path, "/dev/tty"):
				next := p.Script.Steps[i+1]
				if next.Op != launch.OpSetTree || next.Tree != s.Tree || !next.Private ||
					next.Set&safe != safe || next.Recursive != s.Recursive {
					t.Fatalf("%s is followed by %s", s, next)
				}
			}
		}
		if !sealed {
			t.Fatal("the host's tree is not sealed")
		}
	})
}

// TestLandlockCovers: Landlock gives a writing right only below a rule that
// gives it, and in the places that are the command's own.
func TestLandlockCovers(t *testing.T) {
	plans(t, func(t *rapid.T, _ *Host, r *Request, p *Plan) {
		own := []string{"/dev", "/dev/shm", "/proc"}
		if r.Tmp != nil {
			own = append(own, r.Tmp.At)
		}
		for _, o := range r.Overlays {
			own = append(own, o.Path)
		}
		set := rulesetOf(t, p)
		for _, u := range set.Rules {
			if u.Access&^set.Handled != 0 || u.Access == 0 {
				t.Fatalf("rule %v in %v", u, set)
			}
			written := slices.ContainsFunc(r.Rules, func(w Rule) bool {
				return w.Path == u.Path &&
					w.Level == write
			})
			if u.Stdio == 0 && !written && !slices.Contains(own, u.Path) {
				t.Fatalf("no rule lets %s be written: %v", u.Path, r.Rules)
			}
			if u.Stdio != 0 && !r.Stdio[u.Stdio-1].Writable {
				t.Fatalf("descriptor %d is not writable", u.Stdio-1)
			}
		}
		for _, w := range r.Rules {
			given := slices.ContainsFunc(set.Rules, func(u launch.Rule) bool { return u.Path == w.Path })
			if w.Level == write && !given && !w.Pin { // a pin lies below a directory that is given
				t.Fatalf("%s is writable, and Landlock refuses it: %v", w.Path, set)
			}
		}
	})
}

// TestDeterministic: the same facts give the same plan, and a plan survives JSON.
func TestDeterministic(t *testing.T) {
	plans(t, func(t *rapid.T, h *Host, r *Request, p *Plan) {
		again, err := Make(h, r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Fatal(diff)
		}
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var back Plan
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, &back); diff != "" {
			t.Fatal(diff)
		}
	})
}
