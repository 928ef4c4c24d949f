// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/printable"
)

// encode returns v as one line of JSON, with the letters of HTML as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	err := encodeTo(&b, v)
	return b.Bytes(), err
}

// encodeTo writes that line with one call of Write.
func encodeTo(w io.Writer, v any) error {
	if r, ok := v.(*sallyport.Result); ok { // the encoder would copy the output of a program twice more
		return r.WriteJSON(w)
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// quote returns s in quotes, with what does not print escaped, and shortened when it
// is long.
func quote(s string) string {
	const most = 80
	if len(s) > most {
		s = s[:most] + "..."
	}
	return fmt.Sprintf("%q", s)
}

// sentence returns a text as one line, without a period.
func sentence(text string) string {
	return strings.TrimSuffix(printable.Line(strings.Join(strings.Fields(text), " ")), ".")
}

// bytesText writes a number of bytes for people: "512 MiB".
func bytesText(n float64) string {
	for i, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if size := math.Pow(1024, float64(4-i)); n >= size {
			return strconv.FormatFloat(math.Round(n/size*10)/10, 'f', -1, 64) + " " + unit
		}
	}
	return strconv.FormatFloat(n, 'f', -1, 64) + " B"
}
