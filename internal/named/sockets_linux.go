// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package named

import (
	"bufio"
	"encoding/json"
	"net"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/sockets"
)

// Runs that have joined tell the keeper which unix sockets their commands have bound, and ask it which they
// may connect to. Each question is one line, and so is its answer.

// A question is about a socket of a command of a group.
type question struct {
	Do    string       `json:"do"`
	Group string       `json:"group,omitempty"`
	Name  []byte       `json:"name,omitempty"` // an abstract one, of any bytes
	File  sockets.File `json:"file,omitzero"`
}

const (
	qJoin   = "join"
	qBound  = "bound"
	qForget = "forget"
	qNamed  = "named"
	qFile   = "reaches file"
	qName   = "reaches name"
)

// remoteSockets are those of the keeper.
type remoteSockets struct {
	mu sync.Mutex
	c  *net.UnixConn
	in *bufio.Reader
}

var _ sockets.Claims = (*remoteSockets)(nil)

// ask asks the keeper. What it does not answer is no.
func (r *remoteSockets) ask(q question) (yes bool) {
	line, err := json.Marshal(q)
	if err != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.c.Write(append(line, '\n')); err != nil {
		return false
	}
	answer, err := r.in.ReadSlice('\n')
	return err == nil && json.Unmarshal(answer, &yes) == nil && yes
}

func (r *remoteSockets) Join(_ any, group string) { r.ask(question{Do: qJoin, Group: group}) }
func (r *remoteSockets) Leave(any)                {} // with the connection, which is that of one run
func (r *remoteSockets) Forget(f sockets.File)    { r.ask(question{Do: qForget, File: f}) }

func (r *remoteSockets) Bound(_ any, group string, f sockets.File) {
	r.ask(question{Do: qBound, Group: group, File: f})
}

func (r *remoteSockets) Named(_ any, group, name string) {
	r.ask(question{Do: qNamed, Group: group, Name: []byte(name)})
}

func (r *remoteSockets) ReachesFile(group string, f sockets.File) bool {
	return r.ask(question{Do: qFile, Group: group, File: f})
}

func (r *remoteSockets) ReachesName(group, name string) bool {
	return r.ask(question{Do: qName, Group: group, Name: []byte(name)})
}

// An owner stands for the commands of one group of one run.
type owner struct {
	c     *net.UnixConn
	group string
}

// answer answers the questions of a run until its connection ends.
func (k *keeper) answer(c *net.UnixConn, in *bufio.Reader) {
	groups := map[string]bool{}
	defer func() {
		for group := range groups {
			k.sockets.Leave(owner{c, group})
		}
	}()
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		var q question
		if json.Unmarshal(line, &q) != nil {
			return
		}
		yes, of := true, owner{c, q.Group}
		switch q.Do {
		case qJoin:
			groups[q.Group] = true
			k.sockets.Join(of, q.Group)
		case qBound:
			k.sockets.Bound(of, q.Group, q.File)
		case qForget:
			k.sockets.Forget(q.File)
		case qNamed:
			k.sockets.Named(of, q.Group, string(q.Name))
		case qFile:
			yes = k.sockets.ReachesFile(q.Group, q.File)
		case qName:
			yes = k.sockets.ReachesName(q.Group, string(q.Name))
		default:
			return
		}
		text := "false\n"
		if yes {
			text = "true\n"
		}
		if _, err := c.Write([]byte(text)); err != nil {
			return
		}
	}
}
