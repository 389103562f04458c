//! Decoding against teacher forcing: the same model, the same numbers, one token at a time.

use polystep_core::token::{BOS, EOS};
use polystep_engine::cpu::Cpu;
use polystep_engine::{Activation, Batch, Executor, Inspect, Limits, NormOrder, Scalars};
use polystep_learn::decode::{BEAM_WIDTH, EngineStepper, Hypothesis, beam_search, greedy};
use polystep_learn::model::{ModelConfig, ParamLayout, Size, evaluation_program, initial_params};

fn config(norm: NormOrder) -> ModelConfig {
    ModelConfig {
        d: 64,
        layers: 2,
        encoder_layers: None,
        decoder_layers: Some(if norm == NormOrder::Pre { 3 } else { 2 }),
        heads: 4,
        ffn: 128,
        norm,
        activation: Activation::Gelu,
        dropout: 0.0,
        size: Size::S,
        max_positions: 24,
        scale_embedding: false,
        // Large enough for an untrained model to have opinions.
        init_std: 0.3,
    }
}

fn sources() -> Vec<Vec<u8>> {
    (0..23u8).map(|i| (0..1 + (7 * i) % 17).map(|j| 4 + (i * 5 + j * 3) % 30).collect()).collect()
}

/// Log-probability of each token of an answer, `</s>` included if it finished, and whether each was the arg-max.
fn teacher_forced(cpu: &mut Cpu, logits: polystep_engine::Slot, source: &[u8], answer: &Hypothesis) -> (f32, bool) {
    let mut batch = Batch::default();
    batch.clear();
    batch.src.push(source.iter().copied().chain([EOS]).map(i32::from));
    let labels: Vec<u8> = answer.tokens.iter().copied().chain(answer.finished.then_some(EOS)).collect();
    let inputs = std::iter::once(BOS).chain(labels[..labels.len() - 1].iter().copied());
    batch.tgt.push(inputs.map(i32::from));
    batch.labels = labels.iter().map(|&t| i32::from(t)).collect();
    cpu.run(0, &batch, &Scalars { step: 1, ..Scalars::default() }).unwrap();
    let rows = cpu.read(0, logits).unwrap();
    let (mut sum, mut best) = (0.0, true);
    for (row, &label) in rows.chunks(64).zip(&labels) {
        let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let log_sum = top + row.iter().map(|x| (x - top).exp()).sum::<f32>().ln();
        sum += row[label as usize] - log_sum;
        best &= row[label as usize] == top;
    }
    (sum, best)
}

fn agrees(norm: NormOrder) {
    let config = config(norm);
    let layout = ParamLayout::new(&config);
    let params = initial_params(&config, &layout, 5);
    let whole = evaluation_program(&config, &layout);
    let limits = Limits { sequences: 1, src_tokens: 64, tgt_tokens: 64 };
    let mut cpu = Cpu::new(vec![whole.program], limits, 1).unwrap();
    cpu.set_params(&params).unwrap();
    let mut stepper = EngineStepper::new(&config, &layout, &params, 20, |programs, limits| {
        Ok(Box::new(Cpu::new(programs, limits, 2)?))
    })
    .unwrap();
    let sources = sources();
    let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();

    let answers = greedy(&mut stepper, &sources).unwrap();
    assert!(answers.iter().any(|a| a.tokens.len() > 3), "too short to test anything");
    for (source, answer) in sources.iter().zip(&answers) {
        let (logprob, best) = teacher_forced(&mut cpu, whole.logits, source, answer);
        assert!(best, "greedy left the arg-max of teacher forcing on {source:?}");
        assert!((logprob - answer.logprob).abs() < 1e-3, "{logprob} and {}", answer.logprob);
    }

    let wide = beam_search(&mut stepper, &sources, 6).unwrap_err().to_string();
    assert!(wide.contains("7 best tokens per hypothesis, more than the 6"), "{wide}");
    let beams = beam_search(&mut stepper, &sources, BEAM_WIDTH).unwrap();
    assert!(beams.iter().map(|b| b.headline.len()).sum::<usize>() > 20, "too few beams to test anything");
    for (source, result) in sources.iter().zip(&beams) {
        for hypothesis in result.headline.iter().chain(&result.lp1) {
            let (logprob, _) = teacher_forced(&mut cpu, whole.logits, source, hypothesis);
            assert!((logprob - hypothesis.logprob).abs() < 1e-3, "{logprob} and {}", hypothesis.logprob);
        }
    }
}

#[test]
fn post_norm_decodes_what_it_was_taught() {
    agrees(NormOrder::Post);
}

#[test]
fn pre_norm_decodes_what_it_was_taught() {
    agrees(NormOrder::Pre);
}
