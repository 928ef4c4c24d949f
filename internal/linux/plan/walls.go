// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// A Wall is one thing that a sandbox prevents. At the native level all of them hold.
type Wall struct {
	Name  string // stays the same over versions
	Stops string // what the command cannot do

	Bwrap, Landlock Gap
	// Blind is what is weaker where no observer judges the command's calls, a sentence;
	// empty when the wall needs no observer. The bwrap level never has one.
	Blind string
}

// A Gap says how far a wall holds at a weaker level. With the zero Gap it holds.
type Gap struct {
	Lacks   string // what is weaker, a sentence; empty when the wall holds
	Refused bool   // policies that need the wall are refused, so nothing runs weaker
	Until   int    // with Landlock of this version or newer the wall holds; 0 means with none
}

// wallProtected is the wall whose sentence names the paths.
const wallProtected = "protected-names"

// Walls returns the table of all walls in the order of the documentation. The caller owns
// the slice.
func Walls() []Wall {
	return append(fileWalls(), taskWalls()...)
}

const (
	stopsMissing     = "make protected names that are missing, such as .codex or .git (by name, see Names and races)"
	missingNames     = "what a command makes at a missing protected name is not denied, but moved to quarantine when it is seen, at the latest before the result"
	lateFiles        = "files that come to match a denied pattern while the command runs can be read and changed"
	lateRepositories = "git repositories that others make while the command runs, or that the search did not reach, can be changed"
)

func fileWalls() []Wall {
	return []Wall{
		{Name: "writes", Stops: "create, write, rename, truncate or delete files outside of writable places"},
		{
			Name: "metadata", Stops: "change modes, owners, times and attributes of files outside",
			Bwrap:    Gap{Lacks: "run by the real root, a command can change modes and times of the host's /dev/null and the like"},
			Landlock: Gap{Lacks: "modes, owners, times and attributes of the user's files outside can be changed, because Landlock has no rights for them"},
		},
		{
			Name: wallProtected, Stops: "change protected names such as .git in a workspace",
			Landlock: Gap{Lacks: "protected names in writable directories, such as .git, can be changed"},
		},
		{Name: "missing-names", Stops: stopsMissing, Bwrap: Gap{Lacks: missingNames}, Blind: missingNames},
		{
			Name: "denied-paths", Stops: "read what the policy denies, by path or pattern",
			Landlock: Gap{Lacks: "denied paths cannot be hidden", Refused: true},
		},
		{
			Name: "late-files", Stops: "open what a denied pattern matches although it was made while the command runs (by name, see Names and races)",
			Bwrap:    Gap{Lacks: lateFiles},
			Landlock: Gap{Lacks: "files that come to match a denied pattern cannot be hidden", Refused: true},
			Blind:    lateFiles,
		},
		{
			Name: "late-repositories", Stops: "change git repositories that others make while it runs, or that were not found (by name, see Names and races)",
			Bwrap: Gap{Lacks: lateRepositories},
			Blind: lateRepositories,
		},
		{
			Name: "read-carve-outs", Stops: "write to what the policy makes read-only in a writable directory",
			Landlock: Gap{Lacks: "nothing below a writable directory can be made read-only", Refused: true},
		},
		{
			Name: "named-pipes", Stops: "write into named pipes outside",
			Bwrap: Gap{Lacks: "named pipes outside can be written to, because a read-only mount does not stop that"},
		},
		{
			Name: "swapped-paths", Stops: "have a planned path replaced by another program between the look and the launch",
			Bwrap: Gap{Lacks: "bubblewrap opens paths by name, so one that another program replaces meanwhile is not noticed"},
		},
		{
			Name: "later-mounts", Stops: "write to what the host mounts while the command runs",
			Bwrap: Gap{Lacks: "what the host mounts while the command runs appears inside as the host mounts it"},
		},
		{Name: "stdio", Stops: "get more of the file behind a standard descriptor than the descriptor gives"},
		{
			Name: "own-directories", Stops: "see the host's /tmp, /run, /sys and /dev/shm",
			Landlock: Gap{Lacks: "the host's /tmp, /run, /sys and /dev/shm are visible; TMPDIR leads to the private directory"},
		},
		{
			Name: "own-state", Stops: "read sallyport's own state and other runs' private directories",
			Landlock: Gap{Lacks: "sallyport's own state and other runs' private directories can be read"},
		},
		{Name: "credentials", Stops: "read stores of secrets in home directories", Landlock: Gap{Lacks: "stores of secrets in home directories can be read"}},
		{
			Name: "devices", Stops: "open devices and terminals of the host",
			Landlock: Gap{Lacks: "devices and other terminals that this user may open can be read from"},
		},
		{
			Name: "device-control", Stops: "send control calls (ioctl) to devices of the host",
			Landlock: Gap{Lacks: "devices that this user may open take control calls (ioctl); Landlock 5 (Linux 6.10) stops that", Until: 5},
		},
		{Name: "kernel-settings", Stops: "change kernel settings below /proc/sys and /sys, also as real root"},
	}
}

