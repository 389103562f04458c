//! How much memory a program needs on the CPU, and how much there is. Linux ends a process that runs out of memory without a
//! word, so a run that cannot fit is refused before it starts.

use std::fs::read_to_string;

use polystep_engine::{Dim, EngineError, Limits, Program, Side, SlotInfo};

const MIB: usize = 1 << 20;

/// An error if the activations of the programs do not fit into the memory that this process may use.
pub fn check(programs: &[Program], limits: Limits) -> Result<(), EngineError> {
    let wanted = activations(programs, limits);
    match available() {
        Some(free) if wanted > free => Err(EngineError::OutOfMemory { wanted_mib: wanted / MIB, free_mib: free / MIB }),
        _ => Ok(()),
    }
}

/// Bytes of all activations. Programs share their slots. A decoder's cache grows with use and is left out.
fn activations(programs: &[Program], limits: Limits) -> usize {
    let rows = |dim| match dim {
        Dim::Tokens(Side::Src) => limits.src_tokens,
        Dim::Tokens(Side::Tgt) => limits.tgt_tokens,
        Dim::Cache(_) => 0,
    };
    let most = programs.iter().map(|p| p.slots.len()).max().unwrap_or(0);
    let of_slot = |i: usize| {
        programs.iter().filter_map(move |p| p.slots.get(i)).map(|slot: &SlotInfo| rows(slot.rows) * slot.cols).max()
    };
    (0..most).filter_map(of_slot).sum::<usize>() * size_of::<f32>()
}

/// The memory of the machine, or what a limit leaves of it; none where that cannot be told.
fn available() -> Option<usize> {
    let number = |path: &str, line: &str, scale: usize| {
        let text = read_to_string(path).ok()?;
        let words = text.lines().find_map(|l| l.strip_prefix(line))?;
        Some(words.split_whitespace().next()?.parse::<usize>().ok()?.saturating_mul(scale))
    };
    let machine = number("/proc/meminfo", "MemTotal:", 1024);
    let group = number("/sys/fs/cgroup/memory.max", "", 1);
    let process = number("/proc/self/limits", "Max address space", 1);
    [machine, group, process].into_iter().flatten().min()
}
