#!/usr/bin/env python3
"""Campaigns and sweeps by many processes, on a real Slurm of two nodes (tests/cluster/slurm-here) or without one.

    python3 tests/cluster/cluster.py same target/debug/polystep      what CI runs
    python3 tests/cluster/cluster.py trouble target/release/polystep --seed 1
    python3 tests/cluster/cluster.py sixteen target/release/polystep
    python3 tests/cluster/cluster.py entry target/release/polystep

same: 12 runs and 8 trials over two nodes end with the ledger and the ranking of one process, apart from times.
trouble: the same while tasks are killed and requeued, a slurmd is killed, and a task runs into its time limit.
sixteen: 16 processes on one folder without Slurm make 100 runs, each once; what claims, heartbeats and entries cost.
entry: what an entry costs beside how many records. `plan.py` takes these numbers.

Each test runs in namespaces of its own, with its own network, processes and temporary folder. Two of them can run side by side, and
nothing is left when one ends, in whatever way. One that is not done after --limit seconds is ended.

Needs Linux, root, python3 without packages, and for the first two `apt-get install slurm-wlm munge`.
"""

import argparse
import csv
import fcntl
import json
import os
import random
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INSIDE = "POLYSTEP_CLUSTER_TEST"  # set in the namespaces of a test
LEASES = ("lease.json", "claim.json", ".polystep-")
TABLE = ["--table", "var1error", "--rows", "1-4", "--plan", "plan.toml"]
ALONE = ["--device", "cpu", "--threads", "1"]


def plan(steps):
    """A model that knows nothing, tested on two proofs. The runs of var1error are those of var1coarsefull, which has the plan."""
    return f"""
[table]
name = "var1coarsefull"
order = 1
[fast]
model = {{ d = 64, layers = 1, heads = 4, ffn = 64, max_positions = 256 }}
train = {{ batch = 4, steps = {steps}, valid_every = 0, valid_proofs = 2, checkpoint_steps = 50 }}
[evaluation]
proofs = 2
[cost]
seconds_per_run = 1
seconds_per_endpoint_run = 1
seconds_per_paper_run = 1
seconds_per_evaluation = 1
[expected]
paper = [72.7, 98.9]
"""


def sweep(steps):
    """Eight trials. Two learn nothing, and the median stops them."""
    return f"""
data.config = "small_coeff"
model = {{ d = 64, layers = 1, heads = 4, ffn = 64 }}
[train]
batch = 4
warmup = 0
schedule = "constant"
steps = {steps}
valid_every = {steps}
valid_proofs = 5
checkpoint_steps = 50
[grid]
"train.lr" = [1e-3, 2e-3, 3e-3, 1e-12]
"model.dropout" = [0.0, 0.1]
[sweep]
grace = 0.2
"""


