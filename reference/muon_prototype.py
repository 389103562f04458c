#!/usr/bin/env python3
"""Does Muon pay? AdamW against Muon on the matrices of Transformer-S, on polystep's own data, in PyTorch.

  pip install torch numpy
  python3 reference/muon_prototype.py target/release/polystep --device cuda --out muon        # about an hour of one H200
  python3 reference/muon_prototype.py target/release/polystep --tiny --out target/muon        # a smoke test on a CPU

Every optimiser trains at every learning rate and with every seed for --steps steps: equal steps. Muon then trains as long as AdamW needed
for its steps, on the clock: equal wall time. Both have warm-up and a cosine. Runs that are done are read from OUT.json, so the
command can be repeated. It prints a table with the validation loss and the share of exact steps (every token right under teacher
forcing, which is greedy decoding's verdict), and writes it to OUT.md.

Muon is Keller Jordan's: Nesterov momentum 0.95, five Newton-Schulz iterations, on every two-dimensional weight inside the layers; queries,
keys and values are separate matrices. An update is scaled by 0.2·√(larger side), which gives it AdamW's usual size (arXiv 2502.16982),
so one learning rate serves both. Embeddings, positions, norms and biases stay with AdamW.
"""
import argparse, json, pathlib, re, subprocess, time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

# token.rs, by name.
NAMES = ["<pad>", "<s>", "</s>", "<unk>", *"0123456789", *(f"x{i}" for i in range(1, 9)), *"+*^()[]$#",
         "INT+", "+P", "*F", "MARK", "FAC", "MUL", "SUM", "END", "-", "INT-"]
ID = {name: i for i, name in enumerate(NAMES)}
TOKEN = re.compile("|".join(re.escape(n) for n in sorted(NAMES[4:], key=len, reverse=True)))
PAD, BOS, EOS, VOCABULARY = 0, 1, 2, 64


class Examples:
    """Pairs of an input and a target, flat."""

    def __init__(self, path):
        sides = ([], [])
        with open(path) as lines:
            for line in lines:
                record = json.loads(line)
                for side, key in zip(sides, ("input", "target")):
                    side.append([ID[t] for t in TOKEN.findall(record[key])] + [EOS])
        self.sides = []
        for side in sides:
            lengths = np.array([len(s) for s in side])
            self.sides.append((np.concatenate([np.array(s, np.uint8) for s in side]), np.cumsum(lengths) - lengths, lengths))

    def __len__(self):
        return len(self.sides[0][2])

    def batch(self, rows, device):
        """Source and labels, padded to a multiple of 16."""
        padded = []
        for flat, starts, lengths in self.sides:
            width = -(-int(lengths[rows].max()) // 16) * 16
            at = np.arange(width)[None, :]
            inside = at < lengths[rows][:, None]
            values = np.where(inside, flat[np.minimum(starts[rows][:, None] + at, len(flat) - 1)], PAD)
            padded.append(torch.from_numpy(values.astype(np.int64)).to(device, non_blocking=True))
        return padded


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))

    def forward(self, x, memory, mask=None, causal=False):
        split = lambda y: y.view(y.shape[0], y.shape[1], self.heads, -1).transpose(1, 2)
        q, k, v = split(self.q(x)), split(self.k(memory)), split(self.v(memory))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        return self.o(y.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    def __init__(self, d, heads, cross):
        super().__init__()
        self.own, self.cross = Attention(d, heads), Attention(d, heads) if cross else None
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(3 if cross else 2))

    def forward(self, x, mask, memory=None):
        y = self.norms[0](x)
        x = x + (self.own(y, y, mask) if memory is None else self.own(y, y, causal=True))
        if memory is not None:
            x = x + self.cross(self.norms[1](x), memory, mask)
        return x + self.down(F.gelu(self.up(self.norms[-1](x))))


