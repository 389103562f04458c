//! Every op of the CPU device: its gradient against finite differences of its own forward pass, in every variant of
//! `optest::cases`, and the same bits at any number of threads.

use polystep_engine::cpu::Cpu;
use polystep_engine::optest::{self, Case, Functional, Wrt};
use polystep_engine::{EngineError, Executor, Inspect, Limits, Program};

fn cpu(threads: usize) -> impl FnOnce(Vec<Program>, Limits) -> Result<Cpu, EngineError> {
    move |programs, limits| Cpu::new(programs, limits, threads)
}

/// L of a case, in f64 over the fp32 outputs.
fn functional(case: &Case, cpu: &mut Cpu) -> f64 {
    cpu.results().unwrap();
    cpu.run(0, &case.batch, &case.scalars).unwrap();
    match &case.functional {
        Functional::Loss => f64::from(cpu.results().unwrap()[0].loss),
        Functional::Pairs(pairs) => pairs
            .iter()
            .map(|(output, cotangent)| {
                let output = cpu.read(0, *output).unwrap();
                let cotangent = case.input(*cotangent);
                assert_eq!(output.len(), cotangent.len());
                output.iter().zip(cotangent).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>()
            })
            .sum(),
    }
}

fn prepare(case: &Case, cpu: &mut Cpu) {
    cpu.set_params(&case.params).unwrap();
    cpu.set_grads(&case.grads).unwrap();
    for (slot, values) in &case.inputs {
        cpu.write(0, *slot, values).unwrap();
    }
}

/// The fourth-order central difference.
fn slope(x: f32, h: f32, mut l: impl FnMut(f32) -> f64) -> f64 {
    let (near, far) = (l(x + h) - l(x - h), l(x + 2.0 * h) - l(x - 2.0 * h));
    (8.0 * near - far) / (12.0 * f64::from(h))
}

/// Compares derivatives element by element, at most `sample` of them, evenly spread.
fn agree(case: &Case, what: &str, got: &[f32], mut slope_of: impl FnMut(usize) -> f64) {
    let scale = got.iter().fold(0f32, |m, x| m.max(x.abs())).max(0.05);
    let every = (got.len() / 300).max(1) | 1;
    for i in (0..got.len()).step_by(every) {
        let want = slope_of(i);
        let error = (want - f64::from(got[i])).abs() / f64::from(scale);
        assert!(error < 2e-3, "{}: {what}[{i}] is {}, finite differences say {want}", case.name, got[i]);
    }
}

#[test]
fn gradients_match_finite_differences() {
    let mut checked = 0;
    for case in optest::cases().into_iter().filter(|c| c.small && c.functional != Functional::Pairs(Vec::new())) {
        let mut cpu = Cpu::new(vec![case.program.clone()], case.limits, 1).unwrap();
        prepare(&case, &mut cpu);
        cpu.run(0, &case.batch, &case.scalars).unwrap();
        let grads = cpu.grads().unwrap();
        let h = if case.functional == Functional::Loss { 0.05 } else { 0.02 };
        for wrt in &case.wrt {
            checked += 1;
            match wrt {
                Wrt::Slot { input, grad } => {
                    prepare(&case, &mut cpu);
                    cpu.run(0, &case.batch, &case.scalars).unwrap();
                    let got = cpu.read(0, *grad).unwrap();
                    let mut values = case.input(*input).to_vec();
                    agree(&case, &case.program.info(*input).name, &got, |i| {
                        let x = values[i];
                        slope(x, h, |x| {
                            prepare(&case, &mut cpu);
                            let was = std::mem::replace(&mut values[i], x);
                            cpu.write(0, *input, &values).unwrap();
                            values[i] = was;
                            functional(&case, &mut cpu)
                        })
                    });
                }
                Wrt::Param { name, param, added } => {
                    let range = param.range();
                    let before = if *added { &case.grads[range.clone()] } else { &vec![0.0; param.len()][..] };
                    let got: Vec<f32> = grads[range].iter().zip(before).map(|(a, b)| a - b).collect();
                    let mut params = case.params.clone();
                    agree(&case, name, &got, |i| {
                        let at = param.offset + i;
                        slope(case.params[at], h, |x| {
                            prepare(&case, &mut cpu);
                            let was = std::mem::replace(&mut params[at], x);
                            cpu.set_params(&params).unwrap();
                            params[at] = was;
                            functional(&case, &mut cpu)
                        })
                    });
                }
            }
        }
    }
    assert!(checked > 60, "only {checked} derivatives were checked");
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    for case in optest::cases().into_iter().chain(optest::large_cases(128)) {
        let one = optest::run_on(&case, cpu(1)).unwrap();
        for threads in [2, 3] {
            for ((name, a), (_, b)) in one.iter().zip(&optest::run_on(&case, cpu(threads)).unwrap()) {
                let same = a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(same, "{}: {name} differs between 1 and {threads} threads", case.name);
            }
        }
    }
}

#[test]
fn case_names_are_unique_and_values_are_bf16() {
    let cases: Vec<Case> = optest::cases().into_iter().chain(optest::large_cases(128)).collect();
    let names: std::collections::BTreeSet<_> = cases.iter().map(|c| &c.name).collect();
    assert_eq!(names.len(), cases.len());
    for case in &cases {
        let values = case.inputs.iter().flat_map(|(_, v)| v).chain(&case.params);
        assert!(values.copied().all(|x| x.to_bits() & 0xffff == 0), "{}", case.name);
    }
}