class Place:
    """A folder with a plan of 12 runs and a sweep of 8 trials, and the program in it."""

    def __init__(self, polystep, run_steps, trial_steps, seeds, heartbeat=1):
        self.path = Path(tempfile.mkdtemp())
        self.polystep = str(Path(polystep).resolve())
        self.seeds = seeds
        (self.path / "plan.toml").write_text(plan(run_steps))
        (self.path / "sweep.toml").write_text(sweep(trial_steps))
        self.environment = {"POLYSTEP_MODELS": "none", "POLYSTEP_HEARTBEAT": str(heartbeat)}

    def start(self, *words):
        command = [self.polystep, *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=self.path, env=os.environ | self.environment, stdin=subprocess.DEVNULL, **pipes)

    def run(self, *words):
        process = self.start(*words)
        out, err = process.communicate()
        assert process.returncode == 0, f"{words}: exit {process.returncode}\n{out}\n{err}"
        return out

    def campaign(self, name):
        seeds = ["--seeds", str(self.seeds)]
        return ["reproduce", *TABLE, *seeds, *ALONE, "--runs", f"{name}/runs", "--results", f"{name}/results"]

    def trials(self, name):
        return ["sweep", "sweep.toml", *ALONE, "--out", f"{name}/sweep"]

    def submit(self, command, *flags):
        """Submits what is left; gives the number of the job, or none if nothing was."""
        said = self.run(*command, "--slurm", *flags)
        return said.split("submitted as job ")[1].split(",")[0] if "submitted as job " in said else None

    def results(self, name):
        """Ledgers and ranking without their times."""
        paths = sorted((self.path / name / "results").glob("**/*.csv")) + [self.path / name / "sweep" / "sweep.csv"]
        results = {}
        for path in paths:
            rows = list(csv.DictReader(path.open()))
            results[str(path.relative_to(self.path / name))] = [{k: v for k, v in r.items() if k != "seconds"} for r in rows]
        return results

    def check(self, name, expected, killed=0):
        """After so many processes were killed, ledgers and ranking are the expected ones, every run was entered and trained to its end once, and nothing is locked."""
        results = self.results(name)
        assert results == expected, f"ledgers or ranking differ:\n{json.dumps(results)}\n{json.dumps(expected)}"
        hosts = set()
        logs = sorted((self.path / name / "runs").glob("*/train.log"))
        assert len(logs) == 4 * self.seeds, f"{len(logs)} runs were made"
        for path in logs:
            ends = path.read_text().count("finished: ")
            assert ends == 1, f"{path.parent} was trained to its end {ends} times"
        claims = sorted((self.path / name / "runs").glob("*/claims.jsonl"))
        for path in claims:
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            assert len(lines) == 1, f"{path} was entered {len(lines)} times"
            hosts.add(lines[0]["holder"]["host"])
        # A process may be killed after it has entered a run, and before it says so.
        assert len(claims) + killed >= len(logs), f"{len(claims)} of {len(logs)} runs have a line of who made them"
        # A trial that has finished may be ranked as hopeless: as if one had come after the other.
        finished, trial = [], None
        for line in "".join(path.read_text() for path in sorted((self.path / name / "sweep/slurm").glob("*.log"))).splitlines():
            if " of 8: " in line:
                trial = line.split(" of 8: ")[1]
            elif line.startswith("  finished: "):
                finished.append(trial)
        assert len(finished) == len(set(finished)), f"trained to its end twice: {finished}"
        left = [p for p in (self.path / name).rglob("*") if p.name.startswith(LEASES)]
        assert not left, f"left behind: {left}"
        return hosts


class Slurm:
    """Slurm with two nodes, for as long as the value is entered."""

    def __init__(self, cpus):
        self.cpus = str(cpus)

    def __enter__(self):
        here = tempfile.mkdtemp()
        os.environ |= {"SLURM_HERE": here, "SLURM_CONF": f"{here}/slurm.conf"}
        self.do("start", "2", self.cpus)
        return self

    def __exit__(self, *_):
        self.do("stop")

    def do(self, *words):
        # Daemons keep what they are given as standard output, so it is no pipe that somebody waits at.
        with tempfile.TemporaryFile("w+") as said:
            code = subprocess.run([HERE / "slurm-here", *words], stdin=subprocess.DEVNULL, stdout=said, stderr=said).returncode
            said.seek(0)
            assert code == 0, f"slurm-here {words}: exit {code}\n{said.read()}"

    def tasks(self, *states, shown="%i %T"):
        """The tasks in some states: their numbers, as in 12_3, and their states."""
        words = ["squeue", "-h", "-r", "-t", ",".join(states) or "all", "-o", shown]
        said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        return [line.split() for line in said.splitlines()]

    def wait(self, seconds):
        began = time.monotonic()
        while self.tasks("PENDING", "RUNNING", "COMPLETING"):
            assert time.monotonic() - began < seconds, f"still there after {seconds} s: {self.tasks()}"
            time.sleep(0.2)


def one_process(place):
    """Ledgers and ranking of one process without Slurm."""
    began = time.monotonic()
    place.run(*place.campaign("one"))
    place.run(*place.trials("one"))
    results = place.results("one")
    rows = {name: len(rows) for name, rows in results.items()}
    print(f"one process: {rows} in {time.monotonic() - began:.0f} s")
    assert len(results["sweep/sweep.csv"]) == 8 and len(results["results/var1error.csv"]) == 4 * place.seeds
    assert any(row["state"] == "hopeless" for row in results["sweep/sweep.csv"]), results["sweep/sweep.csv"]
    return results