class Model(nn.Module):
    """mBART as polystep trains it: pre-norm, GELU, normed embeddings, one matrix for both embeddings and the output."""

    def __init__(self, d, heads, layers, positions=512):
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, d)
        self.position = nn.ModuleList(nn.Embedding(positions, d) for _ in range(2))
        self.first, self.last = (nn.ModuleList(nn.LayerNorm(d) for _ in range(2)) for _ in range(2))
        self.encoder = nn.ModuleList(Layer(d, heads, False) for _ in range(layers))
        self.decoder = nn.ModuleList(Layer(d, heads, True) for _ in range(layers))
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def embed(self, ids, side):
        return self.first[side](self.token(ids) + self.position[side].weight[: ids.shape[1]])

    def forward(self, src, tgt):
        mask = (src != PAD)[:, None, None, :]
        x = self.embed(src, 0)
        for layer in self.encoder:
            x = layer(x, mask)
        memory, x = self.last[0](x), self.embed(tgt, 1)
        for layer in self.decoder:
            x = layer(x, mask, memory)
        return self.last[1](x).float() @ self.token.weight.float().T


def orthogonal(g):
    """Five Newton-Schulz iterations towards U·Vᵀ of g = U·S·Vᵀ, for a stack of matrices of one shape."""
    x = g.bfloat16() if g.is_cuda else g
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
    return (x.mT if tall else x).to(g.dtype)


class Muon(torch.optim.Optimizer):
    """Matrices of one shape are updated together."""

    def __init__(self, params, lr, momentum=0.95):
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            shapes = {}
            for p in group["params"]:
                shapes.setdefault(p.shape, []).append(p)
            for (rows, cols), params in shapes.items():
                grads = torch.stack([p.grad for p in params])
                state = self.state[params[0]]
                state.setdefault("momentum", torch.zeros_like(grads)).lerp_(grads, 1 - group["momentum"])
                update = orthogonal(grads.lerp(state["momentum"], group["momentum"]))
                for p, u in zip(params, update):
                    p.add_(u, alpha=-group["lr"] * 0.2 * max(rows, cols) ** 0.5)


def optimisers(model, name, lr, cuda):
    inside = [p for side in (model.encoder, model.decoder) for p in side.parameters() if p.ndim == 2]
    rest = [p for p in model.parameters() if not any(p is q for q in inside)]
    adam = lambda params: torch.optim.AdamW(params, lr=lr, betas=(0.9, 0.98), eps=1e-8, weight_decay=0.0, fused=cuda)
    return [adam(list(model.parameters()))] if name == "AdamW" else [adam(rest), Muon(inside, lr)]


def losses(model, source, labels):
    """Sum of the cross-entropy, number of tokens, and which sequences are exact."""
    tgt = torch.cat([torch.full_like(labels[:, :1], BOS), labels[:, :-1]], 1)
    logits, real = model(source, tgt), labels != PAD
    loss = F.cross_entropy(logits[real], labels[real], reduction="sum")
    exact = ((logits.argmax(-1) == labels) | ~real).all(1)
    return loss, real.sum(), exact


@torch.no_grad()
def validate(model, valid, args, precision):
    loss = tokens = exact = 0
    for first in range(0, len(valid), args.batch):
        with precision():
            l, n, e = losses(model, *valid.batch(np.arange(first, min(first + args.batch, len(valid))), args.device))
        loss, tokens, exact = loss + l.item(), tokens + n.item(), exact + e.sum().item()
    return loss / tokens, exact / len(valid)


