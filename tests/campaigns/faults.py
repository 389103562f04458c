#!/usr/bin/env python3
"""Commands without what they need: disk, permission, threads, memory, file descriptors, a reader, a clock that goes forward.

Whatever is missing, a command ends in time, with exit code 1 or 2 and a sentence, or with 0 if it did not need it; never by a panic. What
must be whole is whole or not there. When the fault is gone, the same command (`train --resume`) gives the files of an unbroken run,
byte for byte.

Only one end by a signal is right: Rust aborts a process that is refused memory. Even then no file is damaged.

    sudo python3 tests/campaigns/faults.py --minutes 10 --seed 1

Full disks and missing permissions need root, and clock jumps need Debian's `faketime`. What cannot be tried is named at the end.
"""
import itertools
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import time

import campaign
from kill import Campaign, cases, prepare

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


class Fault:
    """How a command is started, and what is done to its folder before and after."""

    name, aborts = "", False

    def missing(self):
        """Why it cannot be tried here, if it cannot."""
        return None

    def place(self):
        return campaign.folder()

    def begin(self, place):
        pass

    def end(self, place):
        pass

    def command(self, command):
        return command

    def options(self):
        return {}


class FullDisk(Fault):
    """A disk in memory, filled up but for a few kilobytes."""

    name = "full disk"

    def __init__(self, rng):
        self.rng = rng

    def missing(self):
        try:
            with Mounted():
                return None
        except (OSError, subprocess.CalledProcessError):
            return "only root can mount a small disk"

    def place(self):
        return Mounted()

    def begin(self, place):
        free = os.statvfs(place)
        free = free.f_bavail * free.f_frsize
        with open(place / "filler", "wb") as f:
            f.write(bytes(max(0, free - self.rng.choice([0, 1, 4, 20, 60, 200, 500, 1000, 3000]) * 1024)))

    def end(self, place):
        (place / "filler").unlink()


class Mounted:
    def __enter__(self):
        self.name = tempfile.mkdtemp(prefix="polystep-disk-")
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", self.name], check=True, capture_output=True)
        return self.name

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.name], check=True)
        os.rmdir(self.name)


class NoPermission(Fault):
    """Another user, who may read the folder but not write."""

    name = "no permission"

    def missing(self):
        return None if os.geteuid() == 0 and shutil.which("setpriv") else "only root can become another user"

    def begin(self, place):
        subprocess.run(["chmod", "-R", "a+rX,a-w", str(place)], check=True)

    def end(self, place):
        subprocess.run(["chmod", "-R", "u+w", str(place)], check=True)

    def command(self, command):
        return [*NOBODY, *command]


class NoThreads(Fault):
    """Another user, who may start no process and no thread, or only a few."""

    name = "no threads"

    def __init__(self, rng):
        self.rng = rng

    def missing(self):
        return NoPermission().missing()

    def begin(self, place):
        subprocess.run(["chmod", "-R", "a+rwX", str(place)], check=True)

    def command(self, command):
        return [*NOBODY, "prlimit", "--nproc=%d" % self.rng.choice([1, 1, 2, 3, 4]), *command]


class Limited(Fault):
    """A limit of the system, of those under which the program can be loaded at all."""

    def __init__(self, name, args, kind, values, aborts=False):
        self.name, self.rng, self.kind, self.aborts = name, args.random, kind, aborts
        loads = lambda value: campaign.run([args.polystep, "--version"], **self.limit(value)).returncode == 0
        self.values = [value for value in values if loads(value)]

    def missing(self):
        return None if self.values else "the program cannot be loaded under any of the limits"

    def limit(self, value):
        return {"preexec_fn": lambda: resource.setrlimit(self.kind, (value, value))}

    def options(self):
        return self.limit(self.rng.choice(self.values))


