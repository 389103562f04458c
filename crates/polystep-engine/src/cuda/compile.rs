//! Compiles the kernels. Their sources are embedded in the binary. NVRTC compiles them for the device and for the sizes of the
//! model, and the results, cubins, are cached.
//!
//! A unit is one .cu file with its sizes as macros: a layer norm of 256 columns and one of 512 are two units. Compiling needs no
//! GPU, so CI compiles every unit.

#![allow(unsafe_code)] // NVRTC is a C library

use std::collections::BTreeSet;
use std::ffi::{CString, c_char};

use cudarc::nvrtc::sys;

use super::{cache, product, wide};
use crate::{ActivateBack, AddNormBack, Attention, CachedAttention, Dtype, EmbedBack, EngineError, LinearBack, Op};
use crate::{Program, Result, SourceAttention};

/// Names and texts of files in `kernels/`.
macro_rules! files {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../kernels/", $name)))),*]
    };
}

const HEADERS: [(&str, &str); 7] =
    files!["common.cuh" "philox.cuh" "mma.cuh" "head.cuh" "scores.cuh" "rows.cuh" "activation.cuh"];

const SOURCES: [(&str, &str); 12] = files![
    "norm.cu" "embed.cu" "activate.cu" "attention.cu" "attention_short.cu" "attention_back.cu" "product.cu" "loss.cu"
    "optimiser.cu" "decode.cu" "top.cu" "wide.cu"
];

/// One source file with its macros.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Unit {
    /// Which of the kernel files.
    pub(super) file: &'static str,
    /// Macros and their values.
    pub(super) defines: Vec<(&'static str, usize)>,
}

impl Unit {
    /// A unit of a file.
    pub(super) fn new(file: &'static str, defines: &[(&'static str, usize)]) -> Self {
        Unit { file, defines: defines.to_vec() }
    }

    fn source(&self) -> &'static str {
        SOURCES.iter().find(|(name, _)| *name == self.file).map_or("", |(_, text)| text)
    }

    fn options(&self, arch: &str) -> Vec<String> {
        let mut options = vec![format!("--gpu-architecture={arch}"), "--std=c++17".into(), "-default-device".into()];
        options.extend(self.defines.iter().map(|(name, value)| format!("-D{name}={value}")));
        options
    }
}

/// Elements that a thread of activate.cu takes at once.
pub(super) fn pack_width(cols: usize) -> usize {
    [8, 4].into_iter().find(|w| cols.is_multiple_of(*w)).unwrap_or(2)
}

/// The longest sequences that the variants of attention_short.cu take.
pub(super) const SHORT: [usize; 3] = [64, 96, 128];

/// attention_short.cu for a head width.
pub(super) fn short_units(head_dim: usize) -> [Unit; 3] {
    SHORT.map(|rows| Unit::new("attention_short.cu", &[("HD", head_dim), ("ROWS", rows)]))
}

/// The units that some programs need, in a fixed order.
pub(super) fn units(programs: &[Program]) -> Vec<Unit> {
    let of_program = |program: &Program| program.ops.iter().flat_map(|op| units_of(program, op)).collect::<Vec<_>>();
    let mut set: BTreeSet<Unit> = programs.iter().flat_map(of_program).collect();
    set.insert(Unit::new("optimiser.cu", &[]));
    set.into_iter().collect()
}

fn units_of(program: &Program, op: &Op) -> Vec<Unit> {
    let cols = |slot| program.info(slot).cols;
    let one = |file, name, value| Unit::new(file, &[(name, value)]);
    match op {
        Op::Embed(it) | Op::EmbedBack(EmbedBack { of: it, .. }) => {
            vec![Unit::new("embed.cu", &[("D", it.token.cols), ("V", it.token.rows)])]
        }
        Op::AddNorm(it) | Op::AddNormBack(AddNormBack { of: it, .. }) => {
            vec![one("norm.cu", "D", it.norm.gamma.len())]
        }
        Op::Activate(it) | Op::ActivateBack(ActivateBack { of: it, .. }) => {
            let activate = one("activate.cu", "VEC", pack_width(cols(it.x)));
            product::units().into_iter().chain([activate]).collect()
        }
        Op::Linear(_) => product::units().into(),
        Op::LinearBack(LinearBack { of, dy, .. }) => {
            let width = pack_width(cols(dy.slot)).min(pack_width(dy.col)).min(pack_width(of.w.rows));
            let sums = of.b.map(|_| one("activate.cu", "VEC", width));
            let wide = (program.info(dy.slot).dtype == Dtype::F32).then(|| wide::unit(of.w));
            product::units().into_iter().chain(sums).chain(wide).collect()
        }
        Op::Attention(Attention { heads, .. }) => attention_units("attention.cu", heads.dim),
        Op::AttentionBack(back) => attention_units("attention_back.cu", back.of.heads.dim),
        Op::CrossEntropy(it) => vec![loss_unit(cols(it.logits), program.info(it.logits).dtype)],
        Op::CachedAttention(CachedAttention { heads, .. }) | Op::SourceAttention(SourceAttention { heads, .. }) => {
            vec![one("decode.cu", "HD", heads.dim)]
        }
        Op::BestTokens(it) => vec![one("top.cu", "V", cols(it.logits))],
        Op::Adam(_) => Vec::new(),
    }
}

/// loss.cu for a vocabulary, and for the type of the logits.
pub(super) fn loss_unit(vocabulary: usize, dtype: Dtype) -> Unit {
    let wide = (dtype == Dtype::F32).then_some(("WIDE", 1));
    Unit::new("loss.cu", &[("V", vocabulary)].into_iter().chain(wide).collect::<Vec<_>>())
}

