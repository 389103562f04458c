"""PyTorch baseline: one training step (forward, backward, Adam) of Transformer-S on random tokens.

  pip install torch
  python3 torch_step.py [--device cuda|cpu] [--src 96] [--tgt 80] [--batches 32,128,512] [--modes eager,compile,graph] [--precision bf16|fp32]
                        [--threads N]

`graph` captures the compiled step (forward, backward, Adam) in one CUDA graph: the fastest PyTorch we know how to write.
Model: d 256, 4 heads, 4+4 layers, FFN 1024, GELU, pre-norm, learned positions, padding mask on the source; 7.6M parameters.
"""
import argparse, time, torch, torch.nn as nn, torch.nn.functional as F

class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__(); self.heads = heads
        self.q, self.kv, self.o = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, d)
    def forward(self, x, memory, mask=None, causal=False):
        b, t, d = x.shape; s = memory.shape[1]; h = self.heads
        q = self.q(x).view(b, t, h, d // h).transpose(1, 2)
        k, v = self.kv(memory).view(b, s, 2, h, d // h).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        return self.o(y.transpose(1, 2).reshape(b, t, d))

class FeedForward(nn.Module):
    def __init__(self, d): super().__init__(); self.a, self.b = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
    def forward(self, x): return self.b(F.gelu(self.a(x)))

class EncoderLayer(nn.Module):
    def __init__(self, d, h):
        super().__init__(); self.att, self.ff = Attention(d, h), FeedForward(d); self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
    def forward(self, x, mask):
        y = self.n1(x); x = x + self.att(y, y, mask); return x + self.ff(self.n2(x))

class DecoderLayer(nn.Module):
    def __init__(self, d, h):
        super().__init__(); self.att, self.cross, self.ff = Attention(d, h), Attention(d, h), FeedForward(d)
        self.n1, self.n2, self.n3 = nn.LayerNorm(d), nn.LayerNorm(d), nn.LayerNorm(d)
    def forward(self, x, memory, mask):
        y = self.n1(x); x = x + self.att(y, y, causal=True); x = x + self.cross(self.n2(x), memory, mask); return x + self.ff(self.n3(x))

class Seq2Seq(nn.Module):
    def __init__(self, vocab=64, d=256, heads=4, layers=4, max_len=512):
        super().__init__()
        self.src, self.tgt, self.src_pos, self.tgt_pos = (nn.Embedding(n, d) for n in (vocab, vocab, max_len, max_len))
        self.enc = nn.ModuleList(EncoderLayer(d, heads) for _ in range(layers)); self.dec = nn.ModuleList(DecoderLayer(d, heads) for _ in range(layers))
        self.ne, self.nd, self.out = nn.LayerNorm(d), nn.LayerNorm(d), nn.Linear(d, vocab)
    def forward(self, src, tgt):
        mask = (src != 0)[:, None, None, :]
        x = self.src(src) + self.src_pos.weight[: src.shape[1]]
        for layer in self.enc: x = layer(x, mask)
        memory = self.ne(x); x = self.tgt(tgt) + self.tgt_pos.weight[: tgt.shape[1]]
        for layer in self.dec: x = layer(x, memory, mask)
        return self.out(self.nd(x))

def bench(args, batch, mode):
    dev = args.device; cuda = dev == "cuda"; torch.manual_seed(0)
    if mode != "eager": torch._dynamo.reset()
    model = Seq2Seq().to(dev)
    opt = torch.optim.Adam(model.parameters(), lr=1e-4, fused=cuda, capturable=(mode == "graph"))
    src = torch.randint(3, 60, (batch, args.src), device=dev); tgt = torch.randint(3, 60, (batch, args.tgt + 1), device=dev)
    def loss_fn(src, tgt):
        with torch.autocast(dev, torch.bfloat16, enabled=args.precision == "bf16"):
            logits = model(src, tgt[:, :-1])
        return F.cross_entropy(logits.float().flatten(0, 1), tgt[:, 1:].flatten())
    f = loss_fn if mode == "eager" else torch.compile(loss_fn)
    def step():
        opt.zero_grad(set_to_none=True); loss = f(src, tgt); loss.backward(); opt.step(); return loss
    sync = torch.cuda.synchronize if cuda else (lambda: None)
    run = step
    if mode == "graph":
        side = torch.cuda.Stream(); side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(4): step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph(); opt.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            loss = f(src, tgt); loss.backward(); opt.step()
        def run(): graph.replay(); return loss
    for _ in range(10 if cuda else 2): loss = run()
    sync(); best = 1e9; n = 20 if cuda else 3
    for _ in range(3):
        t = time.time()
        for _ in range(n): loss = run()
        sync(); best = min(best, (time.time() - t) / n)
    print(f"torch {mode:8s} {args.precision} batch {batch:5d}  {best * 1e3:9.3f} ms/step  {batch / best:9.0f} examples/s  loss {loss.item():.3f}", flush=True)

p = argparse.ArgumentParser(); p.add_argument("--device", default="cuda"); p.add_argument("--src", type=int, default=96); p.add_argument("--tgt", type=int, default=80)
p.add_argument("--batches", default="32,128,512"); p.add_argument("--modes", default="eager,graph"); p.add_argument("--precision", default="bf16"); p.add_argument("--threads", type=int, default=0)
args = p.parse_args()
if args.threads: torch.set_num_threads(args.threads)
for mode in args.modes.split(","):
    for batch in map(int, args.batches.split(",")): bench(args, batch, mode)
