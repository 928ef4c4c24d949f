// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"slices"
)

// remove takes an entry of ours out of a text. The result is nil where there was no file before and nothing
// of anybody is in it now.
func (w *work) remove(txt []byte, s spec) ([]byte, error) {
	all, err := w.installed(txt)
	if err != nil {
		return nil, err
	}
	is := func(o spec) bool { return o.part == s.part && o.name == s.name }
	if s.part == Hook {
		is = func(o spec) bool { return o.part == Hook }
	}
	if out, ok := w.without(txt, all, is); ok {
		return out, nil
	}
	switch {
	case s.part == Hook:
		txt, err = w.cutHooks(txt)
	case w.toml:
		var p *tomlPage
		if p, err = newTOMLPage(txt); err == nil {
			txt, err = p.remove(s.name)
		}
	default:
		var p *page
		if p, err = newPage(txt); err != nil {
			return nil, err
		}
		n, _, findErr := p.find([]string{w.agent.top})
		if findErr != nil {
			return nil, findErr
		}
		i, _ := n.index(txt, s.name)
		txt, err = w.prune(p.cut(n, i), []string{w.agent.top})
	}
	if err != nil || w.before != nil {
		return txt, err
	}
	return w.emptied(txt)
}

// emptied returns nil for a text that says nothing.
func (w *work) emptied(txt []byte) ([]byte, error) {
	rest := bytes.TrimSpace(bytes.TrimPrefix(txt, []byte(bom)))
	if !w.toml && len(rest) > 1 && rest[0] == '{' && len(bytes.TrimSpace(rest[1:])) == 1 {
		rest = nil
	}
	if len(rest) == 0 {
		return nil, nil
	}
	return txt, nil
}

// maxOrders is how many entries are tried in all orders.
const maxOrders = 4

// without returns the text without the entries that gone covers, if it is what installing all entries in
// some order makes of the text before.
func (w *work) without(txt []byte, all []spec, gone func(spec) bool) (out []byte, ok bool) {
	if len(all) > maxOrders {
		return nil, false
	}
	for _, order := range orders(all) {
		if made, err := w.addAll(order); err != nil || !bytes.Equal(made, txt) {
			continue
		}
		out, err := w.addAll(slices.DeleteFunc(slices.Clone(order), gone))
		return out, err == nil
	}
	return nil, false
}

// addAll adds entries to the text before.
func (w *work) addAll(all []spec) (txt []byte, err error) {
	txt = w.before
	for _, s := range all {
		if txt, err = w.add(txt, s); err != nil {
			return nil, err
		}
	}
	return txt, nil
}

// orders returns all orders of a few entries.
func orders(all []spec) [][]spec {
	if len(all) == 0 {
		return [][]spec{nil}
	}
	var out [][]spec
	for i := range all {
		rest := slices.Delete(slices.Clone(all), i, i+1)
		for _, order := range orders(rest) {
			out = append(out, append([]spec{all[i]}, order...))
		}
	}
	return out
}

// cutHooks removes the hooks of ours for all events.
func (w *work) cutHooks(txt []byte) ([]byte, error) {
	for _, e := range w.agent.events {
		for {
			p, err := newPage(txt)
			if err != nil {
				return nil, err
			}
			_, places, err := w.hooks(p, e.name)
			if err != nil {
				return nil, err
			}
			if len(places) == 0 {
				break
			}
			if at := places[0]; at.group != nil && len(at.group.items) > 1 {
				txt = p.cut(at.group, at.in)
			} else {
				txt = p.cut(at.list, at.at)
			}
		}
		var err error
		if txt, err = w.prune(txt, []string{"hooks", e.name}); err != nil {
			return nil, err
		}
	}
	p, err := newPage(txt)
	if err != nil || !w.agent.version || len(p.root.items) != 1 {
		return txt, err
	}
	// Only the version is left, which the file did not have.
	if i, _ := p.root.index(txt, "version"); i == 0 && !w.had([]string{"version"}) {
		txt = p.cut(&p.root, 0)
	}
	return txt, nil
}

// prune removes what has a path, and what it is in, if it is empty and was not there before.
func (w *work) prune(txt []byte, path []string) ([]byte, error) {
	for ; len(path) > 0; path = path[:len(path)-1] {
		p, err := newPage(txt)
		if err != nil {
			return nil, err
		}
		n, rest, err := p.find(path)
		if err != nil {
			return nil, err
		}
		if len(rest) > 0 {
			continue
		}
		if len(bytes.TrimSpace(txt[n.begin+1:n.end-1])) > 0 || w.had(path) {
			return txt, nil
		}
		in, _, err := p.find(path[:len(path)-1])
		if err != nil {
			return nil, err
		}
		i, err := in.index(txt, path[len(path)-1])
		if err != nil {
			return nil, err
		}
		txt = p.cut(in, i)
	}
	return txt, nil
}

// had reports whether the text before had a value with a path.
func (w *work) had(path []string) bool {
	p, err := newPage(w.before)
	if err != nil {
		return false
	}
	_, rest, err := p.find(path)
	return err == nil && len(rest) == 0
}
