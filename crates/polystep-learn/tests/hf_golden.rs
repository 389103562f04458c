//! The model against Hugging Face: logits, loss, every gradient and twenty steps of Adam of BART and mBART, computed by
//! `reference/hf_golden.py` with PyTorch, reproduced by our CPU device to |a − b| ≤ 1e-4·(1 + |b|).

use polystep_engine::cpu::Cpu;
use polystep_engine::{Activation, Adam, Batch, Executor, Inspect, Limits, NormOrder, Scalars};
use polystep_learn::model::{ModelConfig, NamedParam, ParamLayout, Size, evaluation_program, training_program};
use safetensors::SafeTensors;

const SOURCES: [&[i32]; 3] = [&[4, 17, 30, 9, 22, 2], &[5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 2], &[63, 2]];
const TARGETS: [&[i32]; 3] = [&[7, 8, 9, 2], &[20, 21, 22, 23, 24, 25, 2], &[40, 41, 42, 43, 2]];

fn config(norm: NormOrder, [encoder, decoder]: [usize; 2]) -> ModelConfig {
    ModelConfig {
        d: 64,
        layers: 2,
        encoder_layers: Some(encoder),
        decoder_layers: Some(decoder),
        heads: 4,
        ffn: 64,
        norm,
        activation: if norm == NormOrder::Pre { Activation::Gelu } else { Activation::Relu },
        dropout: 0.0,
        size: Size::S,
        max_positions: 24,
        scale_embedding: false,
        init_std: 0.02,
    }
}

/// CRC-32 (IEEE), bit by bit: a test needs no table.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &b| {
        (0..8).fold(crc ^ u32::from(b), |c, _| if c & 1 == 1 { (c >> 1) ^ 0xEDB8_8320 } else { c >> 1 })
    })
}

fn fill(name: &str, n: usize) -> Vec<f32> {
    let shift = if name.contains("norm") && name.ends_with(".weight") { 1.0 } else { 0.0 };
    (0..n as u64)
        .map(|i| {
            let mut z = (u64::from(crc32(name.as_bytes())) << 32).wrapping_add(i).wrapping_add(0x9E37_79B9_7F4A_7C15);
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^= z >> 31;
            (((z >> 40) as f64 / f64::from(1 << 24) - 0.5) * 0.4 + shift) as f32
        })
        .collect()
}

fn batch() -> Batch {
    let mut batch = Batch::default();
    batch.clear();
    for (src, tgt) in SOURCES.iter().zip(TARGETS) {
        batch.src.push(src.iter().copied());
        batch.tgt.push(std::iter::once(1).chain(tgt[..tgt.len() - 1].iter().copied()));
        batch.labels.extend(tgt);
    }
    batch
}

fn numbers(golden: &SafeTensors, name: &str) -> Vec<f32> {
    let tensor = golden.tensor(name).unwrap_or_else(|e| panic!("{name}: {e}"));
    tensor.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

fn close(what: &str, ours: &[f32], golden: &[f32]) {
    assert_eq!(ours.len(), golden.len(), "{what}");
    for (i, (a, b)) in ours.iter().zip(golden).enumerate() {
        assert!((a - b).abs() <= 1e-4 * (1.0 + b.abs()), "{what}[{i}]: ours {a}, Hugging Face {b}");
    }
}

fn reproduces(norm: NormOrder, layers: [usize; 2], file: &[u8]) {
    let golden = SafeTensors::deserialize(file).unwrap();
    let config = config(norm, layers);
    let layout = ParamLayout::new(&config);
    let adam = Adam { beta1: 0.9, beta2: 0.98, weight_decay: 0.0, clip: 1.0, ema: 0.0 };
    let evaluation = evaluation_program(&config, &layout);
    let programs = vec![
        evaluation.program,
        training_program(&config, &layout, None).program,
        training_program(&config, &layout, Some(adam)).program,
    ];
    let limits = Limits { sequences: 3, src_tokens: 64, tgt_tokens: 64 };
    let mut cpu = Cpu::new(programs, limits, 2).unwrap();
    let mut flat = vec![0.0; layout.len()];
    for p in layout.names() {
        flat[p.offset..][..p.len()].copy_from_slice(&fill(&p.name, p.len()));
    }
    cpu.set_params(&flat).unwrap();
    let batch = batch();
    let scalars = |step| Scalars { lr: 1e-3, eps: 1e-8, step, seed: 0 };

    cpu.run(0, &batch, &scalars(1)).unwrap();
    close("logits", &cpu.read(0, evaluation.logits).unwrap(), &numbers(&golden, "logits"));
    cpu.run(1, &batch, &scalars(1)).unwrap();
    let losses: Vec<f32> = cpu.results().unwrap().iter().map(|r| r.loss).collect();
    let loss = numbers(&golden, "loss")[0];
    close("loss", &losses, &[loss, loss]);
    let grads = cpu.grads().unwrap();
    let stored = |p: &&NamedParam| golden.tensor(&format!("grad.{}", p.name)).is_ok();
    let named: Vec<&NamedParam> = layout.names().iter().filter(stored).collect();
    assert_eq!(named.len(), if layers == [2, 2] { layout.names().len() } else { 0 });
    for p in named {
        close(&p.name, &grads[p.offset..][..p.len()], &numbers(&golden, &format!("grad.{}", p.name)));
    }
    for step in 1..=20 {
        cpu.run(2, &batch, &scalars(step)).unwrap();
    }
    let losses: Vec<f32> = cpu.results().unwrap().iter().map(|r| r.loss).collect();
    close("losses", &losses, &numbers(&golden, "losses"));
}

#[test]
fn bart_is_reproduced() {
    reproduces(NormOrder::Post, [2, 2], include_bytes!("golden/bart.safetensors"));
}

#[test]
fn mbart_is_reproduced() {
    reproduces(NormOrder::Pre, [2, 2], include_bytes!("golden/mbart.safetensors"));
}

/// One layer in the encoder, three in the decoder. Twenty steps of Adam that agree need every gradient.
#[test]
fn a_deeper_decoder_is_reproduced() {
    reproduces(NormOrder::Pre, [1, 3], include_bytes!("golden/mbart-1-3.safetensors"));
}
