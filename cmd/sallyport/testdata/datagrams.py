# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
#
# What programs do with datagram sockets and sendmsg(2), a line for each with its result. The
# working directory is empty. The lines are the same inside a sandbox and outside.

import array, ctypes, errno, hashlib, os, signal, socket, struct, threading

UNIX, DGRAM = socket.AF_UNIX, socket.SOCK_DGRAM
names = iter(range(1000))
libc = ctypes.CDLL(None, use_errno=True)


def check(f):
    try:
        result = f()
    except OSError as e:
        result = errno.errorcode.get(e.errno, e)
    print(f.__name__ + ":", result, flush=True)


def bound(name=None, family=UNIX):
    if name is None:
        name = os.getcwd() + "/s%d" % next(names)
    s = socket.socket(family, DGRAM)
    s.bind(name)
    s.settimeout(20)
    return s, s.getsockname()


def client(family=UNIX):
    return socket.socket(family, DGRAM)


@check
def path():
    s, at = bound()
    client().sendto(b"x", at)
    return s.recv(9)


@check
def relative_path():
    s, at = bound("relative")
    client().sendto(b"x", at)
    return s.recv(9)


@check
def linked_and_renamed():
    s, at = bound()
    os.symlink(at, at + ".link")
    client().sendto(b"x", at + ".link")
    os.rename(at, at + ".new")
    client().sendto(b"y", at + ".new")
    return s.recv(9), s.recv(9)


@check
def abstract_name():
    s, at = bound(b"\0sallyport-%d" % os.getpid())
    client().sendto(b"x", at)
    return s.recv(9)


@check
def autobind():
    s, at = bound("")
    client().sendto(b"x", at)
    return s.recv(9)


@check
def echo():
    s, at = bound()
    c, back = bound()
    c.connect(at)
    c.send(b"one")
    data, sender = s.recvfrom(9)
    s.sendto(data + b"!", sender)
    data, sender = c.recvfrom(9)
    return data, sender == at


@check
def empty_message():
    s, at = bound()
    client().sendto(b"", at)
    return s.recv(9)


@check
def long_message():
    s, at = bound()
    client().sendto(b"x" * 150000, at)
    return len(s.recv(200000))


@check
def too_long():
    s, at = bound()
    client().sendto(b"x" * 300000, at)


@check
def nothing_there():
    client().sendto(b"x", os.getcwd() + "/none")


@check
def nobody_there():
    s, at = bound()
    s.close()
    client().sendto(b"x", at)


@check
def pair():
    a, b = socket.socketpair(UNIX, DGRAM)
    a.send(b"x")
    return b.recv(9)


@check
def descriptors():
    s, at = bound()
    r, w = os.pipe()
    client().sendmsg([b"ab", b"", b"cd"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [w, r]))], 0, at)
    data, control, _, _ = s.recvmsg(9, 1000)
    got = array.array("i", control[0][2])
    os.write(got[0], b"through")
    return data, len(got), os.read(r, 9)


@check
def descriptor_that_is_closed():
    a, _ = socket.socketpair(UNIX, DGRAM)
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [999]))])


def credentials(pid, uid):
    a, b = socket.socketpair()
    b.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack("3i", pid, uid, os.getgid()))])
    _, uid, gid = struct.unpack("3i", b.recvmsg(9, 100)[1][0][2])
    return uid == os.getuid(), gid == os.getgid()


@check
def own_credentials():
    return credentials(os.getpid(), os.getuid())


@check
def unknown_control():
    a, _ = socket.socketpair(UNIX, DGRAM)
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, 77, b"1234")])


def full(block):
    s, at = bound()
    c = client()
    c.setblocking(False)
    n = 0
    try:
        while True:
            c.sendto(b"full", at)
            n += 1
    except BlockingIOError:
        c.setblocking(block)
        return s, c, at, n


@check
def full_and_nonblocking():
    s, c, at, n = full(False)
    c.sendto(b"x", at)


@check
def full_and_not_waited():
    s, c, at, n = full(True)
    c.sendmsg([b"x"], [], socket.MSG_DONTWAIT, at)


@check
def full_and_limited():
    s, c, at, n = full(True)
    c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 200000))
    c.sendto(b"x", at)


@check
def full_and_drained():
    s, c, at, n = full(True)
    got = []
    t = threading.Thread(target=lambda: got.extend(s.recv(9) for _ in range(n + 1)))
    t.start()
    c.sendto(b"last", at)
    t.join()
    return got[-1]


class Interrupted(Exception):
    pass


def interrupt(*_):
    raise Interrupted


@check
def full_and_interrupted():
    s, c, at, n = full(True)
    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        c.sendto(b"x", at)
    except Interrupted:
        return "interrupted"


