//! Beam search, scored in two ways at once.
//!
//! The headline score is the summed log-probability. Its search ends when no live beam can beat the fifth finished one. A sum
//! only falls, so this is exact.
//!
//! `lp1` is the classic score, that of XLM, which earlier work on symbolic mathematics used: log-probability divided by length.
//! Its search ends with the step in which the fifth hypothesis finishes.
//!
//! The live beams are the same in both, because sum and mean give the same order at one length. For each source the 2·beam best
//! candidates are taken in order. A candidate that ends in `</s>` is finished; for `lp1` it counts only while the next live beams
//! are not full. The other candidates become the next live beams.

use super::{Branch, Hypothesis, Stepper, TopTokens};
use polystep_core::token::{BOS, EOS};
use polystep_engine::EngineError;

/// Beams per source in the paper's search.
pub const BEAM_WIDTH: usize = 5;

/// The finished hypotheses of one source, best first; at most `beam` in each list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BeamResult {
    /// By summed log-probability.
    pub headline: Vec<Hypothesis>,
    /// Those that finish until there are five, by log-probability divided by length (`</s>` counted).
    pub lp1: Vec<Hypothesis>,
}

/// A live beam.
#[derive(Clone, Debug)]
struct Live {
    tokens: Vec<u8>,
    score: f32,
    number: u32,
}

struct Search<'a> {
    beam: usize,
    live: Vec<Live>,
    headline: Vec<Hypothesis>,
    lp1: Vec<Hypothesis>,
    /// The one output that is searched for; all, unless given.
    wanted: Option<&'a [u8]>,
}

/// Searches for every source, in the order given, with `beam` beams each; 0 is 1.
pub fn beam_search(stepper: &mut dyn Stepper, sources: &[&[u8]], beam: usize) -> Result<Vec<BeamResult>, EngineError> {
    search(stepper, sources, None, beam)
}

/// Searches as [`beam_search`] does, but only for one output of each source, its wanted one. A search ends as soon as that cannot
/// become a beam any more, which saves most of the work where a model is lost. The answer is the beams, best first, if the wanted
/// output is one of them; else nothing.
pub fn find_in_beams(
    stepper: &mut dyn Stepper,
    sources: &[&[u8]],
    wanted: &[&[u8]],
    beam: usize,
) -> Result<Vec<Vec<Hypothesis>>, EngineError> {
    let found = search(stepper, sources, Some(wanted), beam)?;
    let beams = found.into_iter().zip(wanted).map(|(found, &wanted)| {
        let is_there = found.headline.iter().any(|h| h.tokens == wanted);
        if is_there { found.headline } else { Vec::new() }
    });
    Ok(beams.collect())
}

fn search(
    stepper: &mut dyn Stepper,
    sources: &[&[u8]],
    wanted: Option<&[&[u8]]>,
    beam: usize,
) -> Result<Vec<BeamResult>, EngineError> {
    let beam = beam.max(1);
    let mut answers = vec![BeamResult::default(); sources.len()];
    for group in groups(sources, stepper, beam) {
        let batch: Vec<&[u8]> = group.iter().map(|&i| sources[i]).collect();
        stepper.begin(&batch)?;
        let new = |(number, &i): (u32, &usize)| Search::new(beam, number, wanted.map(|wanted| wanted[i]));
        let mut searches: Vec<Search> = (0..).zip(&group).map(new).collect();
        let mut top = TopTokens::default();
        for position in 0..stepper.capacity().longest {
            let open = next_hypotheses(&mut searches);
            if open.is_empty() {
                break;
            }
            stepper.step(position, &open, beam + 1, &mut top)?;
            for search in &mut searches {
                search.advance(&top);
            }
        }
        for (i, search) in group.into_iter().zip(searches) {
            answers[i] = search.finish();
        }
    }
    Ok(answers)
}

