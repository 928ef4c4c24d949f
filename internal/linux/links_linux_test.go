// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// linkedArena is an arena whose workspace has further names of a file outside.
func linkedArena(t *testing.T) *arena {
	a := newArena(t)
	for _, name := range []string{"linked", "linked-moved", "linked-race"} {
		must(t, os.Link(a.out+"/canary", a.ws+"/"+name))
	}
	must(t, os.Link(a.out+"/other", a.ws+"/linked-last"))
	return a
}

// TestHardLinks: with protection no call changes a file through a name in the workspace, and
// each denial has the path and the reason.
func TestHardLinks(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := linkedArena(t)
	var after executor.Exit
	a.expect(t, wordDenied, &job{links: true, after: &after},
		names(inPlaceAttacks(), linkAttacks()), "home=/")
	for _, name := range []string{"canary", "other"} {
		if text, err := os.ReadFile(a.out + "/" + name); err != nil || string(text) != name {
			t.Errorf("%s outside is %q, %v", name, text, err)
		}
	}
	i := slices.IndexFunc(after.Denials, func(d sandbox.Denial) bool { return d.Path == a.ws+"/linked" })
	if i < 0 || !strings.Contains(after.Denials[i].Rule, "--protect-hard-links") ||
		after.Denials[i].Errno != "EPERM" {
		t.Errorf("denials %+v", after.Denials)
	}
}

// TestHardLinksCanFail: without the Landlock rules that leave opening files to the observer,
// a file outside changes.
func TestHardLinksCanFail(t *testing.T) {
	a := linkedArena(t)
	r := a.request(&job{links: true, args: []string{os.Getenv(programVar), partAttack, "in-place-read-only",
		"ws=" + a.ws, "out=" + a.out}})
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	must(t, err)
	defer null.Close()
	c, err := startChanged(a.host, r, func(p *plan.Plan) {
		for _, s := range p.Script.Steps {
			if s.Op == launch.OpLandlock {
				i := slices.IndexFunc(s.Ruleset.Rules, func(u launch.Rule) bool { return u.Path == a.ws })
				s.Ruleset.Rules[i].Access |= launch.LandlockWriteFile | launch.LandlockTruncate
			}
		}
	}, [3]*os.File{null, null, null})
	must(t, err)
	_, _, err = c.Wait()
	must(t, err)
	must(t, c.WaitAll())
	must(t, c.Close(new(executor.Exit)))
	if text, err := os.ReadFile(a.out + "/canary"); err != nil || len(text) != 0 {
		t.Errorf("outside is %q, %v: nothing holds the wall", text, err)
	}
}

// ownWork is what programs do with files of their own, with the marks that show it.
const ownWork = `set -e
umask 027
echo one >new; echo two >>new; ln new more; echo three >>more
echo emptied >new; cat more
echo y >/tmp/b; cat /tmp/a
echo fresh >linked.new; mv linked.new linked; cat linked
printf '#!/bin/sh\necho ran\n' >prog; chmod 755 prog; ./prog
echo void >/dev/null
set -C; if (echo again >new) 2>/dev/null; then echo overwrote; fi
ls -l more | cut -c1-10
`

// TestHardLinksOwnWork: files of the command, with links of its own, and files that it
// replaces are written, with protection and without, and not reported.
func TestHardLinksOwnWork(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, protect := range []bool{false, true} {
		a := linkedArena(t)
		_, err := a.run(t, &job{args: sh("echo x >/tmp/a; ln /tmp/a /tmp/b")}) // all runs of a Host have one
		must(t, err)
		var after executor.Exit
		res, err := a.run(t, &job{links: protect, after: &after, args: sh(ownWork)})
		must(t, err)
		const want = "emptied\ny\nfresh\nran\n-rw-r-----\n"
		if res.out != want || res.err != "" || res.code != 0 {
			t.Errorf("protect %v: %+v, want %q", protect, res, want)
		}
		if len(after.HardLinks) > 0 || len(after.Denials) > 0 {
			t.Errorf("protect %v: links %v, denials %v", protect, after.HardLinks, after.Denials)
		}
	}
}

// TestHardLinksPlanted: where the supervisor opens files, it follows no symbolic link that another
// user has put into a shared directory.
func TestHardLinksPlanted(t *testing.T) {
	testenv.NeedRoot(t)
	const other = 65534
	a := newArena(t)
	must(t, os.Mkdir(a.ws+"/shared", 0o700))
	must(t, os.Chmod(a.ws+"/shared", 0o777|os.ModeSticky))
	must(t, os.WriteFile(a.ws+"/mine", []byte("mine"), 0o600))
	for _, name := range []string{"/shared/theirs", "/shared/own"} {
		must(t, os.Symlink("../mine", a.ws+name))
	}
	must(t, os.Lchown(a.ws+"/shared/theirs", other, other))
	res, err := a.run(t, &job{links: true,
		args: sh("echo x >shared/theirs; cat mine; echo; echo y >shared/own; cat mine")})
	must(t, err)
	if !strings.HasPrefix(res.out, "mine\n") || !strings.HasSuffix(res.out, "\ny\n") ||
		!strings.Contains(res.err, "ermission denied") {
		t.Errorf("%+v", res)
	}
}

// TestHardLinksReported: without protection the same is reported, once for each name.
func TestHardLinksReported(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, level := range []string{plan.LevelNative, plan.LevelLandlock} {
		t.Run(level, func(t *testing.T) { reportsLinks(t, level) })
	}
}

func reportsLinks(t *testing.T, level string) {
	a := linkedArena(t)
	a.host.Only = level
	var after executor.Exit
	res, err := a.run(t, &job{after: &after,
		args: sh(`echo a >>linked; echo b >linked-race; echo c >>linked; mv linked-moved m; truncate -s 9 m; cat linked-last`)})
	must(t, err)
	var got []executor.HardLink
	for _, name := range []string{"/linked", "/linked-race", "/m"} {
		got = append(got, executor.HardLink{Path: a.ws + name, Links: 4})
	}
	if res.code != 0 || !slices.Equal(after.HardLinks, got) || after.HardLinksOmitted != 0 {
		t.Errorf("%+v: %v, want %v", res, after.HardLinks, got)
	}
}
