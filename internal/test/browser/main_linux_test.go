// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sallyport-dev/sallyport/internal/cli"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// update says that the screenshots in docs/console are written.
var update = flag.Bool("update", false, "write the screenshots of docs/console")

// program is the name under which this binary is the product.
const program = "sallyport"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != program {
		testenv.DefaultSignals()
	}
	testscript.Main(suite{m}, map[string]func(){
		program: func() { os.Exit(cli.Main(os.Args[1:], cli.System())) },
	})
}

// A suite is the tests, with the end of the browser that they shared.
type suite struct{ m *testing.M }

// Run returns the exit code.
func (s suite) Run() int {
	defer func() { shared.end() }()
	return s.m.Run()
}

// chromium is the browser of all tests: each has a context of its own in it, with its own cookies.
type chromium struct {
	once sync.Once
	ctx  context.Context // of the browser; nil if it did not start
	err  error
	end  func()
}

var shared = chromium{end: func() {}}

// context returns that of the running browser, and starts it at the first call.
func (c *chromium) context(t *testing.T) context.Context {
	t.Helper()
	path := testenv.NeedProgram(t, "chromium")
	c.once.Do(func() { c.start(path) })
	if c.err != nil {
		testenv.Lack(t, testenv.Programs, "chromium does not start: "+c.err.Error())
	}
	return c.ctx
}

// start starts it with a home and a profile that are removed at the end. Its own sandbox is off: root and
// containers do not have it, and the page is ours.
func (c *chromium) start(path string) {
	home, err := os.MkdirTemp("", "sallyport-chromium-")
	if err != nil {
		c.err = err
		return
	}
	env := []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_CACHE_HOME=" + home, "TMPDIR=" + home}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.UserDataDir(filepath.Join(home, "profile")), chromedp.Env(env...),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("lang", "en-US"))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	quiet := chromedp.WithErrorf(func(string, ...any) {}) // events that this version does not know
	ctx, cancel := chromedp.NewContext(alloc, quiet)
	c.ctx, c.err = ctx, chromedp.Do(ctx)
	c.end = func() {
		cancel()
		stop()
		_ = os.RemoveAll(home)
	}
}

// printable shortens a text for a message.
func printable(s string) string {
	if len(s) > 4000 {
		s = s[:4000] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
