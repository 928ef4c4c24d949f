// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// sharedWalls are those that a command which begins with known mounts builds for itself.
func sharedWalls() []missingWall {
	host := sandbox.ReadOnly().WithNetwork(sandbox.NetworkHost)
	walls := []missingWall{
		{name: "landlock scope", change: each(noScope), attacks: "abstract", job: job{policy: &host, allow: []string{"unix"}}},
	}
	own := strings.Split("landlock,seccomp,cgroup namespace,pid namespace,pid namespace and scope,covers of /proc,masks of /proc,capabilities,secure bits,"+
		"bounding set,no_new_privs,descriptors,session,core limit", ",")
	for _, w := range missingWalls() {
		if slices.Contains(own, w.name) {
			walls = append(walls, w)
			own = slices.DeleteFunc(own, func(name string) bool { return name == w.name })
		}
	}
	if len(own) > 0 {
		panic("there are no walls " + strings.Join(own, ", "))
	}
	return walls
}

// A wallInTree is a step of the first command whose mounts others begin with. Without it, those that come
// later have no such wall; where it makes a mount, they prove that this is there.
type wallInTree struct {
	name    string
	change  func(a *arena, p *plan.Plan)
	attacks string
	proved  bool
}

func wallsInTree() []wallInTree {
	proved := strings.Split("private /tmp,protected name,state directory,denied file,denied directory", ",")
	// No program can take these away, and below them are mounts of the host.
	others := strings.Split("seal,cover of /sys,cover of /run", ",")
	var walls []wallInTree
	for _, w := range missingWalls() {
		if slices.Contains(others, w.name) || slices.Contains(proved, w.name) {
			walls = append(walls, wallInTree{w.name, w.change, w.attacks, slices.Contains(proved, w.name)})
		}
	}
	if len(walls) != len(proved)+len(others) {
		panic("some walls are not there")
	}
	return append(walls, wallInTree{"common /dev/shm", shmOfHost, "dev-shm", false})
}

// shmOfHost puts a copy of the host's /dev/shm where that of the holder would go.
func shmOfHost(_ *arena, p *plan.Plan) {
	steps := p.Script.Steps
	share := slices.IndexFunc(steps, func(s launch.Step) bool { return s.Op == launch.OpShare })
	attach := slices.IndexFunc(steps, func(s launch.Step) bool {
		return s.Op == launch.OpAttach &&
			s.Path == "/dev/shm"
	})
	const tree = 9999
	steps[attach].Tree = tree
	p.Script.Steps = slices.Insert(steps, share+1, launch.Step{Op: launch.OpClone, Tree: tree,
		Path: "/dev/shm"})
}

// policyOfWalls is that of the arena, with a file and a directory that are denied.
func (a *arena) policyOfWalls() sandbox.Policy {
	return a.policy().WithEntries(sandbox.PathEntry(a.out+"/other", sandbox.LevelDeny),
		sandbox.PathEntry(a.out+"/dir", sandbox.LevelDeny))
}

// TestSharedWallsCanFail does what TestWallsCanFail does, with a command that begins with known mounts.
func TestSharedWallsCanFail(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, w := range sharedWalls() {
		t.Run(w.name, func(t *testing.T) {
			if w.root {
				testenv.NeedRoot(t)
			}
			a := newArena(t)
			p := a.policyOfWalls()
			if w.job.policy != nil {
				p = bind(*w.job.policy, a.ws)
			}
			w.job.policy = &p
			w.job.in = a.open(t, p)
			kv := surroundingsFor(t, a)
			first := w.job
			first.args = sh(`:`)
			mustRun(t, a, &first)
			names := strings.Fields(w.attacks)
			for n, v := range a.attack(t, &w.job, names, kv...) {
				if v.word != wordDenied {
					t.Errorf("with every wall: %s %v", n, v)
				}
			}
			for _, n := range names {
				undisturbed(t, func() (known bool) {
					without := w.job
					without.change = func(p *plan.Plan) {
						known = p.Known > 0
						w.change(a, p)
					}
					v := a.attack(t, &without, []string{n}, kv...)[n]
					if !known {
						mustRun(t, a, &first)
					} else if v.word != wordBreach {
						t.Errorf("without %s: %s %v", w.name, n, v)
					}
					return known
				})
			}
		})
	}
}

