//! The cpu device.
