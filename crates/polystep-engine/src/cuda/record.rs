//! Turns launches into nodes of a graph.
//!
//! A program is lowered twice before its first run. The first pass *prepares*: it allocates plans, partial sums and job tables, and
//! runs nothing. The second pass *captures* the launches, placed on streams. Both passes run the same code, so they cannot disagree
//! about what is needed. A third kind of pass, for `profile`, times the launches one by one.

use std::collections::HashMap;

use super::attention::Lengths;
use super::compile::Unit;
use super::driver::{Args, DeviceMemory, Event, Graph, Grid, Kernel};
use super::gemm::{Gemm, Operands};
use super::input::InputBlock;
use super::machine::{JobTable, Machine};
use super::schedule::{Partial, Path, Placement, Resource, Schedule};
use crate::{Dim, Param, Program, Result, Slot, View};

/// Label and microseconds of each launch.
pub(super) type Times = Vec<(String, f64)>;

/// The purpose of a pass.
pub(super) enum Mode {
    Prepare,
    Capture(Schedule),
    Profile(Times),
}

/// Something to launch.
pub(super) struct Work {
    pub(super) label: String,
    pub(super) call: Call,
}

pub(super) enum Call {
    Kernel(Kernel, Grid, Args),
    Gemm(Gemm, Operands),
}

/// Partial sums that an op has left: `count` rows, each `stride` numbers behind the one before.
#[derive(Clone, Copy)]
pub(super) struct Sums {
    pub(super) from: u64,
    pub(super) count: usize,
    pub(super) stride: usize,
    pub(super) res: Resource,
}

impl Sums {
    /// The same rows, from this column on.
    pub(super) fn column(self, first: usize) -> Sums {
        Sums { from: self.from + 4 * first as u64, ..self }
    }
}

/// Column sums of some columns of a slot.
#[derive(Clone, Copy)]
pub(super) struct Columns {
    pub(super) col: usize,
    pub(super) width: usize,
    pub(super) sums: Sums,
}

/// Partial sums to be added up into (a part of) a gradient.
struct Job {
    sums: Sums,
    to: Param,
    add: bool,
    write: Resource,
}