// TestSharedTreeCanFail takes walls out of the mounts that are kept: the next command does not start with
// them, because it proves each mount, and when that proof is missing the attack succeeds.
func TestSharedTreeCanFail(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, w := range wallsInTree() {
		t.Run(w.name, func(t *testing.T) {
			a := newArena(t)
			p := a.policyOfWalls()
			kv := surroundingsFor(t, a)
			for _, n := range strings.Fields(w.attacks) {
				t.Run(n, func(t *testing.T) {
					undisturbed(t, func() (known bool) {
						s := a.open(t, p)
						mustRun(t, a, &job{in: s, policy: &p, args: sh(`:`),
							change: func(p *plan.Plan) { w.change(a, p) }})
						unproved := func(p *plan.Plan) {
							known = p.Known > 0
							dropOp(launch.OpExpectMount)(a, p)
						}
						if v := a.attack(t, &job{in: s, policy: &p, change: unproved}, []string{n},
							kv...)[n]; known && v.word != wordBreach {
							t.Errorf("without the wall and its proof: %v", v)
						}
						if v := a.attack(t, &job{in: s, policy: &p}, []string{n}, kv...)[n]; w.proved &&
							v.word != wordDenied {
							t.Errorf("without the wall: %v", v)
						}
						return known
					})
				})
			}
		})
	}
}

// TestSharedNamespacesCanFail leaves out a namespace that the holder keeps.
func TestSharedNamespacesCanFail(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for name, attacks := range map[string]string{"ipc": "shm sem msg mq ns-ipc", "uts": "ns-uts",
		"net": "tcp4 tcp6 udp4 ns-net"} {
		t.Run(name, func(t *testing.T) {
			a := newArena(t)
			s := a.open(t, a.policy())
			kv := surroundingsFor(t, a)
			mustRun(t, a, &job{in: s, args: sh(`:`)})
			names := strings.Fields(attacks)
			for n, v := range a.attack(t, &job{in: s}, names, kv...) {
				if v.word != wordDenied {
					t.Errorf("with every wall: %s %v", n, v)
				}
			}
			whole := s.parts.Namespaces
			i := slices.Index(plan.SharedNamespaces(sandbox.NetworkNone, false), name)
			s.parts.Namespaces = slices.Delete(slices.Clone(whole), i, i+1)
			for n, v := range a.attack(t, &job{in: s, change: func(*plan.Plan) {}}, names, kv...) {
				if v.word != wordBreach {
					t.Errorf("without %s: %s %v", name, n, v)
				}
			}
			s.parts.Namespaces = whole
		})
	}
}

// TestSharedProofStops: what the host did to a mount that is kept stops a launch that would begin with it,
// and a new plan is made.
func TestSharedProofStops(t *testing.T) {
	testenv.RunAsOrdinary(t)
	tests := []struct {
		name   string
		change func(t *testing.T, a *arena)
	}{
		{"workspace moved and back", func(t *testing.T, a *arena) {
			must(t, unix.Rename(a.ws, a.base+"/away"))
			must(t, unix.Rename(a.base+"/away", a.ws))
		}},
		{"protected name replaced", func(t *testing.T, a *arena) {
			must(t, unix.Rename(a.ws+"/.git", a.base+"/git"))
			must(t, unix.Mkdir(a.ws+"/.git", 0o755))
		}},
		{"denied file replaced", func(t *testing.T, a *arena) {
			write(t, a.out+"/newer", "other")
			must(t, unix.Rename(a.out+"/newer", a.out+"/other"))
		}},
		{"denied directory moved below another name", func(t *testing.T, a *arena) {
			must(t, unix.Rename(a.out+"/dir", a.out+"/moved"))
			must(t, unix.Mkdir(a.out+"/dir", 0o755))
			write(t, a.out+"/dir/deep", "deep")
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			undisturbed(t, func() bool { return proofStops(t, test.change) })
		})
	}
}

func proofStops(t *testing.T, change func(t *testing.T, a *arena)) (known bool) {
	t.Helper()
	a := newArena(t)
	nameAll(t, a.ws)
	p := a.policyOfWalls()
	s := a.open(t, p)
	mustRun(t, a, &job{in: s, policy: &p, args: sh(`:`)})
	// The plan is made, and the launch performed when the host has changed something.
	_, err := a.run(t, &job{in: s, policy: &p, args: sh(`:`), change: func(p *plan.Plan) {
		known = p.Known > 0
		change(t, a)
	}})
	var step *launch.StepError
	if err != nil && !errors.Is(err, errPlanAgain) && !errors.As(err, &step) {
		t.Error(err)
	}
	t.Logf("known mounts %v, the launch: %v", known, err)
	git := a.ws + "/.git/hooks/evil"
	res := mustRun(t, a, &job{in: s, policy: &p,
		args: sh(`mkdir -p "$(dirname "$1")"; echo evil >"$1"; cat "$2/other" "$2/dir/deep"; echo x >fine && echo fine`, git, a.out)})
	if res.out != "fine\n" {
		t.Errorf("%+v", res)
	}
	var st unix.Stat_t
	if err := unix.Lstat(git, &st); err == nil {
		t.Error("a hook was made")
	}
	return known
}
