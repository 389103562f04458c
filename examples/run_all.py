"""Runs the examples that need PyTorch, transformers or Jupyter, and prints what examples/RECORDED.md holds.

    pip install . torch transformers nbclient ipykernel
    python examples/run_all.py
"""

import pathlib
import platform
import subprocess
import sys

import polystep

HERE = pathlib.Path(__file__).parent

COMMANDS = [
    ["speed.py"],
    ["train_transformer.py", "--steps", "600"],
    ["finetune.py", "--steps", "100", "--proofs", "50"],
    ["reward.py", "--rounds", "10"],
]


def notebook():
    """Runs every cell in a Jupyter kernel, and saves the outputs."""
    import nbclient
    import nbformat

    path = HERE / "tour.ipynb"
    document = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(document, timeout=300).execute()
    for cell in document.cells:
        cell.metadata.pop("execution", None)
    nbformat.write(document, path)
    print(f"\n## tour.ipynb\n\n{sum(cell.cell_type == 'code' for cell in document.cells)} cells ran in a Jupyter kernel")


def main():
    import torch
    import transformers

    versions = f"polystep {polystep.__version__}, PyTorch {torch.__version__}, transformers {transformers.__version__}"
    print(f"# The examples, run\n\n{versions}, Python {platform.python_version()}, {torch.get_num_threads()} threads")
    for script, *arguments in COMMANDS:
        print(f"\n## {' '.join([script, *arguments])}\n\n```text", flush=True)
        done = subprocess.run([sys.executable, HERE / script, *arguments], stdout=subprocess.PIPE, text=True, check=True)
        print(done.stdout.strip(), "```", sep="\n", flush=True)
    notebook()


if __name__ == "__main__":
    main()
