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

// filePump hears each pipe in a goroutine of its own, with nothing but package
// os. It serves the systems that have no better one here.
type filePump struct {
	files  [2]*os.File // read ends by stream; nil is none
	output func(executor.Stream, []byte)

	mu   sync.Mutex // one call of output at a time
	base time.Time  // pulse counts from here
	pulse
	sweeping sync.WaitGroup
	done     chan struct{}
}

func newFilePump(cfg *Config, want [2]bool) (_ pump, ends [2]*os.File, err error) {
	p := &filePump{output: cfg.Output, base: time.Now(), done: make(chan struct{})}
	for i, wanted := range want {
		if !wanted {
			continue
		}
		if p.files[i], ends[i], err = os.Pipe(); err != nil {
			p.abandon()
			if ends[0] != nil {
				_ = ends[0].Close()
			}
			return nil, [2]*os.File{}, fmt.Errorf("pipe: %w", err)
		}
	}
	return p, ends, nil
}

func (p *filePump) eof() <-chan struct{} { return p.done }

func (p *filePump) lastByte() time.Time    { return p.at(p.base) }
func (p *filePump) heard() <-chan struct{} { return p.wait() }
func (p *filePump) allHeard() bool         { return false } // nothing tells what is in the pipes
func (p *filePump) commandEnded()          {}               // a pipe that has ended is not opened anew

func (p *filePump) start() {
	for i, f := range p.files {
		if f != nil {
			p.sweeping.Go(func() { p.copyAll(executor.Stream(i), f) })
		}
	}
	go func() {
		p.sweeping.Wait()
		close(p.done)
	}()
}

// copyAll hears one stream to its end or to the deadline that finish sets.
func (p *filePump) copyAll(s executor.Stream, f *os.File) {
	defer f.Close()
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	for {
		n, err := f.Read(buf[:])
		if n > 0 {
			p.mu.Lock()
			p.beat(p.base)
			p.output(s, buf[:n])
			p.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// finish gives what is in the pipes a moment to be read: a deadline ends a read
// that would have to wait, on systems whose pipes know deadlines; elsewhere the
// pipe is closed.
func (p *filePump) finish() {
	for _, f := range p.files {
		if f == nil {
			continue
		}
		if err := f.SetReadDeadline(time.Now().Add(sweepTime)); err != nil {
			_ = f.Close()
		}
	}
	<-p.done
}

// sweepTime is how long a filePump looks for what is left in its pipes.
const sweepTime = 20 * time.Millisecond

func (p *filePump) abandon() {
	for _, f := range p.files {
		if f != nil {
			_ = f.Close()
		}
	}
}
