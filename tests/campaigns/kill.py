#!/usr/bin/env python3
"""Commands are killed at random moments, continued, and compared with unbroken runs: nothing may be lost or damaged.

A case is a command that writes files. It is run once without trouble. Then, again and again, it is started anew and gets SIGKILL, SIGTERM,
SIGINT or SIGHUP at a random moment of its life, up to three times in a row, and is given again until it ends by itself. After that,

- its files must be those of the unbroken run, byte for byte, but for seconds (and TensorBoard's files, which carry the time in their names);
- no temporary file of a killed process may be left;
- after each signal but SIGKILL the exit code must be 130, or 0 if the work was done (`serve`: 0). Death by the signal itself is right only
  before anything was written;
- where a file must be whole or not there, it is compared after every kill, too.

    python3 tests/campaigns/kill.py --minutes 30 --seed 1
    python3 tests/campaigns/kill.py --minutes 5 --wheel target/wheel-env/bin/polystep      # and the program of the Python package
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import campaign

ALONE = ["--device", "cpu", "--threads", "1"]
TINY = """
data.config = "small_coeff"
model = { d = 64, layers = 1, heads = 4, ffn = 64, max_positions = 256, dropout = 0.1 }
train = { batch = 4, steps = 60, select = "best", valid_every = 80, valid_proofs = 5, log_every = 5, checkpoint_steps = 5 }
"""
SWEEP = """
data.config = "small_coeff"
model = { d = 64, layers = 1, heads = 4, ffn = 64 }
train = { batch = 4, warmup = 0, schedule = "constant", steps = 24, valid_every = 32, valid_proofs = 5, log_every = 4, checkpoint_steps = 4 }
grid = { "train.lr" = [1e-3, 2e-3, 1e-12] }
sweep.grace = 0.3
"""
PLAN = """
table = { name = "var1coarsefull", order = 1 }
fast.model = { d = 64, layers = 1, heads = 4, ffn = 64, max_positions = 256 }
fast.train = { batch = 4, steps = 20, valid_every = 0, valid_proofs = 2, checkpoint_steps = 5 }
evaluation.proofs = 2
cost = { seconds_per_run = 1, seconds_per_endpoint_run = 1, seconds_per_paper_run = 1, seconds_per_evaluation = 1 }
expected.paper = [72.7, 98.9]
"""
# Signals by how often they are sent.
SIGNALS = [signal.SIGKILL] * 5 + [signal.SIGTERM] * 2 + [signal.SIGINT] * 2 + [signal.SIGHUP]


class Case:
    """A command, what it writes, and how it is given again."""

    def __init__(self, name, first, again=None, writes=(), needs=(), whole=False, texts=None):
        self.name, self.first, self.again = name, first, again or (lambda _: first)
        self.writes, self.needs, self.whole, self.texts = writes, needs, whole, texts or {}

    def prepare(self, place, ready):
        """A folder as the command finds it."""
        for name, text in self.texts.items():
            (place / name).write_text(text)
        for name in self.needs:
            source = ready / name
            shutil.copytree(source, place / name) if source.is_dir() else shutil.copy(source, place / name)

    def output(self, place):
        """Everything that it writes."""
        found = {}
        for name in self.writes:
            path = place / name
            if path.is_dir():
                found.update({"%s/%s" % (name, k): v for k, v in campaign.files(path).items()})
            elif path.exists():
                found[name] = campaign.without_clocks(name, path.read_bytes())
        return found


def resumed(*options):
    """A training that has a folder is resumed; one that has none begins."""
    first = ["train", "tiny.toml", "--out", "run", *options, *ALONE]
    again = ["train", "--resume", "--out", "run", *ALONE]
    # A folder without a config.toml holds no run yet.
    return first, lambda place: again if (place / "run/config.toml").exists() else first


def cases():
    run = ["run"]
    for name, text, options in [
        ("train", TINY, []),
        ("train, two threads", TINY.replace("steps = 60", "steps = 50"), ["--threads", "2"]),
        ("train, curriculum", TINY, ["--curriculum", "C2"]),
        ("train --data", TINY, ["--data", "proofs.jsonl"]),
    ]:
        first, again = resumed(*options)
        if "--threads" in options:
            first = first[:-2]
        needs = ["proofs.jsonl"] if "--data" in options else []
        yield Case(name, first, again, run, needs, texts={"tiny.toml": text})
    yield Case("sweep", ["sweep", "sweep.toml", "--out", "trials", *ALONE], None, ["trials"], texts={"sweep.toml": SWEEP})
    generate = ["generate", "--config", "small_coeff", "--threads", "1", "--proofs"]
    yield Case("generate", [*generate, "8000", "--out", "out.jsonl"], None, ["out.jsonl"], whole=True)
    yield Case("generate, Parquet", [*generate, "6000", "--format", "parquet", "--shard-rows", "8000", "--out", "out"], None, ["out"], whole=True)
    yield Case("eval", ["eval", "run", "--proofs", "60", "--beam", "2", *ALONE], None, run, run)
    yield Case("reproduce", ["reproduce", "--table", "var1coarsefull", "--rows", "1", "--plan", "plan.toml", *ALONE], None,
               ["runs", "results"], texts={"plan.toml": PLAN})
    yield Case("export", ["export", "run", "--out", "out"], None, ["out"], run, whole=True)
    yield Case("export --compact", ["export", "run", "--compact", "--out", "out"], None, ["out"], run, whole=True)
    yield Case("report", ["report", "run", "--out", "page.html"], None, ["page.html", "page.md", "page.tex"], run)
    yield Case("answer", ["answer", "run", "asked.jsonl", "--out", "answers.jsonl", *ALONE], None, ["answers.jsonl"],
               ["run", "asked.jsonl"], whole=True)


class Campaign:
    def __init__(self, args, ready):
        self.args, self.ready, self.counts = args, ready, campaign.Counts(["kills", "signals", "resumed"])
        self.environment = dict(os.environ, POLYSTEP_MODELS="none")

    def start(self, program, command, place):
        return subprocess.Popen([program, *command], cwd=place, env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

    def unbroken(self, program, command, place, what):
        began = time.monotonic()
        result = campaign.run([program, *command], cwd=place, env=self.environment)
        if result.returncode != 0:
            self.counts.fail(what, "%s: exit code %s: %s" % (" ".join(command), result.returncode, campaign.last_line(result.stderr)))
        return time.monotonic() - began

    def run_case(self, case, program):
        """One unbroken run, then interrupted ones for ever: yields after each."""
        with campaign.folder() as first:
            place = pathlib.Path(first)
            case.prepare(place, self.ready)
            took = self.unbroken(program, case.first, place, case.name)
            wanted = case.output(place)
        while True:
            with campaign.folder() as other:
                self.broken(case, program, pathlib.Path(other), took, wanted)
            yield

    def broken(self, case, program, place, took, wanted):
        """A run that is interrupted one to three times, and then finished."""
        rng = self.args.random
        case.prepare(place, self.ready)
        untouched = case.output(place)
        self.counts.add(case.name)
        command, told = case.first, []
        for _ in range(rng.randint(1, 3)):
            process, sent = self.start(program, command, place), rng.choice(SIGNALS)
            moment = rng.uniform(0, 1.1 * took)
            try:
                process.wait(moment)
            except subprocess.TimeoutExpired:
                process.send_signal(sent)
                self.counts.add(case.name, 0, **{"kills" if sent == signal.SIGKILL else "signals": 1})
            told.append("%s at %.2f s" % (signal.Signals(sent).name, moment))
            try:
                _, said = process.communicate(timeout=campaign.HANG)
            except subprocess.TimeoutExpired:
                process.kill()
                _, said = process.communicate()
                return self.counts.fail(case.name, "%s: it did not end" % ", ".join(told))
            self.end_group(process)
            code, found = process.returncode, case.output(place)
            died = code == -sent and (sent == signal.SIGKILL or found == untouched)
            if code not in (0, 130) and not died:
                return self.counts.fail(case.name, "%s: exit code %s: %s" % (", ".join(told), code, campaign.last_line(said)))
            if case.whole and found not in (untouched, wanted):
                return self.counts.fail(case.name, "%s: a half output: %s" % (", ".join(told), campaign.difference(found, wanted)))
            command = case.again(place)
            if code == 0 or (case.whole and found == wanted):
                break
            self.counts.add(case.name, 0, resumed=1)
        if case.output(place) != wanted:
            self.unbroken(program, command, place, case.name)
        wrong = campaign.difference(case.output(place), wanted)
        left = [p.name for p in place.rglob("*") if ".tmp" in p.name]
        if wrong or left:
            self.counts.fail(case.name, "%s: %s" % (", ".join(told), wrong or "left behind: %s" % left))

    def end_group(self, process):
        """The children of a killed command end by themselves when their standard input closes. They get a moment for it."""
        for _ in range(400):
            try:
                os.killpg(process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.025)
        os.killpg(process.pid, signal.SIGKILL)
        self.counts.fail("children", "a child outlived its command by ten seconds")

    def run_server(self, program):
        """A server that is asked for proofs while it gets its signal. SIGKILL cuts the answer; any other signal lets it finish, with exit code 0."""
        environment = {k: v for k, v in self.environment.items() if k != "POLYSTEP_MODELS"}
        while True:
            rng, name = self.args.random, "serve"
            sent = rng.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
            process = subprocess.Popen([program, "serve", "--port", "0", "--threads", "1", "--runs", str(self.ready)], cwd=campaign.ROOT,
                                       env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            address = next((word for line in process.stdout for word in line.split() if word.startswith("http://")), None)
            self.counts.add(name)
            if address is None:
                self.counts.fail(name, "it did not start: exit code %s" % process.wait())
                yield
                continue
            client = subprocess.Popen(["curl", "-s", "-m", "60", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Content-Type: application/json",
                                       "-d", json.dumps({"expr": "(x+1)(x+2)(x+3)+(x+4)(2x+1)"}), address.rstrip("/") + "/api/prove"],
                                      stdout=subprocess.PIPE, text=True)
            time.sleep(rng.uniform(0, 0.4))
            process.send_signal(sent)
            self.counts.add(name, 0, **{"kills" if sent == signal.SIGKILL else "signals": 1})
            try:
                process.communicate(timeout=campaign.HANG)
                answer, _ = client.communicate(timeout=campaign.HANG)
            except subprocess.TimeoutExpired:
                process.kill()
                client.kill()
                self.counts.fail(name, "it did not end after %s" % signal.Signals(sent).name)
                yield
                continue
            if sent == signal.SIGKILL:
                # 000: the connection was refused or cut. 200: the answer was there before.
                if answer not in ("000", "200"):
                    self.counts.fail(name, "SIGKILL: the client was answered %s" % answer)
            elif process.returncode != 0:
                self.counts.fail(name, "%s: exit code %s" % (signal.Signals(sent).name, process.returncode))
            elif answer not in ("000", "200"):
                self.counts.fail(name, "%s: the client was answered %s" % (signal.Signals(sent).name, answer))
            yield


def prepare(polystep, ready):
    """A trained run, proofs and questions: what the cases need."""
    (ready / "tiny.toml").write_text(TINY)
    for command in (["generate", "--config", "small_coeff", "--proofs", "400", "--out", "proofs.jsonl"],
                    ["generate", "--config", "small_coeff", "--split", "test", "--steps", "120", "--out", "asked.jsonl"],
                    ["train", "tiny.toml", "--out", "run", *ALONE]):
        done = campaign.run([polystep, *command], cwd=ready)
        if done.returncode != 0:
            raise SystemExit("%s: %s" % (" ".join(command), campaign.last_line(done.stderr)))


def main():
    args = campaign.arguments(__doc__, wheel={"metavar": "PROGRAM", "help": "the polystep of an environment in which the wheel is installed"},
                              only={"metavar": "NAME", "help": "only the cases whose name begins so"})
    with campaign.folder() as place:
        ready = pathlib.Path(place)
        prepare(args.polystep, ready)
        this = Campaign(args, ready)
        running = [this.run_case(case, args.polystep) for case in cases() if case.name.startswith(args.only or "")]
        if "serve".startswith(args.only or "") and shutil.which("curl"):
            running.append(this.run_server(args.polystep))
        if args.wheel:
            for case in cases():
                if case.name in ("train", "generate", "export"):
                    case.name = "wheel: " + case.name
                    running.append(this.run_case(case, os.path.abspath(args.wheel)))
        # Every case gets the same time, so short commands are killed more often than long ones.
        args.random.shuffle(running)
        spent = [0.0] * len(running)
        campaign.begin(args)
        while time.monotonic() < args.end:
            least, began = spent.index(min(spent)), time.monotonic()
            next(running[least])
            spent[least] += time.monotonic() - began
        this.counts.finish("kill", args)


if __name__ == "__main__":
    main()
