// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Command suites runs other people's test suites twice, without a sandbox and inside
// sallyport, and compares them test by test. The script .ci/suites prepares what it
// needs and starts it as an ordinary user:
//
//	suites -room DIR -allowed FILE [-limit 5m] [-only PATTERN]
//
// The room has bin/sallyport and bin/test2json, go/NAME.test with go/src/PACKAGE for each
// package of Go, python, node/PACKAGE with its modules, and git with a built git; what does
// not exist is not run, and the last lines say so.
//
// A test that passes outside must pass inside, or stand in the list with a reason. A test
// that failed inside gets a second run of its suite there, because a busy machine makes
// some tests fail anywhere. The exit code is 1 when a test that passes outside does
// not pass inside and is not listed, or when a listed one passes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

func main() {
	ok, err := compareAll(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "suites:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	room    string
	allowed string
	limit   time.Duration // for one run of one suite
	only    *regexp.Regexp
}

func readOptions(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("suites", flag.ContinueOnError)
	flags.StringVar(&o.room, "room", "", "the directory that .ci/suites has prepared")
	flags.StringVar(&o.allowed, "allowed", "", "the list of tests that may fail inside, with reasons")
	flags.DurationVar(&o.limit, "limit", 5*time.Minute, "time limit for one run of one suite")
	only := flags.String("only", "", "run only the suites whose name matches this pattern")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, err
	}
	o.room, err = filepath.Abs(o.room)
	return o, err
}

// compareAll runs the suites that args choose and prints how they compare. It reports
// whether every difference is listed and every listed difference exists.
func compareAll(args []string) (bool, error) {
	o, err := readOptions(args)
	if err != nil {
		return false, err
	}
	text, err := os.ReadFile(o.allowed)
	if err != nil {
		return false, err
	}
	list, err := readAllowed(string(text))
	if err != nil {
		return false, fmt.Errorf("%s: %w", o.allowed, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	all, missing := findSuites(o.room)
	var done []comparison
	fmt.Fprintf(os.Stdout, "%-36s %7s %7s %8s\n", "suite", "passed", "inside", "unlisted")
	for _, s := range all {
		if !o.only.MatchString(s.name) {
			continue
		}
		c, err := compareOne(ctx, s, o, list)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", s.name, err))
			continue
		}
		done = append(done, c)
		fmt.Fprintf(os.Stdout, "%-36s %7d %7d %8d  %v\n", s.name, c.passed, c.passed-len(c.failed),
			c.unlisted(), c.took.Round(time.Second))
	}
	return report(os.Stdout, done, missing), nil
}

// compareOne runs a suite outside, inside, and inside once more for tests that failed
// there without being listed. An error says why there are no results from outside; without
// results from inside no test passes there.
func compareOne(ctx context.Context, s suite, o options, list allowed) (comparison, error) {
	begin := time.Now()
	outside, err := s.run(ctx, nil, o.limit)
	if err != nil {
		return comparison{}, err
	}
	inside := []string{filepath.Join(o.room, "bin", "sallyport"), "run", "--env-inherit", "all",
		"-t=false", "--"}
	first, _ := s.run(ctx, inside, o.limit)
	c := compare(s.name, outside, first, list)
	if c.unlisted() > 0 {
		again, _ := s.run(ctx, inside, o.limit)
		c = compare(s.name, outside, better(first, again), list)
	}
	c.took = time.Since(begin)
	return c, nil
}
