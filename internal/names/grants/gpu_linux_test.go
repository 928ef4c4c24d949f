// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestDevices finds the nodes for rendering and computing and what describes them, and no
// other device. Files take the place of devices, which only root can make.
func TestDevices(t *testing.T) {
	root := t.TempDir()
	pci := "sys/devices/pci0000:00/0000:00:02.0"
	for _, name := range []string{
		"dev/dri/renderD128", "dev/dri/card0", "dev/dri/by-path/x", "dev/nvidia0", "dev/nvidiactl",
		"dev/nvidia-modeset", "dev/kfd", "dev/sda", "dev/notes/renderD1",
		pci + "/drm/renderD128/uevent", pci + "/vendor", "sys/devices/virtual/kfd/kfd/topology/x",
	} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(root, name), nil, 0o644))
	}
	for name, to := range map[string]string{
		"sys/dev/char/226:128":             "../../devices/pci0000:00/0000:00:02.0/drm/renderD128",
		"sys/class/drm/renderD128":         "../../devices/pci0000:00/0000:00:02.0/drm/renderD128",
		"sys/bus/pci/devices/0000:00:02.0": "../../../devices/pci0000:00/0000:00:02.0",
		"sys/dev/char/240:0":               "../../devices/virtual/kfd/kfd",
		"sys/class/kfd/kfd":                "../../devices/virtual/kfd/kfd",
		"dev/nvidia1":                      "/dev/sda",
	} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		must(t, os.Symlink(to, filepath.Join(root, name)))
	}
	numbers := map[string]uint64{"renderD128": unix.Mkdev(226, 128), "kfd": unix.Mkdev(240, 0),
		"nvidia0": unix.Mkdev(195, 0), "nvidiactl": unix.Mkdev(195, 255)}
	f := &FoundServices{}
	f.findDevices(root, func(info fs.FileInfo) (uint64, bool) {
		n, ok := numbers[info.Name()]
		return n, ok
	})
	want := []Device{
		{Name: "dri/renderD128", Dir: "/" + pci, Links: []string{"/sys/dev/char/226:128", "/sys/class/drm/renderD128", "/sys/bus/pci/devices/0000:00:02.0"}},
		{Name: "nvidia0"},
		{Name: "nvidiactl"},
		{Name: "kfd", Dir: "/sys/devices/virtual/kfd/kfd", Links: []string{"/sys/dev/char/240:0", "/sys/class/kfd/kfd"}},
	}
	if diff := cmp.Diff(want, f.Devices); diff != "" || f.Warnings != nil {
		t.Errorf("%s%q", diff, f.Warnings)
	}
	none := &FoundServices{}
	none.findDevices(root, numberOf) // files are no devices
	if none.Devices != nil || len(none.Warnings) != 1 {
		t.Errorf("%+v", none)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