func taskWalls() []Wall {
	return []Wall{
		{Name: "network", Stops: "send anything to a network when the policy gives none"},
		{Name: "unix-sockets", Stops: "connect to services by unix sockets"},
		{
			Name: "see-processes", Stops: "see processes outside and their command lines",
			Landlock: Gap{Lacks: "processes outside and their command lines are visible in /proc"},
		},
		{Name: "trace-processes", Stops: "trace processes outside, read their memory, environment and files"},
		{
			Name: "first-process", Stops: "take over the init process of the sandbox",
			Bwrap: Gap{Lacks: "the init process inside is bubblewrap's own; the command can take it over, and with it the calls that make namespaces (with a set-uid bubblewrap: all calls)"},
		},
		{
			Name: "signals", Stops: "send signals to processes outside",
			Landlock: Gap{Lacks: "processes of the same user can be sent signals, the reaper included; Landlock 6 (Linux 6.12) stops that", Until: 6},
		},
		{Name: "priorities", Stops: "change priorities and limits of processes outside"},
		{Name: "ipc", Stops: "reach System V and POSIX IPC objects of the host"},
		{
			Name: "system-names", Stops: "see the host's mounts, names and lists of keys",
			Landlock: Gap{Lacks: "the host's mounts, control groups, names and lists of keys are visible"},
		},
		{Name: "privileges", Stops: "gain rights by set-uid programs, capabilities or new namespaces"},
		{Name: "kernel-surface", Stops: "make system calls that few programs need and attackers like"},
		{Name: "descriptors", Stops: "use open files of the caller"},
		{Name: "left-behind", Stops: "leave processes behind when the command ends"},
		{
			Name: "killed-front-end", Stops: "run on when sallyport itself is killed",
			Landlock: Gap{Lacks: "on kernels without CONFIG_PROC_CHILDREN, processes that have left the command's process group run on when sallyport itself is killed by SIGKILL"},
		},
	}
}

// gap returns how far a wall holds at a level.
func (w *Wall) gap(level string) Gap {
	switch level {
	case LevelBwrap:
		return w.Bwrap
	case LevelLandlock:
		return w.Landlock
	}
	return Gap{}
}

// holds reports whether the kernel of a host closes the gap.
func (g Gap) holds(h *Host) bool {
	return g.Lacks == "" || g.Until > 0 && h.LandlockABI >= g.Until
}

// A Lack is a wall that a level does not have.
type Lack struct {
	Wall string `json:"wall"`
	Why  string `json:"why"`
}

// Standing lists which walls hold at a level of a host, which are missing, and
// which policies are refused for want of one. The lists are never nil.
func Standing(h *Host, level string) (holds []string, lacks, refuses []Lack) {
	holds, lacks, refuses = []string{}, []Lack{}, []Lack{}
	for _, w := range Walls() {
		switch g := w.gap(level); {
		case g.holds(h) && h.Blind && w.Blind != "":
			lacks = append(lacks, Lack{w.Name, w.Blind})
		case g.holds(h):
			holds = append(holds, w.Name)
		case g.Refused:
			refuses = append(refuses, Lack{w.Name, g.Lacks})
		default:
			lacks = append(lacks, Lack{w.Name, g.Lacks})
		}
	}
	return holds, lacks, refuses
}
