//! Which stream a launch goes to, and for whom it waits.
//!
//! Launches say what they read and write; the order between two of them follows from that alone (read after write, write
//! after read, write after write), so a slot that the program reuses is never overwritten under a reader on another
//! stream. In a captured graph streams are only a way to write down these edges. Vector clocks leave out edges that follow
//! from others. This file knows nothing of CUDA.

use std::collections::HashMap;

/// Something that launches read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Res {
    /// An activation.
    Slot(u32),
    /// The gradient of the param at this offset.
    Grad(usize),
    /// Partial sums of an op.
    Partial(usize, u8),
    /// Buffers of the executor: 0 rows of the loss, 1 the result, 2 the partial squares.
    Shared(u8),
}

/// On the critical path, or beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    Main,
    Side,
}

#[derive(Default)]
struct Access {
    writer: Option<usize>,
    readers: Vec<usize>,
}

struct Node {
    stream: usize,
    clock: Vec<usize>,
}

/// Where the next launch goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Placement {
    /// Its number; node 0 is the begin of the main stream.
    pub(super) node: usize,
    pub(super) stream: usize,
    /// Nodes on other streams to wait for.
    pub(super) waits: Vec<usize>,
}

/// The launches so far.
pub(super) struct Schedule {
    nodes: Vec<Node>,
    /// For each stream: how far into every other stream its next launch is ordered after.
    clocks: Vec<Vec<usize>>,
    last: Vec<usize>,
    access: HashMap<Res, Access>,
}

impl Schedule {
    /// One main stream and `sides` others.
    pub(super) fn new(sides: usize) -> Self {
        let streams = sides + 1;
        let mut clocks = vec![vec![0; streams]; streams];
        clocks[0][0] = 1;
        let begin = Node { stream: 0, clock: clocks[0].clone() };
        Schedule { nodes: vec![begin], clocks, last: vec![0; streams], access: HashMap::new() }
    }

    /// Places the next launch.
    pub(super) fn place(&mut self, lane: Lane, reads: &[Res], writes: &[Res]) -> Placement {
        let stream = match lane {
            Lane::Main => 0,
            Lane::Side => (1..self.last.len()).min_by_key(|s| self.last[*s]).unwrap_or(0),
        };
        let mut before = vec![0]; // node 0: a side stream must enter the capture through the main one
        for res in reads {
            before.extend(self.access.get(res).and_then(|a| a.writer));
        }
        for res in writes {
            if let Some(access) = self.access.get(res) {
                before.extend(access.writer);
                before.extend(&access.readers);
            }
        }
        let waits = self.wait(stream, before);
        let node = self.nodes.len();
        self.clocks[stream][stream] = node + 1;
        self.nodes.push(Node { stream, clock: self.clocks[stream].clone() });
        self.last[stream] = node;
        for res in reads {
            self.access.entry(*res).or_default().readers.push(node);
        }
        for res in writes {
            self.access.insert(*res, Access { writer: Some(node), readers: Vec::new() });
        }
        Placement { node, stream, waits }
    }

    /// Brings every side stream back to the main one.
    pub(super) fn join(&mut self) -> Vec<usize> {
        let ends = self.last[1..].to_vec();
        self.wait(0, ends)
    }

    fn wait(&mut self, stream: usize, before: Vec<usize>) -> Vec<usize> {
        let mut newest = vec![None; self.last.len()];
        for node in before {
            let other = self.nodes[node].stream;
            if other != stream && node >= self.clocks[stream][other] {
                newest[other] = newest[other].max(Some(node));
            }
        }
        let mut waits: Vec<usize> = newest.into_iter().flatten().collect();
        waits.sort_unstable_by(|a, b| b.cmp(a));
        waits.retain(|&node| {
            let needed = node >= self.clocks[stream][self.nodes[node].stream];
            for (mine, theirs) in self.clocks[stream].iter_mut().zip(&self.nodes[node].clock) {
                *mine = (*mine).max(*theirs);
            }
            needed
        });
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_slot_waits_for_its_reader_on_a_side_stream() {
        let mut s = Schedule::new(2);
        let (a, b) = (Res::Slot(0), Res::Slot(1));
        assert_eq!(s.place(Lane::Main, &[], &[a]), Placement { node: 1, stream: 0, waits: vec![] });
        let side = s.place(Lane::Side, &[a], &[Res::Grad(0)]);
        assert_eq!(side, Placement { node: 2, stream: 1, waits: vec![1] });
        assert_eq!(s.place(Lane::Main, &[a], &[b]).waits, vec![]);
        // Overwrites what node 2 reads.
        assert_eq!(s.place(Lane::Main, &[b], &[a]).waits, vec![2]);
        // The first launch of another side stream enters through the main stream's begin; then waits for its writer.
        assert_eq!(s.place(Lane::Side, &[], &[Res::Grad(64)]), Placement { node: 5, stream: 2, waits: vec![0] });
        // Node 2 is known to the main stream already.
        assert_eq!(s.join(), vec![5]);
        assert_eq!(s.join(), vec![]);
    }

    #[test]
    fn an_order_that_follows_from_another_is_not_written_down() {
        let mut s = Schedule::new(1);
        let (a, g) = (Res::Slot(0), Res::Grad(0));
        s.place(Lane::Main, &[], &[a]);
        s.place(Lane::Side, &[a], &[g]);
        assert_eq!(s.place(Lane::Main, &[g], &[a]).waits, vec![2]);
        assert_eq!(s.place(Lane::Main, &[a], &[g]).waits, vec![]);
    }
}
