// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// minimalRequest is a command that sees the rules' paths and the platform's own.
func minimalRequest(rules ...Rule) *Request {
	r := request(append(rules, rule("/etc", read, KindDirectory), rule("/usr", read, KindDirectory))...)
	r.Root, r.Spec.Dir = deny, "/usr"
	r.Links = []Link{{"/bin", "usr/bin"}, {"/home/me", "u"}, {"/lib64", "/usr/lib64"}}
	r.Needs = []Need{{"the working directory", "/usr", true}, {"the program", "/bin", false},
		{"the program", "/usr/bin/sh", false}}
	return r
}

// TestOnlyListed: under a denied root nothing exists but what a rule lists, what
// is on the way to it, and the system's own directories; and none of the host's trees
// is copied once the root has changed.
func TestOnlyListed(t *testing.T) {
	plans(t, func(t *rapid.T, _ *Host, r *Request, p *Plan) {
		pivots := 0
		for _, s := range p.Script.Steps {
			if s.Op == launch.OpPivot {
				pivots++
			}
		}
		if (pivots == 1) != (r.Root == deny) || pivots > 1 {
			t.Fatalf("%d pivots under a root that is %s", pivots, r.Root)
		}
		if r.Root != deny {
			return
		}
		m, err := run(&p.Script, p.Points)
		if err != nil {
			t.Fatalf("%v\n%s", err, p.Script.String())
		}
		names := []string{"/", "/etc/passwd", "/home", "/root", "/var/tmp", "/usr"}
		for range 20 {
			names = append(names, drawPath(t))
		}
		for _, name := range names {
			seen := m.look(name)
			_, made := m.files[seen.source]
			onTheWay := name == "/" || slices.ContainsFunc(r.Rules,
				func(u Rule) bool { return u.Level != deny && within(u.Path, name) }) ||
				slices.ContainsFunc(r.Links, func(l Link) bool { return within(l.Path, name) })
			if wanted(r, name) == deny && !system(r, name) &&
				(seen.host || made && !onTheWay && !strings.Contains(seen.source, "none") &&
					!strings.Contains(seen.source, "nothing")) {
				// A mask is the empty thing itself, and names below a mask are in none of our directories.
				t.Fatalf("%s exists: %+v\n%v\n%s", name, seen, r.Rules, p.Script.String())
			}
			if seen.host || !made || seen.ro || system(r, name) {
				continue
			}
			t.Fatalf("%s is a directory of ours that can be written: %+v\n%s", name, seen, p.Script.String())
		}
	})
}

// TestNeeds: what a command needs and does not see is named, and nothing is planned.
func TestNeeds(t *testing.T) {
	base := func(needs ...Need) *Request {
		r := minimalRequest(rule("/home/u/w", write, KindDirectory),
			rule("/home/u/w/in", deny, KindDirectory), rule("/home/u/w/in/open", read, KindDirectory),
			rule("/opt/tool", read, KindFile), rule("/tmp/w", write, KindDirectory))
		r.Needs = needs
		return r
	}
	for _, c := range []struct {
		name string
		need Need
		ok   bool
	}{
		{"listed file", Need{"the program", "/opt/tool", false}, true},
		{"below a listed directory", Need{"the program", "/home/u/w/x", false}, true},
		{"beside", Need{"the program", "/opt/tool2", false}, false},
		{"unlisted", Need{"the program", "/home/u/bin/x", false}, false},
		{"denied below a listed directory", Need{"the program", "/home/u/w/in/x", false}, false},
		{"reopened below that", Need{"the program", "/home/u/w/in/open/x", false}, true},
		{"link that is made", Need{"the program", "/bin", false}, true},
		{"link that is not", Need{"the program", "/sbin", false}, false},
		{"in the private /tmp", Need{"the program", "/tmp/x", false}, false},
		{"in a directory of /tmp that is listed", Need{"the program", "/tmp/w/x", false}, true},
		{"in a covered directory", Need{"the program", "/run/x", false}, false},
		{"shown in a covered directory", Need{"the program", "/sys/devices/system/x", false}, true},
		{"directory on the way", Need{"the working directory", "/home/u", true}, true},
		{"directory beside", Need{"the working directory", "/home/v", true}, false},
		{"root", Need{"the working directory", "/", true}, true},
		{"a file on the way is none", Need{"the program", "/home/u", false}, false},
		{"/tmp itself", Need{"the working directory", "/tmp", true}, true},
		{"/run itself", Need{"the working directory", "/run", true}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Make(host(t, "ubuntu-abi7"), base(c.need))
			var hidden *sandbox.HiddenError
			switch {
			case c.ok && err != nil:
				t.Error(err)
			case !c.ok && (!errors.As(err, &hidden) || p != nil || hidden.Path != c.need.Path ||
				!strings.Contains(err.Error(), "make it readable")):
				t.Errorf("%v, %v", p, err)
			}
		})
	}
}

// TestDirectoryDescriptors: a directory among the standard descriptors is opened anew
// through the finished tree, or refused.
func TestDirectoryDescriptors(t *testing.T) {
	for _, c := range []struct {
		name, path string
		root       sandbox.Level
		ok         bool
	}{
		{"listed", "/w/x", deny, true},
		{"not listed", "/home", deny, false},
		{"on the way only", "/", deny, false},
		{"read-only root", "/home", read, true},
		{"the root itself", "/", read, true},
		{"denied", "/w/vault/x", read, false},
		{"covered", "/run", read, false},
		{"below a cover", "/run/user", read, false},
		{"private /tmp", "/tmp/x", read, false},
		{"process", "/proc/1", read, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := request(rule("/w", write, KindDirectory), rule("/w/vault", deny, KindDirectory))
			r.Root = c.root
			r.Stdio[0] = Stdio{Directory: true,
				Reopen: &Reopen{Spot: Spot{Path: c.path, Kind: KindDirectory}}}
			p, err := Make(host(t, "ubuntu-abi7"), r)
			var hidden *sandbox.HiddenError
			if !c.ok {
				if !errors.As(err, &hidden) || hidden.Path != path.Clean(c.path) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			last := func(match func(launch.Step) bool) int {
				for i, s := range slices.Backward(p.Script.Steps) {
					if match(s) {
						return i
					}
				}
				return -1
			}
			reopen := last(func(s launch.Step) bool { return s.Op == launch.OpReopen })
			if attached := last(func(s launch.Step) bool {
				return s.Op == launch.OpAttach &&
					!within(s.Path, "/proc")
			}); reopen < attached {
				t.Errorf("reopened in step %d, the last mask or cover comes in step %d", reopen, attached)
			}
		})
	}
}
