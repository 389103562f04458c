//! Everything that lives on the device: kernels, flat buffers, slots, partial sums, streams. It is allocated once, for the largest
//! batch that the limits allow.

use std::collections::HashMap;

use super::compile::{self, Unit};
use super::driver::{Device, DeviceMemory, Event, Kernel, Module, Stream};
use super::gemm::{Gemms, WORKSPACE};
use super::input::InputBlock;
use super::product;
use super::schedule::Partial;
use crate::{Adam, Dim, Dtype, EngineError, Limits, Op, Program, Result, Side, Slot};

/// Streams beside the two of the critical path.
pub(super) const SIDES: usize = 3;

/// How many results may wait on the device to be read.
pub(super) const RING: usize = 4096;

/// Blocks of the pass that adds up the squares of the gradient.
pub(super) const SQUARES: usize = 264;

const KERNELS: [(&str, &[&str]); 12] = [
    ("norm.cu", &["addnorm", "addnorm_back"]),
    ("embed.cu", &["embed", "embed_back", "embed_back_token", "embed_back_position"]),
    ("activate.cu", &["activate", "activate_back"]),
    ("attention.cu", &["attention"]),
    ("attention_short.cu", &["attention_short", "attention_back_short"]),
    ("attention_back.cu", &["attention_back"]),
    ("product.cu", &["product"]),
    ("loss.cu", &["loss_rows", "loss_sum"]),
    ("wide.cu", &["wide_dx", "wide_dw"]),
    ("optimiser.cu", &["reduce", "square", "adam", "copy_params", "exchange"]),
    ("decode.cu", &["lineage", "cached_attention", "source_attention"]),
    ("top.cu", &["top_tokens"]),
];

/// Dynamic shared memory of the attention kernels: `tiles` of 64 rows, 8 elements of padding each.
pub(super) fn tile_bytes(head_dim: usize, tiles: usize) -> usize {
    tiles * 64 * (head_dim.next_multiple_of(16) + 8) * 2
}

/// The same for attention_short.cu: three or four tiles of `rows`, and the gradient of the scores.
pub(super) fn short_bytes(head_dim: usize, rows: usize, backward: bool) -> usize {
    let tile = rows * (head_dim.next_multiple_of(16) + 8) * 2;
    if backward { 4 * tile + rows * (rows + 8) * 2 } else { 3 * tile }
}

/// Columns that a block of embed_back_token takes: as many as fit into shared memory with its table.
pub(super) fn token_columns(vocabulary: usize, limit: usize) -> usize {
    [128, 64, 32].into_iter().find(|cols| vocabulary * cols * 4 <= limit.min(96 * 1024)).unwrap_or(32)
}

fn shared_bytes(unit: &Unit, kernel: &str, limit: usize) -> usize {
    let value = |name| unit.defines.iter().find(|(n, _)| *n == name).map_or(0, |(_, v)| *v);
    match kernel {
        "attention" => tile_bytes(value("HD"), 5),
        "attention_back" => tile_bytes(value("HD"), 4),
        "attention_short" => short_bytes(value("HD"), value("ROWS"), false),
        "attention_back_short" => short_bytes(value("HD"), value("ROWS"), true),
        "product" => product::SHARED,
        "embed_back_token" => value("V") * token_columns(value("V"), limit) * 4,
        _ => 0,
    }
}

/// Rounds a number of tokens up to the capacity of a graph. Small numbers are rounded finely, since one more tile is expensive
/// there. Large numbers are rounded coarsely, so that there are few graphs.
pub(super) fn capacity(tokens: usize) -> usize {
    let step = match tokens {
        0..=2048 => 64,
        2049..=8192 => 128,
        _ => 256,
    };
    tokens.max(1).next_multiple_of(step)
}

