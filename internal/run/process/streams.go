// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"

	"github.com/sallyport-dev/sallyport/executor"
)

// Streams are the standard streams of a command that is about to start. The caller
// starts it on Files, and then calls [Streams.Follow] or [Streams.Close] once.
type Streams struct {
	cfg   Config
	child [3]*os.File // what the command gets
	made  []*os.File  // those of child that were opened here
	stdin *os.File    // our end of the input pipe; nil without one
	pump  pump        // has our ends of the output pipes
}

// Open opens the streams that cfg describes. With an error nothing is open.
func Open(cfg Config) (*Streams, error) {
	if cfg.Grace == 0 {
		cfg.Grace = defaultGrace
	}
	if cfg.Output == nil {
		cfg.Output = func(executor.Stream, []byte) {}
	}
	s := &Streams{cfg: cfg, child: [3]*os.File{cfg.Stdin, cfg.Stdout, cfg.Stderr}}
	if err := s.open(); err != nil {
		s.Close()
		return nil, fmt.Errorf("cannot open the streams of the process: %w", err)
	}
	return s, nil
}

func (s *Streams) open() (err error) {
	if s.child[0] == nil {
		if s.cfg.PipeStdin {
			s.child[0], s.stdin, err = inputPipe()
		} else {
			s.child[0], err = os.Open(os.DevNull)
		}
		if err != nil {
			return err
		}
		s.made = append(s.made, s.child[0])
	}
	wanted := [2]bool{s.cfg.Stdout == nil, s.cfg.Stderr == nil}
	if s.cfg.Terminal {
		// The terminal takes the place of what stands in for it until the start.
		for i, want := range wanted {
			if want {
				s.child[1+i], wanted[i] = s.child[0], false
			}
		}
	}
	p, ends, err := newPump(&s.cfg, wanted)
	if err != nil {
		return err
	}
	s.pump = p
	for i, end := range ends {
		if end != nil {
			s.child[1+i] = end
			s.made = append(s.made, end)
		}
	}
	return nil
}

// Files returns the standard descriptors that the command is started with.
func (s *Streams) Files() [3]*os.File { return s.child }

// Close closes the streams of a command that did not start.
func (s *Streams) Close() {
	closeFiles(s.made)
	if s.pump != nil {
		s.pump.close()
	}
	if s.stdin != nil {
		_ = s.stdin.Close()
	}
}

// Follow follows a command that was started on the streams to its end. The caller must
// call Wait. With an error the child was killed and closed.
func (s *Streams) Follow(child Child) (*Process, error) {
	p := newProcess(s.cfg, child, s.pump, s.stdin)
	if s.cfg.Terminal {
		tty, err := newTerminal(&s.cfg, child.Terminal())
		if err != nil {
			_ = child.Kill()
			_ = child.WaitAll()
			_ = child.Close(new(executor.Exit))
			s.Close()
			return nil, err
		}
		s.pump.close() // it has nothing to read
		p.tty, p.pump = tty, tty
	}
	closeFiles(s.made) // the command has its own copies
	p.pump.start()
	go p.follow()
	return p, nil
}
