// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/caches"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/names/git"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// GitGrant is the named grant for git: everything in a git directory except what git
// obeys.
const GitGrant = "git"

// DeniedRun is the run of one command.
type DeniedRun struct {
	Policy sandbox.Policy // bound
	Dir    string
	Args   []string // of the command
	Env    []string
	OS     string // of the machine, as GOOS
	Local  bool   // it ran on this machine; on another one paths are taken as they are
	Named  bool   // the grant for git is supported where it ran
	Caches bool   // and those for caches too

	// Executor is asked whether what would be suggested is enough: whether it can build the sandbox of
	// Spec with that, and the denied path is open there. Nil, or one that cannot say (only a local one
	// on Linux can), is not.
	Executor executor.Executor
	Spec     *executor.Spec

	files files // nil where nothing can be looked at
}

// files is the file system on which the command ran.
type files interface {
	exists(name string) bool
	real(name string) string // the path without symbolic links
	database(name string) bool
	holds(name, digits string) bool      // a file that begins with one of these
	may(op sandbox.Op, name string) bool // this user, outside of the sandbox
}

// local is this machine.
type local struct{}

func (local) exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func (local) real(name string) string { return hostfacts.RealPath(name) }

// look has the files of this machine looked at, where the command ran on it.
func (r *DeniedRun) look() {
	if r.Local && r.files == nil {
		r.files = local{}
	}
}

// Complete adds the rule and the grant to denials that lack them, and to those that no narrow
// grant allows what wider would.
func (r *DeniedRun) Complete(denials []sandbox.Denial) {
	r.look()
	var rest []*sandbox.Denial
	for i := range denials {
		d := &denials[i]
		if why := r.never(d); why != "" {
			d.NoGrant, d.Rule = true, NothingOpens+why
		}
		if d.Rule == "" {
			d.Rule = r.rule(d)
		}
		d.NoGrant = d.NoGrant || r.setting(d)
		if d.Grant == "" && !d.NoGrant {
			d.Grant = r.service(d)
		}
		r.socketFile(d)
		if d.Grant != "" || d.NoGrant || !isFile(d.Op) || r.Policy.Mode() != sandbox.Managed {
			continue
		}
		if d.Grant = r.named(d); d.Grant == "" {
			rest = append(rest, d)
		}
	}
	r.byPath(rest)
	for i := range denials {
		if d := &denials[i]; d.Grant == "" && d.Wider == "" && !d.NoGrant &&
			r.Policy.Mode() == sandbox.Managed {
			d.Wider = r.wider(d)
		}
	}
	r.prove(denials)
}

// never returns why no flag helps against a denial; empty where one may.
func (r *DeniedRun) never(d *sandbox.Denial) string {
	switch {
	case d.Op == sandbox.Syscall && d.Grant == "" && slices.Contains(mounting, d.Call):
		return "the mounts of a sandbox are fixed; mount outside of it"
	case d.Op == sandbox.Syscall && slices.Contains(rooted, d.Call):
		d.Grant = ""
		return "it is allowed only in a user namespace that the program creates (--allow userns)"
	case d.Op == sandbox.Syscall && d.Call == "bpf" && r.Local && r.files.holds(bpfSetting, "12"):
		d.Grant = ""
		return "this kernel allows it only to privileged programs (" + bpfSetting + ")"
	case d.Op == sandbox.Syscall && d.Source == sandbox.Notified && slices.Contains(userCalls, d.Call):
		return oneUser(d.Program)
	case d.Op == sandbox.Write && d.Errno == "EXDEV":
		return crosses
	case d.Op == sandbox.Write && path.Base(d.Path) == ".gitconfig.lock" && r.files != nil &&
		!r.files.exists(strings.TrimSuffix(d.Path, ".lock")):
		return "git settings cannot be created in a sandbox; create " +
			text.Word(strings.TrimSuffix(d.Path, ".lock")) + " outside of the sandbox first"
	case r.Local && d.Op == sandbox.Write && inside(d.Path, "/dev") && !r.files.may(d.Op, d.Path):
		return anyway
	case r.absent(d):
		return "this machine has no such socket"
	}
	return ""
}