/// The kernels for long sequences, in `file`, and those for short ones.
fn attention_units(file: &'static str, head_dim: usize) -> Vec<Unit> {
    let long = Unit::new(file, &[("HD", head_dim)]);
    short_units(head_dim).into_iter().chain([long]).collect()
}

fn fail(unit: &Unit, what: &str, status: sys::nvrtcResult) -> EngineError {
    EngineError::Compile(format!("{} {:?}: {what}: {status:?}", unit.file, unit.defines))
}

fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// Compiles one unit with NVRTC. The library must be open.
fn compile(unit: &Unit, arch: &str) -> Result<Vec<u8>> {
    let good = sys::nvrtcResult::NVRTC_SUCCESS;
    let source = c_string(unit.source());
    let name = c_string(unit.file);
    let headers: Vec<(CString, CString)> = HEADERS.iter().map(|(n, t)| (c_string(n), c_string(t))).collect();
    let names: Vec<*const c_char> = headers.iter().map(|(n, _)| n.as_ptr()).collect();
    let texts: Vec<*const c_char> = headers.iter().map(|(_, t)| t.as_ptr()).collect();
    let options: Vec<CString> = unit.options(arch).iter().map(|o| c_string(o)).collect();
    let options: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
    // SAFETY: all strings and arrays live to the end of the block; sizes are asked for before buffers of that size are
    // filled; the program is destroyed once, on every path.
    unsafe {
        let mut program = std::ptr::null_mut();
        let count = names.len() as i32;
        let status = sys::nvrtcCreateProgram(
            &mut program,
            source.as_ptr(),
            name.as_ptr(),
            count,
            texts.as_ptr(),
            names.as_ptr(),
        );
        if status != good {
            return Err(fail(unit, "create", status));
        }
        let status = sys::nvrtcCompileProgram(program, options.len() as i32, options.as_ptr());
        let result = if status == good {
            let mut size = 0;
            let sized = sys::nvrtcGetCUBINSize(program, &mut size);
            let mut cubin = vec![0u8; size];
            let got = sys::nvrtcGetCUBIN(program, cubin.as_mut_ptr().cast());
            if sized == good && got == good { Ok(cubin) } else { Err(fail(unit, "cubin", got)) }
        } else {
            let mut size = 0;
            let mut log = Vec::new();
            if sys::nvrtcGetProgramLogSize(program, &mut size) == good {
                log = vec![0u8; size];
                sys::nvrtcGetProgramLog(program, log.as_mut_ptr().cast());
            }
            Err(fail(unit, String::from_utf8_lossy(&log).trim_end_matches('\0'), status))
        };
        sys::nvrtcDestroyProgram(&mut program);
        result
    }
}

fn nvrtc_version() -> (i32, i32) {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: two valid out-pointers.
    unsafe { sys::nvrtcVersion(&mut major, &mut minor) };
    (major, minor)
}

/// A unit from the cache. If it is not there, it is compiled and put there. `fresh` does not read the cache.
pub(super) fn cached(unit: &Unit, arch: &str, fresh: bool) -> Result<Vec<u8>> {
    let mut text = format!("{:?} {:?}\n", nvrtc_version(), unit.options(arch));
    text.extend(HEADERS.map(|(_, header)| header));
    text.push_str(unit.source());
    let key = cache::Key::new(unit.file.trim_end_matches(".cu"), &text);
    cache::cached(cache::base(), &key, fresh, || compile(unit, arch))
}

#[cfg(test)]
mod tests {
    use super::super::library;
    use super::*;
    use crate::Param;

    /// The units of the paper's models and of their neighbours: what CI compiles.
    fn all_units() -> Vec<Unit> {
        let mut all =
            vec![Unit::new("optimiser.cu", &[]), Unit::new("loss.cu", &[("V", 64)]), Unit::new("top.cu", &[("V", 64)])];
        all.push(loss_unit(64, Dtype::F32));
        for d in [64, 256, 512] {
            all.push(wide::unit(Param { offset: 0, rows: 64, cols: d }));
            all.push(Unit::new("norm.cu", &[("D", d)]));
            all.push(Unit::new("embed.cu", &[("D", d), ("V", 64)]));
        }
        for width in [8, 4, 2] {
            all.push(Unit::new("activate.cu", &[("VEC", width)]));
        }
        for width in [8, 16, 32, 64, 128] {
            all.push(Unit::new("attention.cu", &[("HD", width)]));
            all.push(Unit::new("attention_back.cu", &[("HD", width)]));
            all.push(Unit::new("decode.cu", &[("HD", width)]));
            all.extend(short_units(width));
        }
        all.extend(product::units());
        all
    }

    fn compile_all(arch: &str, units: &[Unit]) -> Vec<Vec<u8>> {
        units.iter().map(|unit| compile(unit, arch).unwrap()).collect()
    }

    /// Every kernel compiles without a GPU. Needs NVRTC (`pip install nvidia-cuda-nvrtc`, POLYSTEP_NVRTC_DIR).
    #[test]
    fn every_kernel_compiles() {
        match library::nvrtc() {
            Ok(_) => {
                let units = all_units();
                let cubins = compile_all("sm_90a", &units);
                for (unit, cubin) in units.iter().zip(&cubins) {
                    assert!(cubin.starts_with(b"\x7fELF"), "{unit:?} is no cubin");
                }
                for arch in ["sm_80", "sm_100"] {
                    compile_all(arch, &units[..3]);
                    compile_all(arch, &product::units());
                }
            }
            Err(error) => {
                assert!(std::env::var_os("POLYSTEP_REQUIRE_NVRTC").is_none_or(|v| v != "1"), "{error}");
                eprintln!("skipped: {error}");
            }
        }
    }
}
