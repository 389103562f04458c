//! The names of variables: a letter, or a letter with an index.
//!
//! The language has the variables x1 to x8. If every name is one of x1 … x8, each keeps its number. Otherwise the names are
//! sorted by letter and then by index, and numbered in that order: `y` alone is x1. A letter without an index beside the same
//! letter with one (`x` and `x1`) is refused, because it may be a slip for either.

use std::fmt;
use std::ops::Range;

use super::error::{TypedError, TypedProblem};
use super::symbol::{Symbol, SymbolKind};
use crate::monomial::MAX_VARS;

/// A letter, perhaps with an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name {
    /// The letter.
    pub letter: char,
    /// The index; `x2`, `x_2`, `x_{2}` and `x₂` all have the index 2.
    pub index: Option<u32>,
}

impl Name {
    /// Its number, if it is one of x1 … x8, in capitals or not.
    fn number(self) -> Option<usize> {
        let index = self.index.filter(|_| self.letter.eq_ignore_ascii_case(&'x'))? as usize;
        (1..=MAX_VARS).contains(&index).then_some(index)
    }

    /// Names are sorted by this key: the letter in either case, capitals first, then the index.
    fn key(self) -> (String, char, Option<u32>) {
        (self.letter.to_lowercase().to_string(), self.letter, self.index)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.letter)?;
        self.index.map_or(Ok(()), |index| write!(f, "{index}"))
    }
}

/// Which name stands for which variable.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Names([Option<Name>; MAX_VARS]);

impl Names {
    /// Gives every name among the symbols its variable.
    pub(super) fn of(symbols: &[Symbol]) -> Result<Names, TypedError> {
        let mut found: Vec<(Name, Range<usize>)> = Vec::new();
        for symbol in symbols {
            let SymbolKind::Name(name) = symbol.kind else { continue };
            let same_letter = |other: &&(Name, _)| other.0.letter == name.letter;
            let fail = |problem| Err(TypedError::new(problem, symbol.span.clone()));
            if found.iter().any(|other| other.0 == name) {
                continue;
            }
            if let Some(other) = found.iter().find(same_letter).filter(|o| o.0.index.is_none() || name.index.is_none())
            {
                return fail(TypedProblem::WithAndWithoutIndex(name, other.0));
            }
            if found.len() == MAX_VARS {
                return fail(TypedProblem::TooManyNames);
            }
            found.push((name, symbol.span.clone()));
        }
        let mut all: Vec<Name> = found.into_iter().map(|f| f.0).collect();
        all.sort_by_key(|name| name.key());
        let one_letter = all.windows(2).all(|pair| pair[0].letter == pair[1].letter);
        let keep_numbers = one_letter && all.iter().all(|name| name.number().is_some());
        let mut names = Names::default();
        for (place, name) in all.into_iter().enumerate() {
            let variable = name.number().filter(|_| keep_numbers).map_or(place, |number| number - 1);
            names.0[variable] = Some(name);
        }
        Ok(names)
    }

    /// The user's name for the variable x_{variable+1}, if it has one.
    pub fn get(&self, variable: usize) -> Option<Name> {
        self.0.get(variable).copied().flatten()
    }

    /// The variable that has this name.
    pub(super) fn variable(&self, name: Name) -> Option<usize> {
        self.0.iter().position(|&n| n == Some(name))
    }

    /// A text of the strict infix language, with the user's names in place of x1 to x8.
    pub fn rename(&self, text: &str) -> String {
        let mut renamed = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('x') {
            let digit = rest[at + 1..].chars().next().and_then(|c| c.to_digit(10));
            let name = digit.and_then(|d| self.get((d as usize).checked_sub(1)?));
            let end = if name.is_some() { at + 2 } else { at + 1 };
            renamed.push_str(&rest[..at]);
            match name {
                Some(name) => renamed.push_str(&name.to_string()),
                None => renamed.push('x'),
            }
            rest = &rest[end..];
        }
        renamed + rest
    }

    /// LaTeX of a proof, with the user's names in place of x_{1} to x_{8}.
    pub fn rename_latex(&self, text: &str) -> String {
        let mut renamed = text.to_owned();
        // A placeholder stands between, so that a name such as `x2` is not taken for a variable of the language.
        for variable in 0..MAX_VARS {
            if self.get(variable).is_some() {
                renamed = renamed.replace(&format!("x_{{{}}}", variable + 1), &format!("\u{0}{variable}"));
            }
        }
        for variable in 0..MAX_VARS {
            if let Some(Name { letter, index }) = self.get(variable) {
                let index = index.map_or(String::new(), |index| format!("_{{{index}}}"));
                renamed = renamed.replace(&format!("\u{0}{variable}"), &format!("{letter}{index}"));
            }
        }
        renamed
    }
}