// rooted are calls that need rights which programs do not have inside: by themselves no flag allows them.
var rooted = []string{"chroot", "sethostname", "setdomainname", "setns"}

// userCalls change the user or the groups of a program. They are denied to root, who may outside.
var userCalls = []string{"setgroups", "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid"}

// oneUser is why a program cannot become another user, with what helps the program.
func oneUser(program string) string {
	why := "the sandbox has only one user"
	name := path.Base(program)
	if strings.HasPrefix(program, "/usr/lib/apt/methods/") || name == "apt" || name == "apt-get" {
		why += "; apt works with -o APT::Sandbox::User=root"
	}
	return why
}

// bpfSetting is 0 where programs without rights may use bpf(2): 1 and 2 close it.
const bpfSetting = "/proc/sys/kernel/unprivileged_bpf_disabled"

// anyway is why nothing is suggested for what fails outside, too. In directories that a sandbox shows the
// observer says so; of /dev it has its own.
const anyway = "this user may not do it outside of the sandbox either"

// socketFile treats a unix socket that could not be made because of its directory as the file that it is.
func (r *DeniedRun) socketFile(d *sandbox.Denial) {
	if d.Op != sandbox.Bind || d.Errno != "EROFS" || !path.IsAbs(d.Addr) {
		return
	}
	file := []sandbox.Denial{*d}
	file[0].Access = sandbox.Access{Op: sandbox.Write, Path: d.Addr}
	file[0].Rule, file[0].Grant = "", ""
	r.Complete(file)
	d.Rule, d.Grant, d.Wider, d.NoGrant = file[0].Rule, file[0].Grant, file[0].Wider, file[0].Wider == ""
}

// crosses is the rule of what stays denied when both ends may be written: programs that copy then are denied
// something else.
const crosses = "hard links and renames across the bounds of a writable directory fail; copy the file"

// absent reports whether a program looked for a socket that this machine does not have either.
func (r *DeniedRun) absent(d *sandbox.Denial) bool {
	return r.Local && d.Op == sandbox.Connect && d.Net == "unix" && d.Errno == "ENOENT" && path.IsAbs(d.Addr) &&
		!strings.HasPrefix(d.Addr, slashTmp) && !strings.HasPrefix(d.Addr, "/dev/shm/") && !r.files.exists(d.Addr)
}

// mounting are the calls that change mounts.
var mounting = []string{"mount", "umount", "umount2", "pivot_root", "move_mount", "fsopen", "fsmount",
	"open_tree", "mount_setattr"}

func isFile(op sandbox.Op) bool {
	return op == sandbox.Read || op == sandbox.Write || op == sandbox.Exec
}

// setting reports whether a denied write was to settings of sallyport, which no run opens.
func (r *DeniedRun) setting(d *sandbox.Denial) bool {
	return r.Local && d.Op == sandbox.Write &&
		slices.ContainsFunc(dirs.ProtectedDirs(os.Getenv, grants.Homes()),
			func(dir string) bool { return inside(d.Path, dir) })
}

// service returns the grant for the service at a unix socket that could not be reached.
func (r *DeniedRun) service(d *sandbox.Denial) string {
	if d.Op != sandbox.Connect || d.Net != "unix" || !r.Named || !r.Local || r.OS != "linux" {
		return ""
	}
	for _, p := range grants.ServicePlaces(os.Environ(), os.Geteuid()) {
		if d.Addr == p.Path || d.Addr == r.files.real(p.Path) {
			return sandbox.Grant{Name: p.Grant}.String()
		}
	}
	return ""
}

// rule returns what denied an access. The sandbox protects more than the policy says:
// what git obeys, and unix sockets of other programs, in directories that the policy opens.
// Where the policy allows an access and no such rule is known, it is empty.
func (r *DeniedRun) rule(d *sandbox.Denial) string {
	if d.Target() == "" && d.Op != sandbox.Signal {
		return ""
	}
	ruling, words := r.Policy.Explain(d.Access)
	if ruling != sandbox.Allow {
		return words
	}
	if d.Op == sandbox.Connect && d.Net == "unix" {
		return "unix sockets" // in a place that may be written, and not the command's own
	}
	if d.Op == sandbox.Connect && d.Source.Evidence() && r.Policy.Network() != sandbox.NetworkHost {
		return "network=" + r.Policy.Network().String() // a name server of this machine
	}
	if dir, _, ok := gitDir(d.Path); ok && d.Op == sandbox.Write {
		return dir + "=read (protected)"
	}
	if _, at, ok := r.later(d.Path); ok && d.Op == sandbox.Write {
		return at + "=read (protected)"
	}
	return ""
}

