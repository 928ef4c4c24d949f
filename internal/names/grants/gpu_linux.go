// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Device is a device file of a graphics processor.
type Device struct {
	Name string // below /dev
	// Dir is the directory in /sys that describes it, and Links are names in /sys by which
	// programs find that; empty where the driver has none.
	Dir   string
	Links []string
}

// devices are patterns of the device files. The nodes /dev/dri/card* are not among them: they
// set display modes, and no program needs them to compute or to render.
var devices = []string{
	// Mesa and all that use the kernel's graphics drivers
	"dri/renderD*",
	"nvidia[0-9]*", "nvidiactl", "nvidia-uvm*", "nvidia-caps/*", // NVIDIA's own driver
	"kfd", // AMD, for computing
	"dxg", // Windows, for Linux inside of it
}

// numberOf returns the number of a character device; false for any other file.
func numberOf(info fs.FileInfo) (uint64, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode()&fs.ModeCharDevice == 0 {
		return 0, false
	}
	return st.Rdev, true
}

// findDevices adds the devices of a machine whose root directory is root, by a function such
// as numberOf.
func (f *FoundServices) findDevices(root string, numberOf func(fs.FileInfo) (uint64, bool)) {
	for _, pattern := range devices {
		names, _ := filepath.Glob(filepath.Join(root, "dev", pattern)) // the patterns are ours
		for _, name := range names {
			info, err := os.Lstat(name)
			if err != nil {
				continue
			}
			if number, ok := numberOf(info); ok {
				f.addDevice(root, strings.TrimPrefix(name, filepath.Join(root, "dev")+"/"), number)
			}
		}
	}
	if len(f.Devices) == 0 {
		f.Warnings = append(f.Warnings, "grant gpu: no graphics processor was found; nothing was opened")
	}
}

// addDevice adds one device, with what describes it: the directory of the processor, which is
// two above the entry of a render node, or for AMD's that of the driver.
func (f *FoundServices) addDevice(root, name string, number uint64) {
	d := Device{Name: name}
	link := fmt.Sprintf("/sys/dev/char/%d:%d", unix.Major(number), unix.Minor(number))
	entry, err := filepath.EvalSymlinks(filepath.Join(root, link))
	if err == nil {
		inRoot := func(path string) string {
			return "/" +
				strings.TrimPrefix(strings.TrimPrefix(path, root), "/")
		}
		d.Links = []string{link}
		base := filepath.Base(name)
		if dir, kind := filepath.Split(filepath.Dir(entry)); kind == "drm" {
			d.Dir = inRoot(filepath.Clean(dir))
			d.Links = append(d.Links, "/sys/class/drm/"+base, "/sys/bus/pci/devices/"+filepath.Base(d.Dir))
		} else {
			d.Dir = inRoot(entry)
			d.Links = append(d.Links, "/sys/class/"+kind+"/"+base)
		}
		d.Links = slices.DeleteFunc(d.Links, func(l string) bool {
			_, err := os.Readlink(filepath.Join(root, l))
			return err != nil
		})
	}
	f.Devices = append(f.Devices, d)
}
