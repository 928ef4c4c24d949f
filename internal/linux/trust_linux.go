// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/netproxy"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/internal/state"
	"github.com/sallyport-dev/sallyport/internal/tree"
	"github.com/sallyport-dev/sallyport/internal/trustenv"
	"github.com/sallyport-dev/sallyport/network"
)

// A bundle is a file of certificates, in a directory of its own that no command sees.
type bundle struct {
	dir  *state.Tmp
	file plan.Spot
}

// addTrust says in a request which certificates the command trusts, where its TLS is opened.
func (a *attempt) addTrust(r *plan.Request) error {
	by, ok := a.reaches.Inspector().(netproxy.Interceptor)
	if !ok || a.reaches.Mode() != network.Limited && by.Rewriter() == nil {
		return nil
	}
	file, err := a.host.bundle(by)
	if err != nil {
		return fmt.Errorf("look into TLS: %w", err)
	}
	r.Trust = &plan.Trust{Bundle: file}
	for _, name := range trustenv.Files {
		real := hostfacts.RealPath(name)
		spot, err := hostfacts.Look(real)
		if err == nil && spot.Kind == plan.KindFile && !slices.Contains(r.Trust.Files, spot) {
			r.Trust.Files = append(r.Trust.Files, spot)
		}
	}
	return nil
}

// bundle returns the file of an interceptor, which is written once.
func (h *Host) bundle(by netproxy.Interceptor) (plan.Spot, error) {
	h.making.Lock()
	defer h.making.Unlock()
	if b, ok := h.bundles[by]; ok {
		return b.file, nil
	}
	h.mu.Lock()
	closed := h.closed
	h.mu.Unlock()
	if closed {
		return plan.Spot{}, errClosed
	}
	text, err := by.Bundle()
	if err != nil {
		return plan.Spot{}, err
	}
	_, dir, err := state.NewTmp()
	if err != nil {
		return plan.Spot{}, err
	}
	var file plan.Spot
	if err = writeBundle(dir.Path, text); err == nil {
		file, err = hostfacts.Look(filepath.Join(dir.Path, bundleName))
	}
	if err != nil {
		return plan.Spot{}, errors.Join(err, dir.Remove())
	}
	if h.bundles == nil {
		h.bundles = map[netproxy.Interceptor]*bundle{}
	}
	h.bundles[by] = &bundle{dir, file}
	return file, nil
}

const bundleName = "certificates.pem"

// writeBundle writes a file that everybody may read, in a directory that only we enter.
func writeBundle(dir string, text []byte) error {
	root, err := tree.OpenPath(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := root.OpenFile(bundleName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Chmod(0o444), f.Close())
}

// removeBundles removes the files of all interceptors.
func (h *Host) removeBundles() (err error) {
	h.making.Lock()
	defer h.making.Unlock()
	for _, b := range h.bundles {
		err = errors.Join(err, b.dir.Remove())
	}
	h.bundles = nil
	return err
}
