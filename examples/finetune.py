"""Fine-tunes a bundled model with transformers, scores it, and reads it back.

    python examples/finetune.py --steps 200

A bundled model is exported as a Hugging Face folder. transformers trains it on a space that it has not learned, `--space`. Its test score
is taken before and after. At the end polystep reads the fine-tuned folder, and gives the same answers as transformers.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import polystep
import torch
from transformers import AutoModelForSeq2SeqLM

PAD, BOS, EOS = polystep.PAD, polystep.BOS, polystep.EOS


def tensors(batch):
    return torch.from_numpy(batch.src).long(), torch.from_numpy(batch.tgt).long()


@torch.no_grad()
def answers(model, src, size=100):
    """Greedy answers as text."""
    texts = []
    for part in src.split(size):
        part = part[:, : int((part != PAD).sum(1).max())]
        out = model.generate(
            part, attention_mask=part != PAD, do_sample=False, num_beams=1, max_new_tokens=200,
            decoder_start_token_id=BOS, forced_bos_token_id=None, forced_eos_token_id=None,
        )
        texts += [polystep.decode(row.tolist()) for row in out]
    return texts


def full_proofs(model, test):
    greedy = polystep.score(test.records(answers(model, tensors(test)[0])))["greedy"]
    proofs, steps = greedy["full_proof"]["exact"], greedy["stepwise"]["exact"]
    return f"full proofs {proofs['percent']:.1f} % of {proofs['of']}, steps {steps['percent']:.1f} % of {steps['of']}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--model", default="large_coeff-1-coarse-infix")
    arguments.add_argument("--space", default="no_backtrack")
    arguments.add_argument("--steps", type=int, default=200)
    arguments.add_argument("--proofs", type=int, default=100, help="proofs of the test set")
    arguments.add_argument("--inputs", type=int, default=1000, help="inputs whose answers are compared at the end")
    arguments.add_argument("--out", type=pathlib.Path, default=None, help="where the fine-tuned folder goes")
    args = arguments.parse_args()
    folder = args.out or pathlib.Path(tempfile.mkdtemp()) / "model"

    bundled = pathlib.Path(polystep.__file__).parent / "models" / args.model
    subprocess.run([sys.executable, "-m", "polystep", "export", str(bundled), "--out", str(folder)], check=True)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder)
    test = polystep.fixed_set(args.space, "test", proofs=args.proofs, padded=True, special_tokens=True)
    print(f"before: {full_proofs(model, test)}", flush=True)

    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    stream = polystep.examples(args.space, batch_size=32, padded=True, special_tokens=True, longest=model.config.max_position_embeddings)
    for step, batch in zip(range(1, args.steps + 1), stream):
        src, tgt = tensors(batch)
        labels = tgt[:, 1:].masked_fill(tgt[:, 1:] == PAD, -100)
        loss = model(input_ids=src, attention_mask=src != PAD, decoder_input_ids=tgt[:, :-1], labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)

    model.eval()
    print(f"after: {full_proofs(model, test)}", flush=True)
    model.save_pretrained(folder)
    src = tensors(polystep.fixed_set(args.space, "beam", padded=True, special_tokens=True))[0][: args.inputs]
    theirs = answers(model, src)
    ours = polystep.Model.load(folder).answer([polystep.decode(row.tolist()) for row in src])
    same = sum(mine.output == text for mine, text in zip(ours, theirs))
    print(f"read back from {folder}: {same} of {len(src)} greedy answers are those of transformers")


if __name__ == "__main__":
    main()
