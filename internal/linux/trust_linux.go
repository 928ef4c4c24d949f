// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/sallyport-dev/sallyport/internal/command/environ"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/net/proxy"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A bundle is two files of certificates, in a directory of their own that no command sees.
type bundle struct {
	dir         *dirs.Tmp
	file, store plan.Spot
	copies      map[string]plan.Spot // in the place of files with credentials
}

// A copier has what commands see in the place of files, by the paths of these.
type copier interface{ Copies() map[string][]byte }

// addTrust says in a request which certificates the command trusts, where its TLS is opened.
func (a *attempt) addTrust(r *plan.Request) error {
	by, ok := a.reaches.Inspector().(proxy.Interceptor)
	if !ok || a.reaches.Mode() != network.Limited && !a.reaches.HasRequestRules() && by.Rewriter() == nil {
		return nil
	}
	b, err := a.host.bundle(by)
	if err != nil {
		return fmt.Errorf("look into TLS: %w", err)
	}
	r.Trust = &plan.Trust{Bundle: b.file, Store: b.store}
	for _, name := range environ.TrustFiles {
		real := hostfacts.RealPath(name)
		spot, err := hostfacts.Look(real)
		if err == nil && spot.Kind == plan.KindFile && !slices.Contains(r.Trust.Files, spot) {
			r.Trust.Files = append(r.Trust.Files, spot)
		}
	}
	a.copies = b.copies
	return addCopies(r, b.copies)
}

// addSettings shows settings with secrets as copies, with dummies for these. Copies are kept in the state
// directory, by their content: most commands see the same ones as the last.
func (a *attempt) addSettings(r *plan.Request) error {
	texts := a.names.Copies()
	if len(texts) == 0 {
		return nil
	}
	own, err := a.host.onDisk()
	if err != nil {
		return err
	}
	copies := make(map[string]plan.Spot, len(texts))
	for name, c := range texts {
		if copies[name], err = own.scans.Copy(c.Text); err != nil {
			return fmt.Errorf("no copy of %s without its secret can be made: %w; grant %s, which shows the file itself", strconv.QuoteToASCII(c.Path), err, c.Grant)
		}
	}
	if err := addCopies(r, copies); err != nil {
		return err
	}
	maps.Copy(copies, a.copies)
	a.copies, r.Copies = copies, copies
	return nil
}

// addCopies opens the files with credentials, which the policy denies, for the copies that take their place.
func addCopies(r *plan.Request, copies map[string]plan.Spot) error {
	r.Rules, r.Copies = slices.Clone(r.Rules), copies
	for name := range copies {
		i := slices.IndexFunc(r.Rules, func(u plan.Rule) bool {
			return u.Path == name &&
				u.Kind == plan.KindFile
		})
		if i < 0 {
			return fmt.Errorf("%s has changed, so no copy with a dummy credential can be shown; run the command again", strconv.QuoteToASCII(name))
		}
		r.Rules[i].Level, r.Rules[i].Why = sandbox.LevelRead, "a copy, with dummies of credentials"
	}
	return nil
}

// bundle returns the files of an interceptor, which are written once.
func (h *Host) bundle(by proxy.Interceptor) (*bundle, error) {
	h.making.Lock()
	defer h.making.Unlock()
	if b, ok := h.bundles[by]; ok {
		return b, nil
	}
	h.mu.Lock()
	closed := h.closed
	h.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	made, err := by.Bundle()
	if err != nil {
		return nil, err
	}
	_, dir, err := dirs.NewTmp()
	if err != nil {
		return nil, err
	}
	b := &bundle{dir: dir}
	if b.file, err = writeShown(dir.Path, "certificates.pem", made.PEM, 0o444); err == nil {
		b.store, err = writeShown(dir.Path, "certificates.p12", made.PKCS12, 0o444)
	}
	if c, ok := by.Rewriter().(copier); ok && err == nil {
		err = b.writeCopies(c.Copies())
	}
	if err != nil {
		return nil, errors.Join(err, dir.Remove())
	}
	if h.bundles == nil {
		h.bundles = map[proxy.Interceptor]*bundle{}
	}
	h.bundles[by] = b
	return b, nil
}

// writeCopies writes what is shown in the place of files.
func (b *bundle) writeCopies(copies map[string][]byte) (err error) {
	b.copies = map[string]plan.Spot{}
	for name, text := range copies {
		if b.copies[name], err = writeShown(b.dir.Path, fmt.Sprintf("copy-%d", len(b.copies)), text,
			0o400); err != nil {
			return err
		}
	}
	return nil
}

// writeShown writes a file that commands read, in a directory that only we enter.
func writeShown(dir, name string, text []byte, mode os.FileMode) (plan.Spot, error) {
	root, err := safefile.OpenTreePath(dir)
	if err != nil {
		return plan.Spot{}, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return plan.Spot{}, err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return plan.Spot{}, err
	}
	return hostfacts.Look(filepath.Join(dir, name))
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
