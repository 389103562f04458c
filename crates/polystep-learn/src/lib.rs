//! Transformers that learn to simplify polynomials: the model, its training and its decoding.

pub mod decode;
pub mod model;