/// The device's memory and tools. Fields are dropped in order, so the device comes last.
pub(super) struct Machine {
    pub(super) gemms: Gemms,
    kernels: HashMap<(Unit, &'static str), Kernel>,
    _modules: Vec<Module>,
    pub(super) streams: Vec<Stream>,
    pub(super) workspaces: Vec<DeviceMemory>,
    pub(super) events: Vec<Event>,
    pub(super) params: DeviceMemory,
    pub(super) grads: DeviceMemory,
    pub(super) first: DeviceMemory,
    pub(super) second: DeviceMemory,
    pub(super) copy: DeviceMemory,
    /// The average of the weights; empty if no program keeps one.
    pub(super) average: DeviceMemory,
    pub(super) input: DeviceMemory,
    pub(super) ring: DeviceMemory,
    pub(super) right: DeviceMemory,
    pub(super) row_loss: DeviceMemory,
    pub(super) row_right: DeviceMemory,
    pub(super) squares: DeviceMemory,
    pub(super) top_tokens: DeviceMemory,
    pub(super) top_logprobs: DeviceMemory,
    lineages: [DeviceMemory; 2],
    /// Where each slot lies, and the memory of all slots. Slot i of every program is in the same place.
    slots: Vec<u64>,
    arena: DeviceMemory,
    /// Partial sums by (program, op, which).
    pub(super) partials: HashMap<(usize, usize, Partial), DeviceMemory>,
    /// Job tables of the reductions, by their contents.
    pub(super) tables: HashMap<Vec<u64>, JobTable>,
    pub(super) programs: Vec<Program>,
    pub(super) limits: Limits,
    /// Elements of the flat buffers, padded.
    pub(super) flat: usize,
    pub(super) device: Device,
}

/// A reduction's jobs on the device.
pub(super) struct JobTable {
    pub(super) jobs: DeviceMemory,
    pub(super) blocks: DeviceMemory,
    pub(super) count: usize,
}

impl Machine {
    pub(super) fn new(gpu: u32, programs: Vec<Program>, limits: Limits) -> Result<Self> {
        let device = Device::open(gpu)?;
        let (modules, kernels) = load(&device, &compile::units(&programs))?;
        let flat = programs.iter().map(|p| p.params).max().unwrap_or(0).next_multiple_of(64);
        let averages = programs.iter().filter_map(Program::adam).any(Adam::averages);
        let tokens = capacity(limits.tgt_tokens);
        let streams = (0..SIDES + 2).map(|i| Stream::new(if i < 2 { -1 } else { 0 })).collect::<Result<Vec<_>, _>>()?;
        let positions = programs.iter().flat_map(|p| &p.slots).map(|s| if let Dim::Cache(n) = s.rows { n } else { 0 });
        let lineage = positions.max().unwrap_or(0) * limits.sequences;
        let mut machine = Machine {
            gemms: Gemms::new()?,
            kernels,
            _modules: modules,
            workspaces: streams.iter().map(|_| DeviceMemory::new(WORKSPACE)).collect::<Result<_, _>>()?,
            streams,
            events: Vec::new(),
            params: DeviceMemory::new(flat * 4)?,
            grads: DeviceMemory::new(flat * 4)?,
            first: DeviceMemory::new(flat * 4)?,
            second: DeviceMemory::new(flat * 4)?,
            copy: DeviceMemory::new(flat * 2)?,
            average: DeviceMemory::new(if averages { flat * 4 } else { 0 })?,
            input: DeviceMemory::new(InputBlock::new(&limits, [capacity(limits.src_tokens), tokens]).words * 4)?,
            ring: DeviceMemory::new(RING * 16)?,
            right: DeviceMemory::new(limits.sequences * 4)?,
            row_loss: DeviceMemory::new(tokens * 4)?,
            row_right: DeviceMemory::new(tokens * 4)?,
            squares: DeviceMemory::new(SQUARES * 4)?,
            top_tokens: DeviceMemory::new(tokens * top_k(&programs) * 4)?,
            top_logprobs: DeviceMemory::new(tokens * top_k(&programs) * 4)?,
            lineages: [DeviceMemory::new(lineage * 4)?, DeviceMemory::new(lineage * 4)?],
            slots: Vec::new(),
            arena: DeviceMemory::new(0)?,
            partials: HashMap::new(),
            tables: HashMap::new(),
            programs: Vec::new(),
            limits,
            flat,
            device,
        };
        let mut sizes: Vec<usize> = Vec::new();
        for program in &programs {
            sizes.resize(sizes.len().max(program.slots.len()), 0);
            for (size, info) in sizes.iter_mut().zip(&program.slots) {
                let element = if info.dtype == Dtype::F32 { 4 } else { 2 };
                *size = (*size).max((machine.most_rows(info.rows) * info.cols * element).next_multiple_of(256));
            }
        }
        machine.arena = DeviceMemory::new(sizes.iter().sum())?;
        let mut at = machine.arena.at;
        for size in sizes {
            machine.slots.push(at);
            at += size as u64;
        }
        machine.programs = programs;
        Ok(machine)
    }