def train(args, data, name, lr, seed, seconds=None):
    """Trains for args.steps steps, or for some seconds; returns what a row of the table says."""
    train_set, valid = data
    cuda = args.device == "cuda"
    precision = lambda: torch.autocast("cuda", torch.bfloat16, enabled=cuda)
    torch.manual_seed(seed)
    order = np.random.default_rng(seed)
    model = Model(args.d, args.heads, args.layers).to(args.device)
    both = optimisers(model, name, lr, cuda)
    run = torch.compile(model, dynamic=True) if args.compile else model
    clock, step, rows = 0.0, 0, np.empty(0, np.int64)
    while True:
        began = time.perf_counter()
        done = clock / seconds if seconds else step / args.steps
        if done >= 1:
            break
        warm = min(1.0, (step + 1) / args.warmup)
        for optimiser in both:
            for group in optimiser.param_groups:
                group["lr"] = lr * warm * 0.5 * (1 + np.cos(np.pi * done))
        if len(rows) < args.batch:
            rows = order.permutation(len(train_set))
        chosen, rows = rows[: args.batch], rows[args.batch :]
        with precision():
            loss, tokens, _ = losses(run, *train_set.batch(chosen, args.device))
        (loss / tokens).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimiser in both:
            optimiser.step()
            optimiser.zero_grad()
        if cuda and (seconds or step + 1 == args.steps or step % 50 == 0):
            torch.cuda.synchronize()
        clock, step = clock + time.perf_counter() - began, step + 1
    loss, exact = validate(model, valid, args, precision)
    return {"optimiser": name, "lr": lr, "seed": seed, "steps": step, "seconds": round(clock, 1), "loss": loss, "exact": exact}


def table(rows):
    lines = ["| optimiser | budget | lr | seed | steps | seconds | validation loss | exact steps |", "|---|---|---|---|---|---|---|---|"]
    for r in rows:
        lines.append(f"| {r['optimiser']} | {r['budget']} | {r['lr']:g} | {r['seed']} | {r['steps']} | {r['seconds']:.0f} | "
                     f"{r['loss']:.5f} | {100 * r['exact']:.2f} % |")
    return "\n".join(lines) + "\n"


def generated(args, split, steps):
    path = pathlib.Path(f"{args.out}-{args.config}-{args.vars}-{split}-{steps}.jsonl")
    if not path.exists():
        command = [args.polystep, "generate", "--config", args.config, "--vars", str(args.vars), "--split", split, "--out", str(path)]
        subprocess.run(command + ["--steps", str(steps)], check=True)
    return Examples(path)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("polystep", help="the binary that makes the data")
    p.add_argument("--config", default="no_backtrack")
    p.add_argument("--vars", type=int, default=1)
    p.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    p.add_argument("--examples", type=int, default=4_000_000, help="steps that training draws from")
    p.add_argument("--valid", type=int, default=5_000)
    p.add_argument("--steps", type=int, default=6_000)
    p.add_argument("--warmup", type=int, default=500)
    p.add_argument("--batch", type=int, default=512)
    p.add_argument("--lrs", default="4e-4,8e-4,1.6e-3")
    p.add_argument("--seeds", default="1,2")
    p.add_argument("--compile", action="store_true")
    p.add_argument("--tiny", action="store_true", help="a model and a budget for a CPU, to see that everything runs")
    p.add_argument("--out", default="muon")
    args = p.parse_args()
    args.d, args.heads, args.layers = 256, 4, 4
    if args.tiny:
        args.d, args.layers, args.examples, args.valid, args.steps, args.warmup, args.batch = 64, 1, 2000, 200, 30, 5, 16
        args.lrs, args.config = "1e-3", "small_coeff"
    data = generated(args, "train", args.examples), generated(args, "valid", args.valid)
    out = pathlib.Path(f"{args.out}.json")
    rows = json.loads(out.read_text()) if out.exists() else []

    def once(name, budget, lr, seed, seconds=None):
        key = {"optimiser": name, "budget": budget, "lr": lr, "seed": seed, "asked": args.steps, "batch": args.batch, "config": args.config}
        found = [r for r in rows if key.items() <= r.items()]
        if not found:
            found = [key | train(args, data, name, lr, seed, seconds)]
            rows.extend(found)
            out.write_text(json.dumps(rows, indent=1))
            print(table(found).splitlines()[-1], flush=True)
        return found[0]

    for seed in map(int, args.seeds.split(",")):
        for lr in map(float, args.lrs.split(",")):
            adam = once("AdamW", "steps", lr, seed)
            once("Muon", "steps", lr, seed)
            once("Muon", "seconds of AdamW", lr, seed, adam["seconds"])
    text = table(rows)
    pathlib.Path(f"{args.out}.md").write_text(text)
    print("\n" + text)


if __name__ == "__main__":
    main()
