"""Counts lines of code as tokei does, without tests: how many are there, and what did the commits since a BASE add, for what purpose?

    cargo install tokei
    python3 reference/lines.py                    # the tree of HEAD, by crate
    python3 reference/lines.py --files            # the same, file by file
    python3 reference/lines.py --since ac823af    # every commit since then, with its purpose from lines_purpose.txt

Counted are *.rs under crates/*/src, and *.cu and *.cuh in crates. Comments, blank lines, test modules and files that only tests
use do not count. A commit counts as the lines of its tree less those of its parent, so code that moves adds nothing, and the sums of
all purposes are the difference between the two trees. A merge counts as what it adds to both sides: its tree less its parents' trees, plus
that of their common ancestor.
"""
import argparse
import collections
import functools
import json
import pathlib
import re
import subprocess
import tempfile

HERE = pathlib.Path(__file__).parent
COUNTED = re.compile(r"crates/[^/]+/(src/.*\.rs|.*\.cuh?)$")
MODULE = r"(?:pub(?:\([a-z]+\))? )?mod (\w+);"
TEST = re.compile(r"^ *#\[cfg\(test\)\]\n(?: *#\[.*\]\n)*( *)(.*)\n", re.M)


def git(*words, text=None):
    command = ["git", "-C", str(HERE), *words]
    return subprocess.run(command, check=True, capture_output=True, input=text, text=True, encoding="utf-8").stdout


@functools.cache
def tree(commit):
    """The blob of every counted file of a commit."""
    rows = (line.split(None, 3) for line in git("ls-tree", "-r", "--full-tree", commit, "crates").splitlines())
    return {path: blob for _, _, blob, path in rows if COUNTED.match(path)}


def without_tests(source):
    """A source without its `#[cfg(test)]` items, and the names of its test modules that are files."""
    modules = []
    while found := TEST.search(source):
        indent, item = found.groups()
        end = found.end()
        if module := re.match(MODULE, item):
            modules.append(module[1])
        elif not item.endswith((";", "}")):
            end = source.index(f"\n{indent}}}\n", end - 1) + len(indent) + 3
        source = source[: found.start()] + source[end:]
    return source, modules


def count_blobs(blobs):
    """Lines of code of each blob, and its test modules. One call of tokei counts all of them."""
    modules = {}
    with tempfile.TemporaryDirectory() as folder:
        for path, blob in blobs:
            source, modules[blob] = without_tests(git("cat-file", "blob", blob))
            # Not every version of tokei knows CUDA's endings.
            pathlib.Path(folder, blob + (".rs" if path.endswith(".rs") else ".cpp")).write_text(source)
        said = subprocess.run(["tokei", "-f", "-o", "json", "."], check=True, capture_output=True, cwd=folder).stdout
    languages = (of for name, of in json.loads(said).items() if name != "Total")
    lines = {pathlib.Path(r["name"]).stem: r["stats"]["code"] for of in languages for r in of["reports"]}
    return {blob: (lines.get(blob, 0), modules[blob]) for _, blob in blobs}


def count(files, counted):
    """Lines of code of each file of a tree."""
    tests = []
    for path, blob in files.items():
        folder = re.sub(r"(/mod|/lib|/main)?\.rs$", "", path)
        tests += [f"{folder}/{module}" for module in counted[blob][1]]
    only_tests = lambda path: any(path == f"{test}.rs" or path.startswith(f"{test}/") for test in tests)
    return {path: counted[blob][0] for path, blob in files.items() if not only_tests(path)}


def purposes():
    """The purpose of each commit, as the text file gives it."""
    rows = (line.split(None, 2) for line in (HERE / "lines_purpose.txt").read_text().splitlines() if line[:1] not in "# ")
    return {row[0]: row[1] for row in rows if row}


def since(base):
    log = git("log", "--reverse", "--topo-order", "--abbrev=7", "--format=%h|%p|%s", f"{base}..HEAD").splitlines()
    commits = [(commit, parents.split(), subject) for commit, parents, subject in (line.split("|", 2) for line in log)]
    forks = {commit: git("merge-base", *parents).strip()[:7] for commit, parents, _ in commits if len(parents) == 2}
    trees = {c for commit, parents, _ in commits for c in [commit, *parents]} | set(forks.values())
    counted = count_blobs({(path, blob) for commit in trees for path, blob in tree(commit).items()})
    total = {commit: sum(count(tree(commit), counted).values()) for commit in trees}
    known, sums = purposes(), collections.Counter()
    for commit, parents, subject in commits:
        net = total[commit] - sum(total[parent] for parent in parents) + (total[forks[commit]] if commit in forks else 0)
        purpose = known.get(commit, "house" if commit in forks else "later")
        sums[purpose] += net
        if net:
            print(f"{commit} {purpose:8} {net:+6} {subject[:100]}")
    before, now = total[commits[0][1][0]], total[commits[-1][0]]
    assert before + sum(sums.values()) == now, "the purposes do not add up to the difference"
    print(f"\n{base}: {before} lines; HEAD: {now}. By purpose:")
    for purpose, net in sums.most_common():
        if net:
            print(f"  {purpose:8} {net:+6}")
    old = before + sums["house"]
    print(f"what {base} had is now {old} lines: {100 * (old - before) / before:+.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", action="store_true", help="file by file")
    parser.add_argument("--since", metavar="BASE", help="commit by commit since BASE")
    parser.add_argument("commit", nargs="?", default="HEAD", help="which tree to count [default: HEAD]")
    args = parser.parse_args()
    if args.since:
        return since(args.since)
    files, sums = tree(args.commit), collections.Counter()
    for path, lines in count(files, count_blobs(set(files.items()))).items():
        sums[path if args.files else path.split("/")[1]] += lines
    for name, lines in sums.items():
        print(f"{lines:6} {name}")
    print(f"{sum(sums.values()):6} in all")


if __name__ == "__main__":
    main()
