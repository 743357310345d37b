"""Trouble that is made beside a comparison, and the places on which it is made: for tools/findings and tools/advice.

A trouble is a generator of a device: what stands before its `yield` is done before the comparison, what follows it after.
"""
import contextlib
import itertools
import os
import pathlib
import subprocess
import sys
import threading
import time

# A limit of this controller holds for the program and its threads.
BLKIO = pathlib.Path("/sys/fs/cgroup/blkio")


def busy_processors(_device):
    """Three times as many endless loops as processors."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3 * os.cpu_count())]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def queue(device, setting):
    return pathlib.Path("/sys/block", os.path.basename(device), "queue", setting)


def scheduler(device):
    """The device's present one."""
    return queue(device, "scheduler").read_text().split("[")[1].split("]")[0]


@contextlib.contextmanager
def meanwhile(step, seconds):
    """Does a step again and again, with a pause of so many seconds between."""
    over = threading.Event()

    def run():
        while not over.is_set():
            step()
            over.wait(seconds)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def limited(course):
    """A limit of I/O a second on the device, which `course` gives for the seconds since the start and the scheduler."""

    def plant(device):
        number = pathlib.Path("/sys/block", os.path.basename(device), "dev").read_text().strip()
        group = BLKIO / f"spindle-trouble-{os.getpid()}"
        group.mkdir()
        (group / "cgroup.procs").write_text(str(os.getpid()))
        begun = time.monotonic()

        def hold():
            rate = course(time.monotonic() - begun, scheduler(device))
            for kind in ("read", "write"):
                (group / f"blkio.throttle.{kind}_iops_device").write_text(f"{number} {rate}")

        try:
            with meanwhile(hold, 0.1):
                yield
        finally:
            (BLKIO / "cgroup.procs").write_text(str(os.getpid()))
            group.rmdir()

    return plant


# Reads of 1 MiB of a device, for so many seconds.
READS = """
import mmap, os, sys, time
file, buffer, at = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 1 << 20), 0
end = time.time() + float(sys.argv[2])
while time.time() < end:
    os.preadv(file, [buffer], at)
    at = (at + (1 << 20)) % (64 << 20)
"""


def after(disturbed):
    """Reads of others for 1.2 s whenever the device's scheduler has changed from this one to another."""

    def plant(device):
        seen = [None]

        def watch():
            was, seen[0] = seen[0], scheduler(device)
            if was == disturbed and seen[0] != disturbed:
                some = [subprocess.Popen([sys.executable, "-c", READS, device, "1.2"]) for _ in range(4)]
                for one in some:
                    one.wait()

        with meanwhile(watch, 0.02):
            yield

    return plant


def moves(schedulers):
    """Somebody sets another scheduler every few seconds."""

    def plant(device):
        turns, was = itertools.cycle(schedulers), scheduler(device)
        try:
            with meanwhile(lambda: queue(device, "scheduler").write_text(next(turns)), 3.3):
                yield
        finally:
            # A loop device keeps its settings for the next that uses it.
            queue(device, "scheduler").write_text(was)

    return plant


def with_flag(value):
    """The device says that it rotates ("1"), or does not."""

    def plant(device):
        was = queue(device, "rotational").read_text()
        queue(device, "rotational").write_text(value)
        try:
            yield
        finally:
            queue(device, "rotational").write_text(was)

    return plant


class Places:
    """Loop devices on files below /var/tmp, or in memory, with filesystems on them: each made when first asked for."""

    def __init__(self, folder):
        self.folder, self.made, self.devices = pathlib.Path(folder), {}, {}

    def target(self, name):
        """Its mount point, or the words that name it and agree to its being overwritten."""
        if name not in self.made:
            self.made[name] = self.make(name)
        return self.made[name]

    def make(self, name):
        in_memory = name == "memory"
        if in_memory:
            memory = self.folder / "tmpfs"
            memory.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "none", str(memory)], check=True)
        file = (self.folder / "tmpfs" if in_memory else self.folder) / name
        with open(file, "wb") as out:
            for _ in range(256 if in_memory else 768):
                out.write(os.urandom(1 << 20))
            out.flush()
            os.fsync(out.fileno())
        direct = [] if in_memory else ["--direct-io=on"]
        device = subprocess.check_output(["losetup", "-f", "--show", *direct, str(file)], text=True).strip()
        self.devices[name] = device
        if in_memory:
            return f"{device} --confirm {file}"
        mount = self.folder / f"{name}.mount"
        mount.mkdir()
        kind, _, option = name.partition("-")
        subprocess.run([f"mkfs.{kind}", "-q", "-f" if kind == "btrfs" else "-F", device], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["mount", "-o", option or "defaults", device, str(mount)], check=True)
        return str(mount)

    def close(self):
        for mount in [*self.folder.glob("*.mount"), self.folder / "tmpfs"]:
            if mount.name != "tmpfs":
                subprocess.run(["umount", str(mount)], check=False)
        for device in self.devices.values():
            subprocess.run(["losetup", "-d", device], check=False)
        if (self.folder / "tmpfs").is_dir():
            time.sleep(0.5)
            subprocess.run(["umount", str(self.folder / "tmpfs")], check=False)
