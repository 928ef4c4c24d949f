// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"cmp"
	"context"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// maxShot is how large a screenshot may be, in bytes.
const maxShot = 60 << 10

// sizes are those of the windows of the pictures.
var sizes = []struct {
	name          string
	width, height int64
}{{"wide", 1280, 800}, {"narrow", 360, 740}}

// TestScreenshots: docs/console has a picture of each view and the terminal, light and dark, wide and narrow.
// With -update it makes them.
func TestScreenshots(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "docs", "console")
	all := append(slices.Clone(views), "terminal")
	if *update {
		makePictures(t, dir, all)
	}
	for _, view := range all {
		for _, size := range sizes {
			for _, scheme := range []string{"light", "dark"} {
				name := view + "-" + scheme + "-" + size.name + ".png"
				text, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				made, err := png.Decode(bytes.NewReader(text))
				if err != nil || made.Bounds() != image.Rect(0, 0, int(size.width), int(size.height)) {
					t.Fatalf("%s: %v", name, err)
				}
				if len(text) > maxShot || len(text) < maxShot/20 {
					t.Errorf("%s has %d bytes", name, len(text))
				}
			}
		}
	}
}

const drawn = `new Promise((ready) => requestAnimationFrame(() => requestAnimationFrame(() => ready(true))))`

func makePictures(t *testing.T, dir string, all []string) {
	t.Helper()
	_, p := lived(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, view := range all {
		for _, size := range sizes {
			p.size(size.width, size.height)
			p.show(view)
			for _, scheme := range []string{"light", "dark"} {
				p.scheme(scheme)
				eval[bool](p, drawn)
				eval[bool](p, `document.fonts.ready.then(() => (scrollTo(0, 0), true))`)
				name := view + "-" + scheme + "-" + size.name + ".png"
				if err := os.WriteFile(filepath.Join(dir, name), p.shot(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// shot returns what the window shows, with at most 256 colors.
func (p *tab) shot() []byte {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	got, err := chromedp.Run(ctx, func(ctx context.Context, target *chromedp.Target) (page.CaptureScreenshotResult, error) {
		return cdp.Call(ctx, target, page.CaptureScreenshot, page.CaptureScreenshotParams{})
	})
	if err != nil {
		p.t.Fatal(err)
	}
	full, err := png.Decode(bytes.NewReader(got.Data))
	if err != nil {
		p.t.Fatal(err)
	}
	var small bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&small, fewColors(full)); err != nil {
		p.t.Fatal(err)
	}
	return small.Bytes()
}

// fewColors returns a picture with the most frequent colors; the others become the nearest of these.
func fewColors(full image.Image) *image.Paletted {
	count := map[color.RGBA]int{}
	box := full.Bounds()
	at := func(x, y int) color.RGBA {
		r, g, b, _ := full.At(x, y).RGBA()
		return color.RGBA{uint8(r>>8) &^ 3, uint8(g>>8) &^ 3, uint8(b>>8) &^ 3, 255}
	}
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return cmp.Compare(count[b], count[a]) })
	var palette color.Palette
	for _, c := range frequent[:min(len(frequent), 256)] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	few := image.NewPaletted(box, palette)
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			c := at(x, y)
			i, ok := nearest[c]
			if !ok {
				i = uint8(palette.Index(c))
				nearest[c] = i
			}
			few.SetColorIndex(x, y, i)
		}
	}
	return few
}
