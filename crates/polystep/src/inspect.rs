//! Judging one record for `polystep check`: which step was expected from this input, and how what was written compares.
//! Each step is judged from its own input, as the paper's teacher forcing does; that the steps of a proof form a chain from
//! its start to its end is judged separately.

use polystep_core::judge::untagged;
use polystep_core::{
    Granularity, Line, Notation, NotationError, PredictionRecord, Proof, ProofRecord, Setting, State, StepKind, Style,
    Verdict, check_step, judge, judge_text, next_step, notation, token,
};

/// What was found out about one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of step that was expected.
    pub kind: StepKind,
    /// How it turned out.
    pub verdict: Verdict,
    /// Unless it is exact: why, in a sentence.
    pub sentence: String,
    /// Which step of its proof.
    pub step: usize,
    /// What was read.
    pub input: String,
    /// What was written.
    pub output: String,
}

/// What was found out about one record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The id of the proof.
    pub id: String,
    /// One per step.
    pub steps: Vec<Finding>,
    /// A proof whose steps are no chain from its start to its end, in a sentence.
    pub broken: Option<String>,
}

/// How texts of a record are to be read.
#[derive(Clone, Copy, Debug)]
struct Reading {
    setting: Setting,
    granularity: Granularity,
    notation: Notation,
    style: Style,
}

/// Judges every step of a proof, and the chain.
pub fn proof(record: &ProofRecord) -> Findings {
    let ProofRecord { setting, granularity, notation, style, .. } = *record;
    let reading = Reading { setting, granularity, notation, style };
    let finding = |(step, s): (usize, &polystep_core::StepRecord)| {
        let (kind, verdict, sentence) = match reading.expected(&s.input) {
            Err(sentence) => (s.kind, Verdict::Malformed, sentence),
            Ok(line) if line.kind != s.kind => (
                line.kind,
                Verdict::SameValue,
                format!("It is called {}, but a {} is expected here.", s.kind, line.kind),
            ),
            Ok(line) => {
                let (verdict, sentence) = reading.compare(&line, &s.input, &s.target);
                (line.kind, verdict, sentence)
            }
        };
        Finding { kind, verdict, sentence, step, input: s.input.clone(), output: s.target.clone() }
    };
    let steps = record.steps.iter().enumerate().map(finding).collect();
    Findings { id: record.id.clone(), steps, broken: reading.broken_chain(record) }
}

/// Judges the best answer of a prediction against its target.
pub fn prediction(record: &PredictionRecord, granularity: Option<Granularity>, setting: Option<Setting>) -> Findings {
    let PredictionRecord { kind, input, target, .. } = record;
    let notation = if input.contains("INT+") { Notation::Prefix } else { Notation::Infix };
    let setting = setting.unwrap_or_else(|| guess_setting(*kind, input, target));
    let style = Style::default();
    let output = record.beams.first().map_or("", |beam| beam.output.as_str());
    let judged = judge_text(*kind, setting, notation, style, target, output);
    let verdict = verdict(judged);
    let sentence = if verdict == Verdict::Exact {
        String::new()
    } else {
        // A prediction does not say its granularity: take the one whose step leads to the target.
        let candidates = [Granularity::COARSE, Granularity::FINE, Granularity::FINE_COUNTED];
        let leads = |g: &Granularity| {
            let reading = Reading { setting, granularity: *g, notation, style };
            reading.expected(input).is_ok_and(|line| token::decode(&line.target, notation) == *target)
        };
        let granularity = granularity.or_else(|| candidates.into_iter().find(leads)).unwrap_or_default();
        Reading { setting, granularity, notation, style }.explain(*kind, input, target, output, verdict)
    };
    let finding =
        Finding { kind: *kind, verdict, sentence, step: record.step, input: input.clone(), output: output.into() };
    Findings { id: record.proof.clone(), steps: vec![finding], broken: None }
}

fn guess_setting(kind: StepKind, input: &str, target: &str) -> Setting {
    match kind {
        StepKind::Add | StepKind::Mul => Setting::Arithmetic,
        StepKind::Endpoint => Setting::Endpoint,
        _ if input.contains('$') => Setting::Annotated,
        _ if target.contains('[') => Setting::Calculator,
        _ => Setting::Plain,
    }
}

fn verdict(judged: polystep_core::Judgement) -> Verdict {
    match judged {
        j if j.exact => Verdict::Exact,
        j if j.symbolic => Verdict::SameValue,
        j if j.malformed => Verdict::Malformed,
        _ => Verdict::WrongValue,
    }
}

