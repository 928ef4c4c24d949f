// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/run/tty"
)

// namedDescriptor is how words name a descriptor, as shells do for process substitution. It is
// compiled for words that may have one.
var namedDescriptor = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`/(?:dev|proc/self)/fd/([1-9][0-9]{0,5})`)
})

// files returns the descriptors that the program gets beside the standard ones: those of --fd,
// and pipes that its words name. Other things that words name are not passed on: they may open
// more than a pipe does, and the user did not say so.
func (o *Options) files(words []string) (map[int]*os.File, error) {
	files := make(map[int]*os.File)
	for _, n := range o.Descriptors {
		if files[n] = tty.Inherited(n); files[n] == nil {
			return nil, explain.NewError("--fd %d: this process was not started with a descriptor of that number", n)
		}
		if info, err := files[n].Stat(); err == nil && info.IsDir() {
			return nil, explain.NewError("--fd %d: it is a directory, which would open everything below it; use --ro or --rw with its path", n)
		}
	}
	for _, w := range words {
		if !strings.Contains(w, "/fd/") {
			continue
		}
		for _, m := range namedDescriptor().FindAllStringSubmatch(w, -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil || n < 3 || files[n] != nil {
				continue
			}
			if f := tty.Inherited(n); f != nil && tty.IsPipe(f) {
				files[n] = f
			}
		}
	}
	return files, nil
}