/// Indices of the sources that the model can take, in groups that fit into memory. They are sorted by length, the longest first, so
/// that a group has sources of similar length.
pub(super) fn groups(sources: &[&[u8]], stepper: &dyn Stepper, per_source: usize) -> Vec<Vec<usize>> {
    let capacity = stepper.capacity();
    let mut order: Vec<usize> = (0..sources.len()).filter(|&i| sources[i].len() < capacity.longest).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(sources[i].len()));
    let size = (capacity.hypotheses / per_source).max(1);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut tokens = 0;
    for i in order {
        let len = sources[i].len() + 1;
        match groups.last_mut() {
            Some(group) if group.len() < size && tokens + len <= capacity.tokens => {
                group.push(i);
                tokens += len;
            }
            _ => {
                groups.push(vec![i]);
                tokens = len;
            }
        }
    }
    groups
}

/// Numbers the live beams of all searches. Each beam stores its number.
fn next_hypotheses(searches: &mut [Search<'_>]) -> Vec<Branch> {
    let mut open = Vec::new();
    for (source, search) in searches.iter_mut().enumerate() {
        for live in &mut search.live {
            open.push(Branch {
                source: source as u32,
                parent: live.number,
                token: live.tokens.last().copied().unwrap_or(BOS),
            });
            live.number = open.len() as u32 - 1;
        }
    }
    open
}

impl<'a> Search<'a> {
    fn new(beam: usize, number: u32, wanted: Option<&'a [u8]>) -> Self {
        let start = Live { tokens: Vec::new(), score: 0.0, number };
        Search { beam, live: vec![start], headline: Vec::new(), lp1: Vec::new(), wanted }
    }

    fn advance(&mut self, top: &TopTokens) {
        let mut candidates: Vec<(f32, usize, u8)> = Vec::with_capacity(self.live.len() * top.k);
        for (i, live) in self.live.iter().enumerate() {
            candidates.extend(top.of(live.number as usize).map(|(token, l)| (live.score + l, i, token)));
        }
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        let mut next = Vec::with_capacity(self.beam);
        let lp1_open = self.lp1.len() < self.beam;
        for &(score, i, token) in candidates.iter().take(2 * self.beam) {
            let parent = &self.live[i];
            if token == EOS {
                let hypothesis = Hypothesis { tokens: parent.tokens.clone(), logprob: score, finished: true };
                if lp1_open && next.len() < self.beam {
                    self.lp1.push(hypothesis.clone());
                }
                self.finished(hypothesis);
            } else if next.len() < self.beam {
                let mut tokens = Vec::with_capacity(parent.tokens.len() + 1);
                tokens.extend_from_slice(&parent.tokens);
                tokens.push(token);
                next.push(Live { tokens, score, number: parent.number });
            }
        }
        let best = next.first().map_or(f32::NEG_INFINITY, |l| l.score);
        let headline_done = self.headline.len() == self.beam && best <= self.headline[self.beam - 1].logprob;
        let over = match self.wanted {
            None => headline_done && self.lp1.len() >= self.beam,
            Some(wanted) => {
                let lives = next.iter().any(|live| wanted.starts_with(&live.tokens));
                headline_done || !(lives || self.headline.iter().any(|h| h.tokens == wanted))
            }
        };
        self.live = if over { Vec::new() } else { next };
    }

    fn finished(&mut self, hypothesis: Hypothesis) {
        let at = self.headline.partition_point(|h| h.logprob >= hypothesis.logprob);
        self.headline.insert(at, hypothesis);
        self.headline.truncate(self.beam);
    }

    fn finish(mut self) -> BeamResult {
        let mean = |h: &Hypothesis| h.logprob / (h.tokens.len() + 1) as f32;
        self.lp1.sort_by(|a, b| mean(b).total_cmp(&mean(a)));
        self.lp1.truncate(self.beam);
        BeamResult { headline: self.headline, lp1: self.lp1 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::toy::Toy;
    use super::*;

    /// Every output up to the limit, best first.
    fn exhaustive(toy: &Toy, source: &[u8]) -> Vec<(f32, Vec<u8>)> {
        let mut done = Vec::new();
        let mut open = vec![(0.0f32, Vec::new())];
        for position in 0..toy.max_tokens {
            let mut next = Vec::new();
            for (score, tokens) in open {
                let last = tokens.last().copied().unwrap_or(BOS);
                for (token, l) in toy.next(source, position, last) {
                    if token == EOS {
                        done.push((score + l, tokens.clone()));
                    } else {
                        next.push((score + l, [tokens.as_slice(), &[token]].concat()));
                    }
                }
            }
            open = next;
        }
        done.sort_by(|a, b| b.0.total_cmp(&a.0));
        done
    }

    #[test]
    fn a_wide_beam_finds_the_five_best_of_all() {
        let mut toy = Toy::new(3, 6);
        let sources: Vec<Vec<u8>> = (0..25).map(|i| vec![i]).collect();
        let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        // 3^5 hypotheses at most: a beam of 243 prunes nothing.
        let found = beam_search(&mut toy, &sources, 243).unwrap();
        for (source, result) in sources.iter().zip(found) {
            for (want, got) in exhaustive(&toy, source).iter().zip(&result.headline).take(5) {
                assert_eq!(want.1, got.tokens);
                assert!((want.0 - got.logprob).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn both_orders_hold_and_groups_do_not_matter() {
        let mut toy = Toy::new(4, 10);
        let sources: Vec<Vec<u8>> = (0..23).map(|i| vec![i; 1 + i as usize % 4]).collect();
        let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let all = beam_search(&mut toy, &sources, BEAM_WIDTH).unwrap();
        for (i, result) in all.iter().enumerate() {
            assert!(result.headline.is_sorted_by(|a, b| a.logprob >= b.logprob));
            let mean = |h: &Hypothesis| h.logprob / (h.tokens.len() + 1) as f32;
            assert!(result.lp1.is_sorted_by(|a, b| mean(a) >= mean(b)));
            let alone = beam_search(&mut toy, &sources[i..=i], BEAM_WIDTH).unwrap();
            assert_eq!(&alone[0], result);
        }
    }

    /// A search for one output finds it exactly where the whole search does, with the same beams.
    #[test]
    fn what_is_wanted_is_found_where_the_whole_search_finds_it() {
        let mut toy = Toy::new(4, 8);
        let sources: Vec<Vec<u8>> = (0..23).map(|i| vec![i; 1 + i as usize % 4]).collect();
        let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let all = beam_search(&mut toy, &sources, BEAM_WIDTH).unwrap();
        for n in 0..BEAM_WIDTH {
            let wanted: Vec<&[u8]> = all.iter().map(|found| found.headline[n].tokens.as_slice()).collect();
            let found = find_in_beams(&mut toy, &sources, &wanted, BEAM_WIDTH).unwrap();
            assert!(found.iter().zip(&all).all(|(found, all)| *found == all.headline), "beam {n}");
        }
        // What another source is answered with; found only where it happens to be a beam here, too.
        let wanted: Vec<&[u8]> = all.iter().rev().map(|found| found.headline[4].tokens.as_slice()).collect();
        let found = find_in_beams(&mut toy, &sources, &wanted, BEAM_WIDTH).unwrap();
        for ((found, all), wanted) in found.iter().zip(&all).zip(wanted) {
            let is_there = all.headline.iter().any(|h| h.tokens == wanted);
            assert_eq!(found, if is_there { &all.headline } else { &[][..] });
        }
        assert!(found.iter().any(Vec::is_empty));
    }

    /// A source needs one position for its `</s>`; an output that does not end within the limit is no answer of a beam.
    #[test]
    fn lengths_at_the_limit() {
        let mut toy = Toy::new(3, 6);
        let sources: [&[u8]; 4] = [&[4; 6], &[4; 5], &[], &[4; 60]];
        let found = beam_search(&mut toy, &sources, BEAM_WIDTH).unwrap();
        let answered = |r: &BeamResult| !r.headline.is_empty() && r.headline.iter().all(|h| h.tokens.len() < 6);
        assert_eq!(found.iter().map(answered).collect::<Vec<_>>(), [false, true, true, false]);
        assert_eq!(found[0], BeamResult::default());
        let greedy = super::super::greedy(&mut toy, &sources).unwrap();
        assert!(!greedy[0].finished && greedy[0].tokens.is_empty() && !greedy[1].tokens.is_empty());
        assert_eq!(beam_search(&mut toy, &[], BEAM_WIDTH).unwrap(), []);
        let one = |beam| beam_search(&mut Toy::new(3, 6), &sources, beam).unwrap();
        assert_eq!(one(0), one(1));
    }
}
