//! The cuda device.
