// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/files"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/sandbox"
)

const (
	// maxFileRequests is how many requests about files of one connection wait.
	maxFileRequests = 128
	// maxLarge is how many of them may have more parameters than largeRequest, in bytes.
	maxLarge     = 2
	largeRequest = 64 << 10
	// maxHelpers is how many helpers a connection has at once.
	maxHelpers = 4
	// helperIdle is how long a helper without open files lives after its last request. While it
	// lives, protected names that are missing in a workspace are held or watched there.
	helperIdle = 10 * time.Second
)

// A fileLane performs the requests about files of one connection, in their order and beside all
// others: a disk can be slow.
type fileLane struct {
	connection *connection

	// Only the goroutine of connection.serve uses these.
	queue chan queuedRequest
	last  <-chan struct{} // closed when the newest request was performed
	large chan struct{}   // holds a value for each large request
	over  chan struct{}   // closed when run has returned

	// Only the goroutine of run uses these. It may outlive the connection: what the system does for a
	// request cannot be ended when a disk, or a server of files, does not answer.
	local   files.Server
	ends    sync.WaitGroup          // helpers that have not ended
	helpers []*fileProcess          // the one used last is at the end
	owners  map[string]*fileProcess // of open handles; nil for local
}

// idle is what last is before the first request.
var idle = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// A queuedRequest is a request that waits.
type queuedRequest struct {
	*files.Request
	id   wire.ID
	done chan struct{}
}

// add queues a request. It waits while too many do.
func (l *fileLane) add(id wire.ID, r *files.Request) {
	if l.queue == nil {
		if failure := l.connection.server.hangs(); failure != nil {
			l.connection.fail(id, failure)
			return
		}
		l.queue = make(chan queuedRequest, maxFileRequests)
		l.large = make(chan struct{}, maxLarge)
		l.over = make(chan struct{})
		l.owners = make(map[string]*fileProcess)
		go l.run()
		l.connection.work.Go(l.attend)
	}
	life := l.connection.life.Done()
	if len(r.Params) > largeRequest {
		select {
		case l.large <- struct{}{}:
		case <-life:
			return
		}
	}
	q := queuedRequest{r, id, make(chan struct{})}
	select {
	case l.queue <- q:
		l.last = q.done
	case <-life:
	}
}

// finish waits until all requests were performed, or the connection has ended. There are no more
// afterwards.
func (l *fileLane) finish() {
	if l.queue != nil {
		close(l.queue)
		l.wait()
	}
}

// wait waits until run has returned, and reports false when the connection has ended before.
func (l *fileLane) wait() bool {
	select {
	case <-l.over:
		return true
	case <-l.connection.life.Done():
		return false
	}
}

// attend waits for run, and leaves it when the connection ends: nothing waits then for a request that
// is in progress.
func (l *fileLane) attend() {
	if !l.wait() {
		l.connection.server.leaves(l.over)
	}
}

// run performs requests until finish is called or the connection ends.
func (l *fileLane) run() {
	defer close(l.over)
	defer l.ends.Wait()
	c := l.connection
	host, _ := c.server.exec.Host(c.life) // it never fails on this machine
	l.local.System = host.OS
	timer := time.NewTimer(helperIdle)
	defer timer.Stop()
	defer l.local.Close()
	defer func() {
		for _, h := range l.helpers {
			h.stop()
		}
	}()
	for {
		select {
		case <-c.life.Done():
			return
		case <-timer.C:
			l.stopIdle()
			timer.Reset(helperIdle)
		case q, more := <-l.queue:
			if !more {
				return
			}
			l.answer(q)
			close(q.done)
			if len(q.Params) > largeRequest {
				<-l.large
			}
		}
	}
}

// answer performs a request and answers it.
func (l *fileLane) answer(q queuedRequest) {
	result, err := l.perform(q.Request)
	if err != nil {
		l.connection.fail(q.id, files.Failure(err))
		return
	}
	l.connection.answer(q.id, result)
}

// perform performs a request where it belongs: in this process, or in a helper.
func (l *fileLane) perform(r *files.Request) (any, error) {
	h, err := l.place(r)
	if err != nil {
		return nil, err
	}
	var result any
	if h == nil {
		result, err = r.Perform(l.connection.life, &l.local)
	} else {
		result, err = h.call(r)
		err = explain(h.holds, r, l.local.System, err)
		h.used = time.Now()
		if h.broken {
			l.drop(h)
		}
	}
	switch {
	case r.Use == files.ClosesHandle:
		delete(l.owners, r.Handle)
	case r.Use == files.OpensHandle && err == nil:
		l.owners[r.Handle] = h
	}
	return result, err
}

// place returns the helper for a request; nil for this process.
func (l *fileLane) place(r *files.Request) (*fileProcess, error) {
	owner, open := l.owners[r.Handle]
	switch {
	case r.Use == files.ClosesHandle || r.Use == files.OpensHandle && open:
		return owner, nil // which answers, or says that the ID is taken
	case r.Use == files.UsesHandle && !open:
		return nil, &files.HandleError{ID: r.Handle}
	case r.Use == files.UsesHandle:
		return owner, nil
	case r.Use == files.OpensHandle && len(l.owners) >= files.MaxHandles:
		return nil, files.ErrTooManyHandles
	}
	s := l.connection.server
	ceiling, failure := s.ceiling(workspace(r.Sandbox, s.opts.Dir, l.local.System))
	switch {
	case failure != nil:
		return nil, failure
	case ceiling != nil:
		return l.placeBelow(ceiling, r)
	case r.Sandbox == nil:
		return nil, nil
	}
	key := fmt.Sprintf("%q", *r.Sandbox)
	if h := l.helper(key); h != nil {
		return h, nil
	}
	policy, _, failure := s.filePolicy(nil, &config.Wish{}, r.Sandbox, l.local.System)
	switch {
	case failure != nil:
		return nil, failure
	case !restricts(policy):
		return nil, nil
	}
	return l.startHelper(key, &executor.Spec{Policy: policy, Tmp: hostTmp}, nil)
}

