// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import "slices"

// leafSize is how many rules are compared one by one before they are sorted by their next word.
const leafSize = 8

// A node holds rules that agree on the words before its depth. A nil node has none.
type node struct {
	depth int
	// leaf rules are compared one by one, from depth on.
	leaf []int32
	next map[string]*node // by the word at depth, for the rules that are no leaf
}

// indexer builds the nodes over rules.
type indexer struct {
	rules []rule
	// copies bounds how often rules may be copied below a node because of their
	// alternatives; without copies left, they stay together.
	copies int
}

// index returns the node over the rules with these numbers, and nil if there are none.
func index(rules []rule, ids []int32) *node {
	if len(ids) == 0 {
		return nil
	}
	words := 0
	for _, id := range ids {
		for _, alternatives := range rules[id].pattern {
			words += len(alternatives)
		}
	}
	x := indexer{rules, 4 * words}
	return x.node(ids, 0)
}

func (x *indexer) node(ids []int32, depth int) *node {
	n := &node{depth: depth}
	if len(ids) <= leafSize || x.copies <= 0 {
		n.leaf = ids
		return n
	}
	below := map[string][]int32{}
	for _, id := range ids {
		if len(x.rules[id].pattern) == depth {
			n.leaf = append(n.leaf, id)
			continue
		}
		for _, word := range x.rules[id].pattern[depth] {
			if has := below[word]; len(has) == 0 || has[len(has)-1] != id {
				below[word] = append(has, id)
				x.copies--
			}
		}
	}
	n.next = make(map[string]*node, len(below))
	for word, ids := range below {
		n.next[word] = x.node(ids, depth+1)
	}
	return n
}

// begins reports whether a rule begins with the word. It is for the node at depth 0.
func (n *node) begins(word string) bool {
	return n.next[word] != nil || len(n.leaf) > 0
}

// find appends the rules whose patterns are prefixes of words.
func (n *node) find(ids []int32, rules []rule, words []string) []int32 {
	for n != nil {
		for _, id := range n.leaf {
			if matches(rules[id].pattern, words, n.depth) {
				ids = append(ids, id)
			}
		}
		if n.depth >= len(words) {
			break
		}
		n = n.next[words[n.depth]]
	}
	return ids
}

// matches compares the words from a depth on.
func matches(pattern [][]string, words []string, depth int) bool {
	if len(pattern) > len(words) {
		return false
	}
	for i := depth; i < len(pattern); i++ {
		if !slices.Contains(pattern[i], words[i]) {
			return false
		}
	}
	return true
}
