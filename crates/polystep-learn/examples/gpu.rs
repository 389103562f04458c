//! Checks and times the CUDA device with whole models: `gpu ops|model|repeat|time|real|profile …`, all of them by default.
//!
//! `polystep doctor` and `polystep bench train` are for people; this is for whoever changes a kernel.

use std::time::Instant;

use polystep_engine::cpu::Cpu;
use polystep_engine::cuda::Cuda;
use polystep_engine::{Adam, Batch, Executor, Inspect, Limits, NormOrder, Program, Scalars, optest};
use polystep_learn::config::RunConfig;
use polystep_learn::feed::{BatchQueue, Counts, Feed, Position};
use polystep_learn::model::{ModelConfig, ParamLayout, Size, initial_params, training_program};
use polystep_learn::train::RunSetup;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn word(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) as usize
}

/// Random tokens; `fixed` lengths, or ragged ones of mean 44 and 38.
fn batch(sequences: usize, fixed: Option<(usize, usize)>, seed: u64) -> Batch {
    let mut state = seed.wrapping_mul(77).wrapping_add(5);
    let mut batch = Batch::default();
    batch.clear();
    for _ in 0..sequences {
        let (s, t) = fixed.unwrap_or_else(|| (20 + word(&mut state) % 49, 16 + word(&mut state) % 45));
        let ids: Vec<i32> = (0..s).map(|_| 3 + (word(&mut state) % 57) as i32).collect();
        batch.src.push(ids);
        let ids: Vec<i32> = (0..t).map(|_| 3 + (word(&mut state) % 57) as i32).collect();
        batch.labels.extend(&ids);
        batch.tgt.push(ids);
    }
    batch
}

fn limits(batches: &[Batch]) -> Limits {
    let most = |f: fn(&Batch) -> usize| batches.iter().map(f).max().unwrap_or(0);
    Limits {
        sequences: most(|b| b.src.sequences()),
        src_tokens: most(|b| b.src.tokens()),
        tgt_tokens: most(|b| b.tgt.tokens()),
    }
}

const ADAM: Adam = Adam { beta1: 0.9, beta2: 0.98, weight_decay: 0.0, clip: 1.0, ema: 0.0 };

fn scalars(step: u64) -> Scalars {
    Scalars { lr: 3e-4, eps: 1e-8, step, seed: step * 17 }
}

fn trainer(config: &ModelConfig, adam: bool) -> (Program, Vec<f32>) {
    let layout = ParamLayout::new(config);
    (training_program(config, &layout, adam.then_some(ADAM)).program, initial_params(config, &layout, 1))
}

fn ops() -> Outcome {
    let (mut bad, mut count, mut worst_all) = (0, 0, 0f32);
    for case in optest::cases().into_iter().chain(optest::LARGE_ROWS.into_iter().flat_map(optest::large_cases)) {
        let want = optest::run_on(&case, |p, l| Cpu::new(p, l, 0))?;
        let got = match optest::run_on(&case, Cuda::new) {
            Ok(got) => got,
            Err(error) => {
                println!("FAILED {}: {error}", case.name);
                bad += 1;
                continue;
            }
        };
        let mut worst = (0f32, String::new());
        for ((name, want), (_, got)) in want.iter().zip(&got) {
            let d = optest::distance(want, got);
            if d > worst.0 {
                worst = (d, name.clone());
            }
            if d > 0.02 {
                let at = (0..want.len().min(got.len())).find(|&i| (want[i] - got[i]).abs() > 0.1).unwrap_or(0);
                let show = |v: &[f32]| v.get(at..(at + 4).min(v.len())).map(<[f32]>::to_vec);
                println!("WRONG {}: {name}: {d} at {at}: {:?} {:?}", case.name, show(want), show(got));
            }
        }
        count += 1;
        bad += usize::from(worst.0 > 0.02);
        worst_all = worst_all.max(worst.0);
    }
    println!("ops: {count} cases, {bad} bad, worst {worst_all}");
    if bad > 0 { Err("ops differ".into()) } else { Ok(()) }
}

