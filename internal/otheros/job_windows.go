// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package otheros

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
)

// A Job is a command in a job object: no process of its tree can leave it, and all of them
// end when its last handle is closed, also because this process was killed.
type Job struct {
	cmd     *exec.Cmd
	sandbox executor.Sandbox
	handle  windows.Handle
	port    windows.Handle // gets a message when the job is empty

	mu     sync.Mutex
	closed bool
}

// jobKey marks the job's messages at its port; any number does.
const jobKey = 1

// startInJob starts a command that begins suspended, puts it into a job and lets it run.
func startInJob(spec *executor.Spec, cmd *exec.Cmd, s executor.Sandbox) (*Job, error) {
	j := &Job{cmd: cmd, sandbox: s}
	if err := j.make(); err != nil {
		return nil, fmt.Errorf("cannot make a job object for the command: %w",
			errors.Join(err, j.closeHandles()))
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(hostfacts.StartError(spec.Args[0], err), j.closeHandles())
	}
	if err := j.adopt(); err != nil {
		err = errors.Join(err, cmd.Process.Kill()) // it has not run a single instruction
		_ = cmd.Wait()                             // says how it was killed
		return nil, fmt.Errorf("cannot put the command into its job object, so it did not run: %w",
			errors.Join(err, j.closeHandles()))
	}
	return j, nil
}

// make makes the job and its port. Breaking away is not among the limits, so
// CREATE_BREAKAWAY_FROM_JOB fails inside. Denied is what would affect the user at the
// screen: logging off, other desktops, display and system settings. The clipboard is
// available, because full access means what the user may do.
func (j *Job) make() error {
	var err error
	if j.handle, err = windows.CreateJobObject(nil, nil); err != nil {
		return err
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE |
		windows.JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION // no dialog that waits for the user
	if _, err := windows.SetInformationJobObject(j.handle, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		return err
	}
	ui := windows.JOBOBJECT_BASIC_UI_RESTRICTIONS{UIRestrictionsClass: windows.JOB_OBJECT_UILIMIT_EXITWINDOWS |
		windows.JOB_OBJECT_UILIMIT_DESKTOP | windows.JOB_OBJECT_UILIMIT_DISPLAYSETTINGS | windows.JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS}
	if _, err := windows.SetInformationJobObject(j.handle, windows.JobObjectBasicUIRestrictions,
		uintptr(unsafe.Pointer(&ui)), uint32(unsafe.Sizeof(ui))); err != nil {
		return err
	}
	if j.port, err = windows.CreateIoCompletionPort(windows.InvalidHandle, 0, 0, 1); err != nil {
		return err
	}
	// JOBOBJECT_ASSOCIATE_COMPLETION_PORT of winnt.h.
	messages := struct {
		key  uintptr
		port windows.Handle
	}{jobKey, j.port}
	_, err = windows.SetInformationJobObject(j.handle, windows.JobObjectAssociateCompletionPortInformation,
		uintptr(unsafe.Pointer(&messages)), uint32(unsafe.Sizeof(messages)))
	return err
}

// adopt puts the suspended command into the job and lets it run.
func (j *Job) adopt() error {
	// The PID is not reused: cmd holds the process.
	pid := uint32(j.cmd.Process.Pid)
	p, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, pid)
	if err != nil {
		return err
	}
	err = windows.AssignProcessToJobObject(j.handle, p)
	if cerr := windows.CloseHandle(p); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return resume(pid)
}

// resume lets the threads of a process run. A suspended new process has one.
func resume(pid uint32) error {
	shot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(shot) }()
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	found := false
	for err = windows.Thread32First(shot, &entry); err == nil; err = windows.Thread32Next(shot, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return err
		}
		_, err = windows.ResumeThread(thread)
		if err = errors.Join(err, windows.CloseHandle(thread)); err != nil {
			return err
		}
		found = true
	}
	if !errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		return err
	}
	if !found {
		return errors.New("the system lists no thread of it")
	}
	return nil
}

// PID returns the command's own.
func (j *Job) PID() int { return j.cmd.Process.Pid }

