// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// bare is a request for the level without namespaces.
func bare(rules ...Rule) *Request {
	return request(rules...).with(func(r *Request) { r.Level = LevelLandlock })
}

// auto is a protected name.
func auto(path string) Rule {
	r := rule(path, read, KindDirectory)
	r.Why, r.Auto = "protected name", true
	return r
}

func TestLandlockRefuses(t *testing.T) {
	narrow := func(path string, level sandbox.Level) *Request {
		return bare(rule("/w", write,
			KindDirectory)).with(func(r *Request) { r.Narrow = []Narrowing{{path, level}} })
	}
	allow := func(name string, n sandbox.Network) *Request {
		return bare().with(func(r *Request) {
			r.Spec.Allow, r.Spec.Policy = []string{name},
				r.Spec.Policy.WithNetwork(n)
		})
	}
	cases := []struct {
		name    string
		host    string
		abi     int // 0: the host's own
		request *Request
		need    string
	}{
		{"no Landlock", "old-kernel", 0, bare(), "Landlock, version 3"},
		{"no right to truncate", "ubuntu-abi7", 2, bare(), "Landlock, version 3"},
		{"denied file", "ubuntu-abi7", 0, bare(rule("/etc/shadow", deny, KindFile)), "/etc/shadow=deny"},
		{"denied path that is not there", "ubuntu-abi7", 0, narrow("/nowhere", deny), "/nowhere=deny"},
		{"deny pattern", "ubuntu-abi7", 0, narrow("/w/**/.env", deny), "/w/**/.env=deny"},
		{"carve-out", "ubuntu-abi7", 0, bare(rule("/w", write, KindDirectory), rule("/w/a", read, KindDirectory)), "/w/a=read"},
		{"carve-out that is not there", "ubuntu-abi7", 0, narrow("/w/a", read), "/w/a=read"},
		{"listed root", "ubuntu-abi7", 0, bare().with(func(r *Request) { r.Root = deny }), "root"},
		{"writable root", "ubuntu-abi7", 0, bare().with(func(r *Request) { r.Root = write }), "root"},
		{"proxy", "ubuntu-abi7", 0, bare().with(network(sandbox.NetworkProxy)), "proxy"},
		{"chosen /tmp", "ubuntu-abi7", 0, bare().with(func(r *Request) { r.Tmp.Asked = true }), "/state/tmp.1 at /tmp"},
		{"ping without a network", "ubuntu-abi7", 0, allow("icmp", sandbox.NetworkNone), "icmp"},
		{"ping without a network, by bubblewrap", "ubuntu-abi7", 0, wrapped().with(func(r *Request) { r.Spec.Allow = []string{"icmp"} }), "icmp"},
		{"netlink without a network", "ubuntu-abi7", 0, allow("netlink", sandbox.NetworkNone), "netlink"},
		{"io_uring without a network", "ubuntu-abi7", 0, allow("io_uring", sandbox.NetworkNone), "io_uring"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := host(t, c.host)
			if c.abi != 0 {
				h.LandlockABI = c.abi
			}
			p, err := Make(h, c.request)
			var no *sandbox.UnsupportedError
			if !errors.As(err, &no) || p != nil {
				t.Fatalf("got %v, %v; want an *UnsupportedError and no plan", p, err)
			}
			if !strings.Contains(no.Need, c.need) || no.Have == "" || no.Hint == "" {
				t.Errorf("need %q, have %q, hint %q", no.Need, no.Have, no.Hint)
			}
		})
	}
}

func TestLandlockTakes(t *testing.T) {
	cases := []struct {
		name    string
		request *Request
	}{
		{"read entry outside of writable directories", bare(rule("/w", write, KindDirectory), rule("/etc", read, KindDirectory))},
		{"read entry that is not there", bare(rule("/w", write, KindDirectory)).with(func(r *Request) { r.Narrow = []Narrowing{{"/etc/x", read}} })},
		{"read entry in a /tmp that is not writable", bare(rule("/tmp", write, KindDirectory), rule("/tmp/a", read, KindDirectory), rule("/w", write, KindDirectory))},
		{"own state", bare(rule("/w", write, KindDirectory), Rule{Spot: Spot{Path: "/state", Kind: KindDirectory}, Level: deny, Auto: true})},
		{"io_uring with the host's network", bare().with(func(r *Request) {
			r.Spec.Allow, r.Spec.Policy = []string{"io_uring"}, r.Spec.Policy.WithNetwork(sandbox.NetworkHost)
		})},
		{"native level missing", bare(rule("/w", write, KindDirectory))},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := host(t, "ubuntu-abi7")
			h.Missing = []Missing{{Need: "user namespaces", Have: "none", Hint: "get some"}}
			p, err := Make(h, c.request)
			if err != nil {
				t.Fatal(err)
			}
			if p.Level != LevelLandlock || p.Script.Namespaces != 0 || len(p.Weaker) == 0 {
				t.Errorf("level %q, namespaces %s, weaker %q", p.Level, p.Script.Namespaces, p.Weaker)
			}
		})
	}
}

