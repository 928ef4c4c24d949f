// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

var update = flag.Bool("update", false, "write the golden files anew")

// host reads the facts of a machine as a bug report would bring them.
func host(t testing.TB, name string) *Host {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "hosts", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	h := new(Host)
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	if err := d.Decode(h); err != nil {
		t.Fatal(err)
	}
	return h
}

// rule makes a rule whose identity follows from its path.
func rule(path string, level sandbox.Level, kind Kind) Rule {
	ino := uint64(1)
	for _, c := range []byte(path) {
		ino = ino*31 + uint64(c)
	}
	return Rule{Spot: Spot{Path: path, Kind: kind, ID: launch.ID{Dev: 1, Ino: ino % 99991}}, Level: level,
		Why: "policy"}
}

// request is an ordinary command in /w with the rules given.
func request(rules ...Rule) *Request {
	slices.SortFunc(rules, func(a, b Rule) int { return strings.Compare(a.Path, b.Path) })
	return &Request{
		Spec: &executor.Spec{Args: []string{"sh", "-c", "make all"}, Dir: "/w", Policy: sandbox.ReadOnly()},
		Root: sandbox.LevelRead, Rules: rules,
		Tmp: &Tmp{At: "/tmp", Source: Spot{Path: "/state/tmp.1", Kind: KindDirectory,
			ID: launch.ID{Dev: 1, Ino: 7}}},
		Filter: launch.Filter{0x15, 0x06, 0x7fff000000000006}, Seal: launch.Filter{6},
		Program: "/bin/sh", Env: []string{"PATH=/bin"},
		Stdio:  [3]Stdio{{}, {Writable: true, Device: true}, {Writable: true, File: true}},
		Limits: []Limit{{Resource: 4}, {Resource: 7, Soft: 1024, Hard: 4096}},
	}
}

// overlay makes an overlay over a directory.
func overlay(path string) Overlay {
	return Overlay{
		Spot:  rule(path, read, KindDirectory).Spot,
		Upper: Spot{Path: "/state/upper" + path, Kind: KindDirectory, ID: launch.ID{Dev: 1, Ino: 11}},
		Work:  Spot{Path: "/state/work" + path, Kind: KindDirectory, ID: launch.ID{Dev: 1, Ino: 12}},
		Why:   "toolchain cache",
	}
}

func (r *Request) with(f func(*Request)) *Request {
	f(r)
	return r
}

// network gives a request a policy with a network part.
func network(n sandbox.Network) func(*Request) {
	return func(r *Request) { r.Spec.Policy = r.Spec.Policy.WithNetwork(n) }
}

// mode gives a request a policy without entries.
func mode(m sandbox.Mode) func(*Request) {
	n := sandbox.NetworkNone
	if m == sandbox.Full {
		n = sandbox.NetworkHost
	}
	p, err := sandbox.New(m, n)
	if err != nil {
		panic(err)
	}
	return func(r *Request) { r.Spec.Policy = p }
}

// gpu gives a request two graphics processors.
func gpu(r *Request) {
	r.Devices = []string{"dri/renderD128", "nvidia0", "nvidiactl"}
	r.Links = append(r.Links, Link{"/sys/dev/char/226:128",
		"../../devices/pci0000:00/0000:00:02.0/drm/renderD128"})
}

const (
	deny  = sandbox.LevelDeny
	read  = sandbox.LevelRead
	write = sandbox.LevelWrite
)

