//! Random expressions, their value, and the many ways to type them, for tests only.

use proptest::prelude::*;

use crate::value::{self, Value};

/// An expression as a mathematician thinks of it.
#[derive(Clone, Debug)]
pub enum Expression {
    Number(u32),
    Variable(usize),
    Negative(Box<Expression>),
    Power(Box<Expression>, u32),
    Product(Vec<Expression>),
    Sum(Vec<Expression>),
}

/// A random expression in four variables, small enough to be within the limits often.
pub fn expression() -> impl Strategy<Value = Expression> {
    let leaf = prop_oneof![(0u32..30).prop_map(Expression::Number), (0usize..4).prop_map(Expression::Variable)];
    leaf.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            1 => inner.clone().prop_map(|e| Expression::Negative(Box::new(e))),
            1 => (inner.clone(), 0u32..4).prop_map(|(e, power)| Expression::Power(Box::new(e), power)),
            3 => prop::collection::vec(inner.clone(), 2..4).prop_map(Expression::Product),
            3 => prop::collection::vec(inner, 2..5).prop_map(Expression::Sum),
        ]
    })
}

impl Expression {
    /// The value, computed without any reading.
    pub fn value(&self) -> Value {
        match self {
            Expression::Number(n) => value::term((*n).into(), [0; 8]),
            Expression::Variable(v) => value::term(1, std::array::from_fn(|i| u32::from(i == *v))),
            Expression::Negative(e) => value::multiply(&value::term(-1, [0; 8]), &e.value()),
            Expression::Power(e, power) => {
                let base = e.value();
                (0..*power).fold(value::term(1, [0; 8]), |product, _| value::multiply(&product, &base))
            }
            Expression::Product(factors) => {
                factors.iter().fold(value::term(1, [0; 8]), |product, f| value::multiply(&product, &f.value()))
            }
            Expression::Sum(summands) => summands.iter().map(Expression::value).fold(Value::new(), value::add),
        }
    }
}

/// Types an expression with these names, in a spelling that `choices` draws.
pub fn write(expression: &Expression, names: &[&str; 4], choices: u64) -> String {
    let mut writer = Writer { names, choices, text: String::new() };
    writer.sum(expression);
    let text = writer.text;
    match choices % 5 {
        0 => format!("${text}$"),
        1 => format!(" \\[ {text} \\]"),
        _ => text,
    }
}

struct Writer<'a> {
    names: &'a [&'a str; 4],
    choices: u64,
    text: String,
}

impl Writer<'_> {
    /// One of these, drawn by a small generator.
    fn pick<'b>(&mut self, from: &[&'b str]) -> &'b str {
        self.choices = self.choices.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        from[(self.choices >> 33) as usize % from.len()]
    }

    fn put(&mut self, from: &[&str]) {
        let picked = self.pick(from);
        self.text.push_str(picked);
    }

    /// A sum, or anything that may stand as one summand.
    fn sum(&mut self, expression: &Expression) {
        let Expression::Sum(summands) = expression else { return self.product(expression) };
        for (i, summand) in summands.iter().enumerate() {
            match summand {
                Expression::Negative(e) => {
                    self.put(&["-", " - ", "−", "–"]);
                    self.product(e);
                }
                _ => {
                    if i > 0 {
                        self.put(&["+", " + "]);
                    }
                    self.product(summand);
                }
            }
        }
    }

    fn product(&mut self, expression: &Expression) {
        let Expression::Product(factors) = expression else { return self.power(expression) };
        for (i, factor) in factors.iter().enumerate() {
            let begins_with_sign_or_number = !matches!(factor, Expression::Variable(_) | Expression::Sum(_));
            if i > 0 && begins_with_sign_or_number {
                self.put(&["*", " * ", "·", "×", "\\cdot ", "\\times "]);
            } else if i > 0 {
                self.put(&["*", " ", "·", "\\cdot ", "\\,"]);
            }
            self.power(factor);
        }
    }

    fn power(&mut self, expression: &Expression) {
        let Expression::Power(base, exponent) = expression else { return self.atom(expression) };
        match **base {
            Expression::Number(_) | Expression::Variable(_) => self.atom(base),
            _ => self.parentheses(base),
        }
        let (n, raised) = (exponent.to_string(), "⁰¹²³".chars().nth(*exponent as usize).unwrap());
        let (brace, round, stars) = (format!("^{{{n}}}"), format!("^({n})"), format!("**{n}"));
        self.put(&[&format!("^{n}"), &brace, &round, &stars, &format!("^ {n}"), &raised.to_string()]);
    }

    fn atom(&mut self, expression: &Expression) {
        match expression {
            Expression::Number(n) => self.text.push_str(&n.to_string()),
            Expression::Variable(v) => self.name(*v),
            Expression::Negative(e) => {
                self.put(&["-", "−"]);
                self.power(e);
            }
            _ => self.parentheses(expression),
        }
    }

    /// A name, with its index in one of four spellings.
    fn name(&mut self, variable: usize) {
        let name = self.names[variable];
        let letter = name.chars().next().unwrap();
        let index = &name[letter.len_utf8()..];
        let spelled = match (letter, index) {
            ('α', _) => self.pick(&["α", "\\alpha "]).to_owned(),
            (_, "") => name.to_owned(),
            _ => {
                let lowered = index.chars().map(|d| char::from_u32('₀' as u32 + d.to_digit(10).unwrap()).unwrap());
                let lowered: String = lowered.collect();
                let ways = [
                    name.to_owned(),
                    format!("{letter}_{index}"),
                    format!("{letter}_{{{index}}}"),
                    format!("{letter}{lowered}"),
                ];
                self.pick(&ways.each_ref().map(String::as_str)).to_owned()
            }
        };
        self.text.push_str(&spelled);
    }

    fn parentheses(&mut self, expression: &Expression) {
        let (open, close) = match self.pick(&["round", "square", "tall"]) {
            "round" => ("(", ")"),
            "square" => ("[", "]"),
            _ => ("\\left( ", "\\right)"),
        };
        self.text.push_str(open);
        self.sum(expression);
        self.text.push_str(close);
    }
}
