"""Trouble that is made beside a comparison, and the places on which it is made: for tools/findings and tools/advice.

A trouble is a generator of a device: what stands before its `yield` is done before the comparison, what follows it after.
"""
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
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


def limited(course):
    """A limit of I/O a second on the device, which `course` gives for the seconds since the start."""

    def plant(device):
        number = pathlib.Path("/sys/block", os.path.basename(device), "dev").read_text().strip()
        group = BLKIO / f"spindle-findings-{os.getpid()}"
        group.mkdir()
        before = (BLKIO / "cgroup.procs", os.getpid())
        (group / "cgroup.procs").write_text(str(os.getpid()))
        over = threading.Event()

        def hold():
            begun = time.monotonic()
            while not over.is_set():
                for kind in ("read", "write"):
                    rate = course(time.monotonic() - begun)
                    (group / f"blkio.throttle.{kind}_iops_device").write_text(f"{number} {rate}")
                over.wait(0.2)

        thread = threading.Thread(target=hold)
        thread.start()
        yield
        over.set()
        thread.join()
        before[0].write_text(str(before[1]))
        group.rmdir()

    return plant


def follows(scheduler, act):
    """Does something whenever the device's scheduler has changed from `scheduler` to another (act "after"), or as long
    as it is that one (act "under")."""

    def plant(device):
        file = pathlib.Path("/sys/block", os.path.basename(device), "queue/scheduler")
        over = threading.Event()
        disturbing = "import os,sys,time\nf=os.open(sys.argv[1],os.O_RDONLY|os.O_DIRECT)\n" \
            "import mmap\nb=mmap.mmap(-1,1<<20)\n" \
            "end=time.time()+float(sys.argv[2])\nat=0\n" \
            "while time.time()<end:\n os.preadv(f,[b],at);at=(at+(1<<20))%(64<<20)"

        def watch():
            was = None
            while not over.is_set():
                now = file.read_text().split("[")[1].split("]")[0]
                if (act == "after" and was == scheduler and now != scheduler) or (act == "under" and now == scheduler):
                    some = [subprocess.Popen([sys.executable, "-c", disturbing, device, "1.2"]) for _ in range(4)]
                    for one in some:
                        one.wait()
                was = now
                over.wait(0.02)

        thread = threading.Thread(target=watch)
        thread.start()
        yield
        over.set()
        thread.join()

    return plant


def with_flag(value):
    def plant(device):
        file = pathlib.Path("/sys/block", os.path.basename(device), "queue/rotational")
        was = file.read_text()
        file.write_text(value)
        yield
        file.write_text(was)
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
