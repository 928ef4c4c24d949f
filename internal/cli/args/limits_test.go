// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"errors"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

func TestLimitFlags(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		want executor.Resources
		err  string
	}{
		{"none", nil, executor.Resources{}, ""},
		{"all", []string{"--memory", "512MiB", "--cpus", "1.5", "--pids=200", "--disk", "1g", "--output", "10MB"},
			executor.Resources{Memory: 512 << 20, CPUs: 1.5, PIDs: 200, Disk: 1 << 30, Output: 10e6}, ""},
		{"no size", []string{"--memory", "much"}, executor.Resources{}, `--memory: invalid size "much"; use a form such as`},
		{"negative size", []string{"--disk", "-1"}, executor.Resources{}, `--disk: invalid size "-1"`},
		{"zero", []string{"--output", "0"}, executor.Resources{}, "--output: a limit of 0 is invalid; leave it out for no limit"},
		{"too little", []string{"--memory", "1MiB"}, executor.Resources{Memory: 1 << 20}, "--memory: no program starts with less than 4 MiB"},
		{"no processors", []string{"--cpus", "0"}, executor.Resources{}, "--cpus: a limit of 0 is invalid"},
		{"an exponent", []string{"--cpus", "1e3"}, executor.Resources{}, `--cpus: invalid number of processors "1e3"`},
		{"infinite", []string{"--cpus", "Inf"}, executor.Resources{}, `--cpus: invalid number of processors "Inf"`},
		{"tiny", []string{"--cpus", "0.001"}, executor.Resources{CPUs: 0.001}, "--cpus: the least share of a processor is 0.01"},
		{"no processes", []string{"--pids", "0"}, executor.Resources{}, "--pids: a limit of 0 is invalid"},
		{"a sign", []string{"--pids", "+5"}, executor.Resources{}, `--pids: invalid number of processes "+5"; use a number such as 200`},
		{"too many", []string{"--pids", "99999999999"}, executor.Resources{}, `--pids: invalid number of processes "99999999999"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var o Options
			words, err := syntax.ParseFlags(o.Flags(), append(test.args, "--", "true"))
			if err == nil {
				err = errors.Join(o.Check(words), o.check())
			}
			switch {
			case test.err == "" && err != nil, test.err != "" &&
				(err == nil || !strings.HasPrefix(err.Error(), test.err)):
				t.Errorf("%v, want %q", err, test.err)
			case test.err == "" && o.Cmd.Resources != test.want:
				t.Errorf("%+v", o.Cmd.Resources)
			}
		})
	}
}