// Wait blocks until the command itself has ended.
func (j *Job) Wait() (code, signal int, err error) {
	err = j.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return -1, 0, err
	}
	return j.cmd.ProcessState.ExitCode(), 0, nil
}

// WaitAll blocks until the job is empty. The system sends a message to the port then, but
// does not promise that no message is lost; so the job is counted again every second.
func (j *Job) WaitAll() error {
	const again = 1000 // milliseconds
	for {
		n, err := j.active()
		if err != nil || n == 0 {
			return err
		}
		var count uint32
		var key uintptr
		var overlapped *windows.Overlapped
		err = windows.GetQueuedCompletionStatus(j.port, &count, &key, &overlapped, again)
		if err != nil && !errors.Is(err, windows.WAIT_TIMEOUT) {
			return err
		}
	}
}

// active counts the processes of the job.
func (j *Job) active() (uint32, error) {
	// JOBOBJECT_BASIC_ACCOUNTING_INFORMATION of winnt.h.
	var info struct {
		times                             [4]int64
		faults, total, active, terminated uint32
	}
	err := windows.QueryInformationJobObject(j.handle, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil)
	return info.active, err
}

// Signal sends a Ctrl-Break, which console programs may handle. Where there is no console to
// send it through, and for SIGKILL, it kills the whole tree.
func (j *Job) Signal(sig syscall.Signal, _ bool) error {
	if sig != syscall.SIGKILL && windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT,
		uint32(j.PID())) == nil {
		return nil
	}
	return j.Kill()
}

// Kill kills every process of the job. The exit code is the one that a shell gives to a
// program that was killed.
func (j *Job) Kill() error { return windows.TerminateJobObject(j.handle, 128+uint32(syscall.SIGKILL)) }

// Terminal returns nil: terminals are not supported on this system.
func (j *Job) Terminal() *os.File { return nil }

// Processes returns the PIDs of the job.
func (j *Job) Processes() []int {
	var out []int
	for _, s := range j.Survivors() {
		out = append(out, s.PID)
	}
	return out
}

// Survivors returns the processes of the job.
func (j *Job) Survivors() []executor.Survivor {
	const most = 1024 // more are counted as these
	// JOBOBJECT_BASIC_PROCESS_ID_LIST of winnt.h.
	var list struct {
		assigned, listed uint32
		ids              [most]uintptr
	}
	err := windows.QueryInformationJobObject(j.handle, windows.JobObjectBasicProcessIdList,
		uintptr(unsafe.Pointer(&list)), uint32(unsafe.Sizeof(list)), nil)
	if err != nil && !errors.Is(err, windows.ERROR_MORE_DATA) {
		return nil
	}
	var out []executor.Survivor
	for _, id := range list.ids[:min(list.listed, most)] {
		out = append(out, executor.Survivor{PID: int(id), Name: imageName(uint32(id))})
	}
	return out
}

// imageName returns the file of a process; empty when it cannot be read or has ended.
func imageName(pid uint32) string {
	p, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if err != nil {
		return ""
	}
	defer func() { _ = windows.CloseHandle(p) }()
	buf := make([]uint16, windows.MAX_LONG_PATH)
	n := uint32(len(buf))
	if windows.QueryFullProcessImageName(p, 0, &buf[0], &n) != nil {
		return ""
	}
	return windows.UTF16ToString(buf[:n])
}

// Close kills what is left and closes the handles. It adds to exit what was enforced.
func (j *Job) Close(exit *executor.Exit) error {
	exit.Sandbox, exit.SurvivorsBy = j.sandbox, executor.ByJob
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	return j.closeHandles()
}

func (j *Job) closeHandles() error {
	var errs []error
	for _, h := range []windows.Handle{j.handle, j.port} {
		if h != 0 {
			errs = append(errs, windows.CloseHandle(h))
		}
	}
	return errors.Join(errs...)
}

// Sandbox returns what was enforced.
func (j *Job) Sandbox() executor.Sandbox { return j.sandbox }
