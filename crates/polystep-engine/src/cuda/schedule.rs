//! Decides which stream a launch goes to, and which other launches it waits for.
//!
//! Each launch names what it reads and writes. The order of two launches follows from that alone: read after write, write after
//! read, write after write. So a slot that the program reuses is never overwritten while a launch on another stream still reads
//! it. In a captured graph, streams are only a way to express these edges. Vector clocks leave out edges that follow from others.
//! This file does not use CUDA.

use std::collections::HashMap;

/// Something that launches read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Resource {
    /// An activation.
    Slot(u32),
    /// The gradient of the param at this offset.
    Grad(usize),
    /// Partial sums of the op with this number.
    Partial(usize, Partial),
    /// Loss and arg-max of each row.
    RowLosses,
    /// What the step reports.
    StepResult,
    /// Partial sums of the squares of the gradient.
    Squares,
    /// Which hypothesis descends from which.
    Lineages,
    /// The best next tokens.
    BestTokens,
}

/// Which partial sums of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Partial {
    /// Gradients of rows before their norm.
    Rows,
    /// Of a norm's scale and shift, and of the bias before it.
    Norm,
    /// Of the token table.
    Tokens,
    /// Of the queries of an attention, by column.
    Queries,
    /// Of its keys.
    Keys,
    /// Of its values.
    Values,
    /// Of the columns of a gradient, by a separate pass.
    Columns,
    /// Of the columns of a product, one row per row of tiles.
    Tiles,
    /// Of the weight gradient of a layer with fp32 outputs.
    Outputs,
}

/// On the critical path, or beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// One of the first two streams: encoder and decoder are partly independent, so the critical path may fork.
    Critical,
    /// Any other stream.
    Side,
}

#[derive(Clone, Default)]
struct Access {
    writers: Vec<usize>,
    readers: Vec<usize>,
}

struct Node {
    stream: usize,
    clock: Vec<usize>,
}

/// Where the next launch goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Placement {
    /// Its number; node 0 is the begin of the first stream.
    pub(super) node: usize,
    pub(super) stream: usize,
    /// Nodes on other streams to wait for.
    pub(super) waits: Vec<usize>,
    /// Whether it waits only for a launch of its own stream. Then it may start before that launch has ended.
    pub(super) early: bool,
}

/// Streams of the critical path.
const MAINS: usize = 2;

/// The launches so far.
pub(super) struct Schedule {
    nodes: Vec<Node>,
    /// For each stream and every other one: the last launch there that is ordered before the next launch here.
    clocks: Vec<Vec<usize>>,
    last: Vec<usize>,
    access: HashMap<Resource, Access>,
    /// After a join everything goes to the first stream.
    joined: bool,
}

impl Schedule {
    /// Two main streams and `sides` others.
    pub(super) fn new(sides: usize) -> Self {
        let streams = sides + MAINS;
        let mut clocks = vec![vec![0; streams]; streams];
        clocks[0][0] = 1;
        let begin = Node { stream: 0, clock: clocks[0].clone() };
        Schedule { nodes: vec![begin], clocks, last: vec![0; streams], access: HashMap::new(), joined: false }
    }

    /// Places the next launch.
    pub(super) fn place(&mut self, path: Path, reads: &[Resource], writes: &[Resource]) -> Placement {
        let before = self.before(reads, writes);
        let stream = self.stream(path, reads);
        let place = self.put(stream, before);
        self.touch(&[place.node], reads, writes);
        place
    }

    /// Places launches that write different parts of the same resources. None of them waits for another.
    pub(super) fn place_together(&mut self, count: usize, reads: &[Resource], writes: &[Resource]) -> Vec<Placement> {
        let before = self.before(reads, writes);
        let mut places = Vec::new();
        for i in 0..count {
            let stream = self.stream(if i == 0 { Path::Critical } else { Path::Side }, reads);
            places.push(self.put(stream, before.clone()));
        }
        let nodes: Vec<usize> = places.iter().map(|p| p.node).collect();
        self.touch(&nodes, reads, writes);
        places
    }

    /// On the side: the stream that was unused for longest. On the critical path: the main stream that ends with a launch whose
    /// result is read, otherwise the one that was unused for longest.
    fn stream(&self, path: Path, reads: &[Resource]) -> usize {
        let oldest = |streams: std::ops::Range<usize>| streams.min_by_key(|s| self.last[*s]).unwrap_or(0);
        if self.joined {
            return 0;
        }
        if path == Path::Side {
            return oldest(MAINS..self.last.len());
        }
        let read: Vec<usize> =
            reads.iter().filter_map(|r| self.access.get(r)).flat_map(|a| a.writers.clone()).collect();
        (0..MAINS).find(|s| read.contains(&self.last[*s]) && self.last[*s] > 0).unwrap_or_else(|| oldest(0..MAINS))
    }

