// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/runlog"
	"github.com/sallyport-dev/sallyport/internal/state"
)

// A recording is a line that is being written about a run.
type recording struct {
	err  error
	done chan struct{}
}

// record begins to write a run down, beside whatever else is done at its end.
func (r *report) record(about *sallyport.Result, start time.Time) *recording {
	entry := runlog.Record{Start: start, Flags: r.o.matter(), Result: *about}
	if entry.Args == nil && r.o.hasScript {
		entry.Args = []string{"-c", r.o.script} // no shell was chosen for it
	}
	rec := &recording{done: make(chan struct{})}
	go func() {
		defer close(rec.done)
		state, err := state.Dir()
		if err == nil {
			err = runlog.Append(state, entry)
		}
		rec.err = err
	}()
	return rec
}

// wait returns when the line is written, or cannot be, which is no failure of the run.
func (rec *recording) wait(r *report) {
	<-rec.done
	if rec.err != nil && r.o.verbose {
		r.note("sallyport why will not know this run: " + plain(rec.err))
	}
}

// matter returns the flags that decide what a command may touch, so that the command
// line can be written again. Values of variables are left out.
func (o *runOptions) matter() []string {
	var words []string
	add := func(flag string, values ...string) {
		for _, v := range values {
			if v != "" {
				words = append(words, flag, v)
			}
		}
	}
	add("-s", o.sandbox)
	add("-P", o.profile)
	add("--rw", o.writable...)
	add("--ro", o.readable...)
	add("--deny", o.denied...)
	add("--grant", o.grants...)
	add("--tmp", o.tmp)
	if o.noCaches {
		words = append(words, "--no-caches")
	}
	if o.blind {
		words = append(words, "--no-observer")
	}
	add("--net", o.network)
	add("--allow", o.allowed...)
	add("--level", o.level)
	number := func(flag string, v float64) {
		if v > 0 {
			words = append(words, flag, strconv.FormatFloat(v, 'f', -1, 64))
		}
	}
	number("--memory", float64(o.resources.Memory))
	number("--cpus", o.resources.CPUs)
	number("--pids", float64(o.resources.PIDs))
	number("--disk", float64(o.resources.Disk))
	number("--output", float64(o.resources.Output))
	add("--env-inherit", o.inherit)
	for _, v := range o.variables {
		if name, _, set := strings.Cut(v, "="); set {
			v = name + "=" + runlog.Masked
		}
		add("-e", v)
	}
	add("-C", o.dir)
	switch {
	case o.hasTTY && o.tty:
		words = append(words, "-t")
	case o.hasTTY:
		words = append(words, "-t=false")
	}
	return words
}

// newRunID names a run that has no result.
func newRunID() string { return fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()) }
