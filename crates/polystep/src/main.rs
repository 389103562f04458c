//! polystep
fn main() {}