def same(options):
    place = Place(options.polystep, run_steps=3, trial_steps=24, seeds=3)
    # A task fills a node, so that the two tasks of a job are on two.
    with Slurm(cpus=1) as slurm:
        began = time.monotonic()
        asked = ["--tasks", "2", "--time", "10"]
        jobs = []
        for work in (place.campaign("many"), place.trials("many")):
            jobs.append(place.submit(work, *asked))
            slurm.wait(options.limit)
        seconds = time.monotonic() - began
        ended = slurm.tasks(shown="%F %T %N")
        assert {state for _, state, _ in ended} == {"COMPLETED"}, ended
        nodes = {job: sorted(node for number, _, node in ended if number == job) for job in jobs}
        assert all(on == ["node1", "node2"] for on in nodes.values()), nodes
        assert place.submit(place.campaign("many"), *asked) is None, "nothing was left"
    expected = one_process(place)
    hosts = place.check("many", expected)
    assert hosts == {"node1", "node2"}, hosts
    for log in (place.path / "many/sweep/slurm").glob("*.log"):
        assert " of 8: " in log.read_text(), f"{log} made no trial"
    print(f"Slurm: the same ledger and ranking in {seconds:.0f} s; runs and trials were made on {sorted(hosts)}")


def trouble(options):
    dice = random.Random(options.seed)
    place = Place(options.polystep, run_steps=options.steps, trial_steps=options.steps, seeds=3)
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    print(f"seed {options.seed}, commit {commit}, {options.steps} steps")
    expected = one_process(place)
    left = {"kill": 10, "requeue": 10, "slurmd": 1}
    submitted = 0
    with Slurm(cpus=os.cpu_count()) as slurm:
        began = time.monotonic()
        said = lambda what: print(f"{time.monotonic() - began:6.1f} s  {what}", flush=True)

        # A task whose script does not listen for the signal runs into its time limit.
        script = place.run(*place.campaign("many"), "--slurm", "--tasks", "1", "--time", "1", "--dry-run")
        (place.path / "deaf.sbatch").write_text(script.replace("#SBATCH --signal=", "# "))
        os.makedirs(place.path / "many/runs/slurm")
        deaf = subprocess.run(["sbatch", "--parsable", "deaf.sbatch"], cwd=place.path, env=os.environ | place.environment, check=True,
                              capture_output=True, text=True).stdout.strip()
        said(f"job {deaf} will run into its time limit of a minute")

        down = None
        while True:
            waiting, running = slurm.tasks("PENDING", "COMPLETING"), slurm.tasks("RUNNING")
            if not [task for task in waiting + running if not task[0].startswith(f"{deaf}_")]:
                # The same commands, given again, submit what is left.
                jobs = [place.submit(place.campaign("many"), "--tasks", "3", "--time", "1", "--warn", "20"),
                        place.submit(place.trials("many"), "--tasks", "2", "--time", "1", "--warn", "20")]
                if jobs == [None, None] and not running:
                    break
                submitted += sum(job is not None for job in jobs)
                said(f"submitted {jobs}")
            time.sleep(dice.uniform(0.5, 4.0))
            if down and time.monotonic() > down:
                slurm.do("revive", "2")
                said("slurmd of node2 is back")
                down = None
            victims = [task for task in slurm.tasks("RUNNING") if not task[0].startswith(f"{deaf}_")]
            deeds = [deed for deed, times in left.items() if times > 0]
            if not victims or not deeds or down:
                continue
            deed, (task, _) = dice.choice(deeds), dice.choice(victims)
            if deed == "slurmd":
                left[deed] -= 1
                slurm.do("kill", "2")
                down = time.monotonic() + 5
                said("slurmd of node2 was killed")
            else:
                words = {"kill": ["scancel", "--signal=KILL", "--full", task], "requeue": ["scontrol", "requeue", task]}[deed]
                ended = subprocess.run(words, capture_output=True, text=True)
                # A task that has just ended is not counted.
                left[deed] -= ended.returncode == 0
                said(f"{deed} {task}" + (f": {ended.stderr.strip()}" if ended.returncode else ""))
        states = [state for _, state in slurm.tasks()]
        counted = {state: states.count(state) for state in sorted(set(states))}
        hosts = place.check("many", expected, killed=10)
        said(f"ledger and ranking are those of one process; nodes {sorted(hosts)}; {submitted} jobs, whose tasks ended as {counted}")
        logs = "".join(path.read_text() for path in (place.path / "many").glob("*/slurm/*.log"))
        said(f"tasks that saved and requeued themselves before their time limit: {logs.count('saved; requeued')}")
        assert not any(left.values()), f"not enough work for all the trouble: {left} are left; take more --steps"
        assert "TIMEOUT" in counted, counted


