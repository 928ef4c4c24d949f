// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
)

// filePump reads each pipe in a goroutine of its own, with nothing but package os, on
// systems that have no pump of their own here.
type filePump struct {
	files  [2]*os.File // read ends by stream; nil is none
	output func(executor.Stream, []byte)

	mu sync.Mutex // one call of output at a time
	pulse
	delivery
	readers sync.WaitGroup
	done    chan struct{}
}

func newFilePump(cfg *Config, want [2]bool) (_ pump, ends [2]*os.File, err error) {
	p := &filePump{output: cfg.Output, pulse: pulse{base: time.Now()}, done: make(chan struct{})}
	for i, wanted := range want {
		if !wanted {
			continue
		}
		if p.files[i], ends[i], err = os.Pipe(); err != nil {
			p.close()
			closeFiles(ends[:])
			return nil, [2]*os.File{}, fmt.Errorf("pipe: %w", err)
		}
	}
	return p, ends, nil
}

func (p *filePump) eof() <-chan struct{} { return p.done }
func (p *filePump) delivered() bool      { return false } // nothing tells what the pipes hold
func (p *filePump) commandEnded()        {}               // a pipe that has ended is not opened again
func (p *filePump) close()               { closeFiles(p.files[:]) }

// closeStream ends the read that is in progress.
func (p *filePump) closeStream(s executor.Stream) { closeFiles(p.files[s : s+1]) }

// closeFiles closes those of the files that are not nil.
func closeFiles(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (p *filePump) start() {
	for i, f := range p.files {
		if f != nil {
			p.readers.Go(func() { p.read(executor.Stream(i), f) })
		}
	}
	go func() {
		p.readers.Wait()
		close(p.done)
	}()
}

// read reads one stream to its end, or to the deadline that finish sets.
func (p *filePump) read(s executor.Stream, f *os.File) {
	defer f.Close()
	buf := buffer()
	defer buffers.Put(buf)
	for {
		n, err := f.Read(buf[:])
		if n > 0 {
			p.mu.Lock()
			p.beat()
			p.begin()
			p.output(s, buf[:n])
			p.over()
			p.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// finish gives the reads a moment for what the pipes hold. Where pipes know no deadlines
// it closes them.
func (p *filePump) finish() {
	const moment = 20 * time.Millisecond
	for _, f := range p.files {
		if f == nil {
			continue
		}
		if err := f.SetReadDeadline(time.Now().Add(moment)); err != nil {
			_ = f.Close()
		}
	}
	<-p.done
}