class ClosedPipe(Fault):
    """Nobody reads standard output and standard error, or both are closed, or they are a full device."""

    name = "closed pipes"

    def __init__(self, rng):
        self.rng = rng

    def command(self, command):
        way = self.rng.choice(['exec "$@" | true', 'exec "$@" 2>&1 | true', 'exec "$@" >&-', 'exec "$@" >&- 2>&-', 'exec "$@" > /dev/full'])
        return ["bash", "-c", "set -o pipefail; " + way, "polystep", *command]


class ClockJump(Fault):
    """A clock that jumps, runs backwards or a thousand times too fast."""

    name = "clock jumps"

    def __init__(self, rng):
        self.rng = rng

    def missing(self):
        return None if shutil.which("faketime") else "faketime is not installed"

    def command(self, command):
        when = self.rng.choice(["-30y", "+60y", "@1970-01-02 00:00:00", "@2038-01-19 03:14:00 x50", "+0 x1000", "-1d x0.1"])
        return ["faketime", "-f", when, *command]


class Faults(Campaign):
    def wanted(self, case):
        """What an unbroken run writes; it is run once."""
        if case.name not in self.known:
            with campaign.folder() as first:
                case.prepare(pathlib.Path(first), self.ready)
                self.unbroken(self.args.polystep, case.first, pathlib.Path(first), "unbroken")
                self.known[case.name] = case.output(pathlib.Path(first))
        return self.known[case.name]

    def try_case(self, case, fault):
        wanted = self.wanted(case)
        with fault.place() as other:
            place = pathlib.Path(other)
            os.chmod(place, 0o755)
            case.prepare(place, self.ready)
            untouched = case.output(place)
            fault.begin(place)
            environment = dict(self.environment, HOME=str(place))
            result = campaign.run(fault.command([self.args.polystep, *case.first]), cwd=place, env=environment, **fault.options())
            code = result.returncode
            aborted = fault.aborts and code in (-6, 134) and b"memory allocation" in result.stderr
            self.counts.add(fault.name, refused=int(code != 0))
            told = "%s: exit code %s: %s" % (case.name, code, campaign.last_line(result.stderr))
            fault.end(place)
            if not aborted and (campaign.panicked(result) or code not in (0, 1, 2)):
                return self.counts.fail(fault.name, told)
            found = case.output(place)
            if case.whole and found not in (untouched, wanted):
                return self.counts.fail(fault.name, "a half output: " + told)
            if found == wanted:
                return
            again = campaign.run([self.args.polystep, *case.again(place)], cwd=place, env=self.environment)
            wrong = campaign.difference(case.output(place), wanted)
            if again.returncode != 0 or wrong:
                self.counts.fail(fault.name, "%s; then exit code %s, %s: %s" % (told, again.returncode, wrong, campaign.last_line(again.stderr)))


def main():
    args = campaign.arguments(__doc__, only={"metavar": "NAME", "help": "only the faults whose name begins so"})
    rng = args.random
    faults = [
        FullDisk(rng), NoPermission(), NoThreads(rng), ClosedPipe(rng), ClockJump(rng),
        Limited("no memory", args, resource.RLIMIT_AS, [n << 20 for n in (26, 28, 30, 34, 40, 50, 60, 80, 120, 200, 300)], aborts=True),
        Limited("no file descriptors", args, resource.RLIMIT_NOFILE, [3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 20]),
    ]
    faults = [fault for fault in faults if fault.name.startswith(args.only or "")]
    unable = {fault.name: fault.missing() for fault in faults if fault.missing()}
    with campaign.folder() as place:
        ready = pathlib.Path(place)
        this = Faults(args, ready)
        this.counts = campaign.Counts(["refused"])
        prepare(args.polystep, ready)
        this.known = {}
        campaign.begin(args)
        while time.monotonic() < args.end:
            pairs = list(itertools.product(cases(), [fault for fault in faults if fault.name not in unable]))
            rng.shuffle(pairs)
            for case, fault in pairs:
                if time.monotonic() < args.end:
                    this.try_case(case, fault)
    for name, why in unable.items():
        print("not tried: %s (%s)" % (name, why))
    this.counts.finish("faults", args)


if __name__ == "__main__":
    main()
