//! Matrix products through cuBLASLt, one plan per shape.
//!
//! The decision a reader would get wrong: the algorithm is the first choice of the library's heuristic. It is never chosen by
//! timing. A timed choice may differ from run to run. So would the order of sums, and losses would not repeat bit for bit. For
//! the same reason a sum that is split goes through the workspace, without atomics, and each stream has its own workspace.

#![allow(unsafe_code)] // cuBLASLt is a C library

use std::collections::HashMap;
use std::ffi::c_void;

use cudarc::cublaslt::{result, sys};

use super::driver::{DeviceMemory, Stream};
use crate::{EngineError, Result};

/// Bytes of workspace of each stream.
pub(super) const WORKSPACE: usize = 32 << 20;

/// A product in the column-major terms of cuBLAS: D[m,n] = A[k,m]ᵀ or A[m,k] · B[k,n] or B[n,k]ᵀ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Gemm {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) a_transposed: bool,
    pub(super) b_transposed: bool,
    pub(super) lda: usize,
    pub(super) ldb: usize,
    pub(super) ldd: usize,
    /// D in fp32 (weight gradients), else bf16.
    pub(super) wide: bool,
    pub(super) bias: bool,
    /// The most multiprocessors that the product may use, if others run beside it; 0 for all.
    pub(super) beside: usize,
}

impl Gemm {
    /// A product of sizes m, n, k, with the leading dimensions of A, B and D. Nothing is transposed, and D is bf16.
    pub(super) fn new((m, n, k): (usize, usize, usize), [lda, ldb, ldd]: [usize; 3]) -> Self {
        Gemm { m, n, k, lda, ldb, ldd, ..Gemm::default() }
    }

    /// Bytes of an element of D.
    fn element(&self) -> usize {
        if self.wide { 4 } else { 2 }
    }
}

/// Where the operands lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operands {
    pub(super) a: u64,
    pub(super) b: u64,
    pub(super) d: u64,
    /// bf16; 0 without one.
    pub(super) bias: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    gemm: Gemm,
    alignment: [u32; 3],
}

struct Prepared {
    desc: sys::cublasLtMatmulDesc_t,
    layouts: [sys::cublasLtMatrixLayout_t; 3],
    algorithm: sys::cublasLtMatmulAlgo_t,
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // SAFETY: each was created once for this plan.
        unsafe {
            let _ = result::destroy_matmul_desc(self.desc);
            for layout in self.layouts {
                let _ = result::destroy_matrix_layout(layout);
            }
        }
    }
}

/// The library's handle and the plans made so far.
pub(super) struct Gemms {
    handle: sys::cublasLtHandle_t,
    plans: HashMap<Key, Prepared>,
    /// Plans that have not run yet. Each must run once before it is captured.
    pub(super) fresh: Vec<(Gemm, Operands)>,
}

fn check<T>(what: &str, outcome: Result<T, result::CublasError>) -> Result<T> {
    outcome.map_err(|error| EngineError::Device { what: what.into(), message: format!("{:?}", error.0) })
}

/// Sets an attribute of a product.
///
/// # Safety
/// The descriptor is alive, and the value has the type that the attribute's documentation names.
unsafe fn set<T>(desc: sys::cublasLtMatmulDesc_t, which: sys::cublasLtMatmulDescAttributes_t, value: T) -> Result {
    // SAFETY: the caller's promise; the value is read before the call returns.
    let outcome = unsafe { result::set_matmul_desc_attribute(desc, which, (&raw const value).cast(), size_of::<T>()) };
    check("cublasLtMatmulDescSetAttribute", outcome)
}

fn alignment(at: u64, ld: usize, element: usize) -> u32 {
    let bits = at | (ld * element) as u64 | 256;
    1 << bits.trailing_zeros()
}

impl Gemms {
    pub(super) fn new() -> Result<Self> {
        Ok(Gemms {
            handle: check("cublasLtCreate", result::create_handle())?,
            plans: HashMap::new(),
            fresh: Vec::new(),
        })
    }

    fn key(gemm: &Gemm, at: &Operands) -> Key {
        let d = alignment(at.d, gemm.ldd, gemm.element());
        Key { gemm: *gemm, alignment: [alignment(at.a, gemm.lda, 2), alignment(at.b, gemm.ldb, 2), d] }
    }

    /// Makes the plan of a product if there is none yet.
    pub(super) fn prepare(&mut self, gemm: &Gemm, at: &Operands) -> Result {
        let key = Self::key(gemm, at);
        if !self.plans.contains_key(&key) {
            let plan = self.plan(&key, at)?;
            self.plans.insert(key, plan);
            self.fresh.push((*gemm, *at));
        }
        Ok(())
    }

