"""JAX baseline: one training step (forward, backward, Adam) of Transformer-S on random tokens, bf16 matrix products.

  pip install "jax[cuda13]"
  python3 jax_step.py

The whole step is one jitted function. It prints the best of three rounds of 30 steps for the batches 32, 128, 512 and 2048,
with 96 source and 80 target tokens.
"""
import os; os.environ.setdefault('XLA_PYTHON_CLIENT_PREALLOCATE','false')
import jax,jax.numpy as jnp,time,functools,math
S,T,V,D,H,L,Fd=96,80,64,256,4,4,1024
k=jax.random.PRNGKey(0)
def lin(k,i,o): return {'w':jax.random.normal(k,(i,o))*i**-.5,'b':jnp.zeros(o)}
def ln(): return {'g':jnp.ones(D),'b':jnp.zeros(D)}
def att(k): a=jax.random.split(k,4); return {'q':lin(a[0],D,D),'kv':lin(a[1],D,2*D),'o':lin(a[2],D,D)}
def ff(k): a=jax.random.split(k,2); return {'a':lin(a[0],D,Fd),'b':lin(a[1],Fd,D)}
def init(k):
    ks=iter(jax.random.split(k,200)); e=lambda n:jax.random.normal(next(ks),(n,D))*.02
    return {'te':e(V),'td':e(V),'pe':e(S),'pd':e(T),'enc':[{'a':att(next(ks)),'f':ff(next(ks)),'n1':ln(),'n2':ln()} for _ in range(L)],
     'dec':[{'a':att(next(ks)),'c':att(next(ks)),'f':ff(next(ks)),'n1':ln(),'n2':ln(),'n3':ln()} for _ in range(L)],'ne':ln(),'nd':ln(),'out':lin(next(ks),D,V)}
bf=jnp.bfloat16
def L_(p,x): return x.astype(bf)@p['w'].astype(bf)+p['b'].astype(bf)
def N_(p,x): x=x.astype(jnp.float32); m=x.mean(-1,keepdims=True); v=((x-m)**2).mean(-1,keepdims=True); return (x-m)*jax.lax.rsqrt(v+1e-5)*p['g']+p['b']
def A_(p,x,m,mask=None,causal=False):
    B,t,_=x.shape; s=m.shape[1]; q=L_(p['q'],x).reshape(B,t,H,D//H); kv=L_(p['kv'],m).reshape(B,s,2,H,D//H)
    y=jax.nn.dot_product_attention(q,kv[:,:,0],kv[:,:,1],mask=mask,is_causal=causal)
    return L_(p['o'],y.reshape(B,t,D)).astype(jnp.float32)
def F_(p,x): return L_(p['b'],jax.nn.gelu(L_(p['a'],x))).astype(jnp.float32)
def fwd(p,src,tgt):
    mask=(src!=0)[:,None,None,:]; x=p['te'][src]+p['pe'][:src.shape[1]]
    for l in p['enc']: y=N_(l['n1'],x); x=x+A_(l['a'],y,y,mask); x=x+F_(l['f'],N_(l['n2'],x))
    m=N_(p['ne'],x); x=p['td'][tgt]+p['pd'][:tgt.shape[1]]
    for l in p['dec']: y=N_(l['n1'],x); x=x+A_(l['a'],y,y,None,True); x=x+A_(l['c'],N_(l['n2'],x),m,mask); x=x+F_(l['f'],N_(l['n3'],x))
    return L_(p['out'],N_(p['nd'],x)).astype(jnp.float32)
def loss(p,src,tgt):
    lo=jax.nn.log_softmax(fwd(p,src,tgt[:,:-1])); return -jnp.take_along_axis(lo,tgt[:,1:,None],-1).mean()
@functools.partial(jax.jit,donate_argnums=(0,1,2))
def step(p,m,v,t,src,tgt):
    l,g=jax.value_and_grad(loss)(p,src,tgt); t=t+1
    m=jax.tree.map(lambda a,b:.9*a+.1*b,m,g); v=jax.tree.map(lambda a,b:.999*a+.001*b*b,v,g)
    p=jax.tree.map(lambda a,b,c:a-1e-4*(b/(1-.9**t))/(jnp.sqrt(c/(1-.999**t))+1e-8),p,m,v); return p,m,v,t,l
for B in (32,128,512,2048):
    try:
        p=init(k); m=jax.tree.map(jnp.zeros_like,p); v=jax.tree.map(jnp.zeros_like,p); t=jnp.float32(0)
        src=jax.random.randint(k,(B,S),3,60); tgt=jax.random.randint(k,(B,T+1),3,60)
        for _ in range(5): p,m,v,t,l=step(p,m,v,t,src,tgt)
        l.block_until_ready(); best=1e9
        for _ in range(3):
            t0=time.time()
            for _ in range(30): p,m,v,t,l=step(p,m,v,t,src,tgt)
            l.block_until_ready(); best=min(best,(time.time()-t0)/30)
        print(f"jax jit bf16 B={B:4d} {best*1e3:8.3f} ms/step {B/best:10.0f} ex/s loss {float(l):.3f}",flush=True)
    except Exception as e: print('JAX FAIL',B,repr(e)[:300],flush=True)