// later returns the name that a path is or lies in, if it is one at the top of a writable root
// that other programs run or obey later, and no entry of the policy is about it.
func (r *DeniedRun) later(name string) (n grants.ToolName, at string, ok bool) {
	res, err := r.Policy.Resolve()
	if err != nil {
		return n, "", false
	}
	for _, w := range res.Writable {
		n, at, ok = grants.Below(w.Root, name)
		if !ok {
			n, at, ok = grants.BelowHome(r.homes(), name)
			ok = ok && at != w.Root && inside(at, w.Root)
		}
		if ok {
			ruled := func(p sandbox.PathRule) bool { return inside(p.Path, at) && inside(name, p.Path) }
			return n, at, !slices.ContainsFunc(res.Paths, ruled)
		}
	}
	return n, "", false
}

// homes are the home directories that matter to a run.
func (r *DeniedRun) homes() []string {
	homes := []string{r.variable("HOME")}
	if r.Local {
		homes = append(append(homes, grants.Homes()...), grants.LoginHomes()...)
		for i, home := range homes {
			homes[i] = r.files.real(home)
		}
	}
	return slices.DeleteFunc(homes, func(home string) bool { return !path.IsAbs(home) || home == "/" })
}

// gitDir splits a path at the outermost git directory in it.
func gitDir(name string) (dir, below string, ok bool) {
	before, after, found := strings.Cut(name+"/", "/.git/")
	return before + "/.git", strings.TrimSuffix(after, "/"), found
}

// named returns the named grant that allows an access, followed by flags where it is not
// enough alone; empty if there is none.
func (r *DeniedRun) named(d *sandbox.Denial) string {
	if d.Op != sandbox.Write || r.Policy.LevelAt(d.Path) == sandbox.LevelDeny {
		return ""
	}
	if n, _, ok := r.later(d.Path); ok && n.Grant != grants.GrantHome &&
		!slices.Contains(r.Policy.Named(), n.Grant) {
		return sandbox.Grant{Name: n.Grant}.String()
	}
	if !r.Named {
		return ""
	}
	if grant := r.git(d.Path); grant != "" {
		return grant
	}
	return r.cache(d.Path)
}

// git is named for a path in a git directory.
func (r *DeniedRun) git(name string) string {
	dir, below, ok := gitDir(name)
	if !ok || !r.gitOpens(dir) {
		return ""
	}
	granted := slices.Contains(r.Policy.Named(), GitGrant)
	grant := sandbox.Grant{Name: GitGrant}.String()
	switch {
	case below == "":
		// A new repository. The grant does not let an existing one be moved.
		if !granted && r.files != nil && !r.files.exists(dir) {
			return grant
		}
	case below == "config" || below == "config.lock": // git renames the second to the first
		config := sandbox.Grant{Path: dir + "/config", Level: sandbox.LevelWrite}.String()
		if granted {
			return config
		}
		return grant + " " + config
	case !granted && git.Writable(below):
		return grant
	}
	return ""
}

// gitOpens returns whether the grant for git applies to a git directory: it lies in a
// writable directory, and no entry of the policy is about it.
func (r *DeniedRun) gitOpens(dir string) bool {
	if r.Policy.LevelAt(path.Dir(dir)) != sandbox.LevelWrite {
		return false
	}
	if r.Policy.LevelAt(dir) == sandbox.LevelWrite {
		return true // a nested repository, which the sandbox protects beyond the policy
	}
	res, err := r.Policy.Resolve()
	return err == nil && slices.ContainsFunc(res.Writable,
		func(w sandbox.WritableRoot) bool { return slices.Contains(w.Protected, dir) })
}