def sixteen(options):
    place = Place(options.polystep, run_steps=options.steps, trial_steps=1, seeds=25, heartbeat=10)
    began = time.monotonic()
    processes = [place.start(*place.campaign("many")) for _ in range(16)]
    for process in processes:
        out, err = process.communicate()
        assert process.returncode == 0, f"exit {process.returncode}\n{out}\n{err}"
    seconds = time.monotonic() - began
    folders = sorted((place.path / "many/runs").glob("*/claims.jsonl"))
    lines = [json.loads(line) for path in folders for line in path.read_text().splitlines()]
    assert len(folders) == len(lines) == 100, f"{len(folders)} runs, entered {len(lines)} times"
    rows = list(csv.DictReader((place.path / "many/results/var1error.csv").open()))
    assert len(rows) == 100 and len({(r["config"], r["granularity"], r["notation"], r["seed"]) for r in rows}) == 100
    left = [p for p in (place.path / "many").rglob("*") if p.name.startswith(LEASES)]
    assert not left, left
    who = {line["holder"]["process"] for line in lines}
    trained = statistics.median(float(row["seconds"]) for row in rows)
    print(f"100 runs by {len(who)} of 16 processes on {os.cpu_count()} cores in {seconds:.0f} s, each once; "
          f"median training {trained:.1f} s")
    for part in ("claim_ms", "heartbeats_ms", "entry_ms"):
        values = sorted(line[part] for line in lines)
        print(f"  {part:<14} median {statistics.median(values):6.1f}   90 % {values[89]:6.1f}   most {values[-1]:6.1f}")
    total = statistics.median(line["claim_ms"] + line["heartbeats_ms"] + line["entry_ms"] for line in lines)
    print(f"  together       median {total:6.1f} ms per run")
    assert total <= 100, "claims, heartbeats and entries cost too much"


def entry(options):
    """Entries beside more and more records of other runs."""
    one = ROOT / "results/runs/large_coeff-1-coarse-infix"
    for records in options.records:
        place = Place(options.polystep, run_steps=1, trial_steps=1, seeds=3, heartbeat=10)
        for number in range(records):
            shutil.copytree(one, place.path / f"many/results/runs/{one.name}-seed{number + 100}")
        place.run(*place.campaign("many"))
        lines = [json.loads(path.read_text()) for path in (place.path / "many/runs").glob("*/claims.jsonl")]
        assert len(lines) == 12
        record = statistics.median(line["entry_ms"] - line["ledgers_ms"] for line in lines)
        ledgers = statistics.median(line["ledgers_ms"] for line in lines)
        claim = statistics.median(line["claim_ms"] for line in lines)
        print(f"{records:6} records: claim {claim:6.1f} ms, record {record:6.1f} ms, ledgers {ledgers:7.1f} ms", flush=True)
        shutil.rmtree(place.path)


def inside():
    """Brings up the network of a test. Slurm looks for an address that is not the loopback's."""
    set_flags, set_address, up = 0x8914, 0x8916, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh14x", b"lo", up))
        fcntl.ioctl(any_socket, set_address, struct.pack("16sHH4s8x", b"lo:1", socket.AF_INET, 0, socket.inet_aton("10.0.0.1")))


def alone(limit):
    """Runs this program again in namespaces of its own. They end with it, and so does everything in them."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="polystep-cluster-") as place:
        os.chmod(place, 0o755)
        words = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv]
        try:
            return subprocess.run(words, env=os.environ | {INSIDE: "1", "TMPDIR": place}, timeout=limit).returncode
        except subprocess.TimeoutExpired:
            print(f"not done after {limit} s: ended", file=sys.stderr)
            return 1


def main():
    tests = {"same": same, "trouble": trouble, "sixteen": sixteen, "entry": entry}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("test", choices=tests)
    parser.add_argument("polystep", help="the program")
    parser.add_argument("--seed", type=int, default=1, help="of the trouble's random moments")
    parser.add_argument("--steps", type=int, default=400, help="of training, in each run and trial; for `trouble` and `sixteen`")
    parser.add_argument("--records", type=int, nargs="+", default=[0, 1000, 4000, 16000], help="for `entry`")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which the test is ended")
    options = parser.parse_args()
    if INSIDE not in os.environ:
        return alone(options.limit)
    inside()
    tests[options.test](options)


if __name__ == "__main__":
    sys.exit(main())
