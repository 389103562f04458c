"""Trains a Transformer in PyTorch on polynomials that are drawn while it learns.

    python examples/train_transformer.py --steps 2000

Every batch is new, and none of its endpoints occurs in a test set. At the end the model is tested on proofs of the fixed test set.
"""

import argparse
import time

import polystep
import torch
from torch import nn

PAD, BOS, EOS = polystep.PAD, polystep.BOS, polystep.EOS
SPACE, LONGEST = "small_coeff", 96


class Examples(torch.utils.data.IterableDataset):
    """Padded batches. Each worker of a DataLoader takes its share of the stream."""

    def __init__(self, batch_size, rank=0, world=1):
        self.batch_size, self.rank, self.world = batch_size, rank, world

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        rank, world = self.rank, self.world
        if worker is not None:
            rank, world = rank * worker.num_workers + worker.id, world * worker.num_workers
        stream = polystep.examples(
            SPACE, batch_size=self.batch_size, padded=True, special_tokens=True, longest=LONGEST, rank=rank, world=world, threads=1
        )
        for batch in stream:
            yield torch.from_numpy(batch.src), torch.from_numpy(batch.tgt)


class Simplifier(nn.Module):
    """An encoder-decoder Transformer with learned positions."""

    def __init__(self, width=128, heads=4, layers=2):
        super().__init__()
        self.tokens = nn.Embedding(len(polystep.VOCABULARY), width)
        self.places = nn.Embedding(LONGEST + 1, width)
        self.body = nn.Transformer(width, heads, layers, layers, 4 * width, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, len(polystep.VOCABULARY))

    def embed(self, tokens):
        return self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))

    def forward(self, src, tgt):
        later = nn.Transformer.generate_square_subsequent_mask(tgt.shape[1])
        padding = torch.zeros_like(src, dtype=torch.float).masked_fill(src == PAD, float("-inf"))
        out = self.body(
            self.embed(src), self.embed(tgt), tgt_mask=later, src_key_padding_mask=padding, memory_key_padding_mask=padding
        )
        return self.head(out)

    @torch.no_grad()
    def answer(self, src):
        tgt = torch.full((len(src), 1), BOS)
        while tgt.shape[1] < LONGEST and not (tgt == EOS).any(1).all():
            best = self(src, tgt)[:, -1].argmax(-1, keepdim=True)
            tgt = torch.cat([tgt, best], 1)
        return [polystep.decode(row.tolist()) for row in tgt]


def learn(model, optimizer, src, tgt):
    src, tgt = src.long(), tgt.long()
    logits = model(src, tgt[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--steps", type=int, default=2000)
    arguments.add_argument("--batch-size", type=int, default=128)
    arguments.add_argument("--proofs", type=int, default=100, help="proofs of the test set")
    arguments.add_argument("--workers", type=int, default=0, help="of the DataLoader; the stream is fast enough without")
    args = arguments.parse_args()

    torch.manual_seed(1)
    model = Simplifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = torch.utils.data.DataLoader(Examples(args.batch_size), batch_size=None, num_workers=args.workers)
    began = time.monotonic()
    for step, (src, tgt) in zip(range(1, args.steps + 1), loader):
        loss = learn(model, optimizer, src, tgt)
        if step == 1 or step % 100 == 0:
            print(f"step {step}: loss {loss:.3f}, {step * args.batch_size / (time.monotonic() - began):.0f} examples/s", flush=True)

    test = polystep.fixed_set(SPACE, "test", proofs=args.proofs, padded=True, special_tokens=True)
    answers = [a for src in torch.from_numpy(test.src).long().split(500) for a in model.answer(src[:, :LONGEST])]
    greedy = polystep.score(test.records(answers))["greedy"]
    proofs, steps = greedy["full_proof"]["exact"], greedy["stepwise"]["exact"]
    print(f"full proofs {proofs['percent']:.1f} % of {proofs['of']}, steps {steps['percent']:.1f} % of {steps['of']}")


if __name__ == "__main__":
    main()
