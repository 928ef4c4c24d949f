// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"bytes"
	"errors"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// A TOMLPart is a header or a key with its value, in a text that is not ours.
type TOMLPart struct {
	Path   []string // whole: below the header of the part
	Header bool     // [a] or [[a]]
	Inline bool     // the value is an inline table
	Pos    TOMLPos
	Begin  int // offset of the first byte; of a header that of its line
	End    int // offset after the last byte of a pair, or after the key of a header
}

// ForeignTOML reads any text that is valid TOML, where [ParseTOML] takes only what our settings need: its
// parts in order, and what it says. A byte order mark is skipped. The error is a [*TOMLError].
func ForeignTOML(text []byte) ([]TOMLPart, map[string]any, error) {
	r := reader{text: text}
	if at := InvalidUTF8(text); at >= 0 {
		return nil, nil, &TOMLError{r.pos(at), "the text is not UTF-8"}
	}
	const bom = "\ufeff"
	body := bytes.TrimPrefix(text, []byte(bom))
	skipped := len(text) - len(body)
	values := map[string]any{}
	if err := toml.Unmarshal(body, &values); err != nil {
		var bad *toml.DecodeError
		if !errors.As(err, &bad) {
			return nil, nil, &TOMLError{TOMLPos{1, 1}, err.Error()}
		}
		line, column := bad.Position()
		return nil, nil, &TOMLError{TOMLPos{line, column}, bad.Error()}
	}
	var parts []TOMLPart
	var table []string
	r.parser.Reset(body)
	for r.parser.NextExpression() {
		e := r.parser.Expression()
		if e.Kind == unstable.Comment {
			continue
		}
		part := TOMLPart{Header: e.Kind != unstable.KeyValue}
		above := table
		if part.Header {
			above = nil
		}
		key, err := r.key(e.Key(), above)
		if err != nil {
			return nil, nil, err
		}
		if part.Path = key.Path; part.Header {
			table = key.Path
			part.End = key.end + skipped
			part.Begin = bytes.LastIndexByte(body[:key.end], '\n') + 1 + skipped
		} else {
			part.Inline = e.Value().Kind == unstable.InlineTable
			part.Begin = int(e.Raw.Offset) + skipped
			part.End = part.Begin + int(e.Raw.Length)
		}
		part.Pos = r.pos(part.Begin)
		parts = append(parts, part)
	}
	return parts, values, nil
}