// goldens are the plans that are kept word by word: each is the documentation of
// a sandbox.
var goldens = []struct {
	name    string
	host    string
	request *Request
}{
	{"debian-root", "debian-root", request(rule("/w", write, KindDirectory))},
	{"ubuntu-abi4", "ubuntu-abi4", request(rule("/w", write, KindDirectory))},
	{"ubuntu-abi7", "ubuntu-abi7", request(rule("/w", write, KindDirectory))},
	{"nixos", "nixos", request(rule("/w", write, KindDirectory))},
	{"docker", "docker", request(rule("/w", write, KindDirectory))},
	{"host-network", "ubuntu-abi7", request(rule("/w", write, KindDirectory)).with(network(sandbox.NetworkHost))},
	{"managed-network", "ubuntu-abi7", request(rule("/w", write, KindDirectory)).with(network(sandbox.NetworkProxy))},
	{"read-only", "ubuntu-abi7", request()},
	{"no-private-tmp", "ubuntu-abi7", request(rule("/tmp", write, KindDirectory), rule("/w", write, KindDirectory)).with(func(r *Request) { r.Tmp = nil })},
	{"workspace-in-home", "ubuntu-abi7", request(rule("/home/u/w", write, KindDirectory), rule("/home/u/.ssh", deny, KindDirectory),
		rule("/home/u/.netrc", deny, KindFile)).with(func(r *Request) { r.Spec.Dir = "/home/u/w" })},
	{"workspace-in-tmp", "ubuntu-abi7", request(rule("/tmp/w", write, KindDirectory), rule("/tmp/w/.git", read, KindDirectory),
		rule("/tmp/w/secret", deny, KindFile)).with(func(r *Request) { r.Spec.Dir = "/tmp/w" })},
	{"workspace-in-run", "nixos", request(rule("/run/user/1000/w", write, KindDirectory), rule("/run/user/1000/w/.git", read, KindDirectory),
		rule("/run/user/1000/w/secret", deny, KindFile))},
	{"shown-directory-denied", "nixos", request(rule("/w", write, KindDirectory), rule("/run/current-system", deny, KindDirectory),
		rule("/sys/devices/system/node", deny, KindDirectory))},
	{"nested-roots", "ubuntu-abi7", request(rule("/w", write, KindDirectory), rule("/w/a", read, KindDirectory), rule("/w/a/b", write, KindDirectory),
		rule("/w/a/b/c", write, KindDirectory))},
	{"deny-with-reopened-child", "ubuntu-abi7", request(rule("/w", write, KindDirectory), rule("/w/vault", deny, KindDirectory),
		rule("/w/vault/in/open", read, KindDirectory), rule("/w/vault/in/open/log", write, KindFile))},
	{"protected-names", "ubuntu-abi7", request(rule("/w", write, KindDirectory), rule("/w/.git", read, KindDirectory),
		rule("/w/.codex", read, KindDirectory), rule("/w/.agents", read, KindMissing),
		rule("/w/.sallyport", read, KindFile),
		rule("/w/.vscode", read, KindDirectory), rule("/w/.envrc", read, KindFile))},
	{"git-pointer", "ubuntu-abi7", request(rule("/w/tree", write, KindDirectory), rule("/w/tree/.git", read, KindFile),
		rule("/w/main/.git/worktrees/tree", read, KindDirectory), rule("/w/main/.git", read, KindDirectory))},
	{"file-roots", "ubuntu-abi4", request(rule("/w/log", write, KindFile), rule("/w/missing", write, KindMissing))},
	{"minimal", "ubuntu-abi7", minimalRequest(rule("/home/u/w", write, KindDirectory), rule("/home/u/w/.git", read, KindDirectory),
		rule("/home/u/w/secret", deny, KindFile), rule("/usr/local", deny, KindDirectory),
		rule("/opt/tool", read, KindFile))},
	{"minimal-nixos", "nixos", minimalRequest(rule("/w", write, KindDirectory), rule("/nix/store", read, KindDirectory)).with(func(r *Request) {
		r.Links = append(r.Links, Link{"/run/opengl-driver", "/nix/store/x-drivers"})
	})},
	{"caches", "ubuntu-abi7", request(rule("/w", write, KindDirectory), rule("/home/u/.ssh", deny, KindDirectory)).with(func(r *Request) {
		r.Overlays = []Overlay{overlay("/home/u/.cache/go-build"), overlay("/home/u/go/pkg/mod")}
	})},
	{"caches-in-workspace", "ubuntu-abi7", request(rule("/home/u", write, KindDirectory), rule("/home/u/.local/state/sallyport", deny, KindDirectory),
		rule("/home/u/.local/state/sallyport/caches/h/plain/pip", write,
			KindDirectory)).with(func(r *Request) {
		r.Spec.Dir, r.Overlays = "/home/u", []Overlay{overlay("/home/u/.npm")}
	})},
	{"landlock", "ubuntu-abi7", bare(rule("/w", write, KindDirectory), auto("/w/.git"), auto("/w/.vscode"), rule("/w/log", write, KindFile))},
	{"landlock-root", "docker", bare(rule("/w", write, KindDirectory)).with(network(sandbox.NetworkHost))},
	{"landlock-abi4", "ubuntu-abi4", bare(rule("/w", write, KindDirectory)).with(func(r *Request) { r.Tmp = nil })},
	{"bwrap", "ubuntu-abi7", wrapped(rule("/w", write, KindDirectory), auto("/w/.git"), auto("/w/.vscode"), auto("/tmp/.git"), rule("/tmp", write, KindDirectory), rule("/w/vault", deny, KindDirectory),
		rule("/home/u/.netrc", deny, KindFile))},
	{"bwrap-host-network", "nixos", wrapped(rule("/run/user/1000/w", write, KindDirectory), rule("/tmp/w", write, KindDirectory), rule("/tmp/w/secret", deny, KindFile)).
		with(func(r *Request) { r.Guard, r.Bwrap.Argv0 = nil, true }).with(network(sandbox.NetworkHost))},
	{"observed", "ubuntu-abi7", request(rule("/w", write, KindDirectory)).with(func(r *Request) { r.Observe = true })},
	{"landlock-observed", "ubuntu-abi7", bare(rule("/w", write, KindDirectory)).with(func(r *Request) { r.Observe = true })},
	{"ping", "ubuntu-abi7", request(rule("/w", write, KindDirectory)).with(func(r *Request) { r.Spec.Allow = []string{"icmp"} })},
	{"services", "ubuntu-abi7", request(rule("/w", write, KindDirectory), rule("/tmp/ssh-x/agent.1", read, KindOther),
		rule("/run/user/1000/gnupg/S.gpg-agent", read,
			KindOther)).with(func(r *Request) { r.Observe = true })},
	{"gpu", "ubuntu-abi7", request(rule("/w", write, KindDirectory), rule("/sys/devices/pci0000:00/0000:00:02.0", read, KindDirectory)).with(gpu)},
	{"gpu-bwrap", "ubuntu-abi7", wrapped(rule("/w", write, KindDirectory), rule("/sys/devices/pci0000:00/0000:00:02.0", read, KindDirectory)).with(gpu)},
	{"gpu-landlock", "ubuntu-abi7", bare(rule("/w", write, KindDirectory)).with(gpu)},
	{"full-access", "ubuntu-abi7", request(rule("/w", write, KindDirectory)).with(mode(sandbox.Full))},
}