// TestLandlockWrites: the ruleset opens the writable places and nothing above
// or beside them.
func TestLandlockWrites(t *testing.T) {
	r := bare(rule("/tmp", write, KindDirectory), rule("/w", write, KindDirectory),
		rule("/log", write, KindFile), rule("/gone", write, KindMissing))
	p, err := Make(host(t, "ubuntu-abi7"), r)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range rulesetOf(t, p).Rules {
		if u.Stdio == 0 && !strings.HasPrefix(u.Path, "/dev/") {
			got = append(got, u.Path)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"/log", "/state/tmp.1", "/w"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestUnprotected: the sentence names the protected names that can be changed,
// and no others.
func TestUnprotected(t *testing.T) {
	r := bare(rule("/tmp", write, KindDirectory), auto("/tmp/.git"), rule("/w", write, KindDirectory),
		auto("/w/.git"), auto("/elsewhere/.git"))
	p, err := Make(host(t, "ubuntu-abi7"), r)
	if err != nil {
		t.Fatal(err)
	}
	if want := "protected names can be changed here: /w/.git"; !slices.Contains(p.Weaker, want) {
		t.Errorf("%q", p.Weaker)
	}
}

func TestLandlockTemporaryDirectory(t *testing.T) {
	cases := []struct {
		name      string
		tmp       bool
		env, want []string
	}{
		{"private", true, []string{"A=1", "TMPDIR=/tmp", "TMPDIRS=x"}, []string{"A=1", "TMPDIRS=x", "TMPDIR=/state/tmp.1", "TMP=/state/tmp.1", "TEMP=/state/tmp.1"}},
		{"the host's", false, []string{"A=1", "TMPDIR=/var/tmp"}, []string{"A=1", "TMPDIR=/var/tmp"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := bare()
			r.Env = c.env
			if !c.tmp {
				r.Tmp = nil
			}
			p, err := Make(host(t, "ubuntu-abi7"), r)
			if err != nil {
				t.Fatal(err)
			}
			steps := p.Script.Steps
			if diff := cmp.Diff(c.want, steps[len(steps)-1].Env); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLandlockOrder: the filter and the ruleset stand before the program, and
// rights are dropped before it, whoever the caller is.
func TestLandlockOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		caps uint64
		want bool
	}{
		{"ordinary user", 0, false}, {"real root", ^uint64(0), true}, {"root without the right", 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := host(t, "docker")
			h.Caps = c.caps
			p, err := Make(h, bare(rule("/w", write, KindDirectory)))
			if err != nil {
				t.Fatal(err)
			}
			at := func(op launch.Op) int {
				return slices.IndexFunc(p.Script.Steps, func(s launch.Step) bool { return s.Op == op })
			}
			order := []launch.Op{
				launch.OpStartCommand, launch.OpNewGroup, launch.OpNoNewPrivs, launch.OpCaps,
				launch.OpLandlock,
				launch.OpRefuseWrite, launch.OpSeccomp, launch.OpStdio, launch.OpCloseFiles, launch.OpExec,
			}
			for i := 1; i < len(order); i++ {
				if at(order[i-1]) < 0 || at(order[i-1]) >= at(order[i]) {
					t.Errorf("%s does not stand before %s\n%s", order[i-1], order[i], p.Script.String())
				}
			}
			if got := at(launch.OpDropBounding) > 0; got != c.want {
				t.Errorf("drops the bounding set: %v", got)
			}
		})
	}
}

func TestStanding(t *testing.T) {
	cases := []struct {
		name, level    string
		abi            int
		lacks, refuses int
		blind          bool
	}{
		{"native", LevelNative, 7, 0, 0, false},
		{"native without an observer", LevelNative, 7, 3, 0, true},
		{"landlock 7", LevelLandlock, 7, 9, 3, false},
		{"landlock 5", LevelLandlock, 5, 10, 3, false},
		{"landlock 3", LevelLandlock, 3, 11, 3, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := host(t, "ubuntu-abi7")
			h.LandlockABI, h.Blind = c.abi, c.blind
			holds, lacks, refuses := Standing(h, c.level)
			if len(lacks) != c.lacks || len(refuses) != c.refuses ||
				len(holds)+len(lacks)+len(refuses) != len(Walls()) {
				t.Errorf("holds %q, lacks %q, refuses %q", holds, lacks, refuses)
			}
			if c.level != LevelLandlock {
				return
			}
			// A result says as many sentences as the table.
			p, err := Make(h, bare(rule("/w", write, KindDirectory)))
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, l := range lacks {
				want = append(want, l.Why)
			}
			if diff := cmp.Diff(want, p.Weaker); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// String returns the gap as the table of the documentation shows it.
func (g Gap) String() string {
	switch {
	case g.Lacks == "":
		return "holds"
	case g.Refused:
		return "refused: " + g.Lacks
	case g.Until > 0:
		return fmt.Sprintf("from Landlock %d; before: %s", g.Until, g.Lacks)
	}
	return g.Lacks
}

// TestWallsDocumented: the page repeats the table word by word.
func TestWallsDocumented(t *testing.T) {
	const (
		file       = "../../../docs/levels.md"
		begin, end = "<!-- walls: go test ./internal/linux/plan -update -->\n", "<!-- end of walls -->\n"
	)
	var b strings.Builder
	b.WriteString("\n| Wall | Keeps a command from | bwrap | landlock | without the observer |\n|---|---|---|---|---|\n")
	for _, w := range Walls() {
		b.WriteString("| `" + w.Name + "` | " + w.Stops + " | " + w.Bwrap.String() + " | " +
			w.Landlock.String() + " | " + Gap{Lacks: w.Blind}.String() + " |\n")
	}
	b.WriteString("\n")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", file)
	}
	if *update {
		table = b.String()
		if err := os.WriteFile(file, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(b.String(), table); diff != "" {
		t.Errorf("run with -update after a look at this:\n%s", diff)
	}
}

// TestWallNames: results and scripts of others rely on them.
func TestWallNames(t *testing.T) {
	seen := make(map[string]bool)
	for _, w := range Walls() {
		if seen[w.Name] || w.Name == "" || w.Stops == "" {
			t.Errorf("%+v", w)
		}
		seen[w.Name] = true
	}
	if !seen[wallProtected] {
		t.Errorf("no wall is named %s", wallProtected)
	}
}
