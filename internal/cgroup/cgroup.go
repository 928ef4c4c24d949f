// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cgroup makes control groups of Linux: limits that the kernel holds over
// whole trees of processes.
//
// [Find] tries what can be had for this process: a group of version 2 below its own
// or below one above it, and, for controllers that version 2 does not have, groups
// of version 1. [Tree.New] makes one group for one run and sets its limits; the
// launcher puts the first process of the run into it before anything of the command
// is executed. [Group.Read] tells afterwards what was used and which limit was met,
// and [Group.Remove] removes it. A group is never used twice: once the processes of
// a group were killed as a whole, the kernel may kill whatever enters it later.
//
// Names of groups hold the identity of their owner, so what a crashed process left
// behind is found and removed by the next one. The package never touches a group
// that is not its own, never moves a process that it was not told to, with one
// exception that [Find] describes, and never raises a limit that somebody else has
// set. On other systems than Linux nothing can be had, and Find says so.
package cgroup

import (
	"fmt"
	"time"
)

// A Kind is a version of control groups, in the words of results. The zero Kind is
// none.
type Kind string

// The kinds.
const (
	V1 Kind = "cgroup-v1"
	V2 Kind = "cgroup-v2"
)

// A Controller is what one limit needs, by the kernel's name (cgroups(7)).
type Controller string

// The controllers that are used.
const (
	Memory Controller = "memory"
	CPU    Controller = "cpu"
	PIDs   Controller = "pids"
)

// Controllers returns all of them, in a fixed order.
func Controllers() []Controller { return []Controller{Memory, CPU, PIDs} }

// Limits are what a group holds. Zero members hold nothing.
type Limits struct {
	Memory int64   // bytes, swap included
	CPUs   float64 // processors' worth of time
	PIDs   int     // processes and threads
}

// lower returns the limits with every one that o has and that is lower.
func (l Limits) lower(o Limits) Limits {
	return Limits{Memory: lesser(l.Memory, o.Memory), CPUs: lesser(l.CPUs, o.CPUs), PIDs: lesser(l.PIDs, o.PIDs)}
}

// only returns the limits that need these controllers.
func (l Limits) only(on map[Controller]bool) Limits {
	if !on[Memory] {
		l.Memory = 0
	}
	if !on[CPU] {
		l.CPUs = 0
	}
	if !on[PIDs] {
		l.PIDs = 0
	}
	return l
}

// lesser returns the smaller of two limits, of which zero is none.
func lesser[T int | int64 | float64](a, b T) T {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// Usage is what a group counted until it was read. Zero members are not known.
type Usage struct {
	// User and System are times on processors, of version 2 alone; CPU says that
	// they are known.
	CPU          bool
	User, System time.Duration
	// Peak is the most memory that was charged to the group at once, in bytes,
	// with the file cache that the kernel charged to it.
	Peak int64
	// Tasks is the most processes and threads that there were at once.
	Tasks int
	// OOMKills counts the processes that the kernel killed for want of memory, and
	// Refused the processes and threads that were refused.
	OOMKills, Refused uint64
}

// An Error says why a group could not be made or set up.
type Error struct {
	Path string // the folder or file
	Err  error
}

// Error returns one sentence.
func (e *Error) Error() string { return fmt.Sprintf("cgroup: %s: %v", e.Path, e.Err) }

// Unwrap gives what the system said.
func (e *Error) Unwrap() error { return e.Err }