/// Losses and gradients, CPU against CUDA; `short` is for compute-sanitizer.
fn model(args: &[String]) -> Outcome {
    let (layers, sequences) = if args.iter().any(|a| a == "short") { (1, 4) } else { (4, 8) };
    for (norm, dropout) in [(NormOrder::Pre, 0.0), (NormOrder::Post, 0.1)] {
        let config = ModelConfig { norm, dropout, layers, ..ModelConfig::of_size(Size::S) };
        let (program, params) = trainer(&config, false);
        let b = batch(sequences, None, 3);
        let limits = limits(std::slice::from_ref(&b));
        let mut all = Vec::new();
        let cpu: Box<dyn Inspect> = Box::new(Cpu::new(vec![program.clone()], limits, 0)?);
        let gpu: Box<dyn Inspect> = Box::new(Cuda::new(vec![program.clone()], limits)?);
        for mut executor in [cpu, gpu] {
            executor.set_params(&params)?;
            executor.run(0, &b, &scalars(1))?;
            all.push((executor.results()?, executor.grads()?));
        }
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
        let (a, b) = (&all[0].1, &all[1].1);
        let diff: Vec<f32> = a.iter().zip(b).map(|(x, y)| x - y).collect();
        let relative = (dot(&diff, &diff) / dot(a, a)).sqrt();
        println!("model {norm:?}: losses {} {}; gradients differ by {relative:.4}", all[0].0[0].loss, all[1].0[0].loss);
        let layout = ParamLayout::new(&config);
        for named in layout.names() {
            let range = named.offset..named.offset + named.len();
            let (x, d) = (&a[range.clone()], &diff[range]);
            let far = (dot(d, d) / dot(x, x).max(1e-20)).sqrt();
            if far.is_nan() || far > 0.05 {
                println!("  {} differs by {far:.4} (norm {:.2e})", named.name, dot(x, x).sqrt());
            }
        }
    }
    Ok(())
}

fn losses(config: &ModelConfig, batches: &[Batch], steps: usize) -> Result<Vec<u32>, Box<dyn std::error::Error>> {
    let (program, params) = trainer(config, true);
    let mut gpu = Cuda::new(vec![program], limits(batches))?;
    gpu.set_params(&params)?;
    for step in 0..steps {
        gpu.run(0, &batches[step % batches.len()], &scalars(step as u64 + 1))?;
    }
    Ok(gpu.results()?.iter().flat_map(|r| [r.loss.to_bits(), r.grad_norm.to_bits()]).collect())
}

fn repeat() -> Outcome {
    let config = ModelConfig { dropout: 0.1, ..ModelConfig::of_size(Size::S) };
    let batches: Vec<Batch> = (0..7).map(|i| batch(32, None, i)).collect();
    let (a, b) = (losses(&config, &batches, 200)?, losses(&config, &batches, 200)?);
    println!("repeat: 200 steps twice: equal bit for bit: {}; last loss {}", a == b, f32::from_bits(a[398]));
    if a == b { Ok(()) } else { Err("two runs differ".into()) }
}

fn time(args: &[String]) -> Outcome {
    let sizes: Vec<usize> = args.iter().filter_map(|a| a.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![32, 128, 256, 512] } else { sizes };
    let config = ModelConfig::of_size(Size::S);
    for fixed in [Some((96, 80)), None] {
        if fixed.is_some() && args.iter().any(|a| a == "ragged") {
            continue;
        }
        for &size in &sizes {
            let batches: Vec<Batch> = (0..8).map(|i| batch(size, fixed, i)).collect();
            let (program, params) = trainer(&config, true);
            let flops = program
                .flops(&batches[0].src.lengths().collect::<Vec<_>>(), &batches[0].tgt.lengths().collect::<Vec<_>>());
            let mut gpu = Cuda::new(vec![program], limits(&batches))?;
            gpu.set_params(&params)?;
            let begin = Instant::now();
            for (i, b) in batches.iter().enumerate() {
                gpu.run(0, b, &scalars(i as u64 + 1))?;
            }
            gpu.results()?;
            let cold = begin.elapsed().as_secs_f64();
            let steps = if size > 256 { 60 } else { 120 };
            let mut best = f64::INFINITY;
            for _ in 0..3 {
                let begin = Instant::now();
                for i in 0..steps {
                    gpu.run(0, &batches[i % 8], &scalars(i as u64 + 9))?;
                }
                let queued = begin.elapsed().as_secs_f64() / steps as f64;
                gpu.results()?;
                let each = begin.elapsed().as_secs_f64() / steps as f64;
                if each < best {
                    best = each;
                }
                let _ = queued;
            }
            let what = if fixed.is_some() { "96/80" } else { "ragged" };
            println!(
                "time {what:6} batch {size:4}: {:8.3} ms/step {:9.0} examples/s {:6.1} TFLOP/s (cold {cold:.2} s)",
                best * 1e3,
                size as f64 / best,
                flops / best / 1e12
            );
        }
    }
    Ok(())
}

