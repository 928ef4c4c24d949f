// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A missingWall is a plan with one wall taken out, and the attacks that this
// wall, and no other, keeps away. They must succeed now: a test that holds a
// wall proves nothing unless it can fail. The attacks touch nothing but files
// and objects of the test.
type missingWall struct {
	name    string
	change  func(a *arena, p *plan.Plan)
	attacks string
	job     job
	root    bool // the attack needs real root
	input   bool // a file outside is standard input
}

// drop takes out the steps that match.
func drop(match func(s *launch.Step) bool) func(*arena, *plan.Plan) {
	return func(_ *arena, p *plan.Plan) { p.Script.Steps = without(p.Script.Steps, match) }
}

func dropOp(ops ...launch.Op) func(*arena, *plan.Plan) {
	return drop(func(s *launch.Step) bool {
		for _, o := range ops {
			if s.Op == o {
				return true
			}
		}
		return false
	})
}

// dropAt takes out what is attached at some paths below the arena, or anywhere.
func dropAt(paths ...string) func(*arena, *plan.Plan) {
	return func(a *arena, p *plan.Plan) {
		p.Script.Steps = without(p.Script.Steps, func(s *launch.Step) bool {
			for _, at := range paths {
				if (s.Op == launch.OpAttach || s.Op == launch.OpPin) &&
					s.Path == strings.NewReplacer("WS", a.ws, "OUT", a.out, "STATE",
						a.host.files.state).Replace(at) {
					return true
				}
			}
			return false
		})
	}
}

func dropSpaces(ns launch.Namespaces) func(*arena, *plan.Plan) {
	return func(_ *arena, p *plan.Plan) { p.Script.Namespaces &^= ns }
}

func all(changes ...func(*arena, *plan.Plan)) func(*arena, *plan.Plan) {
	return func(a *arena, p *plan.Plan) {
		for _, c := range changes {
			c(a, p)
		}
	}
}

func each(f func(s *launch.Step)) func(*arena, *plan.Plan) {
	return func(_ *arena, p *plan.Plan) {
		for i := range p.Script.Steps {
			f(&p.Script.Steps[i])
		}
	}
}

// noProcSettings takes out what is set through the process file system, which goes with it.
func noProcSettings(_ *arena, p *plan.Plan) {
	trees := map[int]bool{}
	for _, s := range p.Script.Steps {
		if s.Op == launch.OpProc {
			trees[s.Tree] = true
		}
	}
	p.Script.Steps = without(p.Script.Steps, func(s *launch.Step) bool {
		return (s.Op == launch.OpSetting || s.Op == launch.OpSetTree) && trees[s.Tree]
	})
}

// noScope leaves Landlock's rules for files and takes its scopes away.
func noScope(s *launch.Step) {
	if s.Op == launch.OpLandlock {
		r := *s.Ruleset
		r.Scoped = 0
		s.Ruleset = &r
	}
}

// sealWritable leaves the host's tree writable.
func sealWritable(s *launch.Step) {
	if s.Op == launch.OpSetMount && s.Path == "/" {
		s.Set &^= launch.AttrReadOnly
	}
}

func procCover(s *launch.Step) bool {
	return s.Op == launch.OpAttach && strings.HasPrefix(s.Path, "/proc/") ||
		s.Op == launch.OpClone && strings.HasPrefix(s.Path, "/proc/")
}

func procMask(s *launch.Step) bool {
	return s.Op == launch.OpAttach && path.Dir(s.Path) == "/proc" &&
		slices.Contains(hostfacts.Gather().ProcMasks, path.Base(s.Path))
}

// netSetting is a setting of the network, which would be the host's.
func netSetting(s *launch.Step) bool {
	return s.Op == launch.OpSetting && strings.HasPrefix(s.Path, "sys/net/")
}

// noOwnProc leaves out the fresh /proc, which a task without a process namespace
// of its own may not mount.
func noOwnProc(s *launch.Step) bool {
	return s.Op == launch.OpProc || procCover(s) || s.Op == launch.OpAttach && s.Path == "/proc" ||
		s.Op == launch.OpSetMount && s.Path == "/proc"
}