    fn plan(&self, key: &Key, at: &Operands) -> Result<Prepared> {
        use sys::cublasLtMatmulDescAttributes_t as D;
        use sys::cublasLtMatmulPreferenceAttributes_t as P;
        let g = key.gemm;
        let narrow = sys::cudaDataType_t::CUDA_R_16BF;
        let full = sys::cudaDataType_t::CUDA_R_32F;
        let d_type = if g.wide { full } else { narrow };
        let a = if g.a_transposed { (g.k, g.m) } else { (g.m, g.k) };
        let b = if g.b_transposed { (g.n, g.k) } else { (g.k, g.n) };
        let layout = |kind, (rows, cols): (usize, usize), ld: usize| {
            check("cublasLtMatrixLayoutCreate", result::create_matrix_layout(kind, rows as u64, cols as u64, ld as i64))
        };
        let desc = check(
            "cublasLtMatmulDescCreate",
            result::create_matmul_desc(sys::cublasComputeType_t::CUBLAS_COMPUTE_32F, full),
        )?;
        let mut plan = Prepared {
            desc,
            layouts: [layout(narrow, a, g.lda)?, layout(narrow, b, g.ldb)?, layout(d_type, (g.m, g.n), g.ldd)?],
            algorithm: sys::cublasLtMatmulAlgo_t { data: [0; 8] },
        };
        // SAFETY: every attribute is given a value of the type that its documentation names; the descriptors are alive; the
        // results array has room for the one answer asked for.
        unsafe {
            set(desc, D::CUBLASLT_MATMUL_DESC_TRANSA, i32::from(g.a_transposed))?;
            set(desc, D::CUBLASLT_MATMUL_DESC_TRANSB, i32::from(g.b_transposed))?;
            if g.bias {
                set(desc, D::CUBLASLT_MATMUL_DESC_EPILOGUE, sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS)?;
                set(desc, D::CUBLASLT_MATMUL_DESC_BIAS_POINTER, at.bias)?;
            }
            if g.beside > 0 {
                set(desc, D::CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, g.beside as i32)?;
            }
            let preference = check("cublasLtMatmulPreferenceCreate", result::create_matmul_pref())?;
            let prefer = |which, value: *const c_void, size| {
                let what = "cublasLtMatmulPreferenceSetAttribute";
                check(what, result::set_matmul_pref_attribute(preference, which, value, size))
            };
            let space = WORKSPACE;
            prefer(P::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, (&raw const space).cast(), 8)?;
            let [aa, ab, ad] = key.alignment;
            let words: [(P, u32); 5] = [
                // Split sums through the workspace only: 2 = in the compute type, 4 = in the output type; 1 (in place) is atomic.
                (P::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 2 | 4),
                (P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, aa),
                (P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, ab),
                (P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, ad),
                (P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, ad),
            ];
            words.iter().try_for_each(|(which, word)| prefer(*which, (&raw const *word).cast(), 4))?;
            let [la, lb, ld] = plan.layouts;
            let found = result::get_matmul_algo_heuristic(self.handle, desc, la, lb, ld, ld, preference);
            let _ = result::destroy_matmul_pref(preference);
            plan.algorithm = check(&format!("cublasLtMatmulAlgoGetHeuristic for {g:?}"), found)?.algo;
        }
        Ok(plan)
    }

    /// Enqueues a product whose plan was prepared.
    pub(super) fn run(&self, gemm: &Gemm, at: &Operands, workspace: &DeviceMemory, stream: &Stream) -> Result {
        match self.plans.get(&Self::key(gemm, at)) {
            Some(plan) => self.launch(plan, gemm, at, workspace, stream),
            None => Err(EngineError::Device { what: format!("{gemm:?}"), message: "no plan was prepared".into() }),
        }
    }

    fn launch(&self, plan: &Prepared, gemm: &Gemm, at: &Operands, workspace: &DeviceMemory, stream: &Stream) -> Result {
        let (one, zero) = (1f32, 0f32);
        let [la, lb, ld] = plan.layouts;
        // SAFETY: operands have the shapes of the layouts (made from the program's slots and params, which outlive the
        // executor's graphs); the workspace belongs to this stream alone; scalars are read before the call returns.
        unsafe {
            if gemm.bias {
                set(plan.desc, sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_BIAS_POINTER, at.bias)?;
            }
            check(
                "cublasLtMatmul",
                result::matmul(
                    self.handle,
                    plan.desc,
                    (&raw const one).cast(),
                    (&raw const zero).cast(),
                    at.a as *const c_void,
                    la,
                    at.b as *const c_void,
                    lb,
                    at.d as *const c_void,
                    ld,
                    at.d as *mut c_void,
                    ld,
                    &raw const plan.algorithm,
                    workspace.at as *mut c_void,
                    WORKSPACE,
                    stream.raw.cast(),
                ),
            )
        }
    }

    /// Runs every fresh plan once, into scratch memory. cuBLASLt loads a kernel when it is first used, and that must not happen
    /// during a capture.
    pub(super) fn warm_up(&mut self, workspace: &DeviceMemory, stream: &Stream) -> Result {
        let fresh = std::mem::take(&mut self.fresh);
        let Some(bytes) = fresh.iter().map(|(g, _)| g.ldd * g.n * g.element()).max() else {
            return Ok(());
        };
        let scratch = DeviceMemory::new(bytes)?;
        for (gemm, at) in fresh {
            if let Some(plan) = self.plans.get(&Self::key(&gemm, &at)) {
                // Scratch memory is at least as aligned as the operand the plan was made for.
                self.launch(plan, &gemm, &Operands { d: scratch.at, ..at }, workspace, stream)?;
            }
        }
        stream.wait()
    }
}

impl Drop for Gemms {
    fn drop(&mut self) {
        self.plans.clear();
        // SAFETY: created in `new`, destroyed here alone, after its plans.
        let _ = unsafe { result::destroy_handle(self.handle) };
    }
}
