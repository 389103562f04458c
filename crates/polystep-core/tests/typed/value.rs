//! Signed polynomials by plain multiplication, for tests only: a map from exponents to coefficients.
//!
//! Coefficients wrap at 128 bits. Two values that are equal stay equal, so nothing is lost for a comparison.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use polystep_core::{Factor, Product, State, Term};

/// Coefficients by the exponents of x1 to x8, without zeros.
pub type Value = BTreeMap<[u32; 8], i128>;

/// The polynomial with one term.
pub fn term(coeff: i128, exponents: [u32; 8]) -> Value {
    if coeff == 0 { Value::new() } else { Value::from([(exponents, coeff)]) }
}

/// a + b
pub fn add(mut a: Value, b: Value) -> Value {
    for (exponents, coeff) in b {
        let sum = a.entry(exponents).or_default();
        *sum = sum.wrapping_add(coeff);
    }
    a.retain(|_, coeff| *coeff != 0);
    a
}

/// a · b
pub fn multiply(a: &Value, b: &Value) -> Value {
    let mut product = Value::new();
    for (left, c) in a {
        for (right, d) in b {
            let exponents = std::array::from_fn(|i| left[i] + right[i]);
            let sum = product.entry(exponents).or_default();
            *sum = sum.wrapping_add(c.wrapping_mul(*d));
        }
    }
    product.retain(|_, coeff| *coeff != 0);
    product
}

/// The value of a state, multiplied out.
pub fn of_state(state: &State) -> Value {
    let one_term = |t: &Term| {
        let exponents = std::array::from_fn(|v| u32::from(t.monomial.exponent(v)));
        term(t.coeff.into(), exponents)
    };
    let factor = |f: &Factor| f.0.iter().map(one_term).fold(Value::new(), add);
    let product = |p: &Product| p.0.iter().map(factor).fold(term(1, [0; 8]), |product, f| multiply(&product, &f));
    match state {
        State::Sum(products) => products.iter().map(product).fold(Value::new(), add),
        State::Bare(poly) => factor(&Factor::from(poly)),
    }
}

/// The polynomial in the strict infix language: degree descending, fewer variables first, then the higher exponent of x1,
/// of x2, … first.
pub fn text(value: &Value) -> String {
    let mut terms: Vec<_> = value.iter().collect();
    terms.sort_by_key(|(exponents, _)| {
        let variables = exponents.iter().filter(|&&e| e > 0).count();
        (Reverse(exponents.iter().sum::<u32>()), variables, Reverse(**exponents))
    });
    let mut text = String::new();
    for (exponents, &coeff) in terms {
        if coeff < 0 || !text.is_empty() {
            text.push(if coeff < 0 { '-' } else { '+' });
        }
        let powers = exponents.iter().enumerate().filter(|(_, e)| **e > 0);
        let mut parts: Vec<String> =
            powers.map(|(v, e)| if *e > 1 { format!("x{}^{e}", v + 1) } else { format!("x{}", v + 1) }).collect();
        if coeff.unsigned_abs() != 1 || parts.is_empty() {
            parts.insert(0, coeff.unsigned_abs().to_string());
        }
        text.push_str(&parts.join("*"));
    }
    if text.is_empty() { "0".to_owned() } else { text }
}
