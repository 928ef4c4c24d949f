// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/sallyport-dev/sallyport/internal/linux/launch"

// A Host is what is known about the machine. Bug reports attach it as JSON.
type Host struct {
	System string `json:"system"` // as GOOS
	Arch   string `json:"arch"`   // as GOARCH
	UID    int    `json:"uid"`
	GID    int    `json:"gid"`

	// Missing are the facts that the native level needs and this host lacks. Empty
	// means that the level is available.
	Missing []Missing `json:"missing,omitempty"`

	Blind bool `json:"blind,omitempty"` // no observer of system calls is available

	LandlockABI int    `json:"landlock_abi"` // 0: none
	Caps        uint64 `json:"caps"`         // the capabilities that this process has
	LastCap     uint64 `json:"last_cap"`     // the highest capability the kernel knows

	// Watch are the limits of inotify(7) of a user of this namespace, by the name of the
	// setting below /proc/sys/user; those that cannot be read are missing.
	Watch map[string]int `json:"watch,omitempty"`

	// GroupsV1 says that a hierarchy of control groups has version 1. In a cgroup namespace the
	// roots of such mounts lie above the command's own group ("/.."), and Java's management fails
	// on that, so commands have no such namespace here: they see the names of their groups.
	GroupsV1 bool `json:"groups_v1,omitempty"`

	Devices    []string `json:"devices"`     // device files of /dev that a command gets, by name
	ProcCovers []string `json:"proc_covers"` // what of /proc exists and is made read-only
	ProcMasks  []string `json:"proc_masks"`  // what of /proc exists and is hidden
	SysShows   []Spot   `json:"sys_shows"`   // what of /sys stays visible
	RunShows   []Spot   `json:"run_shows"`   // what of /run stays visible
}

// A Missing is a fact that a host lacks.
type Missing struct {
	Need string `json:"need"` // what the native level needs
	Have string `json:"have"` // what was seen instead
	Hint string `json:"hint"` // the fix
}

// A Kind is what is at a path. The zero Kind is nothing.
type Kind uint8

// The kinds that matter for a plan.
const (
	KindMissing Kind = iota
	KindDirectory
	KindFile  // regular file
	KindLink  // symbolic link: only the rules that keep one as it is are about it
	KindOther // device, pipe, socket
)

// A Spot is a path with what was found there. The path has no symbolic link in it, but may be one.
type Spot struct {
	Path string    `json:"path"`
	Kind Kind      `json:"kind"`
	ID   launch.ID `json:"id,omitzero"`
}