// cache is named for a path in the cache of a toolchain.
func (r *DeniedRun) cache(name string) string {
	var real func(string) string
	if r.files != nil {
		real = r.files.real
	}
	grant, dir := caches.GrantFor(name, r.Env, real)
	if grant == "" && r.files != nil && !r.files.exists(name) && len(r.Args) > 0 {
		grant, dir = caches.GrantAbove(name, r.Env, path.Base(r.Args[0])) // the tool makes its cache
	}
	if grant == "" || !r.Caches || slices.Contains(r.Policy.Named(), grant) ||
		r.Policy.LevelAt(name) != sandbox.LevelRead {
		return ""
	}
	res, err := r.Policy.Resolve()
	if err != nil || slices.ContainsFunc(res.Paths,
		func(rule sandbox.PathRule) bool { return inside(rule.Path, dir) }) {
		return "" // an entry of the policy takes precedence
	}
	if r.files != nil {
		workspace := r.Dir
		for _, w := range res.Writable { // those higher up first
			if inside(r.Dir, w.Root) {
				workspace = w.Root
			}
		}
		if caches.Covers(caches.Detect(workspace, r.Dir, r.Args), grant) {
			return "" // the command had its private layer, and that did not help
		}
	}
	return sandbox.Grant{Name: grant}.String()
}

// inside returns whether a path is a directory or lies in it.
func inside(name, dir string) bool { return safefile.Within(name, dir) }

// byPath suggests path grants: the path itself, or its directory where the directory is
// needed or many paths in it were denied.
func (r *DeniedRun) byPath(denials []*sandbox.Denial) {
	denials = slices.DeleteFunc(denials, func(d *sandbox.Denial) bool {
		return r.allowed(d) // it was not the policy that denied it
	})
	var wanted []sandbox.Denial
	for _, d := range denials {
		w := *d
		if w.Path = r.grantable(d); w.Path == "" {
			continue
		}
		if GrantWarning(asGrant(&w).String(), r.variable("HOME")) != "" {
			continue // it must not count for its directory either
		}
		// A path that one grant cannot open, such as one under a deny entry, must not count
		// for its directory.
		if gs := SuggestGrants([]sandbox.Denial{w}); len(gs) == 1 && r.opens(gs[0], d.Access) {
			wanted = append(wanted, w)
		}
	}
	grants := SuggestGrants(wanted)
	for _, d := range denials {
		i := slices.IndexFunc(grants, func(g sandbox.Grant) bool {
			return inside(r.needed(d), g.Path) && r.opens(g, d.Access)
		})
		if i >= 0 && GrantWarning(grants[i].String(), r.variable("HOME")) == "" {
			d.Grant = grants[i].String()
		}
	}
}

// opens returns whether the policy with a grant allows an access. A grant that a policy
// is warned about, such as that of a home directory, does not count.
func (r *DeniedRun) opens(g sandbox.Grant, a sandbox.Access) bool {
	home := r.variable("HOME")
	var real func(string) string
	if r.files != nil {
		real = r.files.real
	}
	p := r.Policy.With(g)
	return p.Rule(a) == sandbox.Allow && len(p.Warnings(home, real)) <= len(r.Policy.Warnings(home, real))
}

// grantable returns the nearest existing path at or above what a denied access needs, because only
// that can be granted, or "". A hidden directory, or one in a hidden directory, is not suggested for
// what is missing in it: settings, keys and hooks are stored there. Nor are directories of
// the kernel, of which a sandbox has its own.
func (r *DeniedRun) grantable(d *sandbox.Denial) string {
	if ofKernel(d.Path) {
		return ""
	}
	at := r.existing(r.needed(d))
	if at != d.Path && hidden(at) {
		return ""
	}
	return at
}

// ofKernel returns whether a path is in a directory of which a sandbox has its own.
func ofKernel(name string) bool {
	return inside(name, "/dev") || inside(name, "/proc") || inside(name, "/sys")
}

// existing returns the nearest path at or above name that will be there in the next run.
func (r *DeniedRun) existing(name string) string {
	if r.files == nil || !path.IsAbs(name) {
		return name
	}
	name = r.lasting(name)
	for name != "/" && !r.files.exists(name) {
		name = path.Dir(name)
	}
	return name
}

// hidden returns whether a path has a hidden component, ".cache" aside.
func hidden(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") && part != ".cache" {
			return true
		}
	}
	return false
}