/// Real data, made while training, at the paper's batch size: what `polystep bench train` measures. The first line holds the
/// captures of most graphs.
fn real(args: &[String]) -> Outcome {
    let size = args.iter().find_map(|a| a.parse::<usize>().ok()).unwrap_or(32);
    let overrides = [("train.recipe", "\"fast\""), ("data.config", "\"large_coeff\""), ("data.vars", "1")];
    let mut overrides: Vec<(String, String)> = overrides.map(|(k, v)| (k.into(), v.into())).to_vec();
    overrides.push(("train.batch".into(), size.to_string()));
    let setup = RunSetup::new(RunConfig::from_toml("", &overrides)?)?;
    let mut feed = BatchQueue::start(setup.source.as_ref(), setup.limits, Position::default(), Counts::default(), 8)?;
    let mut gpu = Cuda::new(setup.programs().into_iter().take(1).collect(), setup.limits)?;
    gpu.set_params(&initial_params(&setup.model, &setup.layout, 1))?;
    let mut step = 0;
    for seconds in [2.0, 1.5, 1.5, 1.5] {
        let (begin, first) = (Instant::now(), step);
        while begin.elapsed().as_secs_f64() < seconds {
            for _ in 0..50 {
                step += 1;
                gpu.run(0, feed.next()?, &scalars(step))?;
            }
        }
        gpu.results()?;
        let each = begin.elapsed().as_secs_f64() / (step - first) as f64;
        println!("time real   batch {size:4}: {:8.3} ms/step {:9.0} examples/s", each * 1e3, size as f64 / each);
    }
    Ok(())
}

fn profile(args: &[String]) -> Outcome {
    let sizes: Vec<usize> = args.iter().filter_map(|a| a.parse().ok()).collect();
    let config = ModelConfig::of_size(Size::S);
    for size in if sizes.is_empty() { vec![32, 256] } else { sizes } {
        let ragged = args.iter().any(|a| a == "ragged");
        let b = batch(size, (!ragged).then_some((96, 80)), 1);
        let (program, params) = trainer(&config, true);
        let mut gpu = Cuda::new(vec![program], limits(std::slice::from_ref(&b)))?;
        gpu.set_params(&params)?;
        let costs = gpu.profile(0, &b, &scalars(1))?;
        let total: f64 = costs.iter().map(|c| c.microseconds).sum();
        println!("profile batch {size}: {total:.1} µs one after the other");
        for c in costs {
            println!(
                "  {:9.1} µs {:4} × {:7.2}  {}",
                c.microseconds,
                c.count,
                c.microseconds / c.count as f64,
                c.label
            );
        }
    }
    Ok(())
}

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let info = Cuda::available()?;
    println!("{} sm_{}{}, {}, {:?}", info.device, info.capability.0, info.capability.1, info.driver, info.libraries);
    let wanted = |name: &str| args.is_empty() || args.iter().any(|a| a == name);
    let mut failed = Vec::new();
    let mut part = |name: &str, outcome: Outcome| {
        if let Err(error) = outcome {
            println!("{name}: {error}");
            failed.push(name.to_string());
        }
    };
    if wanted("ops") {
        part("ops", ops());
    }
    if wanted("model") {
        part("model", model(&args));
    }
    if wanted("repeat") {
        part("repeat", repeat());
    }
    if wanted("time") {
        part("time", time(&args));
    }
    if wanted("real") {
        part("real", real(&args));
    }
    if wanted("profile") {
        part("profile", profile(&args));
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join(", ").into()) }
}