// text prints a plan in full: the script and what else is in it.
func (p *Plan) text(t *testing.T) string {
	t.Helper()
	rest := *p
	rest.Script = launch.Script{}
	b, err := json.MarshalIndent(&rest, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return p.Script.String() + string(b) + "\n"
}

func TestGolden(t *testing.T) {
	for _, g := range goldens {
		t.Run(g.name, func(t *testing.T) {
			p, err := Make(host(t, g.host), g.request)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Join("testdata", g.name+".golden")
			got := p.text(t)
			if *update {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("run with -update after a look at this:\n%s", diff)
			}
		})
	}
}

// TestDeniedDevice: a device that a rule denies, itself or by its directory, is not shown.
func TestDeniedDevice(t *testing.T) {
	for _, at := range []string{"/dev/dri/renderD128", "/dev/dri"} {
		for name, r := range map[string]*Request{LevelNative: request(rule(at, deny, KindDirectory)),
			LevelBwrap: wrapped(rule(at, deny, KindDirectory))} {
			gpu(r)
			p, err := Make(host(t, "ubuntu-abi7"), r)
			var no *sandbox.UnsupportedError
			if errors.As(err, &no) && name == LevelBwrap {
				continue // it has no rules in /dev
			}
			if err != nil {
				t.Fatal(err)
			}
			if text := p.text(t); strings.Contains(text, "dri/renderD128 ") ||
				!strings.Contains(text, "nvidia0") {
				t.Errorf("%s, %s denied:\n%s", name, at, text)
			}
		}
	}
}

// TestWithoutIPv6: a plan says so where connections by IPv6 alone are not redirected.
func TestWithoutIPv6(t *testing.T) {
	for _, both := range []bool{true, false} {
		r := request().with(network(sandbox.NetworkProxy)).with(func(r *Request) { r.Redirect = &Redirect{IPv6: both} })
		p, err := Make(host(t, "ubuntu-abi7"), r)
		if err != nil {
			t.Fatal(err)
		}
		if says := strings.Contains(strings.Join(p.Weaker, "\n"), "no IPv6 address"); says == both {
			t.Errorf("with IPv6 %v: weaker %q", both, p.Weaker)
		}
	}
}

func TestNoGoldenIsLeftOver(t *testing.T) {
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(goldens) {
		t.Errorf("%d golden files for %d cases", len(files), len(goldens))
	}
}

func TestUnsupported(t *testing.T) {
	cases := []struct {
		name    string
		host    string
		request *Request
		need    string
	}{
		{"no Landlock", "old-kernel", request(), "Landlock"},
		{"facts that forget an old Landlock", "forgetful", request(), "Landlock"},
		{"Windows", "windows", request(), "network"},
		{"Windows with the host's network", "windows", request().with(network(sandbox.NetworkHost)), "cannot write"},
		{"Windows with something denied", "windows", request(rule("/w", deny, KindDirectory)).with(network(sandbox.NetworkHost)), "cannot read"},
		{"Windows with every file writable", "windows", request().with(func(r *Request) { r.Root = write }).with(network(sandbox.NetworkHost)), "process isolation"},
		{"Windows confined elsewhere", "windows", request().with(mode(sandbox.External)), "network"},
		{"writable root", "ubuntu-abi7", request().with(func(r *Request) { r.Root = write }), "root"},
		{"confined elsewhere without network", "ubuntu-abi7", request().with(mode(sandbox.External)), "network"},
		{"writable /proc", "ubuntu-abi7", request(rule("/proc", write, KindDirectory)), "system"},
		{"denied process", "ubuntu-abi7", request(rule("/proc/1", deny, KindDirectory)), "system"},
		{"writable /sys", "ubuntu-abi7", request(rule("/sys", write, KindDirectory)), "system"},
		{"an overlay over what is denied", "ubuntu-abi7", request(rule("/c", deny, KindDirectory)).with(overlays("/c/d")), "overlay"},
		{"an overlay over a rule", "ubuntu-abi7", request(rule("/c/d", write, KindDirectory)).with(overlays("/c")), "overlay"},
		{"two overlays in one place", "ubuntu-abi7", request().with(overlays("/c", "/c")), "overlay"},
		{"an overlay in another", "ubuntu-abi7", request().with(overlays("/c", "/c/d")), "overlay"},
		{"an overlay over a file", "ubuntu-abi7", request().with(overlays("/c")).with(func(r *Request) { r.Overlays[0].Kind = KindFile }), "overlay"},
		{"denied /dev", "ubuntu-abi7", request(rule("/dev", deny, KindDirectory)), "system"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, err := Make(host(t, c.host), c.request)
			var unsupported *sandbox.UnsupportedError
			if !errors.As(err, &unsupported) || p != nil {
				t.Fatalf("got %v, %v; want an *UnsupportedError and no plan", p, err)
			}
			if !strings.Contains(unsupported.Need, c.need) || unsupported.Have == "" ||
				unsupported.Hint == "" {
				t.Errorf("need %q, have %q, hint %q", unsupported.Need, unsupported.Have, unsupported.Hint)
			}
		})
	}
}