    /// Rows that a slot has memory for.
    pub(super) fn most_rows(&self, dim: Dim) -> usize {
        match dim {
            Dim::Tokens(Side::Src) => capacity(self.limits.src_tokens),
            Dim::Tokens(Side::Tgt) => capacity(self.limits.tgt_tokens),
            Dim::Cache(positions) => positions * self.limits.sequences,
        }
    }

    /// Where a slot begins on the device.
    pub(super) fn slot(&self, slot: Slot) -> u64 {
        self.slots[slot.0 as usize]
    }

    /// The memory that holds a slot, and the byte at which it begins there.
    pub(super) fn arena(&self, slot: Slot) -> (&DeviceMemory, usize) {
        (&self.arena, (self.slot(slot) - self.arena.at) as usize)
    }

    /// How many tokens per hypothesis a decoding program asks for.
    pub(super) fn top_k(&self) -> usize {
        top_k(&self.programs)
    }

    /// The two tables of lineages. Each step reads one and writes the other.
    pub(super) fn lineages(&self) -> [u64; 2] {
        [self.lineages[0].at, self.lineages[1].at]
    }

    /// A kernel that was loaded for the programs.
    pub(super) fn kernel(&self, unit: &Unit, name: &'static str) -> Result<Kernel> {
        let missing = || EngineError::Compile(format!("no kernel {name} was compiled for {unit:?}"));
        self.kernels.get(&(unit.clone(), name)).copied().ok_or_else(missing)
    }

    /// Whether a kernel was loaded.
    pub(super) fn has(&self, unit: &Unit, name: &'static str) -> bool {
        self.kernels.contains_key(&(unit.clone(), name))
    }

    /// Makes sure that there are at least this many events.
    pub(super) fn need_events(&mut self, count: usize) -> Result {
        while self.events.len() < count {
            self.events.push(Event::new(false)?);
        }
        Ok(())
    }

    /// Waits for everything.
    pub(super) fn wait(&self) -> Result {
        self.device.enter()?;
        self.streams[0].wait()
    }
}

/// The largest k of the programs' [`crate::BestTokens`].
fn top_k(programs: &[Program]) -> usize {
    let k = |op: &Op| if let Op::BestTokens(it) = op { it.k } else { 0 };
    programs.iter().flat_map(|p| &p.ops).map(k).max().unwrap_or(0)
}

type Loaded = (Vec<Module>, HashMap<(Unit, &'static str), Kernel>);

/// Loads the units, from the cache or compiled. Several are compiled at once, since the first start compiles them all.
fn load(device: &Device, units: &[Unit]) -> Result<Loaded> {
    let (major, minor) = device.info.capability;
    // Hopper's warpgroup products exist on exactly that architecture.
    let arch = if (major, minor) == (9, 0) { "sm_90a".into() } else { format!("sm_{major}{minor}") };
    let cubins: Vec<Result<Vec<u8>>> = std::thread::scope(|scope| {
        let threads: Vec<_> = units.iter().map(|unit| scope.spawn(|| compile::cached(unit, &arch, false))).collect();
        let died = || EngineError::Compile("the compiler's thread died".into());
        threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(died()))).collect()
    });
    let (mut modules, mut kernels) = (Vec::new(), HashMap::new());
    for (unit, cubin) in units.iter().zip(cubins) {
        let module = match Module::load(&cubin?) {
            Ok(module) => module,
            Err(_) => Module::load(&compile::cached(unit, &arch, true)?)?,
        };
        let names = KERNELS.iter().find(|(file, _)| *file == unit.file).map_or(&[][..], |(_, names)| names);
        for name in names {
            let shared = shared_bytes(unit, name, device.shared_limit);
            if shared + 2048 > device.shared_limit && ["attention_short.cu", "product.cu"].contains(&unit.file) {
                continue; // there is another way for each
            }
            if shared > device.shared_limit {
                return Err(EngineError::Compile(format!(
                    "{name} of {unit:?} needs {shared} bytes of shared memory, the device has {}",
                    device.shared_limit
                )));
            }
            kernels.insert((unit.clone(), *name), module.kernel(name, shared)?);
        }
        modules.push(module);
    }
    Ok((modules, kernels))
}

#[cfg(test)]
mod tests {
    use super::capacity;

    #[test]
    fn capacities_are_few_and_close() {
        assert_eq!([0, 1, 64, 65, 2049, 11_300].map(capacity), [64, 64, 64, 128, 2176, 11_520]);
    }
}
