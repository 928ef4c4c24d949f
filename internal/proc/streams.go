// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import "os"

// streams are the standard streams of a command that is about to start.
type streams struct {
	child [3]*os.File // what the command gets
	made  []*os.File  // those of child that were opened here
	stdin *os.File    // our end of the input pipe; nil without one
	pump  pump        // has our ends of the output pipes
}

// openStreams makes the pipes that cfg asks for. On an error nothing is open.
func openStreams(cfg *Config) (_ *streams, err error) {
	s := &streams{child: [3]*os.File{cfg.Stdin, cfg.Stdout, cfg.Stderr}}
	defer func() {
		if err != nil {
			s.closeChildEnds()
			s.closeOurEnds()
		}
	}()
	switch {
	case cfg.Stdin != nil:
	case cfg.PipeStdin:
		if s.child[0], s.stdin, err = inputPipe(); err != nil {
			return nil, err
		}
		s.made = append(s.made, s.child[0])
	default:
		if s.child[0], err = os.Open(os.DevNull); err != nil {
			return nil, err
		}
		s.made = append(s.made, s.child[0])
	}
	wanted := [2]bool{cfg.Stdout == nil, cfg.Stderr == nil}
	if cfg.Terminal {
		wanted = [2]bool{} // the terminal takes their place
		for i, f := range s.child {
			if f == nil {
				s.child[i] = s.child[0]
			}
		}
	}
	p, ends, err := newPump(cfg, wanted)
	if err != nil {
		return nil, err
	}
	s.pump = p
	for i, end := range ends {
		if end != nil {
			s.child[1+i] = end
			s.made = append(s.made, end)
		}
	}
	return s, nil
}

// closeChildEnds closes what the command has its own copies of.
func (s *streams) closeChildEnds() {
	for _, f := range s.made {
		_ = f.Close()
	}
	s.made = nil
}

// closeOurEnds gives everything up, where the command did not start.
func (s *streams) closeOurEnds() {
	if s.pump != nil {
		s.pump.abandon()
	}
	if s.stdin != nil {
		_ = s.stdin.Close()
	}
}