impl Reading {
    /// The step that is expected from this input.
    fn expected(&self, input: &str) -> Result<Line, String> {
        let Reading { setting, granularity, notation, style } = *self;
        if setting == Setting::Arithmetic {
            return exercise(input, notation).ok_or_else(|| format!("{input} is not a sum or product of two numbers."));
        }
        let tokens = token::encode(input).map_err(|e| format!("The input cannot be read: {e}."))?;
        let (state_tokens, marking) = match setting {
            Setting::Annotated => {
                let state = untagged(&tokens).ok_or("The input has no tag.")?;
                (state, tokens[0] == token::MARK)
            }
            _ => (tokens, false),
        };
        let unreadable = |e: NotationError| format!("The input cannot be read: {e}.");
        let (state, _) = notation::parse_tokens(&state_tokens, notation, style).map_err(unreadable)?;
        let finished = || "The input is already the endpoint.".to_owned();
        let proof = if setting == Setting::Endpoint {
            Proof::of(&state, granularity, style).map_err(|e| format!("It cannot be simplified: {e}."))?
        } else {
            let step = next_step(&state, granularity, style).map_err(|e| format!("It cannot be simplified: {e}."))?;
            Proof { start: state, steps: step.into_iter().collect() }
        };
        let lines = proof.lines(setting, notation, style);
        let wanted = if setting == Setting::Annotated && !marking { 1 } else { 0 };
        lines.into_iter().nth(wanted).ok_or_else(finished)
    }

    /// The verdict on `output`, and a sentence unless it is exact.
    fn compare(&self, line: &Line, input: &str, output: &str) -> (Verdict, String) {
        let Reading { setting, notation, style, .. } = *self;
        let Ok(tokens) = token::encode(output) else {
            return (Verdict::Malformed, "It holds something that is not part of the language.".into());
        };
        let verdict = verdict(judge(line.kind, setting, notation, style, &line.target, &tokens));
        if verdict == Verdict::Exact {
            return (verdict, String::new());
        }
        let target = token::decode(&line.target, notation);
        (verdict, self.explain(line.kind, input, &target, output, verdict))
    }

    /// What is wrong with an output, as a sentence.
    fn explain(&self, kind: StepKind, input: &str, target: &str, output: &str, verdict: Verdict) -> String {
        let expected = format!("Expected {target}.");
        if matches!(self.setting, Setting::Arithmetic | Setting::Endpoint) || kind == StepKind::Markstep {
            return expected;
        }
        let without_tag = |text: &str| text.rsplit('$').next().unwrap_or_default().replace('#', "");
        let read = |text: &str| notation::parse(&without_tag(text), self.notation, self.style).ok();
        let Some(before) = read(input) else {
            return expected;
        };
        match check_step(&before, &without_tag(output), self.granularity, self.notation, self.style) {
            Ok(check) if check.verdict == verdict => check.sentence,
            // The checker for people reads generously: what is left is a matter of writing.
            Ok(_) => format!("It is not written as the language writes it. {expected}"),
            Err(error) => format!("It cannot be checked: {error}. {expected}"),
        }
    }

    /// Whether the steps lead from the start to the end.
    fn broken_chain(&self, record: &ProofRecord) -> Option<String> {
        if self.setting == Setting::Arithmetic {
            return None;
        }
        let bare = |text: &str| text.rsplit("$ ").next().unwrap_or_default().replace('#', "");
        let mut now = record.start.clone();
        for (i, step) in record.steps.iter().enumerate() {
            if bare(&step.input) != now {
                return Some(format!("Step {i} does not begin where the one before it ended, with {now}."));
            }
            now = step.next.clone().unwrap_or_else(|| bare(&step.target));
            if step.next.is_some() && self.value_text(&step.target) != Some(now.clone()) {
                return Some(format!("Step {i}: `next` is not what the brackets of `target` come to."));
            }
        }
        if now != record.end {
            return Some(format!("The last step ends with {now}, but the record's end is {}.", record.end));
        }
        match notation::parse(&record.end, self.notation, self.style) {
            Ok(State::Bare(_)) => None,
            _ => Some("The end is not in normal form.".into()),
        }
    }

    /// A text with its brackets evaluated.
    fn value_text(&self, text: &str) -> Option<String> {
        let tokens = token::encode(text).ok()?;
        let evaluated = polystep_core::judge::evaluate_brackets(&tokens, self.notation)?;
        Some(token::decode(&evaluated, self.notation))
    }
}

/// The arithmetic probe's `a+b` or `a*b`, with its answer.
fn exercise(input: &str, notation: Notation) -> Option<Line> {
    let (operator, a, b) = match notation {
        Notation::Infix => {
            let at = input.find(['+', '*'])?;
            (&input[at..=at], input[..at].to_owned(), input[at + 1..].to_owned())
        }
        Notation::Prefix => {
            let (operator, rest) = input.split_once(" INT+ ")?;
            let (a, b) = rest.split_once(" INT+ ")?;
            (operator, a.replace(' ', ""), b.replace(' ', ""))
        }
    };
    let (a, b): (u64, u64) = (a.parse().ok()?, b.parse().ok()?);
    let (kind, value) = match operator {
        "+" => (StepKind::Add, a.checked_add(b)?),
        "*" => (StepKind::Mul, a.checked_mul(b)?),
        _ => return None,
    };
    let digits = value.to_string();
    let target = match notation {
        Notation::Infix => digits,
        Notation::Prefix => format!("INT+ {}", digits.chars().map(String::from).collect::<Vec<_>>().join(" ")),
    };
    Some(Line { kind, input: token::encode(input).ok()?, target: token::encode(&target).ok()?, next: None })
}