/// One lowering of one program for one pair of capacities.
pub(super) struct Recorder<'a> {
    pub(super) machine: &'a mut Machine,
    pub(super) program: usize,
    pub(super) rows: [usize; 2],
    /// Which lengths occur, see [`super::Cuda`].
    pub(super) lengths: Lengths,
    pub(super) block: InputBlock,
    pub(super) op: usize,
    mode: Mode,
    columns: HashMap<Slot, Vec<Columns>>,
    jobs: Vec<Job>,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(
        machine: &'a mut Machine,
        program: usize,
        rows: [usize; 2],
        lengths: Lengths,
        mode: Mode,
    ) -> Self {
        let block = InputBlock::new(&machine.limits, rows);
        Recorder { machine, program, rows, lengths, block, op: 0, mode, columns: HashMap::new(), jobs: Vec::new() }
    }

    /// Lowers every op, launches the reductions that are still pending, and ends the capture. Returns the graph (capture) or the
    /// timings (profile).
    pub(super) fn finish(mut self) -> Result<(Option<Graph>, Times)> {
        let ops = self.info().ops.clone(); // lowering changes the machine, and looks at other ops of the program
        let lowered = self.all(&ops);
        match self.mode {
            Mode::Capture(_) => {
                let graph = self.machine.streams[0].end_capture(); // even if lowering failed
                lowered.and(graph).map(|graph| (Some(graph), Vec::new()))
            }
            Mode::Profile(times) => lowered.map(|()| (None, times)),
            Mode::Prepare => lowered.map(|()| (None, Vec::new())),
        }
    }

    fn all(&mut self, ops: &[crate::Op]) -> Result {
        if let Mode::Capture(_) = self.mode {
            self.machine.need_events(1)?;
            self.machine.streams[0].begin_capture()?;
            self.machine.events[0].record(&self.machine.streams[0])?;
        }
        let mut rest = ops;
        while let [op, after @ ..] = rest {
            self.op = ops.len() - rest.len();
            rest = match after {
                [next, last @ ..] if self.fused(op, next)? => last,
                _ => {
                    self.lower(op)?;
                    after
                }
            };
        }
        self.flush(Path::Critical)?;
        self.join()
    }

    pub(super) fn info(&self) -> &Program {
        &self.machine.programs[self.program]
    }

    pub(super) fn at(&self, slot: Slot) -> u64 {
        self.machine.slot(slot)
    }

    pub(super) fn cols(&self, slot: Slot) -> usize {
        self.info().info(slot).cols
    }

    /// The same, or null.
    pub(super) fn at_if(&self, slot: Option<Slot>) -> u64 {
        slot.map_or(0, |slot| self.at(slot))
    }

    /// Where a view of bf16 values begins.
    pub(super) fn view(&self, view: View) -> u64 {
        self.at(view.slot) + 2 * view.col as u64
    }

    /// Rows of a slot in this graph.
    pub(super) fn rows_of(&self, slot: Slot) -> usize {
        match self.info().info(slot).rows {
            Dim::Tokens(side) => self.rows[side as usize],
            other => self.machine.most_rows(other),
        }
    }

    /// 0 for source, 1 for target, −1 for slots without padding rows.
    pub(super) fn side_of(&self, slot: Slot) -> i32 {
        match self.info().info(slot).rows {
            Dim::Tokens(side) => side as i32,
            _ => -1,
        }
    }

    /// Where a part of the input block begins.
    pub(super) fn input(&self, word: usize) -> u64 {
        self.machine.input.at + 4 * word as u64
    }

    /// The header of the input block.
    pub(super) fn head(&self) -> u64 {
        self.input(0)
    }

    pub(super) fn param(&self, param: Param) -> u64 {
        self.machine.params.at + 4 * param.offset as u64
    }

    pub(super) fn copy(&self, param: Param) -> u64 {
        self.machine.copy.at + 2 * param.offset as u64
    }

    pub(super) fn grad(&self, param: Param) -> u64 {
        self.machine.grads.at + 4 * param.offset as u64
    }

    /// Memory for partial sums of this op, the same in every graph of the program.
    pub(super) fn partial(&mut self, which: Partial, floats: usize) -> Result<u64> {
        let key = (self.program, self.op, which);
        if let Some(memory) = self.machine.partials.get(&key) {
            return Ok(memory.at);
        }
        let memory = DeviceMemory::new(floats * 4)?;
        let at = memory.at;
        self.machine.partials.insert(key, memory);
        Ok(at)
    }

    /// How many blocks divide the rows of a slot among themselves: in this graph, and at most in any graph (memory for their sums).
    pub(super) fn blocks(&self, slot: Slot, rows_each: usize, most: usize) -> (usize, usize) {
        let count = |rows: usize| rows.div_ceil(rows_each).clamp(1, most);
        (count(self.rows_of(slot)), count(self.machine.most_rows(self.info().info(slot).rows)))
    }

    /// Notes that a slot was overwritten: column sums of its old contents are no longer valid.
    pub(super) fn overwritten(&mut self, slot: Slot) {
        self.columns.remove(&slot);
    }

    /// Notes that column sums of a slot were left as partial sums.
    pub(super) fn summed(&mut self, slot: Slot, columns: Columns) {
        self.columns.entry(slot).or_default().push(columns);
    }

    /// The same for some columns of a slot. The other columns keep their sums.
    pub(super) fn summed_part(&mut self, slot: Slot, columns: Columns) {
        let all = self.columns.entry(slot).or_default();
        all.retain(|c| c.col + c.width <= columns.col || c.col >= columns.col + columns.width);
        all.push(columns);
    }

    /// Uses column sums left by the op that wrote `dy` as the gradient of `bias`, if they cover it.
    pub(super) fn bias_from_columns(&mut self, dy: View, bias: Param) -> Result<bool> {
        let (begin, end) = (dy.col, dy.col + bias.len());
        let mut pieces: Vec<Columns> = self.columns.get(&dy.slot).cloned().unwrap_or_default();
        pieces.retain(|c| c.col < end && c.col + c.width > begin);
        if pieces.iter().any(|c| c.col < begin || c.col + c.width > end)
            || pieces.iter().map(|c| c.width).sum::<usize>() != bias.len()
        {
            return Ok(false);
        }
        for c in pieces {
            let part = Param { offset: bias.offset + c.col - begin, rows: 1, cols: c.width };
            self.reduce(c.sums, part, false, Resource::Grad(bias.offset))?;
        }
        Ok(true)
    }

    /// Notes that partial sums are to be added up into (a part of) a gradient. One launch does this later for many of them.
    pub(super) fn reduce(&mut self, sums: Sums, to: Param, add: bool, write: Resource) -> Result {
        if self.jobs.iter().any(|job| job.to.offset == to.offset) {
            self.flush(Path::Side)?; // two jobs of one launch must not add to one number
        }
        self.jobs.push(Job { sums, to, add, write });
        Ok(())
    }

    /// The same for all of a parameter, whose gradient is overwritten.
    pub(super) fn reduce_into(&mut self, sums: Sums, to: Param) -> Result {
        self.reduce(sums, to, false, Resource::Grad(to.offset))
    }

    /// Launches the pending reductions.
    pub(super) fn flush(&mut self, path: Path) -> Result {
        if self.jobs.is_empty() {
            return Ok(());
        }
        let jobs = std::mem::take(&mut self.jobs);
        let pair = |a: usize, b: usize| a as u64 | (b as u64) << 32;
        let words = |Job { sums, to, add, .. }: &Job| {
            [sums.from, self.grad(*to), pair(sums.count, sums.stride), pair(to.len(), usize::from(*add))]
        };
        let key: Vec<u64> = jobs.iter().flat_map(words).collect();
        if !self.machine.tables.contains_key(&key) {
            let columns = |job: &Job| (0..job.to.len()).step_by(32);
            let blocks: Vec<[i32; 2]> =
                jobs.iter().enumerate().flat_map(|(i, job)| columns(job).map(move |c| [i as i32, c as i32])).collect();
            let (jobs, count) = (DeviceMemory::of(&key)?, blocks.len());
            let table = JobTable { jobs, blocks: DeviceMemory::of(&blocks)?, count };
            self.machine.tables.insert(key.clone(), table);
        }
        let table = &self.machine.tables[&key];
        let grid = Grid { blocks: (table.count, 1, 1), threads: (32, 8), shared: 0 };
        let args = Args::default().ptrs([table.jobs.at, table.blocks.at]);
        let reads: Vec<Resource> = jobs.iter().map(|job| job.sums.res).collect();
        let writes: Vec<Resource> = jobs.iter().map(|job| job.write).collect();
        let work = self.kernel(&Unit::new("optimiser.cu", &[]), "reduce", grid, args)?;
        self.submit(path, &reads, &writes, work)
    }

    /// The main stream waits for all others.
    pub(super) fn join(&mut self) -> Result {
        if let Mode::Capture(schedule) = &mut self.mode {
            for node in schedule.join() {
                self.machine.streams[0].after(&self.machine.events[node])?;
            }
        }
        Ok(())
    }

    /// A launch of one of our kernels, under the kernel's name.
    pub(super) fn kernel(&self, unit: &Unit, name: &'static str, grid: Grid, args: Args) -> Result<Work> {
        Ok(Work { label: name.into(), call: Call::Kernel(self.machine.kernel(unit, name)?, grid, args) })
    }

    fn work(machine: &Machine, work: &Work, stream: usize, early: bool) -> Result {
        let to = &machine.streams[stream];
        match &work.call {
            Call::Kernel(kernel, grid, args) => kernel.launch(*grid, args, early && machine.device.overlaps, to),
            Call::Gemm(gemm, at) => machine.gemms.run(gemm, at, &machine.workspaces[stream], to),
        }
    }

    fn capture(machine: &mut Machine, place: Placement, work: &Work) -> Result {
        machine.need_events(place.node + 1)?;
        let stream = &machine.streams[place.stream];
        for node in place.waits {
            stream.after(&machine.events[node])?;
        }
        Self::work(machine, work, place.stream, place.early)?;
        machine.events[place.node].record(stream)
    }

    /// Launches that write different rows of the same slots, side by side.
    pub(super) fn submit_together(&mut self, reads: &[Resource], writes: &[Resource], works: Vec<Work>) -> Result {
        if let Mode::Capture(schedule) = &mut self.mode {
            let places = schedule.place_together(works.len(), reads, writes);
            return places
                .into_iter()
                .zip(&works)
                .try_for_each(|(place, work)| Self::capture(self.machine, place, work));
        }
        works.into_iter().try_for_each(|work| self.submit(Path::Critical, reads, writes, work))
    }

    /// One launch: prepared, captured or timed.
    pub(super) fn submit(&mut self, path: Path, reads: &[Resource], writes: &[Resource], work: Work) -> Result {
        match (&mut self.mode, &work.call) {
            (Mode::Prepare, Call::Gemm(gemm, at)) => self.machine.gemms.prepare(gemm, at)?,
            (Mode::Prepare, Call::Kernel(..)) => {}
            (Mode::Capture(schedule), _) => {
                let place = schedule.place(path, reads, writes);
                Self::capture(self.machine, place, &work)?;
            }
            (Mode::Profile(times), _) => {
                let took = time(self.machine, &work)?;
                times.push((work.label, took));
            }
        }
        Ok(())
    }
}

/// Microseconds of one launch, from a graph of many of the same.
fn time(machine: &Machine, work: &Work) -> Result<f64> {
    const REPEAT: usize = 20;
    let stream = &machine.streams[0];
    stream.begin_capture()?;
    let captured = (0..REPEAT).try_for_each(|_| Recorder::work(machine, work, 0, true));
    let graph = stream.end_capture();
    captured?;
    let graph = graph?;
    let (begin, end) = (Event::new(true)?, Event::new(true)?);
    graph.launch(stream)?;
    begin.record(stream)?;
    graph.launch(stream)?;
    end.record(stream)?;
    end.wait()?;
    Ok(begin.microseconds(&end)? / REPEAT as f64)
}