@check
def full_and_restarted():
    s, c, at, n = full(True)
    r, w = os.pipe()
    os.set_blocking(w, False)
    signal.set_wakeup_fd(w)
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.siginterrupt(signal.SIGALRM, False)
    signal.setitimer(signal.ITIMER_REAL, 0.2)

    def drain():  # when the signal has come
        os.read(r, 1)
        for _ in range(n):
            s.recv(9)

    t = threading.Thread(target=drain)
    t.start()
    sent = c.sendto(b"x", at)
    t.join()
    signal.set_wakeup_fd(-1)
    return sent


@check
def many_threads():
    s, c, at, n = full(True)
    threads = [threading.Thread(target=lambda i=i: c.sendto(b"%d" % i, at)) for i in range(200)]
    for t in threads:
        t.start()
    got = [s.recv(9) for _ in range(n + 200)]
    for t in threads:
        t.join()
    return sorted(int(d) for d in got[n:]) == list(range(200))


@check
def ended_while_it_waits():
    s, c, at, n = full(True)
    pid = os.fork()
    if pid == 0:
        c.sendto(b"x", at)
        os._exit(0)
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@check
def left_to_a_child():
    at = os.getcwd() + "/daemon"
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        s, _ = bound(at)
        if os.fork():
            os._exit(0)
        os.chdir("/")
        os.write(w, b"ready")
        data, sender = s.recvfrom(9)
        s.sendto(data + b"!", sender)
        os._exit(0)
    os.waitpid(pid, 0)
    os.read(r, 9)
    c, _ = bound()
    c.sendto(b"x", at)
    return c.recv(9)


@check
def long_stream():
    a, b = socket.socketpair()
    data = os.urandom(10 << 20)
    got = hashlib.sha256()

    def drain():
        left = len(data)
        while left:
            part = b.recv(100000)
            got.update(part)
            left -= len(part)

    t = threading.Thread(target=drain)
    t.start()
    n = a.sendmsg([data[:3], data[3 : 5 << 20], data[5 << 20 :]])
    t.join()
    return n, got.digest() == hashlib.sha256(data).digest()


@check
def part_of_a_stream():
    a, _ = socket.socketpair()
    a.setblocking(False)
    return 0 < a.sendmsg([b"x" * (10 << 20)]) < 10 << 20


@check
def broken_pipe():
    a, b = socket.socketpair()
    b.close()
    a.sendmsg([b"x"], [], socket.MSG_NOSIGNAL)


@check
def broken_pipe_with_a_signal():
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        a, b = socket.socketpair()
        b.close()
        a.sendmsg([b"x"])
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@check
def udp():
    s, at = bound(("127.0.0.1", 0), socket.AF_INET)
    c = client(socket.AF_INET)
    c.sendto(b"x", at)
    c.sendmsg([b"y"], [(socket.IPPROTO_IP, socket.IP_TOS, struct.pack("i", 16))], 0, at)
    return s.recv(9), s.recv(9)


@check
def tcp():
    server = socket.create_server(("127.0.0.1", 0))
    c = socket.create_connection(server.getsockname())
    s, _ = server.accept()
    c.sendmsg([b"x", b"y"])
    return s.recv(9)


@check
def netlink():
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    s.bind((0, 0))
    s.sendto(struct.pack("IHHIIB3x", 20, 18, 0x301, 1, 0, 0), (0, 0))  # RTM_GETLINK
    return struct.unpack("H", s.recv(65536)[4:6])


class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_char_p), ("size", ctypes.c_size_t)]


class Message(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p), ("name_size", ctypes.c_uint), ("pieces", ctypes.POINTER(Piece)), ("count", ctypes.c_size_t),
        ("control", ctypes.c_void_p), ("control_size", ctypes.c_size_t), ("flags", ctypes.c_long), ("sent", ctypes.c_uint),
    ]


@check
def sendmmsg():
    s, _ = bound("many")
    c = client()
    to = [b"\1\0many\0"] * 3 + [b"\1\0none\0"]
    messages = (Message * 4)(*(Message(n, len(n), ctypes.pointer(Piece(b"abcd", i + 1)), 1) for i, n in enumerate(to)))
    count = libc.sendmmsg(c.fileno(), messages, 4, 0)
    last = libc.sendmmsg(c.fileno(), ctypes.byref(messages, 3 * ctypes.sizeof(Message)), 1, 0)
    return count, [m.sent for m in messages], [s.recv(9) for _ in range(3)], last, libc.sendmmsg(c.fileno(), messages, 0, 0)


@check
def wrong_arguments():
    def failed(fd, at):
        return libc.sendmsg(fd, ctypes.c_void_p(at), 0), ctypes.get_errno()

    return failed(client().detach(), 8), failed(999, 8), failed(os.open("/", os.O_RDONLY), 8)


@check
def service_notification():
    s, at = bound()
    c = client()
    c.connect(at)
    c.sendall(b"READY=1\nSTATUS=serving")
    return s.recv(99)
