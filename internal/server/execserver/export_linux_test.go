// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

// HoldStarts holds up the starts of processes of the only connection until release is called, as a start
// that takes long.
func HoldStarts(s *Server) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.connections {
		c.starts <- struct{}{}
		return func() { <-c.starts }
	}
	panic("there is no connection")
}