    fn before(&self, reads: &[Resource], writes: &[Resource]) -> Vec<usize> {
        let mut before = vec![0]; // node 0: every stream must enter the capture through the first one
        for res in reads {
            before.extend(self.access.get(res).into_iter().flat_map(|a| &a.writers));
        }
        for res in writes {
            before.extend(self.access.get(res).into_iter().flat_map(|a| a.writers.iter().chain(&a.readers)));
        }
        before
    }

    fn put(&mut self, stream: usize, before: Vec<usize>) -> Placement {
        let waits = self.wait(stream, before);
        let early = waits.is_empty() && self.last[stream] > 0 && !self.joined;
        let node = self.nodes.len();
        self.clocks[stream][stream] = node + 1;
        self.nodes.push(Node { stream, clock: self.clocks[stream].clone() });
        self.last[stream] = node;
        Placement { node, stream, waits, early }
    }

    fn touch(&mut self, nodes: &[usize], reads: &[Resource], writes: &[Resource]) {
        for res in reads {
            self.access.entry(*res).or_default().readers.extend(nodes);
        }
        for res in writes {
            self.access.insert(*res, Access { writers: nodes.to_vec(), readers: Vec::new() });
        }
    }

    /// Joins every stream to the first one, where the next launch goes.
    pub(super) fn join(&mut self) -> Vec<usize> {
        let ends = self.last[1..].to_vec();
        self.joined = true;
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
        let (a, b) = (Resource::Slot(0), Resource::Slot(1));
        assert_eq!(s.place(Path::Critical, &[], &[a]), Placement { node: 1, stream: 0, waits: vec![], early: false });
        let side = s.place(Path::Side, &[a], &[Resource::Grad(0)]);
        assert_eq!(side, Placement { node: 2, stream: 2, waits: vec![1], early: false });
        assert_eq!(s.place(Path::Critical, &[a], &[b]).waits, vec![]);
        // Overwrites what node 2 reads.
        assert_eq!(s.place(Path::Critical, &[b], &[a]).waits, vec![2]);
        // The first launch of another side stream enters through the first stream's begin.
        assert_eq!(
            s.place(Path::Side, &[], &[Resource::Grad(64)]),
            Placement { node: 5, stream: 3, waits: vec![0], early: false }
        );
        // Node 2 is known to the first stream already.
        assert_eq!(s.join(), vec![5]);
        assert_eq!(s.join(), vec![]);
        assert_eq!(s.place(Path::Side, &[], &[]).stream, 0);
    }

    #[test]
    fn an_order_that_follows_from_another_is_not_written_down() {
        let mut s = Schedule::new(1);
        let (a, g) = (Resource::Slot(0), Resource::Grad(0));
        s.place(Path::Critical, &[], &[a]);
        s.place(Path::Side, &[a], &[g]);
        assert_eq!(s.place(Path::Critical, &[a, g], &[a]).waits, vec![2]);
        assert_eq!(s.place(Path::Critical, &[a], &[g]).waits, vec![]);
    }

    #[test]
    fn independent_chains_run_beside_each_other_and_meet() {
        let mut s = Schedule::new(1);
        let [a, b, c, d] = [0, 1, 2, 3].map(Resource::Slot);
        assert_eq!(s.place(Path::Critical, &[], &[a]).stream, 0);
        assert_eq!(s.place(Path::Critical, &[a], &[b]).stream, 0);
        assert_eq!(s.place(Path::Critical, &[], &[c]).stream, 1);
        assert_eq!(s.place(Path::Critical, &[c], &[d]).stream, 1);
        assert_eq!(
            s.place(Path::Critical, &[b, d], &[a]),
            Placement { node: 5, stream: 0, waits: vec![4], early: false }
        );
    }

    #[test]
    fn launches_that_share_an_output_do_not_wait_for_each_other() {
        let mut s = Schedule::new(2);
        let (a, b) = (Resource::Slot(0), Resource::Slot(1));
        s.place(Path::Critical, &[], &[a]);
        let both = s.place_together(2, &[a], &[b]);
        assert_eq!(both[0], Placement { node: 2, stream: 0, waits: vec![], early: true });
        assert_eq!(both[1], Placement { node: 3, stream: 2, waits: vec![1], early: false });
        assert_eq!(s.place(Path::Critical, &[b], &[a]).waits, vec![3]);
    }
}
