//! The lines of a proof as a model sees them, written one at a time: only the current state and its tokens are held.

use super::{Line, Setting, Writing};
use crate::expr::State;
use crate::notation::{Open, laid_out, write_tokens};
use crate::poly::ArithmeticError;
use crate::proof::{Proof, Rewrite, StepKind, Walk};
use crate::token;

/// The lines of a proof. [`Writing::lines`] makes it.
#[derive(Clone, Debug)]
pub struct Lines {
    writing: Writing,
    walk: Walk,
    /// The tokens of the walk's state.
    tokens: Vec<u8>,
    /// The line that writes the whole proof at once.
    whole: Option<Line>,
    /// The line that follows the one just written: the step whose operand was marked.
    second: Option<Line>,
    left: usize,
}

impl Lines {
    pub(super) fn new(writing: Writing, proof: &Proof) -> Lines {
        let steps = proof.kinds().len();
        let left = match writing.setting {
            Setting::Plain | Setting::Calculator => steps,
            // Mark, operate, …, mark the end.
            Setting::Annotated => 2 * steps + 1,
            Setting::Endpoint => steps.min(1),
            Setting::Arithmetic => 0,
        };
        let tokens = writing.tokens(proof.start(), &Open::new());
        let whole = (writing.setting == Setting::Endpoint && left > 0).then(|| {
            let target = writing.tokens(proof.end(), &Open::new());
            line(StepKind::Endpoint, tokens.clone(), target)
        });
        let walk = if writing.setting == Setting::Calculator { proof.walk_open() } else { proof.walk() };
        Lines { writing, walk, tokens, whole, second: None, left }
    }

    /// The next state's tokens take the place of the last one's, which are returned.
    fn turn(&mut self) -> Vec<u8> {
        let tokens = self.writing.tokens(self.walk.state(), &Open::new());
        std::mem::replace(&mut self.tokens, tokens)
    }

    fn annotated(&mut self) -> Line {
        if let Some(second) = self.second.take() {
            return second;
        }
        let mark = tagged(token::MARK, &self.tokens);
        if self.left == 1 {
            return line(StepKind::Markstep, mark, tagged(token::END, &self.tokens));
        }
        let (_, layout) = laid_out(self.walk.state(), self.writing.notation, self.writing.style);
        let rewrite = self.walk.advance().expect("there are lines left");
        let operand = rewrite.operand.range(&layout);
        let mut state = self.turn();
        state.insert(operand.end, token::HASH);
        state.insert(operand.start, token::HASH);
        let marked = tagged(rewrite.kind.tag().expect("every step of a proof has a tag"), &state);
        self.second = Some(line(rewrite.kind, marked.clone(), tagged(token::MARK, &self.tokens)));
        line(StepKind::Markstep, mark, marked)
    }
}

impl Iterator for Lines {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        if self.left == 0 {
            return None;
        }
        let line = match self.writing.setting {
            Setting::Annotated => self.annotated(),
            Setting::Endpoint => self.whole.take()?,
            Setting::Plain | Setting::Calculator | Setting::Arithmetic => {
                let rewrite = self.walk.advance()?;
                let input = self.turn();
                self.writing.step_line(&rewrite, input, self.tokens.clone(), self.walk.state())
            }
        };
        self.left -= 1;
        Some(line)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Lines {}

fn line(kind: StepKind, input: Vec<u8>, target: Vec<u8>) -> Line {
    Line { kind, input, target, next: None }
}

/// `FAC $ (x1^1)*(2)+(3)`
fn tagged(tag: u8, state: &[u8]) -> Vec<u8> {
    [&[tag, token::DOLLAR], state].concat()
}

impl Writing {
    /// The first line of the plain or calculator's proof that starts here; none from an endpoint. The rest of the proof is not made, and
    /// its numbers may be too large.
    pub(super) fn first_line(&self, start: State) -> Result<Option<Line>, ArithmeticError> {
        let mut walk = Walk::new(start, self.granularity, self.style, self.setting == Setting::Calculator);
        let input = self.tokens(walk.state(), &Open::new());
        let Some(rewrite) = walk.try_advance()? else { return Ok(None) };
        let next = self.tokens(walk.state(), &Open::new());
        Ok(Some(self.step_line(&rewrite, input, next, walk.state())))
    }

    /// A plain or a calculator's step to a state, whose tokens are `next`.
    fn step_line(&self, rewrite: &Rewrite, input: Vec<u8>, next: Vec<u8>, state: &State) -> Line {
        let mut line = line(rewrite.kind, input, next);
        if self.setting == Setting::Calculator {
            let open = self.tokens(state, &rewrite.open);
            line.next = Some(std::mem::replace(&mut line.target, open));
        }
        line
    }

    pub(super) fn tokens(&self, state: &State, open: &Open) -> Vec<u8> {
        let mut tokens = Vec::new();
        write_tokens(state, open, self.notation, self.style, &mut tokens);
        tokens
    }
}
