// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package dirs

import (
	"fmt"
	"path/filepath"
	"sync"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/output"
)

// Logs makes logs for the output of processes, whose spill files are in the state directory. The zero
// Logs is ready. It must not be copied, and is safe for concurrent use.
type Logs struct {
	mu    sync.Mutex
	files output.Store
}

// New returns a log that retains what r says; the zero Retention makes one that has ended. Where a file
// cannot be made, the log says why. Without a state directory, the next call tries again.
func (l *Logs) New(r executor.Retention) *output.Log {
	if r == (executor.Retention{}) {
		log := output.NewLog(0, nil, nil)
		log.End()
		return log
	}
	var file *output.File
	var err error
	if r.File > 0 {
		file, err = l.file(r.File)
	}
	return output.NewLog(r.Memory, file, err)
}

// file makes a spill file.
func (l *Logs) file(size int64) (*output.File, error) {
	if err := l.find(); err != nil {
		return nil, fmt.Errorf("the state directory is not available: %w", err)
	}
	return l.files.Create(size)
}

// find sets the directory of the files.
func (l *Logs) find() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files.Dir != "" {
		return nil
	}
	dir, err := Dir()
	if err == nil {
		l.files.Dir = filepath.Join(dir, "output")
	}
	return err
}

// Close removes the files, and makes no further ones.
func (l *Logs) Close() error { return l.files.Close() }