func overlays(paths ...string) func(*Request) {
	return func(r *Request) {
		for _, p := range paths {
			r.Overlays = append(r.Overlays, overlay(p))
		}
	}
}

func TestFits(t *testing.T) {
	r := request(rule("/w", write, KindDirectory), rule("/vault", deny, KindDirectory),
		rule("/vault/open", read, KindDirectory),
		rule("/c/secret", deny, KindFile), rule("/d/missing", deny, KindMissing),
		rule("/tmp/w", write, KindDirectory), rule("/run/user/w", read, KindDirectory))
	for _, c := range []struct {
		name, path string
		want       string // part of the reason; empty: it fits
	}{
		{"an ordinary directory", "/home/u/.npm", ""},
		{"in a writable root", "/w/.npm", ""},
		{"a writable root", "/w", "rule for /w"},
		{"around a root", "/", "not a directory"},
		{"denied", "/vault/cache", "denies"},
		{"opened again below a denied directory", "/vault/open/cache", ""},
		{"with something denied in it", "/c", "rule for /c/secret"},
		{"with something missing in it", "/d", ""},
		{"a name that begins alike", "/c/secret-b", ""},
		{"hidden by the private /tmp", "/tmp/cache", "another directory"},
		{"a root in /tmp", "/tmp/w/cache", ""},
		{"/tmp itself", "/tmp", "private to the command"},
		{"hidden by /run", "/run/cache", "another directory"},
		{"a root in /run", "/run/user/w/cache", ""},
		{"/dev", "/dev/shm/cache", "system"},
		{"/proc", "/proc", "system"},
		{"relative", "cache", "not a directory"},
		{"not clean", "/a/../b", "not a directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := r.Fits(c.path); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%s: %q, want %q", c.path, got, c.want)
			}
		})
	}
}