// placeBelow is place below a ceiling. Which helper it is depends on that as well, so a ceiling that has
// changed counts for the next request.
func (l *fileLane) placeBelow(ceiling *config.Config, r *files.Request) (*fileProcess, error) {
	s := l.connection.server
	wish := &config.Wish{Name: cmp.Or(r.Method, "capabilityRoots/discoverV1")}
	var policy sandbox.Policy
	var holds *config.Effective
	var failure *wire.Error
	for _, wish.Policy = range filePolicies(r) {
		if policy, holds, failure = s.filePolicy(ceiling, wish, r.Sandbox, l.local.System); failure == nil ||
			r.Sandbox != nil {
			break
		}
	}
	switch {
	case failure != nil:
		return nil, failure
	case !restricts(policy):
		return nil, nil
	case r.Method == "":
		return nil, refuse(wish.Name +
			" does not look below a managed configuration that restricts files; use `fs/walk`")
	}
	spec := &executor.Spec{Policy: policy, Tmp: hostTmp}
	if ceiling.Sets("tmp") && holds.Values["tmp"].Text() != hostTmp {
		spec.Tmp = ""
	}
	if ceiling.Sets("level") {
		spec.Level = holds.Values["level"].Text()
	}
	key := fmt.Sprintf("%v %s %s", policy.Entries(), spec.Tmp, spec.Level)
	if h := l.helper(key); h != nil {
		return h, nil
	}
	return l.startHelper(key, spec, holds)
}

// restricts reports whether a policy keeps a request about files from anything.
func restricts(p sandbox.Policy) bool {
	return p.Mode() == sandbox.Managed && (!p.Unrestricted() || p.Denies())
}

// helper returns the helper of a sandbox; nil if there is none.
func (l *fileLane) helper(key string) *fileProcess {
	if i := slices.IndexFunc(l.helpers, func(h *fileProcess) bool { return h.key == key }); i >= 0 {
		return l.helpers[i]
	}
	return nil
}

// startHelper starts a helper with the policy of a spec, and ends the one that was not used for longest
// when there are too many.
func (l *fileLane) startHelper(key string, spec *executor.Spec,
	holds *config.Effective) (*fileProcess, error) {
	if len(l.helpers) >= maxHelpers {
		free := slices.DeleteFunc(slices.Clone(l.helpers), l.owns)
		if len(free) == 0 {
			return nil, refuse(fmt.Sprintf("limit of sandboxes for files (%d) reached; close the files that are open in one of them", maxHelpers))
		}
		l.drop(slices.MinFunc(free, func(a, b *fileProcess) int { return a.used.Compare(b.used) }))
	}
	h, err := newFileProcess(l.connection, &l.ends, key, spec)
	if err != nil {
		return nil, err
	}
	h.holds = holds
	l.helpers = append(l.helpers, h)
	return h, nil
}

// owns reports whether a helper has open files.
func (l *fileLane) owns(h *fileProcess) bool {
	for _, owner := range l.owners {
		if owner == h {
			return true
		}
	}
	return false
}

// stopIdle ends helpers that were not used for a while.
func (l *fileLane) stopIdle() {
	for _, h := range slices.Clone(l.helpers) {
		if time.Since(h.used) >= helperIdle && !l.owns(h) {
			l.drop(h)
		}
	}
}

// drop ends a helper. Its open files are closed with it.
func (l *fileLane) drop(h *fileProcess) {
	h.stop()
	l.helpers = slices.DeleteFunc(l.helpers, func(other *fileProcess) bool { return other == h })
	for id, owner := range l.owners {
		if owner == h {
			delete(l.owners, id)
		}
	}
}

// errNoCWD refuses a sandbox whose workspace is not known.
var errNoCWD = errors.New("sandbox.cwd is missing: it says where the workspace is")

// filePolicy returns the policy of a sandbox for files.
func (s *Server) filePolicy(ceiling *config.Config, wish *config.Wish, w *wire.Sandbox,
	system string) (sandbox.Policy, *config.Effective, *wire.Error) {
	uri, dir := "", cmp.Or(s.opts.Dir, "/")
	if w != nil {
		uri, dir = w.CWD, "/"
	}
	if w != nil && uri == "" && len(w.WorkspaceRoots) > 0 {
		uri = w.WorkspaceRoots[0]
	}
	if uri != "" {
		var err error
		if dir, err = wire.Path(uri, system); err != nil {
			return wish.Policy, nil, invalid("sandbox.cwd: " + err.Error())
		}
	}
	policy, holds, failure := s.policy(ceiling, wish, w, dir, s.opts.Environ, system)
	if failure == nil && w != nil && uri == "" && policy.Mode() == sandbox.Managed && !policy.Unrestricted() {
		failure = invalid(errNoCWD.Error())
	}
	return policy, holds, failure
}

// fileMethod returns a method about files.
func fileMethod(name string) (method, bool) {
	known, extra := files.Has(name)
	return method{family: "filesystem", extra: extra,
		decode: func(params json.RawMessage) (func(*connection, wire.ID), error) {
			r, err := files.Decode(name, params)
			if err != nil {
				return nil, err
			}
			return func(c *connection, id wire.ID) { c.files.add(id, r) }, nil
		}}, known
}