func missingWalls() []missingWall {
	host := sandbox.ReadOnly().WithNetwork(sandbox.NetworkHost)
	return []missingWall{
		{name: "landlock", change: dropOp(launch.OpLandlock), attacks: "pipe-outside"},
		{name: "landlock scope", change: each(noScope), attacks: "abstract", job: job{policy: &host, allow: []string{"unix"}}},
		{name: "seccomp", change: dropOp(launch.OpSeccomp), attacks: "unshare-user pair-datagram clone3 key-add set-uid-own netlink-uevent lease filtered"},
		{name: "seal", change: each(sealWritable), attacks: "chmod fchmod utimes setxattr chmod-directory"},
		{name: "seal and landlock", change: all(each(sealWritable), dropOp(launch.OpLandlock)), attacks: "create append through-root through-cwd"},
		{name: "network namespace", change: all(dropSpaces(launch.NewNet), drop(netSetting), dropOp(launch.OpLoopback, launch.OpListen, launch.OpNetlink)), attacks: "tcp4 tcp6 udp4 ns-net"},
		{name: "ipc namespace", change: dropSpaces(launch.NewIPC), attacks: "shm sem msg mq ns-ipc"},
		{name: "uts namespace", change: dropSpaces(launch.NewUTS), attacks: "ns-uts"},
		{name: "cgroup namespace", change: dropSpaces(launch.NewCgroup), attacks: "ns-cgroup"},
		{name: "pid namespace", change: all(dropSpaces(launch.NewPID), noProcSettings, drop(noOwnProc), dropOp(launch.OpRefuseWrite)), attacks: "see-process list-processes ns-pid pidfd"},
		{name: "pid namespace and scope", change: all(dropSpaces(launch.NewPID), noProcSettings, drop(noOwnProc), dropOp(launch.OpRefuseWrite), each(noScope)), attacks: "kill"},
		{name: "covers of /proc", change: all(drop(procCover), dropOp(launch.OpRefuseWrite)), attacks: "proc-sys", root: true},
		{name: "masks of /proc", change: drop(procMask), attacks: "proc-secrets", root: true},
		{name: "cover of /sys", change: dropAt("/sys", "/sys/devices/system"), attacks: "sys-kernel"},
		{name: "cover of /run", change: dropAt("/run", "/run/current-system"), attacks: "run-list"},
		{name: "own /dev/shm", change: ownShm, attacks: "dev-shm"},
		{name: "private /tmp", change: dropAt("/tmp"), attacks: "see-at"},
		// Executing a program gives root all that is left in the bounding set.
		{name: "capabilities", change: dropOp(launch.OpCaps, launch.OpSecureBits, launch.OpDropBounding), attacks: "cap-effective cap-permitted cap-kept", root: true},
		{name: "secure bits", change: dropOp(launch.OpSecureBits), attacks: "secure-bits"},
		{name: "bounding set", change: dropOp(launch.OpDropBounding), attacks: "cap-bounding"},
		{name: "no_new_privs", change: dropOp(launch.OpNoNewPrivs, launch.OpSeccomp, launch.OpLandlock), attacks: "no-new-privs"},
		{name: "descriptors", change: dropOp(launch.OpCloseFiles), attacks: "descriptors"},
		{name: "input opened anew", change: dropOp(launch.OpReopen), attacks: "input-metadata", input: true},
		{name: "session", change: dropOp(launch.OpNewGroup), attacks: "session"},
		{name: "core limit", change: dropOp(launch.OpLimit), attacks: "core-dump"},
		{name: "protected name", change: dropAt("WS/.git"), attacks: "git-hook git-config git-chmod git-move"},
		{name: "state directory", change: dropAt("STATE"), attacks: "list-state"},
		{name: "denied file", change: dropAt("OUT/other"), attacks: "read-other"},
		{name: "denied directory", change: dropAt("OUT/dir"), attacks: "list-dir read-deep"},
	}
}

// ownShm leaves /dev/shm to the host: a copy of it goes where ours would.
func ownShm(_ *arena, p *plan.Plan) {
	for i := range p.Script.Steps {
		if s := &p.Script.Steps[i]; s.Op == launch.OpAttach && s.Path == "/dev/shm" {
			tree := s.Tree
			s.Tree = 9999
			at := 0
			for p.Script.Steps[at].Op != launch.OpMapUser {
				at++
			}
			_ = tree
			clone := launch.Step{Op: launch.OpClone, Tree: 9999, Path: "/dev/shm"}
			p.Script.Steps = append(p.Script.Steps[:at+1:at+1],
				append([]launch.Step{clone}, p.Script.Steps[at+1:]...)...)
			return
		}
	}
}