// TestLandlockRights: the ruleset names what the kernel knows, and no more.
func TestLandlockRights(t *testing.T) {
	for _, c := range []struct {
		name            string
		abi             int
		handled, scoped uint64
	}{
		{"refer", 2, 0x3ff2, 0}, {"truncate", 3, 0x7ff2, 0}, {"network", 4, 0x7ff2, 0},
		{"device ioctl", 5, 0xfff2, 0}, {"scopes", 6, 0xfff2, 3}, {"later", 9, 0xfff2, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := host(t, "ubuntu-abi7")
			h.LandlockABI = c.abi
			p, err := Make(h, request(rule("/w", write, KindDirectory), rule("/f", write, KindFile)))
			if err != nil {
				t.Fatal(err)
			}
			set := rulesetOf(t, p)
			if set.Handled != c.handled || set.Scoped != c.scoped {
				t.Errorf("handles %#x, scopes %#x; want %#x, %#x", set.Handled, set.Scoped,
					c.handled, c.scoped)
			}
		})
	}
}

// A fataler is a test of package testing or of rapid.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

func rulesetOf(t fataler, p *Plan) *launch.Ruleset {
	t.Helper()
	for _, s := range p.Script.Steps {
		if s.Op == launch.OpLandlock {
			return s.Ruleset
		}
	}
	t.Fatal("no landlock step")
	return nil
}

// TestEntry checks at every level that both tasks begin with the steps of the request.
func TestEntry(t *testing.T) {
	entry := Entry{Reaper: []launch.Step{{Op: launch.OpJoin}},
		Command: []launch.Step{{Op: launch.OpAffinity}}}
	full := request()
	mode(sandbox.Full)(full)
	landlock := request(rule("/w", write, KindDirectory))
	landlock.Level = LevelLandlock
	for name, r := range map[string]*Request{LevelNative: request(rule("/w", write, KindDirectory)),
		LevelNone: full, LevelLandlock: landlock} {
		t.Run(name, func(t *testing.T) {
			plain, err := Make(host(t, "ubuntu-abi7"), r)
			if err != nil {
				t.Fatal(err)
			}
			r.Entry = entry
			p, err := Make(host(t, "ubuntu-abi7"), r)
			if err != nil {
				t.Fatal(err)
			}
			steps := plain.Script.Steps
			i := slices.IndexFunc(steps,
				func(s launch.Step) bool { return s.Op == launch.OpStartCommand }) + 1
			want := slices.Concat(entry.Reaper, steps[:i], entry.Command, steps[i:])
			if diff := cmp.Diff(want, p.Script.Steps); diff != "" {
				t.Error(diff)
			}
		})
	}
}