// TestWallsCanFail performs each attack twice: with every wall it is denied,
// with one wall missing it succeeds.
func TestWallsCanFail(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, w := range missingWalls() {
		t.Run(w.name, func(t *testing.T) {
			if w.root {
				testenv.NeedRoot(t)
			}
			a := newArena(t)
			if w.job.policy == nil {
				p := a.policy().WithEntries(sandbox.PathEntry(a.out+"/other", sandbox.LevelDeny),
					sandbox.PathEntry(a.out+"/dir", sandbox.LevelDeny))
				w.job.policy = &p
			}
			if w.input {
				f, err := os.Open(a.out + "/canary")
				must(t, err)
				defer f.Close()
				w.job.stdin = f
			}
			kv := surroundingsFor(t, a)
			names := strings.Fields(w.attacks)
			for n, v := range a.attack(t, &w.job, names, kv...) {
				if v.word != wordDenied {
					t.Errorf("with every wall: %s %v", n, v)
				}
			}
			w.job.change = func(p *plan.Plan) { w.change(a, p) }
			for _, n := range names {
				if v := a.attack(t, &w.job, []string{n}, kv...)[n]; v.word != wordBreach {
					t.Errorf("without %s: %s %v", w.name, n, v)
				}
			}
		})
	}
}

// surroundingsFor makes everything that the attacks of the table reach for.
func surroundingsFor(t *testing.T, a *arena) []string {
	t.Helper()
	leak(t, a)
	kv, _ := listeners(t, a)
	kv = append(kv, outside(t)...)
	kv = append(kv, addKey(t), "pid="+victim(t), "git="+a.ws+"/.git", "known=none")
	kv = append(kv, namespacesHere(t)...)
	reader, err := unix.Open(a.out+"/pipe", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(reader) })
	shared, err := os.CreateTemp("/tmp", "sallyport-shared-")
	must(t, err)
	t.Cleanup(func() { shared.Close(); os.Remove(shared.Name()) })
	own, err := a.host.onDisk()
	must(t, err)
	return append(kv, "at="+shared.Name(), "state="+own.state)
}

// TestWithoutDieWithParent is the wall of TestKilledFrontEnd.
func TestWithoutDieWithParent(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	f := startFront(t, a, "hold-orphan", "hold")
	root, err := unix.PidfdOpen(f.root, 0)
	must(t, err)
	defer unix.Close(root)
	must(t, f.cmd.Process.Kill())
	_ = f.cmd.Wait()
	must(t, f.in.Close())
	f.expect(t, "hold AFTER") // it is alive
	must(t, unix.PidfdSendSignal(root, unix.SIGKILL, nil, 0))
	must(t, f.out.SetReadDeadline(time.Now().Add(patience)))
	if _, err := io.Copy(io.Discard, f.reader); err != nil {
		t.Error(err)
	}
}

// TestWithoutIdentity is the wall of TestSwappedBeforeLaunch.
func TestWithoutIdentity(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	nameAll(t, a.ws)
	j := &job{args: sh(`echo evil >evil`)}
	j.change = func(p *plan.Plan) {
		each(func(s *launch.Step) { s.ID = launch.ID{} })(a, p)
		must(t, os.Rename(a.ws, a.base+"/old"))
		must(t, os.Rename(a.out, a.ws))
		for _, n := range sandbox.ProtectedNames() {
			// The same ones, or the watch over them, which is another wall, ends the run.
			must(t, os.Rename(a.base+"/old/"+n, a.ws+"/"+n))
		}
	}
	if res := mustRun(t, a, j); res.code != 0 {
		t.Fatalf("%+v", res)
	}
	if _, err := os.Lstat(a.ws + "/evil"); err != nil {
		t.Error("the swapped directory was not written to")
	}
}

// TestProofStops takes the covers out and leaves the proof in: the launch stops.
func TestProofStops(t *testing.T) {
	testenv.NeedRoot(t) // for others the files do not open anyway
	a := newArena(t)
	_, err := a.run(t, &job{args: sh(`:`), change: func(p *plan.Plan) { drop(procCover)(a, p) }})
	if err == nil || !strings.Contains(err.Error(), "can be opened for writing") {
		t.Errorf("%v", err)
	}
}
